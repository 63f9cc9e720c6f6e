"""Whether state and memory stay bounded: all jobs at once on one cluster, under an even load, for half an hour.

    python benchmarks/soak.py [--minutes 30] [--rate 300] [--only JOB …] [--json]

Every job gets `rate` records/s. Every half minute: rows in each query's state, and the resident memory of all
executors with their Python workers. What counts is the last third of the time against the third before it: windows have
closed by then, and compilers and pools are warm.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from penstock import jobs
from penstock.experiment.feed import Feed, Task
from penstock.experiment.query import JobQuery, past_start
from penstock.sources.log import EmbeddedLog
from penstock.sources.splits import publish
from penstock.targets.spark import reaper
from penstock.targets.spark.cluster import SparkCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

EVERY = 30.0
WORKERS = 2
TRIGGER = 10.0  # seconds: eleven queries on two workers
TRIES = 5
ROWS = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Track:
    """Samples of one quantity."""

    values: list[float] = field(default_factory=list)

    @property
    def growth(self) -> float:
        """The mean of the last third against that of the one before, as a share."""
        third = max(1, len(self.values) // 3)
        before = fmean(self.values[-2 * third : -third] or self.values)
        return fmean(self.values[-third:]) / before - 1 if before else 0.0


def tell(text: str) -> None:
    print(f"· {text}", file=sys.stderr, flush=True)


def resident(cluster: SparkCluster) -> float:
    """MB of all that runs for the cluster: executors and their Python workers, Master and Worker."""
    total = 0
    for pid in reaper.members(cluster.token):
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        except OSError:  # it ended just now
            continue
    return total / 1e6


def begun(job: JobQuery, spark: SparkSession, name: str, splits: Path) -> StreamingQuery:
    """The query, past its start; again if need be, as other work beside this one may take more than Spark waits for."""
    for _ in range(TRIES):
        query = job.start(spark, name, trigger=TRIGGER, splits=splits, max_records_per_split=None)
        if past_start(query):
            return query
    raise SystemExit(f"{name} did not start: {query.exception()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long")
    parser.add_argument("--rate", type=float, default=300.0, help="records/s of each job")
    parser.add_argument("--only", action="append", choices=list(jobs.JOBS), help="a job; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    names = arguments.only or list(jobs.JOBS)
    seconds = arguments.minutes * 60
    rows = {name: Track() for name in names}
    memory = Track()
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
        directory = Path(folder)
        splits = directory / "workers"
        publish(splits, WORKERS)
        with SparkCluster(directory / "cluster", max_workers=WORKERS, cpu=1.0, memory="1g") as cluster:
            settings = {"spark.sql.shuffle.partitions": str(WORKERS), ROWS: "true"}
            spark = cluster.session("soak", WORKERS, settings)
            feeds, queries = [], {}
            for name in names:
                job = jobs.make(name)
                log = EmbeddedLog.create(directory / name / "log", job.schema, 2)
                queries[name] = begun(JobQuery(job, log, directory / name, kind="none"), spark, name, splits)
                workload = {"kind": "constant", "level": arguments.rate, "duration": seconds}
                progress = str(directory / f"{name}.json")
                feeds.append(Feed(Task(str(log.path), name, workload, progress, until=seconds)))
            began = time.time()
            while time.time() - began < seconds:
                time.sleep(EVERY)
                for name, query in queries.items():
                    if not query.isActive:
                        raise SystemExit(f"{name} ended by itself: {query.exception()}")
                    last = query.lastProgress
                    states = [] if last is None else last["stateOperators"]
                    rows[name].values.append(float(sum(state["numRowsTotal"] for state in states)))
                memory.values.append(resident(cluster))
                tell(
                    f"{time.time() - began:,.0f} s: {memory.values[-1]:,.0f} MB; state rows "
                    + ", ".join(f"{name} {track.values[-1]:,.0f}" for name, track in rows.items())
                )
            for feed in feeds:
                feed.stop()
            for query in queries.values():
                query.stop()
            spark.stop()
    if arguments.json:
        plain = {name: {"rows": track.values, "growth": track.growth} for name, track in rows.items()}
        print(json.dumps({"jobs": plain, "memory": {"mb": memory.values, "growth": memory.growth}}))
        return
    print(f"{'':<14} {'most':>12} {'last':>12} {'growth':>8}")
    for name, track in rows.items():
        print(f"{name:<14} {max(track.values):>12,.0f} {track.values[-1]:>12,.0f} {track.growth:>+8.1%}")
    print(f"{'memory, MB':<14} {max(memory.values):>12,.0f} {memory.values[-1]:>12,.0f} {memory.growth:>+8.1%}")


if __name__ == "__main__":
    main()
