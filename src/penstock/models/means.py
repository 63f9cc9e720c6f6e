"""Means over the last seconds, in bounded memory, of a job that runs as it is.

A policy that averages over minutes must not mix what was measured before a rescale, a restart or an outage with what
is measured now: `Steadiness` tells them apart, `SlidingMeans` forgets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from penstock.core import Observation

SLICES = 30  # a window is kept in so many parts, so its memory does not depend on how often samples come
JITTER = 5.0  # seconds by which a start reckoned from the uptime may seem to move without a restart


@dataclass(slots=True)
class _Slice:
    start: float
    last: float
    sums: dict[str, tuple[float, int]] = field(default_factory=dict)


@dataclass(slots=True)
class SlidingMeans:
    """Means by name over the last `seconds`, to a thirtieth of them.

    >>> means = SlidingMeans(60.0)
    >>> for at in range(100):
    ...     means.add(at, {"rate": float(at), "lag": None})
    >>> means.mean("rate", 99), means.mean("lag", 99), means.covers(99)
    (69.5, None, True)
    """

    seconds: float
    since: float | None = None
    _slices: deque[_Slice] = field(default_factory=deque, repr=False)

    def add(self, at: float, values: Mapping[str, float | None]) -> None:
        """Take in what is known of a sample; a value that is no number is not."""
        self._forget(at)
        if not self._slices or at >= self._slices[-1].start + self.seconds / SLICES:
            self._slices.append(_Slice(at, at))
        self.since = at if self.since is None else self.since
        newest = self._slices[-1]
        newest.last = max(newest.last, at)
        for name, value in values.items():
            if value is not None and isfinite(value):
                total, count = newest.sums.get(name, (0.0, 0))
                newest.sums[name] = total + value, count + 1

    def mean(self, name: str, now: float) -> float | None:
        """The mean of the known values; None if there are none."""
        self._forget(now)
        known = [part.sums[name] for part in self._slices if name in part.sums]
        return sum(total for total, _ in known) / sum(count for _, count in known) if known else None

    def covers(self, now: float) -> bool:
        """Samples have come for a whole window."""
        self._forget(now)
        return self.since is not None and now - self.since >= self.seconds

    def clear(self) -> None:
        self._slices.clear()
        self.since = None

    def _forget(self, now: float) -> None:
        while self._slices and self._slices[-1].start > now:  # the clock went back
            self._slices.pop()
        while self._slices and self._slices[0].last <= now - self.seconds:
            self._slices.popleft()
        if not self._slices:
            self.since = None
        elif self.since is not None and self.since > now:
            self.since = now


@dataclass(slots=True)
class Steadiness:
    """Since when the job has run as it does now: with as many workers, and without a restart."""

    since: float | None = None
    requested: int | None = None
    _started: float | None = None

    def disturbed(self, observation: Observation) -> bool:
        """Take in a sample; True when the job was rescaled or restarted since the last one, or is seen first."""
        at, before = observation.at, self.requested
        started = None if observation.uptime is None else at - observation.uptime
        restarted = started is not None and self._started is not None and started > self._started + JITTER
        rescaled = before is not None and observation.requested is not None and observation.requested != before
        first = self.since is None
        if first:
            known = [t for t in (started, observation.last_rescale_at) if t is not None]
            self.since = min(at, max(known, default=at))
        elif restarted or rescaled or (self.since or 0.0) > at:  # or the clock went back
            self.since = at
        self._started = self._started if started is None else started
        self.requested = before if observation.requested is None else observation.requested
        return first or restarted or rescaled

    def counts(self, observation: Observation, warm_up: float = 0.0) -> bool:
        """Whether a sample tells what the job can do: all its workers are there, it is up and not standing still.

        warm_up: seconds after a rescale or (re)start in which it does not.
        """
        known = observation.requested is not None and not observation.blind
        whole = observation.workers is None or observation.workers == observation.requested
        still = observation.processed_rate == 0 and (observation.input_rate or 0.0) > 0
        down = observation.uptime is None and self._started is not None  # who told it before tells it while it runs
        cold = self.since is not None and observation.at - self.since < warm_up
        return known and whole and not still and not down and not cold
