"""How fast each job is: streaming, against the same query as one Spark batch, and against what makes its records.

    python benchmarks/jobs.py [--only JOB …] [--records 1000000] [--rounds 3] [--json]

generator: records per CPU second of one core.
batch: records/s of the same plan over the same records in Parquet, on local[2], results let go: the limit.
streaming: records/s of the query at saturation on local[2], from its log, results let go: over all batches but the
first ones, which compile.
The two are measured in turns, `rounds` times, and the best of each counts: on a shared machine what is slower than the
best was disturbed. `spread` is how far the worst was from it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock import jobs
from penstock.experiment.query import JobQuery
from penstock.java import java_home
from penstock.jobs import Job
from penstock.sources.log import EmbeddedLog
from penstock.targets.spark.cluster import CHECKPOINTS, LOOPBACK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
PIECE = 50_000
BATCH = 100_000  # records of one streaming batch
COLD = 2  # batches that are not counted
EVENTS_PER_SECOND = 20_000  # of event time: how many keys share a window


@dataclass(frozen=True, slots=True)
class Row:
    """One job, in records/s."""

    job: str
    generator: float
    batch: float
    streaming: float
    batch_spread: float
    streaming_spread: float

    @property
    def ratio(self) -> float:
        return self.streaming / self.batch


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


def records(job: Job, count: int) -> tuple[list[pa.RecordBatch], float]:
    """The load, and how many records a core makes of it in a second."""
    generate = job.generator(seed=1)
    began, made = time.process_time(), []
    for start in range(0, count, PIECE):
        numbers = np.arange(start, min(start + PIECE, count))
        made.append(generate(1_800_000_000_000_000 + (numbers * 1e6 / EVENTS_PER_SECOND).astype(np.int64)))
    return made, count / (time.process_time() - began)


def as_batch(spark: SparkSession, job: Job, path: Path, count: int) -> float:
    began = time.perf_counter()
    job.build(spark.read.parquet(str(path))).write.format("noop").mode("overwrite").save()
    return count / (time.perf_counter() - began)


def as_stream(spark: SparkSession, job: Job, log: EmbeddedLog, directory: Path) -> float:
    query = JobQuery(job, log, directory, kind="none").start(
        spark, job.name, trigger=0, splits=CORES, max_records_per_split=BATCH // CORES
    )
    try:
        query.processAllAvailable()
        done = [p for p in query.recentProgress if p["numInputRows"]][COLD:]
    finally:
        query.stop()
    took = float(sum(p["durationMs"]["triggerExecution"] for p in done)) / 1000
    return len(done) * BATCH / took


def measure(spark: SparkSession, job: Job, count: int, rounds: int, folder: Path) -> Row:
    made, generator = records(job, count)
    log = EmbeddedLog.create(folder / "log", job.schema, CORES)
    (folder / "parquet").mkdir()
    with log.writer(durable=False) as writer:
        for number, piece in enumerate(made):
            writer.append(number % CORES, piece)
            pq.write_table(pa.Table.from_batches([piece]), folder / "parquet" / f"{number:05}.parquet")
    batch, streaming = [], []
    as_batch(spark, job, folder / "parquet", count)  # compiles
    for turn in range(rounds):
        batch.append(as_batch(spark, job, folder / "parquet", count))
        streaming.append(as_stream(spark, job, log, folder / f"query-{turn}"))
        tell(f"{job.name}: batch {batch[-1]:,.0f}, streaming {streaming[-1]:,.0f} records/s")
    spreads = [1 - min(found) / max(found) for found in (batch, streaming)]
    return Row(job.name, generator, max(batch), max(streaming), *spreads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(jobs.JOBS), help="a job; may be repeated")
    parser.add_argument("--records", type=int, default=1_000_000, help="of each job's load")
    parser.add_argument("--rounds", type=int, default=3, help="times that each is measured")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.records < (COLD + 2) * BATCH or arguments.records % BATCH:
        parser.error(f"--records must be a multiple of {BATCH}, and at least {(COLD + 2) * BATCH}")
    rows = []
    spark = session()
    for name in arguments.only or jobs.JOBS:
        with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
            rows.append(measure(spark, jobs.make(name), arguments.records, arguments.rounds, Path(folder)))
    spark.stop()
    if arguments.json:
        print(json.dumps([asdict(row) | {"ratio": row.ratio} for row in rows]))
        return
    print(f"{'job':<14} {'generator':>12} {'batch':>12} {'streaming':>12} {'ratio':>6} {'spread':>12}")
    for row in rows:
        print(
            f"{row.job:<14} {row.generator:>12,.0f} {row.batch:>12,.0f} {row.streaming:>12,.0f} {row.ratio:>6.2f} "
            f"{row.batch_spread:>5.0%} {row.streaming_spread:>6.0%}"
        )


if __name__ == "__main__":
    main()
