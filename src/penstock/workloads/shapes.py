"""Loads given by a formula: the shapes of the papers and of textbooks."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import ConfigError, check
from penstock.workloads.base import Load, check_above_zero, check_rate


@dataclass(frozen=True, slots=True)
class Constant(Load):
    """The same rate all the time.

    level: records/s.
    duration: seconds.
    """

    kind: ClassVar[str] = "constant"

    level: float
    duration: float = 3600.0

    def __post_init__(self) -> None:
        check_rate("level", self.level)
        check_above_zero("duration", self.duration)

    def at(self, t: float) -> float:  # noqa: ARG002 - constant
        return self.level

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(len(ts), float(self.level))

    def peak(self) -> float:
        return self.level


@dataclass(frozen=True, slots=True)
class Sine(Load):
    """A wave between two rates; by default the two periods of Daedalus (sec. 4.2), from low to low.

    >>> day = Sine(low=1000, high=5000, periods=1, duration=86400)
    >>> round(day.rate(0)), round(day.rate(21600)), round(day.rate(43200))
    (1000, 3000, 5000)

    low: the lowest rate in records/s (with high).
    high: the highest rate in records/s (with low).
    mean: the middle rate in records/s (with amplitude, instead of low and high).
    amplitude: how far it swings to either side of the mean, in records/s.
    periods: waves within the duration.
    phase: where in a wave it starts: 0 at low, 0.25 at the mean going up, 0.5 at high.
    duration: seconds.
    """

    kind: ClassVar[str] = "sine"

    low: float | None = None
    high: float | None = None
    mean: float | None = None
    amplitude: float | None = None
    periods: float = 2.0
    phase: float = 0.0
    duration: float = 21600.0

    def __post_init__(self) -> None:
        low, high = self.bounds()
        check_rate("low" if self.mean is None else "mean - amplitude", low)
        check(math.isfinite(high) and high >= low, "high", f"be at least low ({low})", high)
        check_above_zero("periods", self.periods)
        check(math.isfinite(self.phase), "phase", "be a number", self.phase)
        check_above_zero("duration", self.duration)

    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest rate."""
        match (self.low, self.high, self.mean, self.amplitude):
            case (float() | int() as low, float() | int() as high, None, None):
                return low, high
            case (None, None, float() | int() as mean, float() | int() as amplitude):
                check_rate("amplitude", amplitude)
                return mean - amplitude, mean + amplitude
        given = [name for name in ("low", "high", "mean", "amplitude") if getattr(self, name) is not None]
        raise ConfigError(f"low must be given with high, or mean with amplitude, got {given}")

    def at(self, t: float) -> float:
        low, high = self.bounds()
        wave = (1 - math.cos(2 * math.pi * (self.periods * t / self.duration + self.phase))) / 2
        return low + (high - low) * wave

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = self.bounds()
        wave = (1 - np.cos(2 * math.pi * (self.periods * ts / self.duration + self.phase))) / 2
        return np.asarray(low + (high - low) * wave)

    def peak(self) -> float:
        first, last = self.phase, self.phase + self.periods  # in waves; the crests are at n + 1/2
        if math.floor(last - 0.5) >= math.ceil(first - 0.5):
            return self.bounds()[1]
        return max(self.at(0.0), self.at(self.duration))


@dataclass(frozen=True, slots=True)
class Step(Load):
    """One rate after another, each from its instant on.

    >>> Step(steps=((0, 100), (60, 300)), duration=120).rate(60)
    300

    steps: pairs of seconds and records/s; the first one at 0.
    duration: seconds.
    """

    kind: ClassVar[str] = "step"

    steps: tuple[tuple[float, float], ...]
    duration: float = 3600.0

    def __post_init__(self) -> None:
        pairs = bool(self.steps) and all(len(step) == 2 for step in self.steps)
        check(pairs, "steps", "be one or more pairs of seconds and records/s", self.steps)
        times = [at for at, _ in self.steps]
        check(times[0] == 0, "steps", "start at 0 seconds", times[0])
        check(all(a < b for a, b in pairwise(times)), "steps", "be in order of time", times)
        for _, rate in self.steps:
            check_rate("steps", rate)
        check_above_zero("duration", self.duration)
        check(times[-1] <= self.duration, "steps", f"end within the duration ({self.duration})", times[-1])

    def at(self, t: float) -> float:
        return self.steps[bisect_right(self.steps, t, key=lambda step: step[0]) - 1][1]

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        times, levels = np.array(self.steps, dtype=np.float64).T
        return np.asarray(levels[np.searchsorted(times, ts, side="right") - 1])

    def peak(self) -> float:
        return max(rate for _, rate in self.steps)


@dataclass(frozen=True, slots=True)
class Ramp(Load):
    """A straight line from one rate to another.

    first: records/s at the start.
    last: records/s at the end.
    duration: seconds.
    """

    kind: ClassVar[str] = "ramp"

    first: float
    last: float
    duration: float = 3600.0

    def __post_init__(self) -> None:
        check_rate("first", self.first)
        check_rate("last", self.last)
        check_above_zero("duration", self.duration)

    def at(self, t: float) -> float:
        share = t / self.duration
        return self.first * (1 - share) + self.last * share

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        share = ts / self.duration
        return np.asarray(self.first * (1 - share) + self.last * share)

    def peak(self) -> float:
        return max(self.first, self.last)


@dataclass(frozen=True, slots=True)
class Flash(Load):
    """A flash crowd: calm, a steep rise, a plateau, and a slower way back.

    calm: records/s before and after.
    crowd: records/s on the plateau.
    begins: seconds until the rise.
    rise: seconds from calm to crowd.
    hold: seconds on the plateau.
    fall: seconds back to calm.
    duration: seconds.
    """

    kind: ClassVar[str] = "flash"

    calm: float
    crowd: float
    begins: float = 900.0
    rise: float = 30.0
    hold: float = 300.0
    fall: float = 600.0
    duration: float = 3600.0

    def __post_init__(self) -> None:
        check_rate("calm", self.calm)
        check_rate("crowd", self.crowd)
        check(self.crowd >= self.calm, "crowd", f"be at least calm ({self.calm})", self.crowd)
        for name in ("begins", "rise", "hold", "fall"):
            value = getattr(self, name)
            check(math.isfinite(value) and value >= 0, name, "be 0 seconds or more", value)
        check_above_zero("duration", self.duration)
        reached = self.begins + self.rise
        check(reached <= self.duration, "begins + rise", f"be within the duration ({self.duration})", reached)

    def at(self, t: float) -> float:
        risen = self.begins + self.rise
        falling = risen + self.hold
        if t < self.begins or t > falling + self.fall:
            return self.calm
        if t < risen:
            return self._between((t - self.begins) / self.rise)
        if t <= falling:
            return self.crowd
        return self._between(1 - (t - falling) / self.fall)

    def _between(self, share: float) -> float:
        return self.calm * (1 - share) + self.crowd * share

    def peak(self) -> float:
        return self.crowd
