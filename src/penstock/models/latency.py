"""M_L: the latency to expect at a scale-out and a rate, and whether it is one of a job that keeps up.

Phoebe, sec. III-D: a multiple regression of latency over scale-out and rate, then two clusters of the *predicted*
latencies, on normalised and log-scaled values; the one with the smaller centroid is valid. The authors' code boosts
gradients. Here the features carry what is known of queues instead: latency turns on how full the scale-out is, the
rate as a share of T_max, hardly moves far below 1, and leaps at 1; so a line in a few bends of that share is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.models.profiling import Groups, Limit, Point, groups
from penstock.models.regression import Ridge, ridge

Floats = NDArray[np.float64]

BENDS = (0.5, 0.8, 0.9, 0.95)  # shares of T_max at which the slope may change


@dataclass(frozen=True, slots=True)
class Capacities:
    """T_max over the scale-out: a ridge line through what was measured.

    >>> line = Capacities.fit([Limit(2, 40e3), Limit(8, 140e3), Limit(14, 240e3)])
    >>> round(line.at(11), -3)
    190000.0
    """

    line: Ridge | None
    per_worker: float

    @classmethod
    def fit(cls, limits: Sequence[Limit]) -> Capacities:
        per_worker = sum(limit.rate for limit in limits) / sum(limit.workers for limit in limits)
        if len({limit.workers for limit in limits}) < 3:  # two make a line, but nobody tells how good it is
            return cls(None, per_worker)
        return cls(ridge([[limit.workers] for limit in limits], [limit.rate for limit in limits]), per_worker)

    def at(self, workers: int) -> float:
        if self.line is None:
            return self.per_worker * workers
        return max(0.0, float(self.line.predict([[workers]])[0]))


@dataclass(frozen=True, slots=True)
class LatencyModel:
    """Fitted to points; knows the boundary between latencies that are valid and that are not."""

    capacities: Capacities
    line: Ridge
    lowest: float
    highest: float
    groups: Groups = field(repr=False)

    @classmethod
    def fit(cls, points: Sequence[Point], capacities: Capacities, *, known: Sequence[Point] = ()) -> LatencyModel:
        """known: points that say where to expect clusters; all of them unless given."""
        latencies = np.log([max(point.latency, 1e-9) for point in points])
        line = ridge(_features([p.workers for p in points], [p.rate for p in points], capacities), latencies)
        lowest, highest = float(latencies.min()), float(latencies.max())
        # Every scale-out at every rate of the profile: also those that no deployment was left for.
        grid = known or points
        workers = sorted({point.workers for point in grid})
        rates = sorted({point.rate for point in grid})
        pairs = [(w, r) for w in workers for r in rates]
        predicted = line.predict(_features([w for w, _ in pairs], [r for _, r in pairs], capacities))
        return cls(capacities, line, lowest, highest, groups(np.exp(np.clip(predicted, lowest, highest))))

    def latency(self, workers: int, rate: float) -> float:
        """Seconds; never beyond what was measured anywhere, as a line goes on for ever."""
        predicted = float(self.line.predict(_features([workers], [rate], self.capacities))[0])
        return exp(min(max(predicted, self.lowest), self.highest))

    def valid(self, workers: int, rate: float) -> bool:
        """Whether the predicted latency is in the lower cluster."""
        return self.groups.valid(self.latency(workers, rate))


def _features(workers: ArrayLike, rates: ArrayLike, capacities: Capacities) -> Floats:
    n, rate = np.asarray(workers, dtype=np.float64), np.asarray(rates, dtype=np.float64)
    most = np.array([max(capacities.at(int(each)), 1e-9) for each in n])
    full = np.minimum(rate / most, 1.0)  # beyond, latency is a matter of how long it has lasted
    return np.column_stack([n, np.minimum(rate, most), full, *(np.maximum(full - bend, 0.0) for bend in BENDS)])
