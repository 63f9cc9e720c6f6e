"""A job on a cluster of its own, reading its log and writing its results: everything but the load and the loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from penstock.errors import Unavailable
from penstock.experiment.query import JobQuery
from penstock.experiment.spec import Experiment
from penstock.jobs import Verdict
from penstock.sources.log import EmbeddedLog
from penstock.sources.splits import publish
from penstock.targets.spark.cluster import SparkCluster
from penstock.targets.spark.target import SparkTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WARM_RECORDS = 20_000  # enough for what handles records to be compiled, not only what handles batches
WARM_PATIENCE = 300.0
STOP_PATIENCE = 30.0


class Pipeline:
    """A running query with its log, cluster and target, in one directory. Entering starts it, leaving ends it all.

    A directory that holds one already is continued: same log, same checkpoint, nothing lost and nothing counted twice.
    """

    def __init__(
        self,
        experiment: Experiment,
        directory: Path,
        *,
        workers: int,
        control: bool = True,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.experiment = experiment
        self.directory = directory
        self._workers = workers
        self._control = control
        self._tell = tell
        self.generate = experiment.job.generator(seed=int(time.time()))
        self._spark: SparkSession | None = None
        self.query: StreamingQuery | None = None

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        spec, job = self.experiment.stream, self.experiment.job
        path = self.directory / "log"
        self.log = EmbeddedLog.open(path) if path.exists() else EmbeddedLog.create(path, job.schema, spec.partitions)
        size = self.experiment.cluster
        self.cluster = SparkCluster(
            self.directory / "cluster", max_workers=self.experiment.head.max_workers, cpu=size.cpu, memory=size.memory
        )
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def _start(self) -> None:
        self._tell(f"starting a Spark cluster, {self.experiment.cluster.cpu:g} core per worker")
        self.cluster.__enter__()
        if self.cluster.notice:
            self._tell(self.cluster.notice)
        self.experiment = self.experiment.at_most(self.cluster.max_workers)
        workers = min(self._workers, self.cluster.max_workers)
        self._tell(f"starting the job with {workers} of {self.cluster.max_workers} workers")
        self._spark = self.cluster.session(
            self.experiment.head.name,
            workers,
            {"spark.sql.shuffle.partitions": str(self.experiment.state_partitions)},
        )
        splits = self.directory / "workers"
        publish(splits, workers)
        job, spec = self.experiment.job, self.experiment.stream
        self._job_query = JobQuery(job, self.log, self.directory, kind=spec.sink, tell=self._tell)
        self.query = self._job_query.start(
            self._spark,
            self.experiment.head.name,
            trigger=spec.trigger,
            splits=splits,
            max_records_per_split=self.max_records_per_worker,
        )
        self.target = SparkTarget(
            self.query,
            max_workers=self.cluster.max_workers,
            source=self.log,
            cluster=self.cluster,
            splits=splits,
            control=self._control,
            stages=job.operators,
            max_records_per_split=self.max_records_per_worker,
        )

    @property
    def max_records_per_worker(self) -> int:
        """The limit is for a bounded worker; a whole core takes as many times more."""
        limit = self.experiment.stream.max_records_per_worker
        return limit if self.cluster.groups is not None else int(limit / min(self.experiment.cluster.cpu, 1.0))

    def warm_up(self, stop: Callable[[], bool] = lambda: False, batches: int | None = None) -> None:
        """Run a few small batches, so that what comes next is not measured on a cold JVM."""
        batches = self.experiment.stream.warm_up if batches is None else batches
        deadline = time.monotonic() + WARM_PATIENCE
        first = fed = None
        with self.log.writer() as writer:
            while True:
                if stop():
                    raise KeyboardInterrupt
                seen = self.target.observe()
                number = seen.batch.number if seen.batch else -1
                first = number if first is None else first
                if number - first >= batches:
                    return
                if number != fed:  # one batch's worth at a time
                    writer.append(number % self.log.partitions, self.generate_now(WARM_RECORDS))
                    fed = number
                if time.monotonic() > deadline:
                    raise Unavailable(f"the job did not finish {batches} batches in {WARM_PATIENCE:.0f} s")
                time.sleep(0.5)

    def generate_now(self, count: int) -> pa.RecordBatch:
        """Records of this moment."""
        return self.generate(np.full(count, int(time.time() * 1e6)))

    def verify(self) -> Verdict:
        """Recount the log up to where the results go, with the job's own proof."""
        return self._job_query.verify()

    def stop_query(self) -> None:
        """End the query between two batches where possible, so that no task is cut off."""
        if self.query is None or not self.query.isActive:
            return
        deadline = time.monotonic() + STOP_PATIENCE
        while time.monotonic() < deadline and self.query.isActive and self.query.status["isTriggerActive"]:
            time.sleep(0.05)
        self.query.stop()

    def _end(self) -> None:
        try:
            if self.query is not None:
                self.stop_query()
            if self._spark is not None:
                self._spark.stop()
        finally:
            self.cluster.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
