"""How fast each job is: streaming, against the same query as one Spark batch, and against what makes its records.

    python benchmarks/jobs.py [--only JOB …] [--records 5000000] [--batch 1000000] [--rounds 2] [--json]

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
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from saturated import COLD, CORES, load, session, streamed, tell

from penstock import jobs
from penstock.jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 1_000_000  # records of one streaming batch: about two seconds of work, less than a run's trigger leaves it


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

    @property
    def generator_ratio(self) -> float:
        """Per core."""
        return self.generator / (self.streaming / CORES)


def as_batch(spark: SparkSession, job: Job, path: Path, count: int) -> float:
    began = time.perf_counter()
    job.build(spark.read.parquet(str(path))).write.format("noop").mode("overwrite").save()
    return count / (time.perf_counter() - began)


def measure(spark: SparkSession, job: Job, count: int, size: int, rounds: int, folder: Path) -> Row:
    made = load(job, count, folder / "log")
    (folder / "parquet").mkdir()
    for number, piece in enumerate(made.pieces):
        pq.write_table(pa.Table.from_batches([piece]), folder / "parquet" / f"{number:05}.parquet")
    batch, streaming = [], []
    as_batch(spark, job, folder / "parquet", count)  # compiles
    for turn in range(rounds):
        batch.append(as_batch(spark, job, folder / "parquet", count))
        streaming.append(streamed(spark, job, made.log, folder / f"query-{turn}", size).rate)
        tell(f"{job.name}: batch {batch[-1]:,.0f}, streaming {streaming[-1]:,.0f} records/s")
    spreads = [1 - min(found) / max(found) for found in (batch, streaming)]
    return Row(job.name, made.speed, max(batch), max(streaming), *spreads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(jobs.JOBS), help="a job; may be repeated")
    parser.add_argument("--records", type=int, default=5_000_000, help="of each job's load")
    parser.add_argument("--batch", type=int, default=BATCH, help="records of one streaming batch")
    parser.add_argument("--rounds", type=int, default=2, help="times that each is measured")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    size = arguments.batch
    if size < CORES or arguments.records < (COLD + 2) * size or arguments.records % size:
        parser.error(f"--records must be a multiple of --batch, {size}, and at least {(COLD + 2) * size}")
    rows = []
    spark = session()
    for name in arguments.only or jobs.JOBS:
        with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
            rows.append(measure(spark, jobs.make(name), arguments.records, size, arguments.rounds, Path(folder)))
    spark.stop()
    if arguments.json:
        print(json.dumps([asdict(row) | {"ratio": row.ratio, "generator_ratio": row.generator_ratio} for row in rows]))
        return
    print(f"{'job':<14} {'generator':>12} {'of job':>7} {'batch':>12} {'streaming':>12} {'ratio':>6} {'spread':>12}")
    for row in rows:
        print(
            f"{row.job:<14} {row.generator:>12,.0f} {row.generator_ratio:>6.1f}x {row.batch:>12,.0f} "
            f"{row.streaming:>12,.0f} {row.ratio:>6.2f} {row.batch_spread:>5.0%} {row.streaming_spread:>6.0%}"
        )


if __name__ == "__main__":
    main()
