"""What the embedded log costs: read by Spark streaming against the same records as Parquet, and written per core.

    python benchmarks/embedded_log.py [--records N] [--rounds N] [--json]

Both ways of reading run the same query over every column, side by side in the same session, in alternation. The stream
is timed twice: from the start of the query to its end, as a batch is, and over its batches alone, as in a query that
runs for days. Writing is counted in CPU seconds: other people share the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from penstock.java import java_home
from penstock.sources.log import EmbeddedLog

SEGMENT = 20_000
PARTITIONS = 4
CORES = 2
PER_SPLIT = 500_000
FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.int64()),
    pa.field("at", pa.timestamp("us", tz="UTC")),
    pa.field("user", pa.int64()),
    pa.field("amount", pa.float64()),
    pa.field("word", pa.string()),
]
SCHEMA = pa.schema(FIELDS)


@dataclass(frozen=True, slots=True)
class Measured:
    """Records per second, one per round; ratios are stream / Parquet."""

    records: int
    written_per_cpu_second: float
    written_durably_per_second: float
    parquet: list[float]
    streamed: list[float]
    streamed_in_batches: list[float]
    ratios: list[float]
    ratios_in_batches: list[float]


def batches(records: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(7)
    words = np.array([f"word-{i}" for i in range(5000)])
    for first in range(0, records, SEGMENT):
        count = min(SEGMENT, records - first)
        ids = np.arange(first, first + count)
        columns = [
            pa.array(ids),
            pa.array(ids * 50, FIELDS[1].type),
            pa.array(random.integers(0, 100_000, count)),
            pa.array(random.gamma(2.0, 30.0, count)),
            pa.array(words[random.integers(0, len(words), count)]),
        ]
        yield pa.record_batch(columns, schema=SCHEMA)


def write(root: Path, records: int, tick: Callable[[int], None]) -> tuple[EmbeddedLog, float, float]:
    """The log and the same records as Parquet; CPU and wall seconds that the log took."""
    log = EmbeddedLog.create(root / "log", SCHEMA, PARTITIONS)
    (root / "parquet").mkdir()
    files = [pq.ParquetWriter(root / "parquet" / f"{i}.parquet", SCHEMA) for i in range(PARTITIONS)]
    cpu = wall = 0.0
    with log.writer() as writer:
        for i, batch in enumerate(batches(records)):
            files[i % PARTITIONS].write_batch(batch)
            cpu_before, wall_before = time.process_time(), time.perf_counter()
            writer.append(i % PARTITIONS, batch)
            cpu += time.process_time() - cpu_before
            wall += time.perf_counter() - wall_before
            tick(batch.num_rows)
    for file in files:
        file.close()
    return log, cpu, wall


def work(frame: DataFrame) -> DataFrame:
    """Touches every byte of every column and keeps nothing."""
    return frame.selectExpr("xxhash64(*) AS hash").where("hash = 0")


def read_parquet(spark: SparkSession, root: Path) -> None:
    work(spark.read.parquet(str(root / "parquet"))).write.format("noop").mode("overwrite").save()


def read_stream(spark: SparkSession, log: EmbeddedLog, checkpoint: Path, records: int) -> float:
    """Drain the log; seconds spent in batches."""
    frame = work(log.stream(spark, splits=CORES, max_records_per_split=PER_SPLIT))
    options = {"checkpointLocation": str(checkpoint)}
    query = frame.writeStream.format("noop").options(**options).trigger(availableNow=True).start()
    query.awaitTermination()
    seen = sum(progress.numInputRows for progress in query.recentProgress)
    assert seen == records, f"{seen} of {records} records were read"
    return sum(progress.durationMs["triggerExecution"] for progress in query.recentProgress) / 1e3


def measure(records: int, rounds: int, progress: Progress) -> Measured:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(java_home())}
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        writing = progress.add_task("write", total=records)
        log, cpu, wall = write(root, records, lambda n: progress.advance(writing, n))
        spark = (
            SparkSession.builder.master(f"local[{CORES}]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.memory", "2g")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        parquet, streamed, in_batches = [], [], []
        reading = progress.add_task("read", total=rounds + 1)
        for number in range(rounds + 1):
            begun = time.perf_counter()
            read_parquet(spark, root)
            between = time.perf_counter()
            busy = read_stream(spark, log, root / f"checkpoint-{number}", records)
            done = time.perf_counter()
            if number:  # the first round warms the JVM and the Python workers
                parquet.append(records / (between - begun))
                streamed.append(records / (done - between))
                in_batches.append(records / busy)
            progress.advance(reading)
        spark.stop()
    return Measured(
        records,
        records / cpu,
        records / wall,
        parquet,
        streamed,
        in_batches,
        [one / other for one, other in zip(streamed, parquet, strict=True)],
        [one / other for one, other in zip(in_batches, parquet, strict=True)],
    )


def show(measured: Measured) -> Table:
    table = Table("", "median", "least", "most", title=f"{measured.records:,} records, {CORES} cores")
    rows = {
        "Parquet batch, records/s": (measured.parquet, ",.0f"),
        "stream, records/s": (measured.streamed, ",.0f"),
        "stream in batches, records/s": (measured.streamed_in_batches, ",.0f"),
        "stream / Parquet": (measured.ratios, ".2f"),
        "stream in batches / Parquet": (measured.ratios_in_batches, ".2f"),
    }
    for name, (values, form) in rows.items():
        table.add_row(name, *(format(value, form) for value in (statistics.median(values), min(values), max(values))))
    table.add_row("written, records/CPU-s", f"{measured.written_per_cpu_second:,.0f}", "", "")
    table.add_row("written durably, records/s", f"{measured.written_durably_per_second:,.0f}", "", "")
    return table


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--records", type=int, default=8_000_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    asked = arguments.parse_args()
    if asked.records < 1 or asked.rounds < 3:
        arguments.error("records must be at least 1 and rounds at least 3")
    with Progress(console=Console(stderr=True)) as progress:
        measured = measure(asked.records, asked.rounds, progress)
    if asked.json:
        print(json.dumps(asdict(measured)))
    else:
        Console().print(show(measured))


if __name__ == "__main__":
    main()
