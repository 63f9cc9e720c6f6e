"""Profiling on a real Spark cluster: one query, brought to one scale-out after the other at each rate.

There is no room for deployments side by side on one cluster, so each scale-out has the cluster to itself; from the
largest to the smallest, so that one which falls behind is the last. What it leaves behind is worked off by the largest
scale-out before the next rate.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from penstock.core import Observation
from penstock.errors import Unavailable, check
from penstock.experiment.feed import Feed, Task
from penstock.experiment.pipeline import Pipeline
from penstock.experiment.profiling import MEASURE, PATIENCE, SETTLE, Injected, point_of
from penstock.models.profiling import ObservedRecovery, Point
from penstock.targets.spark import reaper

DRAIN_PATIENCE = 900.0


class SparkRig:
    """A pipeline that runs and is warm. settle, measure: seconds before and of each measurement."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        settle: float = SETTLE,
        measure: float = MEASURE,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        check(settle >= 0, "settle", "be 0 seconds or more", settle)
        check(measure >= 1, "measure", "be at least 1 second", measure)
        self._pipeline, self._stop = pipeline, stop
        self._settle, self._measure = settle, measure
        self._progress = pipeline.directory / "profiling-feed.json"
        self._worker_seconds = 0.0
        self._paid_until: float | None = None

    @property
    def worker_seconds(self) -> float:
        return self._worker_seconds

    def measure(self, rate: float, scale_outs: Sequence[int]) -> tuple[Point, ...]:
        points = []
        for workers in sorted(scale_outs, reverse=True):
            self._bring_to(workers)
            with self._feed(rate, self._settle + self._measure):
                list(self._watch(self._settle))
                points.append(point_of(workers, rate, list(self._watch(self._measure))))
            self._drain()
        return tuple(points)

    def recover(self, rate: float, workers: int) -> ObservedRecovery | None:
        self._bring_to(workers)
        found = None
        with self._feed(rate, self._settle + self._measure + PATIENCE):
            list(self._watch(self._settle))
            normal = point_of(workers, rate, list(self._watch(self._measure))).latency
            began_at = self._pipeline.target.observe().at
            self._kill()
            watch = Injected(began_at, normal)
            for seen in self._watch(PATIENCE):
                found = watch.see(seen, workers, rate)
                if found is not None:
                    break
        self._drain()
        return found

    def _watch(self, seconds: float) -> Iterator[Observation]:
        """What is seen in so many seconds; what cannot be seen is left out."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._stop():
                raise KeyboardInterrupt
            with suppress(Unavailable):
                seen = self._pipeline.target.observe()
                if self._paid_until is not None:
                    self._worker_seconds += (seen.workers or 0) * max(0.0, seen.at - self._paid_until)
                self._paid_until = seen.at
                yield seen
            time.sleep(self._pipeline.experiment.head.sample_every)

    def _bring_to(self, workers: int) -> None:
        if self._pipeline.target.requested != workers:
            self._pipeline.target.rescale(workers)
        for seen in self._watch(PATIENCE):
            if seen.workers == workers and all(worker.ready_at is not None for worker in seen.per_worker):
                return
            if seen.batch is None or seen.backlog == 0:
                self._nudge()
        raise Unavailable(f"{workers} workers were not ready after {PATIENCE:.0f} s")

    def _nudge(self) -> None:
        """A few records: a new worker warms up only with work."""
        with self._pipeline.log.writer() as writer:
            writer.append(0, self._pipeline.generate_now(1000))

    def _drain(self) -> None:
        """Until nothing waits; with all workers, if these take longer than they had to fall behind."""
        wait = self._settle + self._measure
        for patience in (wait, DRAIN_PATIENCE):
            for seen in self._watch(patience):
                if seen.backlog == 0:
                    return
            self._pipeline.target.rescale(self._pipeline.cluster.max_workers)
        raise Unavailable(f"the job did not catch up within {DRAIN_PATIENCE:.0f} s between two measurements")

    def _feed(self, rate: float, seconds: float) -> Feed:
        return Feed(
            Task(
                log=str(self._pipeline.log.path),
                job=self._pipeline.experiment.job.name,
                workload={"kind": "constant", "level": rate, "duration": seconds},
                progress=str(self._progress),
                seed=int(time.time()),
                until=seconds,
            )
        )

    def _kill(self) -> None:
        """The newest executor of this cluster, as a failed machine would."""
        executors = [pid for pid in reaper.members(self._pipeline.cluster.token) if _is_executor(pid)]
        if not executors:
            raise Unavailable("there is no executor to kill")
        os.kill(executors[-1], signal.SIGKILL)


def _is_executor(pid: int) -> bool:
    """Not the shell that lifts a new executor's bound for a while: it has the same command line."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return Path(f"/proc/{pid}/exe").resolve().name == "java" and b"--executor-id" in command
    except OSError:  # it ended just now
        return False
