"""What the benchmarks of jobs on `local[2]` share: a session, a load, and a query that always has more to do."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.experiment.query import JobQuery
from penstock.java import java_home
from penstock.jobs import Job
from penstock.sources.log import EmbeddedLog
from penstock.targets.spark.cluster import CHECKPOINTS, LOOPBACK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
PIECE = 50_000
COLD = 2  # batches that are not counted: they compile
EVENTS_PER_SECOND = 20_000  # of event time: how many keys share a window
START_US = 1_800_000_000_000_000


def tell(text: str) -> None:
    print(f"· {text}", file=sys.stderr, flush=True)


def session() -> SparkSession:
    """One process with two cores, with the settings of a run where they matter."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.master": f"local[{CORES}]",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.log.level": "ERROR",
        **CHECKPOINTS,
    }
    return SparkSession.builder.config(map=dict(settings)).getOrCreate()


@dataclass(frozen=True, slots=True)
class Load:
    """Records in a log, and in memory; speed: how many a core makes in a second."""

    log: EmbeddedLog
    pieces: list[pa.RecordBatch]
    speed: float


def load(job: Job, count: int, path: Path) -> Load:
    """The job's own load, always the same."""
    generate, starts = job.generator(seed=1), range(0, count, PIECE)

    def piece_of(start: int) -> pa.RecordBatch:
        numbers = np.arange(start, min(start + PIECE, count))
        return generate(START_US + (numbers * 1e6 / EVENTS_PER_SECOND).astype(np.int64))

    for start in starts[: len(starts) // 4]:  # and let go, as a load's are: to keep them costs more than to make them
        piece_of(start)
    began, some = time.process_time(), starts[len(starts) // 4 : len(starts) // 2]
    for start in some:
        piece_of(start)
    speed = len(some) * PIECE / (time.process_time() - began)
    generate = job.generator(seed=1)
    pieces = [piece_of(start) for start in starts]
    log = EmbeddedLog.create(path, job.schema, CORES)
    with log.writer(durable=False) as writer:
        for number, piece in enumerate(pieces):
            writer.append(number % CORES, piece)
    return Load(log, pieces, speed)


@dataclass(frozen=True, slots=True)
class Streamed:
    """A query at saturation, over all batches but the cold ones.

    rate: records/s; seconds: of a batch, the median; state_ms: of committing state in a batch, per task, the median;
    notes_ms: of writing down a batch's beginning and end, the median.
    """

    rate: float
    seconds: float
    state_ms: float
    notes_ms: float


def streamed(
    spark: SparkSession,
    job: Job,
    log: EmbeddedLog,
    directory: Path,
    batch: int,
    settings: Mapping[str, str] | None = None,
) -> Streamed:
    """The job over the whole log in batches of so many records, results let go."""
    for key, value in (settings or {}).items():
        spark.conf.set(key, value)
    query = JobQuery(job, log, directory, kind="none").start(
        spark, job.name, trigger=0, splits=CORES, max_records_per_split=batch // CORES
    )
    try:
        query.processAllAvailable()
        # The last ones close windows without a record, which nobody would wait for at saturation.
        done = [p for p in query.recentProgress if p["numInputRows"]][COLD:]
    finally:
        query.stop()
    times = [p["durationMs"] for p in done]
    took = sum(each["triggerExecution"] for each in times) / 1000
    commits = [sum(s["commitTimeMs"] / max(s["numShufflePartitions"], 1) for s in p["stateOperators"]) for p in done]
    return Streamed(
        rate=len(done) * batch / took,
        seconds=median(each["triggerExecution"] for each in times) / 1000,
        state_ms=median(commits),
        notes_ms=median(each.get("walCommit", 0) + each.get("commitOffsets", 0) for each in times),
    )
