"""A job's query over its log, with its sink and the notes that a recount goes by."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.jobs import Job, Verdict, sink
from penstock.jobs.evidence import Batches, Evidence
from penstock.sources.log import EmbeddedLog
from penstock.targets.spark.latency import observe_latency

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class JobQuery:
    """Everything that one job's query keeps in a directory: results, notes on its batches, checkpoint.

    kind: the sink, one of `penstock.jobs.sink.KINDS`.
    """

    def __init__(
        self,
        job: Job,
        log: EmbeddedLog,
        directory: Path,
        *,
        kind: str = "parquet",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.job = job
        self.log = log
        self._checkpoint = directory / "checkpoint"
        self._batches = Batches(directory / "batches", self._checkpoint)
        self._kind = kind
        self._sink = sink.make(kind, directory / "results", bulky=job.bulky, tell=tell)

    def start(
        self, spark: SparkSession, name: str, *, trigger: float, splits: int | Path, max_records_per_split: int | None
    ) -> StreamingQuery:
        """Begin, or go on from the checkpoint."""
        records = self.log.stream(spark, splits=splits, max_records_per_split=max_records_per_split)
        return (
            self.job.build(observe_latency(records))
            .writeStream.queryName(name)
            .outputMode(self.job.output_mode)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=f"{int(trigger * 1000)} milliseconds")
            .foreachBatch(self._write)
            .start()
        )

    def _write(self, results: DataFrame, number: int) -> None:
        self._sink.write(results, number)
        self._batches.note(number)

    def verify(self) -> Verdict:
        """Recount the log up to where the results go, with the job's own proof."""
        if not isinstance(self._sink, sink.Kept):
            return Verdict(None, 0, 0, f"the sink is {self._kind!r}: no results were kept that could be recounted")
        batches = self._batches.read(self.log.begin_offsets())
        if not batches:
            return Verdict(False, 0, 0, "there are no results")
        return self.job.check(Evidence(self.log, batches, self._sink.read))


def past_start(query: StreamingQuery) -> bool:
    """Wait until a query asks its source for records; whether it got there.

    Spark gives the process of a Python source ten seconds to call back. Many queries started at once on a busy machine
    do not all make it, so that whoever starts many does it one after the other.
    """
    while query.isActive and query.lastProgress is None and "Waiting" not in query.status["message"]:
        time.sleep(0.1)
    return bool(query.isActive)
