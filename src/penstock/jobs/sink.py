"""Where results go: Parquet files, an embedded log, the console, or nowhere.

Each takes whole batches from `foreachBatch`. Spark repeats a batch after a failure with the same records and the same
number; a sink that keeps results keeps each number once, so that every result counts once.
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.sources.log import EmbeddedLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Sink(ABC):
    """What is done with a batch's results."""

    @abstractmethod
    def write(self, results: DataFrame, number: int) -> None:
        """Take the results of batch `number`, once or again."""


class Kept(Sink):
    """A sink whose results can be read again, and so recounted."""

    @abstractmethod
    def read(self, number: int) -> pa.Table:
        """The results of one batch."""


class ParquetFiles(Kept):
    """One file per batch, written by the driver; or, where results are as many as records, a directory by the workers.

    A file is renamed into place whole; a directory that a driver left unfinished is written anew.
    """

    def __init__(self, directory: Path, *, bulky: bool = False) -> None:
        self.directory = directory
        self.bulky = bulky
        directory.mkdir(parents=True, exist_ok=True)

    def write(self, results: DataFrame, number: int) -> None:
        path = self.directory / f"{number:09}.parquet"
        if self.bulky:
            shutil.rmtree(path, ignore_errors=True)
            results.write.parquet(str(path))
            return
        fresh = path.with_suffix(".tmp")
        with fresh.open("wb") as out:
            pq.write_table(results.toArrow(), out)
            out.flush()
            os.fsync(out.fileno())
        fresh.rename(path)

    def read(self, number: int) -> pa.Table:
        return pq.read_table(self.directory / f"{number:09}.parquet", partitioning=None)


class LogFiles(Kept):
    """An embedded log that the next job can read: the results with the number of their batch, one segment for each.

    A segment is visible whole or not at all, and the last one says how far the log goes, so a repeated batch is known.
    """

    NUMBER = "batch"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, results: DataFrame, number: int) -> None:
        table = results.toArrow()
        numbered = table.append_column(self.NUMBER, pa.array([number] * table.num_rows, pa.int64()))
        held = self._open(numbered.schema)
        end = held.end_offsets()[0]
        if not table.num_rows or (end and self._last(held, end) >= number):
            return
        (segment,) = numbered.combine_chunks().to_batches()
        with held.writer() as writer:
            writer.append(0, segment)

    def read(self, number: int) -> pa.Table:
        numbers = self._whole[self.NUMBER]
        return self._whole.filter(pc.equal(numbers, pa.scalar(number, pa.int64()))).drop_columns([self.NUMBER])

    @cached_property
    def _whole(self) -> pa.Table:
        held = EmbeddedLog.open(self.directory)
        return pa.Table.from_batches(held.read(0, held.begin_offsets()[0], held.end_offsets()[0]), held.schema)

    def _open(self, schema: pa.Schema) -> EmbeddedLog:
        known = (self.directory / "log.json").exists()
        return EmbeddedLog.open(self.directory) if known else EmbeddedLog.create(self.directory, schema, 1)

    def _last(self, held: EmbeddedLog, end: int) -> int:
        (last,) = held.read(0, end - 1, end)
        return int(last.column(self.NUMBER)[0].as_py())


class Console(Sink):
    """The first rows of each batch, for people."""

    ROWS = 20

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def write(self, results: DataFrame, number: int) -> None:
        rows = results.limit(self.ROWS + 1).toArrow().to_pylist()
        lines = ["  ".join(f"{key}={value}" for key, value in row.items()) for row in rows[: self.ROWS]]
        self._tell("\n".join([f"batch {number}:", *lines, *(["…"] if len(rows) > self.ROWS else [])]))


class Nowhere(Sink):
    """Computed, and let go."""

    def write(self, results: DataFrame, number: int) -> None:  # noqa: ARG002
        results.write.format("noop").mode("overwrite").save()


KINDS = ("parquet", "log", "console", "none")


def make(kind: str, directory: Path, *, bulky: bool, tell: Callable[[str], None]) -> Sink:
    """The sink of that kind (`KINDS`)."""
    if kind == "parquet":
        return ParquetFiles(directory, bulky=bulky)
    if kind == "log":
        return LogFiles(directory)
    return Console(tell) if kind == "console" else Nowhere()
