"""The one writer of an embedded log."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from penstock.errors import Locked, SourceError, check
from penstock.sources import segments


class Lock:
    """Held by one process at a time; the kernel lets go when that process dies, however it dies."""

    def __init__(self, root: Path) -> None:
        self._handle = os.open(root / "writer.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._handle, 32).decode().strip() or "unknown"
            os.close(self._handle)
            raise Locked(f"{root} already has a writer: process {holder}") from None
        os.truncate(self._handle, 0)
        os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._handle)


class LogWriter:
    """Appends whole batches. Made by `EmbeddedLog.writer()`.

    durable: whether `append` waits until the disk has the records; without it they survive a crash of the process,
        not one of the machine.
    """

    def __init__(
        self, root: Path, schema: pa.Schema, ends: Mapping[int, int], lock: Lock, durable: bool = True
    ) -> None:
        self._root = root
        self._schema = schema
        self._ends = dict(ends)
        self._lock: Lock | None = lock
        self._durable = durable

    def append(self, partition: int, batch: pa.RecordBatch) -> None:
        """Make the batch visible, all of it or nothing; after Full the same call may be made again."""
        if self._lock is None:
            raise SourceError(f"the writer of {self._root} is closed")
        check(partition in self._ends, "partition", f"be one of 0 to {len(self._ends) - 1}", partition)
        check(
            batch.schema.equals(self._schema), "batch", f"have the schema {inline(self._schema)}", inline(batch.schema)
        )
        if not batch.num_rows:
            return
        directory = self._root / str(partition)
        self._ends[partition] = segments.write(directory, self._ends[partition], batch, self._durable).end
        if self._durable:
            segments.sync(directory)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def inline(schema: pa.Schema) -> str:
    """A schema on one line, for a message."""
    return ", ".join(f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema)
