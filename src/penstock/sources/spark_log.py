"""The embedded log as a Spark source: `spark.readStream.format("penstock-log")`, and `spark.read` to recount it.

Options: `path`; `splits`, a number or a file that holds one (see `splits`); `maxRecordsPerSplit`, which times the
current splits bounds a batch; `startingOffsets`, "earliest" or "latest", for a query without a checkpoint.

Each batch is cut into as many equal ranges as there are workers, whatever the number of partitions, so a worker more
means a smaller share for each. Executors need the log's directory and pyarrow, but no Penstock: the code travels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from penstock import errors
from penstock.errors import Damaged, check
from penstock.sources import listing, log, offsets, retention, segments, splits, writer
from penstock.sources.log import EmbeddedLog
from penstock.sources.segments import Piece
from penstock.sources.splits import Splits

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

NAME = "penstock-log"

for module in (errors, listing, log, offsets, retention, segments, splits, writer, sys.modules[__name__]):
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


class Split(InputPartition):
    """One task's share. It names its segments, so that a task need not list a directory of thousands."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        super().__init__(pieces)


class LogSource(DataSource):
    """The source as Spark knows it."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check("path" in options, "path", "name a log", None)
        self.path = options["path"]
        self.splits = Splits(options.get("splits", "1"))
        self.starting = options.get("startingOffsets", "earliest")
        check(self.starting in ("earliest", "latest"), "startingOffsets", "be earliest or latest", self.starting)
        bound = options.get("maxRecordsPerSplit")
        check(
            bound is None or (bound.isdecimal() and int(bound) >= 1), "maxRecordsPerSplit", "be a number above 0", bound
        )
        self.bound = None if bound is None else int(bound)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(EmbeddedLog.open(self.path).schema.remove_metadata())

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(self.path, self.splits, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return StreamReader(self.path, self.splits, schema, self.bound, self.starting)


class BatchReader(DataSourceReader):
    """All that the log holds at the moment of planning."""

    def __init__(self, path: str, splits: Splits, schema: StructType) -> None:
        self._path = path
        self._splits = splits
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        held = EmbeddedLog.open(self._path)
        return plan(held, held.begin_offsets(), held.end_offsets(), self._splits.now())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return records(self._path, self._schema, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The log as it grows. All but `read` runs in one long-lived process beside the driver."""

    def __init__(self, path: str, splits: Splits, schema: StructType, bound: int | None, starting: str) -> None:
        self._path = path
        self._splits = splits
        self._schema = schema
        self._bound = bound
        self._starting = starting
        self._opened: EmbeddedLog | None = None  # opened where it is used: this object also travels with every task
        self._target: dict[int, int] | None = None

    @property
    def _log(self) -> EmbeddedLog:
        if self._opened is None:
            self._opened = EmbeddedLog.open(self._path)
        return self._opened

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        earliest = self._starting == "earliest"
        return offsets.render(self._log.begin_offsets() if earliest else self._log.end_offsets())

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        # Spark asks for the default limit once, when the query starts, and passes that same one ever after. The number
        # of workers changes while it runs, so the bound is worked out anew here.
        bound = None if self._bound is None else self._bound * self._splits.now()
        if isinstance(limit, ReadAllAvailable):
            bound = None
        reached = offsets.parse(start)
        end = self._log.end_offsets() if self._target is None else self._target
        known = reached.keys() == end.keys()
        check(known, "checkpoint", f"be of {self._path}, which has {len(end)} partitions", dict(start))
        for partition, last in end.items():
            if reached[partition] > last:
                found = f"{self._path} ends at offset {last} in partition {partition}"
                raise Damaged(f"{found}, but was already read up to {reached[partition]}: its newest segments are gone")
        return offsets.render(offsets.advance(reached, end, bound))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._bound is None else ReadMaxRows(self._bound * self._splits.now())

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return offsets.render(self._log.end_offsets())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._log.end_offsets()

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[InputPartition]:
        return plan(self._log, offsets.parse(start), offsets.parse(end), self._splits.now())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return records(self._path, self._schema, partition)

    def commit(self, end: Mapping[str, int]) -> None:
        """Nothing to do: the query's checkpoint is what remembers, and `retain(keep_from=…)` is what deletes."""


def plan(held: EmbeddedLog, start: Mapping[int, int], end: Mapping[int, int], parts: int) -> list[InputPartition]:
    """The batch from `start` to `end` as equal tasks."""
    cuts = offsets.cut(start, end, parts)
    return [
        Split(tuple(chain.from_iterable(held.pieces(one.partition, one.start, one.end) for one in cut))) for cut in cuts
    ]


def records(path: str, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """A task's records, in the exact Arrow types that Spark expects."""
    expected = to_arrow_schema(schema, timezone="UTC")
    for piece in partition.value or ():  # Spark makes up a partition of None for an empty log
        for batch in segments.read(path, piece):
            yield batch if batch.schema.equals(expected) else batch.cast(expected)


def stream(spark: SparkSession, path: Path, splits: int | str | Path, max_records_per_split: int | None) -> DataFrame:
    """`EmbeddedLog.stream`."""
    options: dict[str, Any] = {
        "path": str(path.absolute()),
        "splits": str(splits if isinstance(splits, int) else Path(splits).absolute()),
    }
    if max_records_per_split is not None:
        options["maxRecordsPerSplit"] = str(max_records_per_split)
    LogSource(options)  # so that a wrong option is our ConfigError here, not a Python worker's traceback later
    spark.dataSource.register(LogSource)
    return spark.readStream.format(NAME).options(**options).load()


def batch(spark: SparkSession, path: Path, splits: int | None) -> DataFrame:
    """`EmbeddedLog.batch`."""
    options = {
        "path": str(path.absolute()),
        "splits": str(spark.sparkContext.defaultParallelism if splits is None else splits),
    }
    LogSource(options)
    spark.dataSource.register(LogSource)
    return spark.read.format(NAME).options(**options).load()
