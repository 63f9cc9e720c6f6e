"""Loads made of loads: taller, noisy, faster, one after another."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar

from penstock.errors import check
from penstock.workloads.base import Load, check_above_zero, check_rate, uniform


@dataclass(frozen=True, slots=True)
class Scaled(Load):
    """The same shape with another peak.

    of: the load.
    to: its new peak in records/s.
    """

    kind: ClassVar[str] = "scaled"

    of: Load
    to: float
    duration: float = field(init=False)
    _factor: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_rate("to", self.to)
        peak = self.of.peak()
        check(peak > 0, "of", "have a peak above 0 to be scaled", peak)
        object.__setattr__(self, "duration", self.of.duration)
        object.__setattr__(self, "_factor", self.to / peak)

    def at(self, t: float) -> float:
        return min(self.of.rate(t) * self._factor, self.to)

    def peak(self) -> float:
        return self.to


@dataclass(frozen=True, slots=True)
class Noisy(Load):
    """The load times a random factor within 1 - share .. 1 + share, drawn anew each interval.

    of: the load.
    share: how far the noise goes, as a share of the rate.
    seed: another seed, another noise.
    interval: seconds that one draw lasts.
    """

    kind: ClassVar[str] = "noisy"

    of: Load
    share: float = 0.1
    seed: int = 0
    interval: float = 1.0
    duration: float = field(init=False)

    def __post_init__(self) -> None:
        check(0 <= self.share <= 1, "share", "be in [0, 1]", self.share)
        check_above_zero("interval", self.interval)
        object.__setattr__(self, "duration", self.of.duration)

    def at(self, t: float) -> float:
        draw = 2 * uniform(self.seed, math.floor(t / self.interval)) - 1
        return self.of.rate(t) * (1 + self.share * draw)

    def peak(self) -> float:
        return self.of.peak() * (1 + self.share)


@dataclass(frozen=True, slots=True)
class Compressed(Load):
    """The same rates in less time: six hours in 36 minutes at a factor of 10.

    of: the load.
    factor: how many times faster.
    """

    kind: ClassVar[str] = "compressed"

    of: Load
    factor: float
    duration: float = field(init=False)

    def __post_init__(self) -> None:
        check_above_zero("factor", self.factor)
        object.__setattr__(self, "duration", self.of.duration / self.factor)

    def at(self, t: float) -> float:
        return self.of.rate(t * self.factor)

    def peak(self) -> float:
        return self.of.peak()


@dataclass(frozen=True, slots=True)
class Concatenated(Load):
    """One load after another.

    parts: the loads, in order.
    """

    kind: ClassVar[str] = "concatenated"

    parts: tuple[Load, ...]
    duration: float = field(init=False)
    _ends: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check(bool(self.parts), "parts", "have at least one load", self.parts)
        object.__setattr__(self, "_ends", tuple(accumulate(part.duration for part in self.parts)))
        object.__setattr__(self, "duration", self._ends[-1])

    def at(self, t: float) -> float:
        index = min(bisect_right(self._ends, t), len(self.parts) - 1)
        return self.parts[index].rate(t - (self._ends[index - 1] if index else 0.0))

    def peak(self) -> float:
        return max(part.peak() for part in self.parts)


@dataclass(frozen=True, slots=True)
class Transforms:
    """What any kind of load takes besides its own parameters, in the order in which it applies.

    compress: how many times faster the load runs.
    scale_to: its peak in records/s, before noise.
    noise: random factor within 1 - noise .. 1 + noise.
    noise_seed: another seed, another noise.
    noise_interval: seconds that one draw of the noise lasts.
    """

    compress: float = 1.0
    scale_to: float | None = None
    noise: float = 0.0
    noise_seed: int = 0
    noise_interval: float = 1.0

    def __post_init__(self) -> None:
        check_above_zero("compress", self.compress)
        if self.scale_to is not None:
            check_rate("scale_to", self.scale_to)
        check(0 <= self.noise <= 1, "noise", "be in [0, 1]", self.noise)
        check_above_zero("noise_interval", self.noise_interval)

    def __call__(self, load: Load) -> Load:
        if self.compress != 1:
            load = Compressed(load, self.compress)
        if self.scale_to is not None:
            load = Scaled(load, self.scale_to)
        return Noisy(load, self.noise, self.noise_seed, self.noise_interval) if self.noise else load
