"""A load that wanders: the same seed, the same way."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import check
from penstock.workloads.base import Load, check_above_zero, check_rate, uniform


@dataclass(frozen=True, slots=True)
class RandomWalk(Load):
    """Up or down by a random amount at each interval, straight in between, turned back at its bounds.

    low: the lowest rate in records/s.
    high: the highest rate in records/s.
    start: records/s at the start; the middle of the bounds when left out.
    stride: the most that one interval changes, as a share of high - low.
    interval: seconds between two changes of direction.
    seed: another seed, another way.
    duration: seconds.
    """

    kind: ClassVar[str] = "random_walk"

    low: float
    high: float
    start: float | None = None
    stride: float = 0.1
    interval: float = 60.0
    seed: int = 0
    duration: float = 3600.0
    _levels: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_rate("low", self.low)
        check(math.isfinite(self.high) and self.high >= self.low, "high", f"be at least low ({self.low})", self.high)
        start = (self.low + self.high) / 2 if self.start is None else self.start
        check(self.low <= start <= self.high, "start", f"be within {self.low}..{self.high}", start)
        check(0 < self.stride <= 1, "stride", "be in (0, 1]", self.stride)
        check_above_zero("interval", self.interval)
        check_above_zero("duration", self.duration)
        object.__setattr__(self, "_levels", self._walk(start))

    def _walk(self, start: float) -> tuple[float, ...]:
        most = self.stride * (self.high - self.low)
        levels = [start]
        for index in range(math.ceil(self.duration / self.interval) + 1):
            level = levels[-1] + most * (2 * uniform(self.seed, index) - 1)
            level = 2 * self.low - level if level < self.low else level
            level = 2 * self.high - level if level > self.high else level
            levels.append(min(max(level, self.low), self.high))  # but for rounding, within already
        return tuple(levels)

    def at(self, t: float) -> float:
        index = min(int(t / self.interval), len(self._levels) - 2)
        share = min(t / self.interval - index, 1.0)
        return self._levels[index] * (1 - share) + self._levels[index + 1] * share

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.interp(ts / self.interval, np.arange(len(self._levels)), self._levels)

    def peak(self) -> float:
        steps = self.duration / self.interval
        whole = self._levels[: math.floor(steps) + 1]
        return max(*whole, self.at(self.duration))
