"""The loads of the papers' experiments, by their formulas and published parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.errors import check
from penstock.workloads.base import Load, check_above_zero, uniform, uniforms
from penstock.workloads.shapes import Sine

Query = Literal["q1", "q3", "q11"]
MINUTE = 60.0
SHIFT: dict[str, float] = {"q1": 150_000.0, "q3": 50_000.0, "q11": 100_000.0}  # Koper, table 4.1
AMPLITUDE: dict[str, float] = {"q1": 100_000.0, "q3": 25_000.0, "q11": 50_000.0}


@dataclass(frozen=True, slots=True)
class NoisySine(Sine):
    """A wave with 10 % noise, as Phoebe's advertising job has it (sec. IV-D): three waves in six hours from the mean.

    Phoebe's recorded runs swing around 100,000 records/s by as much.

    >>> load = NoisySine(mean=100_000, amplitude=100_000)
    >>> 90_000 <= load.rate(0) <= 110_000, round(load.peak())
    (True, 220000)

    periods: waves within the duration.
    phase: where in a wave it starts: 0 at low, 0.25 at the mean going up, 0.5 at high.
    variance: how far the noise goes to either side, as a share of the rate.
    seed: another seed, another noise.
    interval: seconds that one draw of the noise lasts.
    """

    kind: ClassVar[str] = "noisy_sine"

    periods: float = 3.0
    phase: float = 0.25
    variance: float = 0.1
    seed: int = 0
    interval: float = 1.0

    def __post_init__(self) -> None:
        Sine.__post_init__(self)  # super() does not survive slots: the decorator makes another class
        check(0 <= self.variance <= 1, "variance", "be in [0, 1]", self.variance)
        check_above_zero("interval", self.interval)

    def at(self, t: float) -> float:
        draw = 2 * uniform(self.seed, math.floor(t / self.interval)) - 1
        return Sine.at(self, t) * (1 + self.variance * draw)

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        draws = 2 * uniforms(self.seed, np.floor(ts / self.interval)) - 1
        return np.asarray(Sine.along(self, ts) * (1 + self.variance * draws))

    def peak(self) -> float:
        first, last = self.phase, self.phase + self.periods
        crest = math.floor(last - 0.5) >= math.ceil(first - 0.5)
        ends = (Sine.at(self, 0.0), Sine.at(self, self.duration))
        return (self.bounds()[1] if crest else max(ends)) * (1 + self.variance)


@dataclass(frozen=True, slots=True)
class Koper(Load):
    """Koper's cosine for a Nexmark query, set anew each minute with noise (equation 4.1, table 4.1); from high to high.

    For query 3 it is the sum of its two sources, each of which has half.

    >>> load = Koper("q1", spread=0)
    >>> load.rate(0), load.rate(59), round(load.rate(30 * 60)), load.duration
    (250000.0, 250000.0, 50000, 8400.0)

    query: the Nexmark query, which sets the middle and the swing: 150,000 ± 100,000, 50,000 ± 25,000, 100,000 ± 50,000.
    spread: the noise is drawn within - spread .. + spread, in records/s.
    period: seconds of a wave.
    seed: another seed, another noise.
    duration: seconds.
    """

    kind: ClassVar[str] = "koper"

    query: Query = "q1"
    spread: float = 10_000.0
    period: float = 3600.0
    seed: int = 0
    duration: float = 8400.0

    def __post_init__(self) -> None:
        check(self.query in get_args(Query), "query", f"be one of {', '.join(get_args(Query))}", self.query)
        most = SHIFT[self.query] - AMPLITUDE[self.query]
        check(0 <= self.spread <= most, "spread", f"be 0..{most:g} records/s, so that no rate is below 0", self.spread)
        check_above_zero("period", self.period)
        check_above_zero("duration", self.duration)

    def at(self, t: float) -> float:
        minute = math.floor(t / MINUTE)
        noise = self.spread * (2 * uniform(self.seed, minute) - 1)
        return noise + SHIFT[self.query] + AMPLITUDE[self.query] * math.cos(2 * math.pi * minute * MINUTE / self.period)

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        minutes, where = np.unique(np.floor(ts / MINUTE), return_inverse=True)
        return np.array([self.at(float(minute) * MINUTE) for minute in minutes], dtype=np.float64)[where]

    def peak(self) -> float:
        return SHIFT[self.query] + AMPLITUDE[self.query] + self.spread  # it starts on its crest
