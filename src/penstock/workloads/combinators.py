"""Loads made of loads: taller, noisy, bursty, faster, one after another."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import check
from penstock.workloads.base import Load, check_above_zero, check_rate, uniform, uniforms


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

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.minimum(self.of.rates(ts) * self._factor, self.to)

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

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        draws = 2 * uniforms(self.seed, np.floor(ts / self.interval)) - 1
        return np.asarray(self.of.rates(ts) * (1 + self.share * draws))

    def peak(self) -> float:
        return self.of.peak() * (1 + self.share)


@dataclass(frozen=True, slots=True)
class Bursts(Load):
    """The load with short bursts on top: one in each window of `every` seconds, at a random place in it.

    >>> from penstock.workloads import Constant
    >>> load = Bursts(Constant(100, duration=600), size=0.5, every=60, length=10)
    >>> sum(load.rate(t) == 150 for t in range(600))
    100

    of: the load.
    size: what a burst adds, as a share of the rate.
    every: seconds of the windows.
    length: seconds that a burst lasts.
    seed: another seed, other places.
    """

    kind: ClassVar[str] = "bursts"

    of: Load
    size: float = 0.5
    every: float = 1800.0
    length: float = 60.0
    seed: int = 0
    duration: float = field(init=False)

    def __post_init__(self) -> None:
        check(math.isfinite(self.size) and self.size >= 0, "size", "be 0 or more", self.size)
        check_above_zero("every", self.every)
        check(0 < self.length <= self.every, "length", f"be above 0 and at most every ({self.every})", self.length)
        object.__setattr__(self, "duration", self.of.duration)

    def at(self, t: float) -> float:
        window = math.floor(t / self.every)
        begins = window * self.every + (self.every - self.length) * uniform(self.seed, window)
        return self.of.rate(t) * (1 + self.size if begins <= t < begins + self.length else 1)

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        windows = np.floor(ts / self.every)
        begins = windows * self.every + (self.every - self.length) * uniforms(self.seed, windows)
        return self.of.rates(ts) * np.where((begins <= ts) & (ts < begins + self.length), 1 + self.size, 1.0)

    def peak(self) -> float:
        return self.of.peak() * (1 + self.size)


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

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.of.rates(ts * self.factor)

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

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        indices = np.minimum(np.searchsorted(self._ends, ts, side="right"), len(self.parts) - 1)
        rates = np.empty(len(ts))
        for index, part in enumerate(self.parts):
            mine = indices == index
            rates[mine] = part.rates(ts[mine] - (self._ends[index - 1] if index else 0.0))
        return rates

    def peak(self) -> float:
        return max(part.peak() for part in self.parts)


@dataclass(frozen=True, slots=True)
class Transforms:
    """What any kind of load takes besides its own parameters, in the order in which it applies.

    compress: how many times faster the load runs.
    scale_to: its peak in records/s, before bursts and noise.
    burst: what a burst adds, as a share of the rate: 0.5 is half as much again; 0 for none.
    burst_every: seconds of the windows that have one burst each.
    burst_length: seconds that a burst lasts.
    burst_seed: another seed, other places.
    noise: random factor within 1 - noise .. 1 + noise.
    noise_seed: another seed, another noise.
    noise_interval: seconds that one draw of the noise lasts.
    """

    compress: float = 1.0
    scale_to: float | None = None
    burst: float = 0.0
    burst_every: float = 1800.0
    burst_length: float = 60.0
    burst_seed: int = 0
    noise: float = 0.0
    noise_seed: int = 0
    noise_interval: float = 1.0

    def __post_init__(self) -> None:
        check_above_zero("compress", self.compress)
        if self.scale_to is not None:
            check_rate("scale_to", self.scale_to)
        check(math.isfinite(self.burst) and self.burst >= 0, "burst", "be 0 or more", self.burst)
        check_above_zero("burst_every", self.burst_every)
        fits = 0 < self.burst_length <= self.burst_every
        rule = f"be above 0 and at most burst_every ({self.burst_every})"
        check(fits, "burst_length", rule, self.burst_length)
        check(0 <= self.noise <= 1, "noise", "be in [0, 1]", self.noise)
        check_above_zero("noise_interval", self.noise_interval)

    def __call__(self, load: Load) -> Load:
        if self.compress != 1:
            load = Compressed(load, self.compress)
        if self.scale_to is not None:
            load = Scaled(load, self.scale_to)
        if self.burst:
            load = Bursts(load, self.burst, self.burst_every, self.burst_length, self.burst_seed)
        return Noisy(load, self.noise, self.noise_seed, self.noise_interval) if self.noise else load
