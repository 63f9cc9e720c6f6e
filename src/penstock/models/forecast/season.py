"""What came one season ago, where there is a season."""

from __future__ import annotations

import numpy as np

from penstock.models.forecast.base import INTERVALS_AHEAD, Floats
from penstock.models.forecast.series import Past

SHORTEST = 20  # intervals of a season
LIKENESS = 0.3  # the least correlation that makes a season
VALLEY = 0.1  # how far the correlation must have gone down before, or it is a drift
LEVEL = 3  # intervals whose mean is the present level
OVERLAP = 30  # intervals that a correlation is taken over, at least


def correlations(values: Floats, lags: int) -> Floats:
    """Pearson's correlation of the series with itself, for lags 0 to `lags`, each over what overlaps."""
    n = len(values)
    centred = values - values.mean()
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    products = np.fft.irfft(spectrum * spectrum.conj(), size)[: lags + 1]
    sums, squares = (np.concatenate(([0.0], np.cumsum(centred**power))) for power in (1, 2))
    lag = np.arange(lags + 1)
    overlap = n - lag
    early, late = sums[overlap], sums[n] - sums[lag]
    spread_early = squares[overlap] - early**2 / overlap
    spread_late = squares[n] - squares[lag] - late**2 / overlap
    scale = np.sqrt(np.maximum(spread_early, 0.0) * np.maximum(spread_late, 0.0))
    return np.asarray((products - early * late / overlap) / np.maximum(scale, 1e-9 * (1.0 + squares[n])))


def season_length(values: Floats) -> int | None:
    """The shortest lag with about the best correlation, if there is one; a peak, not a slope."""
    longest = len(values) - OVERLAP
    if longest <= SHORTEST:
        return None
    likeness = correlations(values, longest)
    inner = likeness[SHORTEST:-1]
    peaks = SHORTEST + np.flatnonzero(
        (inner >= likeness[SHORTEST - 1 : -2]) & (inner >= likeness[SHORTEST + 1 :]) & (inner > LIKENESS)
    )
    valleys = np.minimum.accumulate(likeness)
    peaks = peaks[likeness[peaks] - valleys[peaks] >= VALLEY]
    if not len(peaks):
        return None
    best = likeness[peaks].max()
    return int(peaks[likeness[peaks] >= 0.95 * best][0])


def season(past: Past) -> Floats | None:
    """As in the seasons before (up to three), moved to the present level."""
    values = past.means
    length = season_length(values)
    if length is None:
        return None
    n = len(values)
    starts = [n - cycle * length for cycle in (1, 2, 3) if n - cycle * length >= LEVEL]
    return np.asarray(_after(values, np.array(starts)).mean(axis=0))


def _after(values: Floats, starts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """The paths from each of `starts`, moved from the level before it to the present one."""
    paths = values[np.minimum(starts[:, None] + np.arange(INTERVALS_AHEAD), len(values) - 1)]
    levels = values[starts[:, None] - 1 - np.arange(LEVEL)].mean(axis=1)
    return np.asarray(paths - levels[:, None] + values[-LEVEL:].mean())
