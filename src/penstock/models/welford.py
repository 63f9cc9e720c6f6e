"""Means, variances and a straight line from one pass over the data, in numbers that do not grow with it.

Daedalus (Pfister et al., ICPE 2024) keeps these for its CPU-to-throughput regression (sec. 3.1) and its anomaly
detection (sec. 3.5): B. P. Welford, Technometrics 4 (1962). A batch is reduced to its own moments and merged, which is
exact: T. F. Chan, G. H. Golub and R. J. LeVeque, The American Statistician 37 (1983). Deviation: `fade` lets the old
count for less, so that a job that changed is not held to what it was days ago; weights are therefore not whole numbers.

Variances are those of a population (the sum of squares over the weight), since a faded weight has no "less one".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(slots=True)
class Moments:
    """Of one variable; None where nothing was seen yet.

    >>> seen = Moments()
    >>> seen.add_many([2.0, 4.0, 6.0])
    >>> seen.weight, seen.mean, round(seen.variance, 3)
    (3.0, 4.0, 2.667)
    """

    weight: float = field(default=0.0, init=False)
    _mean: float = field(default=0.0, init=False)
    _squares: float = field(default=0.0, init=False)

    @property
    def mean(self) -> float | None:
        return self._mean if self.weight > 0 else None

    @property
    def variance(self) -> float | None:
        return self._squares / self.weight if self.weight > 0 else None

    @property
    def deviation(self) -> float | None:
        return sqrt(self._squares / self.weight) if self.weight > 0 else None

    def add(self, value: float, weight: float = 1.0) -> None:
        _finite(value)
        away = value - self._mean
        self.weight += weight
        self._mean += away * weight / self.weight
        self._squares += weight * away * (value - self._mean)

    def add_many(self, values: ArrayLike) -> None:
        batch = _column(values)
        if not batch.size:
            return
        mean, away = _centred(batch)
        of_batch = Moments()
        of_batch.weight, of_batch._mean, of_batch._squares = float(batch.size), mean, float(away @ away)
        self.merge(of_batch)

    def merge(self, other: Moments) -> None:
        """As if everything that `other` saw had been added here."""
        weight = self.weight + other.weight
        if weight == 0:
            return
        away, share = other._mean - self._mean, other.weight / weight
        self._squares += other._squares + away * away * self.weight * share
        self._mean += away * share
        self.weight = weight

    def fade(self, share: float) -> None:
        """Let all that was seen so far count for `share` of what it did."""
        _share(share)
        self.weight *= share
        self._squares *= share


@dataclass(slots=True)
class Paired:
    """Of two variables seen together, and the least-squares line y = intercept + slope x; None where not known.

    >>> seen = Paired()
    >>> seen.add_many([0.2, 0.4, 0.6], [1000, 2000, 3000])
    >>> round(seen.slope), round(seen.intercept, 6), round(seen.correlation, 6)
    (5000, 0.0, 1.0)
    """

    weight: float = field(default=0.0, init=False)
    _x_mean: float = field(default=0.0, init=False)
    _y_mean: float = field(default=0.0, init=False)
    _x_squares: float = field(default=0.0, init=False)
    _y_squares: float = field(default=0.0, init=False)
    _products: float = field(default=0.0, init=False)

    @property
    def x_mean(self) -> float | None:
        return self._x_mean if self.weight > 0 else None

    @property
    def y_mean(self) -> float | None:
        return self._y_mean if self.weight > 0 else None

    @property
    def x_variance(self) -> float | None:
        return self._x_squares / self.weight if self.weight > 0 else None

    @property
    def y_variance(self) -> float | None:
        return self._y_squares / self.weight if self.weight > 0 else None

    @property
    def covariance(self) -> float | None:
        return self._products / self.weight if self.weight > 0 else None

    @property
    def slope(self) -> float | None:
        """None unless two different x were seen."""
        return self._products / self._x_squares if self._x_squares > 0 else None

    @property
    def intercept(self) -> float | None:
        slope = self.slope
        return None if slope is None else self._y_mean - slope * self._x_mean

    @property
    def correlation(self) -> float | None:
        """None where x or y never changed."""
        if self._x_squares <= 0 or self._y_squares <= 0:
            return None
        ratio = self._products / sqrt(self._x_squares) / sqrt(self._y_squares)
        return min(1.0, max(-1.0, ratio))

    def add(self, x: float, y: float, weight: float = 1.0) -> None:
        _finite(x)
        _finite(y)
        x_away, y_away = x - self._x_mean, y - self._y_mean
        self.weight += weight
        self._x_mean += x_away * weight / self.weight
        self._y_mean += y_away * weight / self.weight
        self._x_squares += weight * x_away * (x - self._x_mean)
        self._y_squares += weight * y_away * (y - self._y_mean)
        self._products += weight * x_away * (y - self._y_mean)

    def add_many(self, xs: ArrayLike, ys: ArrayLike) -> None:
        x_batch, y_batch = _column(xs), _column(ys)
        if x_batch.size != y_batch.size:
            raise ValueError(f"xs and ys must be equally many, got {x_batch.size} and {y_batch.size}")
        if not x_batch.size:
            return
        (x_mean, x_away), (y_mean, y_away) = _centred(x_batch), _centred(y_batch)
        of_batch = Paired()
        of_batch.weight, of_batch._x_mean, of_batch._y_mean = float(x_batch.size), x_mean, y_mean
        of_batch._x_squares, of_batch._y_squares = float(x_away @ x_away), float(y_away @ y_away)
        of_batch._products = float(x_away @ y_away)
        self.merge(of_batch)

    def merge(self, other: Paired) -> None:
        """As if everything that `other` saw had been added here."""
        weight = self.weight + other.weight
        if weight == 0:
            return
        share = other.weight / weight
        x_away, y_away, both = other._x_mean - self._x_mean, other._y_mean - self._y_mean, self.weight * share
        self._x_squares += other._x_squares + x_away * x_away * both
        self._y_squares += other._y_squares + y_away * y_away * both
        self._products += other._products + x_away * y_away * both
        self._x_mean += x_away * share
        self._y_mean += y_away * share
        self.weight = weight

    def fade(self, share: float) -> None:
        """Let all that was seen so far count for `share` of what it did."""
        _share(share)
        self.weight *= share
        self._x_squares *= share
        self._y_squares *= share
        self._products *= share


def _column(values: ArrayLike) -> NDArray[np.float64]:
    batch = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(batch).all():
        raise ValueError("every value must be finite")
    return batch


def _centred(batch: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    # Seen from its first value, a large mean costs no digits and equal values have a variance of exactly 0.
    away = batch - batch[0]
    mean = float(away.mean())
    return float(batch[0]) + mean, away - mean


def _finite(value: float) -> None:
    if not isfinite(value):
        raise ValueError(f"a value must be finite, got {value!r}")


def _share(share: float) -> None:
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share!r}")
