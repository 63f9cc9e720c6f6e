"""The last seconds of what is measured: means, and slopes, as PromQL's avg_over_time and deriv give them.

`Window` keeps the samples of one measure, `SlidingMeans` only the sums of many by name, for windows of many minutes.
Memory is bounded, a missing sample is no sample, and of what is later than a clock that went back nothing is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Generic, TypeVar

SLICES = 30  # a window of sums is kept in so many parts, so its memory does not depend on how often samples come

Sample = TypeVar("Sample")


@dataclass(slots=True)
class Recent(Generic[Sample]):
    """Samples of the last `span` seconds, at most `most` of them."""

    span: float
    most: int = 600
    _samples: deque[tuple[float, Sample]] = field(default_factory=deque)

    def add(self, at: float, value: Sample | None) -> None:
        """Take in a sample and forget what is too old; unknown is not taken in, but time passes."""
        if self._samples and at < self._samples[-1][0]:
            self._samples.clear()
        while self._samples and (self._samples[0][0] <= at - self.span or len(self._samples) >= self.most):
            self._samples.popleft()
        if value is not None:
            self._samples.append((at, value))


class Window(Recent[float]):
    """The last seconds of one number.

    >>> lag = Window(60)
    >>> for second in range(4): lag.add(second, 100 + 25 * second)
    >>> lag.mean, lag.slope
    (137.5, 25.0)
    """

    __slots__ = ()

    @property
    def mean(self) -> float | None:
        if not self._samples:
            return None
        return sum(value for _, value in self._samples) / len(self._samples)

    @property
    def slope(self) -> float | None:
        """Change per second by least squares; None before two moments are known."""
        if len(self._samples) < 2:
            return None
        count = len(self._samples)
        at_mean = sum(at for at, _ in self._samples) / count
        value_mean = sum(value for _, value in self._samples) / count
        spread = sum((at - at_mean) ** 2 for at, _ in self._samples)
        if spread == 0:
            return None
        return sum((at - at_mean) * (value - value_mean) for at, value in self._samples) / spread


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
