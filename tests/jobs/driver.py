"""The driver of `test_jobs_on_spark.py`, a process of its own: every job at once, on one cluster.

    python driver.py DIRECTORY begin    2 workers, 6, 3, one of them killed, then on until somebody kills the driver
    python driver.py DIRECTORY finish   go on from the checkpoints, and to the end of the load

The load is made for times of arrival that pass faster than the clock, so that windows close and events come too late.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np

from penstock import jobs
from penstock.experiment.query import JobQuery, past_start
from penstock.experiment.spark_rig import newest_executor
from penstock.jobs import events
from penstock.jobs.base import Generate
from penstock.sources.log import EmbeddedLog
from penstock.sources.splits import publish
from penstock.targets.spark import reaper
from penstock.targets.spark.cluster import SparkCluster
from penstock.targets.spark.target import SparkTarget
from penstock.testing import eventually

BEGAN_US = 1_800_000_000 * 1_000_000
SECONDS = 6  # of arrivals in one piece of the load
RECORDS = 300  # in each piece
PIECES = 24
PARTITIONS = 2
MOST = 6


def log_of(directory: Path, name: str) -> EmbeddedLog:
    path = directory / name / "log"
    return EmbeddedLog.open(path) if path.exists() else EmbeddedLog.create(path, jobs.JOBS[name].schema, PARTITIONS)


def feed(log: EmbeddedLog, generate: Generate, piece: int) -> None:
    spread = np.linspace(piece * SECONDS, (piece + 1) * SECONDS, RECORDS, endpoint=False)
    with log.writer() as writer:
        writer.append(piece % PARTITIONS, generate(BEGAN_US + (spread * 1e6).astype(np.int64)))


def main(directory: Path, phase: str) -> None:
    events.LATE, events.MALFORMED = 0.05, 0.01  # so that a small load has enough of each
    logs = {name: log_of(directory, name) for name in jobs.JOBS}
    pieces = {name: sum(log.end_offsets().values()) // RECORDS for name, log in logs.items()}
    generators = {name: jobs.make(name).generator(seed=pieces[name]) for name in logs}
    workers = 2 if phase == "begin" else 3
    splits = directory / "workers"
    publish(splits, workers)
    with SparkCluster(directory / "cluster", max_workers=MOST, cpu=1.0) as cluster:
        spark = cluster.session("jobs", workers, {"spark.sql.shuffle.partitions": "2"})
        queries = {}
        for name, log in logs.items():
            job = JobQuery(jobs.make(name), log, directory / name)
            queries[name] = job.start(spark, name, trigger=0.5, splits=splits, max_records_per_split=300)
            past_start(queries[name])

        def give(more: int) -> None:
            for name, log in logs.items():
                for _ in range(min(more, PIECES - pieces[name])):
                    feed(log, generators[name], pieces[name])
                    pieces[name] += 1

        def work() -> None:
            """All that there is; a query that failed says why."""
            for query in queries.values():
                query.processAllAvailable()

        if phase == "finish":
            give(PIECES)
            work()
        else:
            first = next(iter(queries))
            target = SparkTarget(queries[first], max_workers=MOST, source=logs[first], cluster=cluster, splits=splits)
            give(4)
            work()
            for size in (6, 3):
                target.rescale(size)
                eventually(lambda size=size: target.observe().workers == size, f"{size} workers")  # type: ignore[misc]
                give(5)
                work()
            victim = newest_executor(reaper.members(cluster.token))
            assert victim is not None
            os.kill(victim, signal.SIGKILL)
            give(4)
            work()
            print("ready", flush=True)
            for _ in count():  # until killed, in the middle of something
                give(1)
                time.sleep(0.5)
        for query in queries.values():
            query.stop()
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
