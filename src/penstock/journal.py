"""The journal: what was seen, decided and done, one JSON line each.

It is the audit log, the knowledge that survives a restart, and the input of replay. Lines are only ever appended:

    start      a loop (re)starts: policy, guards, shadows, and how
    sample     an observation that was only learned from
    decision   an observation and what the policy in control made of it; or, without one, what a shadow made of the last
    rescale    how carrying out the decision before it went
    event      something else worth knowing
    stop       a loop ended in good order

A decision is on disk before it is carried out, its outcome after: a kill between the two can be seen. What a kill
tears is the last line at most; it is cut off when the journal is opened again. Encoding is canonical: equal records
give equal bytes. A field at its empty default is left out, and 3.0 is written as 3: it is the same number.
"""

from __future__ import annotations

import fcntl
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from penstock.core import Decision, Observation, Reason
from penstock.errors import ConfigError, Damaged, Locked, Unavailable, Unsupported

SCHEMA = 1
_JSON = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
_START = b'{"kind":"start",'
_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)  # holds for all that a record contains


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy or a guard, as its name and configuration."""

    name: str
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShadowSetting:
    """A policy that only watches, with its own guards, under a label of its own."""

    label: str
    policy: Setting
    guards: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A loop starts; `resumed` means that it knows all that was learned before this line."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    kind: Literal["start"] = "start"
    schema: int = SCHEMA
    at: float
    policy: Setting
    guards: tuple[Setting, ...] = ()
    shadows: tuple[ShadowSetting, ...] = ()
    mode: Literal["live", "dry-run"] = "live"
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An observation that was learned from, with no decision of the policy in control."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    kind: Literal["sample"] = "sample"
    observation: Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What `by` decided; `proposed` is what the policy said before its guards. Only control carries the observation."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    kind: Literal["decision"] = "decision"
    at: float
    by: str
    role: Literal["control", "shadow"]
    proposed: int | None
    decision: Decision
    observation: Observation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    """How a change went: done, refused by the target, unavailable just then, or only advised.

    before, after: workers; the same where only their operators or nodes change.
    parallelism, nodes: the instances per operator and the nodes that were asked for, where the target can be told.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    kind: Literal["rescale"] = "rescale"
    at: float
    before: int | None
    after: int
    outcome: Literal["done", "refused", "unavailable", "dry-run"]
    sentence: str
    parallelism: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something else worth knowing."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    kind: Literal["event"] = "event"
    at: float
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The loop ended in good order."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    kind: Literal["stop"] = "stop"
    at: float
    reason: Reason


Record = Start | Sample | Decided | Rescale | Event | Stop
_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


def encode(record: Record) -> bytes:
    """The line of a record, newline included; ValueError for a number that is not finite."""
    return _JSON.encode(_plain(record)).encode() + b"\n"


def decode(line: bytes, where: str = "journal") -> Record:
    """The record of a line; `where` names the line in errors."""
    try:
        return _RECORD.validate_json(line)
    except ValidationError as error:
        raise Damaged(f"{where}: not a record of a journal: {_first(error)}") from None


def read(path: Path | str) -> Iterator[Record]:
    """The records of a journal, in order. A torn last line is left out with a warning; any other damage is an error."""
    path = Path(path)
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigError(f"journal must be a file that can be read, got {str(path)!r}: {error.strerror}") from None
    with file:
        number = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                _warn_torn(path, len(line))
                return
            yield _checked(line, path, number)
        if number == 0:
            raise ConfigError(f"journal must have at least one line, got {str(path)!r}, which is empty")


def last_requested(records: Iterable[Record]) -> int | None:
    """How many workers were last asked for; None if that was never known."""
    requested = None
    for record in records:
        if isinstance(record, Rescale) and record.outcome == "done":
            requested = record.after
        elif isinstance(record, Sample | Decided) and record.observation is not None:
            requested = record.observation.requested or requested
    return requested


class Journal:
    """A journal open for appending: one writer at a time, closed by `close` or the end of a `with`.

    What is written survives a kill at once; a decision and its outcome are also forced to the disk.
    """

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._size = size

    @classmethod
    def open(cls, path: Path | str) -> Journal:
        """Open or create; cuts off a torn last line, and refuses what is no journal or has another writer."""
        path = Path(path)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError(
                f"journal must be a file that can be written, got {str(path)!r}: {error.strerror}"
            ) from None
        try:
            return cls(path, descriptor, _claim(path, descriptor))
        except BaseException:
            os.close(descriptor)
            raise

    @property
    def empty(self) -> bool:
        return self._size == 0

    def write(self, record: Record) -> None:
        """Append one record, whole or not at all; raises Unavailable when the disk does not take it."""
        line = encode(record)
        try:
            written = 0
            while written < len(line):  # a disk that fills up takes a part first, and fails on the rest
                written += os.pwrite(self._descriptor, line[written:], self._size + written)
            if isinstance(record, Decided | Rescale | Start):
                os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise Unavailable(f"the journal {self.path} cannot be written: {error.strerror}") from error
        self._size += len(line)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)  # which also gives up the lock
            self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _claim(path: Path, descriptor: int) -> int:
    """Lock the file, see that it is a journal we know, cut off what was torn; its size in whole lines."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Locked(f"the journal {path} is being written by another process") from None
    with open(descriptor, "rb", closefd=False) as file:
        first = file.readline()
        if first.endswith(b"\n"):  # checked before anything is cut off: it might be somebody's letters
            _checked(first, path, 1)
        elif not _START.startswith(first[: len(_START)]):
            raise Damaged(f"{path}, line 1: not a journal")
        size = file.seek(0, os.SEEK_END)
        whole = _whole(descriptor, size)
    if whole < size:
        _warn_torn(path, size - whole)
        os.ftruncate(descriptor, whole)
    return whole


def _whole(descriptor: int, size: int, block: int = 65536) -> int:
    """The size up to and with the last newline, looked for from the end."""
    end = size
    while end > 0:
        begin = max(0, end - block)
        newline = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


def _checked(line: bytes, path: Path, number: int) -> Record:
    where = f"{path}, line {number}"
    with suppress(ValueError):
        if line.startswith(_START) and (found := json.loads(line).get("schema")) != SCHEMA:
            raise Unsupported(f"{where}: journal schema {found!r}, but this Penstock knows {SCHEMA}")
    record = decode(line, where)
    if number == 1 and not isinstance(record, Start):
        raise Damaged(f"{where}: a journal begins with a start record, not a {record.kind}")
    return record


def _warn_torn(path: Path, size: int) -> None:
    warnings.warn(f"{path}: the last line was torn ({size} bytes); it is left out", RuntimeWarning, stacklevel=3)


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}".removeprefix(": ")


@cache
def _shape(cls: Any) -> tuple[tuple[str, bool], ...]:
    """The fields of a dataclass, and whether each may be left out when empty."""
    return tuple((f.name, f.default is not MISSING or f.default_factory is not MISSING) for f in fields(cls))


def _plain(value: Any) -> Any:
    kind: Any = type(value)  # the common ones first: this runs for every number of every sample
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if kind is tuple or kind is list:
        return [_plain(item) for item in value]
    if is_dataclass(value):
        items = ((name, optional, getattr(value, name)) for name, optional in _shape(kind))
        return {name: _plain(item) for name, optional, item in items if not (optional and _empty(item))}
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key]) for key in sorted(value)}
    if isinstance(value, float | int | str):  # of a subclass, as numpy's float64 or an enum of texts
        return _plain((float if isinstance(value, float) else int if isinstance(value, int) else str)(value))
    raise TypeError(f"{value!r} is not for a journal")


def _empty(value: object) -> bool:
    return value is None or (isinstance(value, tuple | Mapping) and not value)  # a number of numpy has no == ()
