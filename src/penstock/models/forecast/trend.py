"""Damped local linear trends: a level and a slope that wander, the slope dying out ahead.

A bank of them with different ratios of the wandering to the noise; the one speaks that was likeliest lately. Each is
its Kalman filter in steady state, which is a fixed weighting of the past: a whole bank is one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from penstock.models.forecast.base import INTERVALS_AHEAD, PARTS, Floats
from penstock.models.forecast.series import Past

DAMPING = 0.95  # of the slope, per interval
LEVEL_NOISE = (0.01, 0.1, 1.0, 10.0)  # variance of the level's steps, per interval, to that of an interval's mean
SLOPE_NOISE = (0.0003, 0.003, 0.03, 0.3)  # the same of the slope's steps


@dataclass(frozen=True)
class Bank:
    """Weights on the last values (oldest first), a row per filter: of the level, the slope and the next value."""

    level: Floats
    slope: Floats
    following: Floats
    damping: float


@lru_cache(maxsize=8)
def bank(parts: int, window: int) -> Bank:
    """Filters for means of one part of an interval out of `parts`, over the last `window` of them."""
    damping = DAMPING ** (1 / parts)
    step = np.array([[1.0, damping], [0.0, damping]])
    noise = np.array([np.diag([level / parts**2, slope / parts**4]) for level in LEVEL_NOISE for slope in SLOPE_NOISE])
    spread = np.broadcast_to(np.eye(2), noise.shape)
    for _ in range(500):  # the Riccati equation, to its fixed point
        gain = spread[:, :, 0] / (spread[:, 0, 0] + 1.0)[:, None]
        spread = step @ (spread - gain[:, :, None] * spread[:, :1, :]) @ step.T + noise
    gain = spread[:, :, 0] / (spread[:, 0, 0] + 1.0)[:, None]
    forget = step - gain[:, :, None] * step[0]
    weights = np.empty((window, *gain.shape))
    weight = gain
    for back in range(window):
        weights[window - 1 - back] = weight
        weight = (forget @ weight[:, :, None])[:, :, 0]
    level, slope = np.ascontiguousarray(weights[:, :, 0].T), np.ascontiguousarray(weights[:, :, 1].T)
    return Bank(level, slope, level + damping * slope, damping)


def trend(values: Floats, parts: int, window: int, judged: int) -> Floats:
    """The path of the filter that foretold the last `judged` values best, for the whole horizon."""
    filters = bank(parts, window)
    # Older than the beginning is as the beginning: the filter starts at rest there.
    padded = np.concatenate((np.full(max(0, window + judged - len(values)), values[0]), values))[-(window + judged) :]
    windows = np.lib.stride_tricks.sliding_window_view(padded, window)
    oldest = windows[:, 0]  # weights are cut at the window's end, so work on differences from there
    errors = padded[window:] - oldest[:-1] - ((windows[:-1] - oldest[:-1, None]) @ filters.following.T).T
    lately = 0.5 ** (np.arange(judged - 1, -1, -1) / (judged / 2))
    lately[: max(0, judged - len(values) + 1)] = 0.0  # padding foretells itself
    best = int(np.argmin((errors**2) @ lately))
    now = windows[-1] - oldest[-1]
    level, slope = oldest[-1] + filters.level[best] @ now, filters.slope[best] @ now
    return np.asarray(level + slope * np.cumsum(filters.damping ** np.arange(1, INTERVALS_AHEAD * parts + 1)))


def coarse_trend(past: Past) -> Floats | None:
    """On the means of intervals."""
    return trend(past.means, 1, 90, 90) if len(past.means) >= 4 else None


def fine_trend(past: Past) -> Floats | None:
    """On the fine bins: it sees a turn sooner, and noise more."""
    if len(past.fine) < PARTS:
        return None
    return np.asarray(trend(past.fine, PARTS, 180, 180).reshape(INTERVALS_AHEAD, PARTS).mean(axis=1))
