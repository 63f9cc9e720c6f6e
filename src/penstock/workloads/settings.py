"""From configuration to loads: which parameters a load takes, and whether what was given fits."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar

from penstock.errors import ConfigError, check
from penstock.workloads.base import Load

AnyLoad = TypeVar("AnyLoad", bound=Load)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting of a load, as its help shows it; `default` means nothing where `required`."""

    name: str
    type: str
    default: object
    doc: str
    required: bool


def parameters(kind: type[Load]) -> tuple[Parameter, ...]:
    """What a load can be configured with; the words are those of its docstring."""
    docs = dict(re.findall(r"^\s*(\w+): (.+)$", kind.__doc__ or "", re.MULTILINE))
    return tuple(
        Parameter(
            name=setting.name,
            type=_TYPES[_declared(setting)].words,
            default=None if setting.default is MISSING else setting.default,
            doc=docs.get(setting.name, ""),
            required=setting.default is MISSING,
        )
        for setting in _settings(kind)
    )


def build(
    kind: type[AnyLoad],
    config: Mapping[str, object],
    *,
    also: Iterable[str] = (),
    called: Mapping[str, str] | None = None,
) -> AnyLoad:
    """A load of this kind; ConfigError where a parameter is unknown, missing, of another type, or breaks its rule.

    also: keys that would be known elsewhere, worth suggesting.
    called: what the user calls a parameter, where that differs.
    """
    called = called or {}
    settings = {setting.name: setting for setting in _settings(kind)}
    for name in config:
        if name not in settings:
            hint = nearest(name, (*settings, *also))
            raise ConfigError(f"{kind.kind} must have only the parameters {', '.join(settings)}, got {name!r}{hint}")
    for name, setting in settings.items():
        if name not in config and setting.default is MISSING:
            raise ConfigError(f"{called.get(name, name)} must be given for {kind.kind}, got nothing")
    fitted = {
        name: _TYPES[_declared(settings[name])].fit(called.get(name, name), value) for name, value in config.items()
    }
    try:
        return kind(**fitted)
    except ConfigError as error:
        for name, words in called.items():
            if str(error).startswith(f"{name} must "):
                raise ConfigError(words + str(error).removeprefix(name)) from error
        raise


def nearest(name: str, known: Iterable[str]) -> str:
    """A suggestion to end a message with, or nothing.

    >>> nearest("amplitute", ["mean", "amplitude"])
    '; did you mean amplitude?'
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _settings(kind: type[Load]) -> list[Field[Any]]:
    return [setting for setting in fields(kind) if setting.init]  # type: ignore[arg-type]


def _declared(setting: Field[Any]) -> str:
    return str(setting.type)  # a string already, as every module here postpones its annotations


def _fit_number(name: str, value: object) -> object:
    check(isinstance(value, int | float) and not isinstance(value, bool), name, "be a number", value)
    return value


def _fit_whole_number(name: str, value: object) -> object:
    check(isinstance(value, int) and not isinstance(value, bool), name, "be a whole number", value)
    return value


def _fit_text(name: str, value: object) -> object:
    check(isinstance(value, str), name, "be text", value)
    return value


def _fit_pairs(name: str, value: object) -> object:
    rule = "be a list of [seconds, records/s]"
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{name} must {rule}, got {value!r}")
    for pair in value:
        check(isinstance(pair, list | tuple) and len(pair) == 2, name, rule, pair)
    return tuple((_fit_number(name, at), _fit_number(name, rate)) for at, rate in value)


def _fit_load(name: str, value: object) -> object:
    check(isinstance(value, Load), name, "be a load", value)
    return value


def _fit_loads(name: str, value: object) -> object:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{name} must be a list of loads, got {value!r}")
    return tuple(_fit_load(name, load) for load in value)


@dataclass(frozen=True, slots=True)
class _Type:
    """A declared type: its words in help, and how a value from TOML is made to fit it."""

    words: str
    fit: Callable[[str, object], object]


_TYPES = {
    "float": _Type("number", _fit_number),
    "float | None": _Type("number", _fit_number),
    "int": _Type("whole number", _fit_whole_number),
    "str": _Type("text", _fit_text),
    "tuple[tuple[float, float], ...]": _Type("list of [seconds, records/s]", _fit_pairs),
    "Load": _Type("load", _fit_load),
    "tuple[Load, ...]": _Type("list of loads", _fit_loads),
}
