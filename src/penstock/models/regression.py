"""Two small regressions: ridge with a strength chosen by cross-validation, and least squares without negative weights.

Phoebe's authors fit the maximum processing capacity with a ridge whose strength is cross-validated; TWRES (Hu, Kang,
Zheng, Algorithms 2019), as Phoebe's baseline, with non-negative least squares. Leaving one out needs no second fit: its
error is the residual over 1 minus the leverage. Non-negative least squares is exact: with so few features every set of
them is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # of the penalty, on features scaled to unit deviation
FULL_LEVERAGE = 1 - 1e-9  # a point that alone decides its own prediction says nothing about the others


@dataclass(frozen=True, slots=True)
class Ridge:
    """A fitted line: `intercept + features @ weights`."""

    intercept: float
    weights: Floats
    strength: float

    def predict(self, features: ArrayLike) -> Floats:
        return np.asarray(self.intercept + np.asarray(features, dtype=np.float64) @ self.weights)


def ridge(features: ArrayLike, values: ArrayLike) -> Ridge:
    """The line whose strength has the least squared error on points that were left out.

    >>> line = ridge([[1.0], [2.0], [3.0], [4.0]], [10.0, 20.0, 30.0, 40.0])
    >>> line.predict([[5.0]]).round(1).tolist(), line.strength
    ([50.0], 0.001)
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.ndim != 2 or len(x) != len(y) or not len(y):
        raise ValueError(f"features must have a row for each of at least one value, got {x.shape} and {y.shape}")
    centre, middle = x.mean(axis=0), float(y.mean())
    spread = x.std(axis=0)
    spread[spread <= 1e-12 * (np.abs(centre) + 1e-300)] = np.inf  # what never varies has no say
    left, singular, right = np.linalg.svd((x - centre) / spread, full_matrices=False)
    projected = left.T @ (y - middle)
    best: tuple[float, float] | None = None
    for strength in STRENGTHS:
        shrink = singular**2 / (singular**2 + strength)
        residuals = y - middle - left @ (shrink * projected)
        leverage = 1 / len(y) + (left**2) @ shrink
        told = leverage < FULL_LEVERAGE
        error = float(((residuals[told] / (1 - leverage[told])) ** 2).sum())
        if best is None or error < best[0] * (1 - 1e-9):
            best = (error, strength)
    strength = STRENGTHS[0] if best is None else best[1]
    weights = (right.T @ (singular / (singular**2 + strength) * projected)) / spread
    return Ridge(middle - float(centre @ weights), weights, strength)


def nnls(features: ArrayLike, values: ArrayLike) -> Floats:
    """Weights of 0 or more with the least squared error; for a handful of features.

    >>> nnls([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [4.0, 3.0, 2.0]).round(6).tolist()
    [3.0, 0.0]
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(values, dtype=np.float64)
    size = np.sqrt((x**2).sum(axis=0))
    size[size == 0] = 1.0
    scaled = x / size
    best, least = np.zeros(x.shape[1]), float(y @ y)
    # The optimum is plain least squares on the features it uses, so it is among these.
    for count in range(1, x.shape[1] + 1):
        for chosen in combinations(range(x.shape[1]), count):
            part = scaled[:, chosen]
            found = np.linalg.lstsq(part, y, rcond=None)[0]
            error = float(((y - part @ found) ** 2).sum())
            if (found >= 0).all() and error < least * (1 - 1e-9) - 1e-12:
                best, least = np.zeros(x.shape[1]), error
                best[list(chosen)] = found
    return np.asarray(best / size)
