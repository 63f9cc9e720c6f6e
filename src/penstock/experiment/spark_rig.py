"""A job on a real Spark cluster of its own, to be profiled: its feed, and its executors to kill."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from penstock.core import Target
from penstock.errors import Unavailable
from penstock.experiment.feed import Feed, Task
from penstock.experiment.pipeline import Pipeline
from penstock.targets.spark import reaper

NUDGE = 1000  # records


class SparkSite:
    """A pipeline that runs and is warm."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._progress = pipeline.directory / "profiling-feed.json"

    @property
    def target(self) -> Target:
        return self._pipeline.target

    @property
    def most(self) -> int:
        return self._pipeline.cluster.max_workers

    def feed(self, rate: float, seconds: float) -> Feed:
        return Feed(
            Task(
                log=str(self._pipeline.log.path),
                job=self._pipeline.experiment.job.name,
                job_settings=self._pipeline.experiment.job.settings,
                workload={"kind": "constant", "level": rate, "duration": seconds},
                progress=str(self._progress),
                seed=int(time.time()),
                until=seconds,
            )
        )

    def nudge(self) -> None:
        with self._pipeline.log.writer() as writer:
            writer.append(0, self._pipeline.generate_now(NUDGE))

    def kill(self) -> None:
        """The newest executor of this cluster, by its id."""
        newest = newest_executor(reaper.members(self._pipeline.cluster.token))
        if newest is None:
            raise Unavailable("there is no executor to kill")
        os.kill(newest, signal.SIGKILL)


def newest_executor(members: Iterable[int]) -> int | None:
    """The one of these processes that is an executor and has the highest id."""
    return max((pid for pid in members if _is_executor(pid)), default=None)


def _is_executor(pid: int) -> bool:
    """Not the shell that lifts a new executor's bound for a while: it has the same command line."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return Path(f"/proc/{pid}/exe").resolve().name == "java" and b"--executor-id" in command
    except OSError:  # it ended just now
        return False
