"""A small ARIMA(p, 1, q) on interval means, fast enough for every loop.

Estimated in two least-squares stages (Hannan and Rissanen, 1982): a long autoregression gives the shocks, then the
steps are regressed on lagged steps and lagged shocks. The order is the one with the least AICc; roots outside the
stable region are pulled into it, so that no forecast runs away.
"""

from __future__ import annotations

from math import log

import numpy as np

from penstock.models.forecast.base import INTERVALS_AHEAD, Floats
from penstock.models.forecast.series import Past

MOST_P, MOST_Q = 4, 2
STABLE = 0.97  # the largest modulus of a root


def small_arima(values: Floats) -> Floats:
    """The path for the whole horizon."""
    steps = np.diff(values)
    scale = float(np.abs(steps).max())
    if scale <= 1e-9 * float(np.abs(values).max()):
        return np.full(INTERVALS_AHEAD, values[-1])
    steps = steps / scale
    shocks = _shocks(steps)
    ar, ma = _fit(steps, shocks)
    ar = stabilised(ar)
    recent, lately = list(steps[-MOST_P:]), list(shocks[-MOST_Q:])
    path = []
    for _ in range(INTERVALS_AHEAD):
        step = sum(a * recent[-1 - lag] for lag, a in enumerate(ar)) + sum(
            m * lately[-1 - lag] for lag, m in enumerate(ma)
        )
        recent.append(step)
        lately.append(0.0)
        path.append(step)
    return np.asarray(values[-1] + scale * np.cumsum(path))


def _lagged(values: Floats, lags: int, rows: int) -> Floats:
    """Columns of the values 1 to `lags` before each of the last `rows`."""
    n = len(values)
    return np.stack([values[n - rows - lag : n - lag] for lag in range(1, lags + 1)], axis=1)


def _shocks(steps: Floats) -> Floats:
    """What a long autoregression did not foresee; 0 where it cannot look back far enough."""
    order = min(10, len(steps) // 4)
    past = _lagged(steps, order, len(steps) - order)
    gram = past.T @ past
    gram += (1e-6 * np.trace(gram) / order + 1e-12) * np.eye(order)
    seen = steps[order:]
    return np.concatenate((np.zeros(order), seen - past @ np.linalg.solve(gram, past.T @ seen)))


def _fit(steps: Floats, shocks: Floats) -> tuple[Floats, Floats]:
    rows = len(steps) - max(MOST_P, min(10, len(steps) // 4) + MOST_Q)
    design = np.hstack((_lagged(steps, MOST_P, rows), _lagged(shocks, MOST_Q, rows)))
    seen = steps[-rows:]
    gram, moment, total = design.T @ design, design.T @ seen, float(seen @ seen)
    gram += (1e-9 * np.trace(gram) / len(gram) + 1e-12) * np.eye(len(gram))
    best: tuple[float, Floats, Floats] = (float("inf"), np.empty(0), np.empty(0))
    for p in range(MOST_P + 1):
        for q in range(MOST_Q + 1):
            chosen = [*range(p), *range(MOST_P, MOST_P + q)]
            weights: Floats = np.empty(0)
            if chosen:
                weights = np.asarray(np.linalg.solve(gram[np.ix_(chosen, chosen)], moment[chosen]), dtype=np.float64)
            left = max(total - float(weights @ moment[chosen]), 1e-12 * total + 1e-300)
            k = p + q + 1
            aicc = rows * log(left / rows) + 2 * k + 2 * k * (k + 1) / max(rows - k - 1, 1)
            if aicc < best[0]:
                best = (aicc, weights[:p], weights[p:])
    return best[1], best[2]


def stabilised(ar: Floats) -> Floats:
    """The same autoregression with its largest root pulled to modulus `STABLE` at most.

    >>> [float(round(weight, 4)) for weight in stabilised(np.array([1.5]))]
    [0.97]
    """
    if not len(ar):
        return ar
    companion = np.eye(len(ar), k=-1)
    companion[0] = ar
    largest = float(np.abs(np.linalg.eigvals(companion)).max())
    if largest <= STABLE:
        return ar
    return np.asarray(ar * (STABLE / largest) ** np.arange(1, len(ar) + 1))


def long_arima(past: Past) -> Floats | None:
    """On the last four hours."""
    return small_arima(past.means[-240:]) if len(past.means) >= 40 else None


def short_arima(past: Past) -> Floats | None:
    """On the last hour and a half."""
    return small_arima(past.means[-90:]) if len(past.means) >= 30 else None
