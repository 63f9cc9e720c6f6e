"""Latency over time: its mean, its quantiles, its distribution, and how long it was over a target.

Weighted by time, as the papers do (Daedalus sec. 4.4: the distribution of the p95 latency, nothing left out).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from penstock.errors import check
from penstock.measures.series import Floats, Series, highest, mean, weights


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """For which share of the time a value was at most so much: points of a step function, both rising.

    >>> spread = distribution(np.array([1.0, 5.0]), np.array([9.0, 1.0]))
    >>> spread.quantile(0.5), spread.quantile(0.95), spread.share(4.9)
    (1.0, 5.0, 0.9)
    """

    values: Floats
    shares: Floats

    def quantile(self, share: float) -> float | None:
        """The smallest value that is not exceeded for `share` of the time."""
        if not len(self.values):
            return None
        index = int(np.searchsorted(self.shares, share * (1 - 1e-12)))  # 0.95 must not lose to its own rounding
        return float(self.values[min(index, len(self.values) - 1)])

    def share(self, value: float) -> float | None:
        """The share of the time in which `value` was not exceeded."""
        if not len(self.values):
            return None
        index = int(np.searchsorted(self.values, value, side="right"))
        return float(self.shares[index - 1]) if index else 0.0

    def thinned(self, points: int) -> Distribution:
        """The same with about `points` points, evenly in share, and the highest value: enough for a figure."""
        check(points >= 2, "points", "be at least 2", points)
        if len(self.values) <= points:
            return self
        wanted = np.searchsorted(self.shares, np.linspace(self.shares[0], 1.0, points) * (1 - 1e-12))
        kept = np.unique(np.append(np.minimum(wanted, len(self.values) - 1), len(self.values) - 1))
        return Distribution(self.values[kept], self.shares[kept])


def distribution(values: Floats, seconds: Floats) -> Distribution:
    """Of what is known of `values`, each of which held for so many seconds."""
    weight = weights(values, seconds)
    counted = weight > 0
    distinct, where = np.unique(values[counted], return_inverse=True)
    if not distinct.size:
        return Distribution(np.empty(0), np.empty(0))
    passed = np.cumsum(np.bincount(where, weights=weight[counted]), dtype=np.float64)
    return Distribution(distinct, np.asarray(passed / passed[-1]))


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of latency over a run; None is unknown.

    known: seconds for which it was known.
    over_target: share of these in which it was above the target.
    """

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    known: float
    over_target: float | None


def latency(series: Series, target: float | None = None) -> Latency:
    """The latency of a run, against a target in seconds if there is one."""
    if target is not None:
        check(isfinite(target) and target >= 0, "latency_target", "be 0 seconds or more", target)
    spread = distribution(series.latency, series.seconds)
    within = None if target is None else spread.share(target)
    return Latency(
        mean=mean(series.latency, series.seconds),
        p50=spread.quantile(0.50),
        p95=spread.quantile(0.95),
        p99=spread.quantile(0.99),
        max=highest(series.latency),
        known=float(series.seconds[~np.isnan(series.latency)].sum()),
        over_target=None if within is None else 1.0 - within,
    )
