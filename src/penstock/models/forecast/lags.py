"""Direct regressions: the change until each instant ahead, from the changes just seen, by ridge."""

from __future__ import annotations

import numpy as np

from penstock.models.forecast.base import INTERVALS_AHEAD, Floats
from penstock.models.forecast.series import Past

RIDGE = 1e-3  # to the mean variance of the features
BLOCK = 200  # rows
SHORT = (1, 2, 3, 5, 8)
FORGETTING = 240.0  # intervals until an example counts half


def regression(values: Floats, features: Floats) -> Floats:
    """The path, each instant with its own weights: value ahead minus value now, on the features of now.

    `features` has a row for each value from some beginning on; the last is the present.
    """
    rows, count = len(features), features.shape[1] + 1
    now = values[-rows:]
    scale = float(np.abs(features).max()) or 1.0
    design = np.hstack((np.ones((rows, 1)), features / scale))
    weighted = design * (0.5 ** (np.arange(rows - 1, -1, -1) / FORGETTING))[:, None]
    aheads = np.arange(1, INTERVALS_AHEAD + 1)
    # Examples for one instant ahead are those for the next plus one row, so their products are running sums.
    tail = slice(rows - INTERVALS_AHEAD, rows - 1)
    added = weighted[tail, :, None] * design[tail, None, :]
    # In blocks, because a larger product wakes the threads of BLAS, and on a busy machine waits for them.
    blocks = [slice(start, min(start + BLOCK, tail.start)) for start in range(0, tail.start, BLOCK)]
    whole = np.sum([weighted[block].T @ design[block] for block in blocks], axis=0)
    grams = np.cumsum(np.concatenate((whole[None], added)), axis=0)[::-1]
    moments = np.stack([weighted[:-ahead].T @ (now[ahead:] - now[:-ahead]) for ahead in aheads])
    # The constant is not shrunk, so the spread that sets the ridge is that around the mean.
    spread = np.trace(grams, axis1=1, axis2=2) - (grams[:, 0] ** 2).sum(axis=1) / grams[:, 0, 0]
    ridge = RIDGE * np.maximum(spread, 0.0) / (count - 1) + 1e-9 * grams[:, 0, 0]
    grams = grams + ridge[:, None, None] * np.diag([0.0] + [1.0] * (count - 1))
    slopes = np.linalg.solve(grams, moments[:, :, None])[:, :, 0]
    return np.asarray(now[-1] + slopes @ design[-1])


def long_lags(past: Past) -> Floats | None:
    """From each of the last 30 steps."""
    if len(past.means) < 75:
        return None
    steps = np.diff(past.means)
    return regression(past.means, np.lib.stride_tricks.sliding_window_view(steps, 30))


def short_lags(past: Past) -> Floats | None:
    """From the changes over a few recent spans."""
    values, reach = past.means, SHORT[-1]
    if len(values) < 36:
        return None
    return regression(values, np.stack([values[reach:] - values[reach - lag : -lag] for lag in SHORT], axis=1))
