"""Profiling where there is room for one deployment only: one scale-out after the other, at each rate.

Each scale-out has the cluster to itself; from the largest to the smallest, so that one which falls behind is the last.
What it leaves behind is worked off before the next, by all workers if these do not get there alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from penstock.core import Clock, Observation, Target
from penstock.errors import Unavailable, check
from penstock.experiment.profiling import MEASURE, PATIENCE, SETTLE, Injected, point_of
from penstock.models.profiling import ObservedRecovery, Point

DRAIN_PATIENCE = 900.0


class Site(Protocol):
    """Where a job runs that a rig may do as it likes with."""

    @property
    def target(self) -> Target: ...

    @property
    def most(self) -> int:
        """The largest scale-out."""
        ...

    def feed(self, rate: float, seconds: float) -> AbstractContextManager[object]:
        """Records at this rate, for so long or until it is left."""
        ...

    def nudge(self) -> None:
        """A few records: a new worker warms up only with work."""
        ...

    def kill(self) -> None:
        """One worker, as a failed machine would."""
        ...


class SerialRig:
    """A job that runs and is warm.

    every: seconds between two looks. settle, measure: seconds before and of each measurement. stop: whether to give up.
    """

    def __init__(
        self,
        site: Site,
        clock: Clock,
        *,
        every: float = 1.0,
        settle: float = SETTLE,
        measure: float = MEASURE,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        check(every > 0, "every", "be above 0 seconds", every)
        check(settle >= 0, "settle", "be 0 seconds or more", settle)
        check(measure >= 1, "measure", "be at least 1 second", measure)
        self._site, self._clock, self._every, self._stop = site, clock, every, stop
        self._settle, self._measure = settle, measure
        self._worker_seconds = 0.0
        self._paid_until: float | None = None

    @property
    def worker_seconds(self) -> float:
        return self._worker_seconds

    def measure(self, rate: float, scale_outs: Sequence[int]) -> tuple[Point, ...]:
        points = []
        for workers in sorted(scale_outs, reverse=True):
            self._bring_to(workers)
            with self._site.feed(rate, self._settle + self._measure):
                self._pass(self._settle)
                points.append(point_of(workers, rate, list(self._watch(self._measure))))
            self._drain()
        return tuple(points)

    def recover(self, rate: float, workers: int) -> ObservedRecovery | None:
        self._bring_to(workers)
        found = None
        with self._site.feed(rate, self._settle + self._measure + PATIENCE):
            self._pass(self._settle)
            normal = point_of(workers, rate, list(self._watch(self._measure))).latency
            watch = Injected(self._clock.now(), normal)
            self._site.kill()
            for seen in self._watch(PATIENCE):
                found = watch.see(seen, workers, rate)
                if found is not None:
                    break
        self._drain()
        return found

    def _pass(self, seconds: float) -> None:
        for _ in self._watch(seconds):
            pass

    def _watch(self, seconds: float) -> Iterator[Observation]:
        """What is seen in so many seconds; what cannot be seen is left out."""
        end = self._clock.now() + seconds
        while self._clock.now() < end:
            if self._stop():
                raise KeyboardInterrupt
            with suppress(Unavailable):
                seen = self._site.target.observe()
                if self._paid_until is not None:
                    self._worker_seconds += (seen.workers or 0) * max(0.0, seen.at - self._paid_until)
                self._paid_until = seen.at
                yield seen
            self._clock.sleep(self._every)

    def _bring_to(self, workers: int) -> None:
        self._site.target.rescale(workers)
        for seen in self._watch(PATIENCE):
            if seen.workers == workers and all(worker.ready_at is not None for worker in seen.per_worker):
                return
            if not seen.backlog:
                self._site.nudge()
        raise Unavailable(f"{workers} workers were not ready after {PATIENCE:.0f} s")

    def _drain(self) -> None:
        """Until nothing waits; with all workers, if these take longer than they had to fall behind."""
        if self._empty_within(self._settle + self._measure):
            return
        self._site.target.rescale(self._site.most)
        if not self._empty_within(DRAIN_PATIENCE):
            raise Unavailable(f"the job did not catch up within {DRAIN_PATIENCE:.0f} s between two measurements")

    def _empty_within(self, seconds: float) -> bool:
        return any(seen.backlog == 0 for seen in self._watch(seconds))
