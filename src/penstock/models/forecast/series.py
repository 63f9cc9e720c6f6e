"""Samples as means on a fixed grid: bounded, robust against a single absurd sample, with unknown left unknown.

At one second the noise swamps the trend; forecasts are made, and judged, on means of an interval and of a sixth of it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import floor

import numpy as np

from penstock.models.forecast.base import INTERVALS_AHEAD, INTERVALS_KEPT, INTERVALS_RECENT, PARTS, Floats

ABSURD = 3.0  # times the highest of the last interval
ENOUGH_TO_DOUBT = 5  # samples before anything may be called absurd
EPSILON = 1e-9  # a sample on the edge of a bin belongs to the later one, however the division rounds
SHORTEST = 20.0  # seconds of samples that a jump or a slope is judged by, however short the interval
LARGEST = 1e15  # records/s, or seconds; nothing real comes near, and squares of it stay finite


class Sieve:
    """Holds back a sample that jumps far above all of the last interval, until the next one confirms or denies it.

    A load that really jumps is confirmed a sample later; a single absurd one is cut to the highest before it. A source
    that comes in bursts has others within the interval, so its peaks pass.

    >>> sieve = Sieve(window=60.0)
    >>> for second in range(10):
    ...     _ = sieve.let(second, 100.0)
    >>> sieve.let(10, 1000.0), sieve.let(11, 100.0)
    ([], [(10, 100.0), (11, 100.0)])
    """

    def __init__(self, window: float) -> None:
        self.window = window
        self.recent: deque[tuple[float, float]] = deque(maxlen=240)
        self._doubted: tuple[float, float] | None = None

    def let(self, at: float, rate: float) -> list[tuple[float, float]]:
        """The samples that are settled now, this one or the one held back among them."""
        while self.recent and not 0 <= at - self.recent[0][0] < self.window - EPSILON:
            self.recent.popleft()
        if self._doubted is None and self.recent and rate <= ABSURD * self.recent[-1][1]:
            self.recent.append((at, rate))  # as nearly all: what is not far above the last is not far above the highest
            return [(at, rate)]
        highest = max((known for _, known in self.recent), default=0.0)
        settled = []
        if self._doubted is not None:
            then, value = self._doubted
            self._doubted = None
            settled.append((then, value if rate >= value / 2 or not highest else highest))
        elif len(self.recent) >= ENOUGH_TO_DOUBT and 0 < highest * ABSURD < rate:
            self._doubted = (at, rate)
            return []
        settled.append((at, rate))
        self.recent.extend(settled)
        return settled


class Bins:
    """The last `length` means of `width` seconds each, on a grid that only jumps when the clock goes back.

    A bin has a number that only grows. Without a sample it is unknown: NaN inside, never 0.
    """

    def __init__(self, width: float, length: int, window: float) -> None:
        self.width = width
        self.length = length
        self.at: float | None = None  # of the newest sample, known or not
        self._sieve = Sieve(window)
        self._means: Floats = np.full(2 * length, np.nan)  # closed bins; room to append before it is moved
        self._used = 0
        self._open = 0  # the number of the bin being filled
        self._anchor = (0, 0.0)  # a bin's number and when it began
        self._sum, self._count = 0.0, 0
        self._spacing = 0.0  # seconds between the last two samples

    def learn(self, at: float, rate: float | None) -> None:
        if not abs(at) <= LARGEST:  # NaN too
            return
        self._advance(at)
        if rate is None or not 0 <= rate <= LARGEST:
            return
        for then, value in self._sieve.let(at, rate):
            # One held back belongs to an earlier bin; that is closed by now unless it is this one.
            if then >= self._began(self._open) or not self._mend(then, value):
                self._sum, self._count = self._sum + value, self._count + 1

    @property
    def recent(self) -> list[tuple[float, float]]:
        """The settled samples of the last window."""
        return list(self._sieve.recent)

    @property
    def end(self) -> int:
        """The number after the last bin that counts; the open one does if half over, or if no more is to come to it."""
        if self.at is None:
            return self._open
        into = self.at - self._began(self._open)
        return self._open + (max(2 * into, into + self._spacing) >= self.width * (1 - EPSILON))

    @property
    def end_at(self) -> float:
        """When bin `end` begins."""
        return self._began(self.end)

    def last(self, count: int) -> Floats:
        """Up to `count` means before `end`, NaN where unknown."""
        means = self._means[: self._used]
        if self.end > self._open:
            means = np.append(means, self._sum / self._count if self._count else np.nan)
        return means[-min(count, self.length) :]

    def between(self, first: int, count: int) -> Floats:
        """Bins `first` to `first + count`, NaN where unknown, forgotten or yet to come."""
        means = self.last(self.length)
        offset = first - (self.end - len(means))
        found = np.full(count, np.nan)
        low, high = max(0, -offset), min(count, len(means) - offset)
        if low < high:
            found[low:high] = means[offset + low : offset + high]
        return found

    def _began(self, number: int) -> float:
        return self._anchor[1] + (number - self._anchor[0]) * self.width

    def _grid(self, at: float) -> float:
        return floor(at / self.width + EPSILON) * self.width

    def _advance(self, at: float) -> None:
        """Close bins until the one that `at` falls in; if the clock went far back, time goes on from there."""
        if self.at is None:
            self._anchor = (self._open, self._grid(at))
        elif at < self.at:
            if self.at - at <= self._sieve.window:
                return  # samples out of order, or a clock being corrected: they count for the bin being filled
            self._close(1)
            self._anchor = (self._open, self._grid(at))
        else:
            ahead = (at - self._began(self._open)) / self.width + EPSILON
            if ahead >= self.length:
                self._used, self._sum, self._count = 0, 0.0, 0
                self._open += self.length
                self._anchor = (self._open, self._grid(at))
            elif ahead >= 1:
                self._close(floor(ahead))
            self._spacing = at - self.at
        self.at = at

    def _close(self, bins: int) -> None:
        if self._used + bins > len(self._means):
            kept = self._means[self._used - self.length : self._used].copy()
            self._means[: self.length] = kept
            self._used = self.length
        self._means[self._used] = self._sum / self._count if self._count else np.nan
        self._means[self._used + 1 : self._used + bins] = np.nan
        self._used += bins
        self._open += bins
        self._sum, self._count = 0.0, 0

    def _mend(self, then: float, value: float) -> bool:
        """A settled sample for a bin that closed without any; otherwise it may as well count for the open one."""
        place = self._used + floor((then - self._began(self._open)) / self.width)
        if not 0 <= place < self._used:
            return False
        if np.isnan(self._means[place]):
            self._means[place] = value
        return True


@dataclass(frozen=True, slots=True)
class Past:
    """What the models learn from: means up to `at` with the unknown bridged, and the number of the bin that comes."""

    at: float
    end: int
    fine: Floats
    means: Floats

    @property
    def ceiling(self) -> float:
        """The highest recent mean."""
        recent = self.means[-INTERVALS_RECENT:] if len(self.means) else self.fine
        return float(max(recent.max(), self.fine[-PARTS:].mean()))


class Series:
    """Twelve hours of fine bins, and the means of whole intervals that end now."""

    def __init__(self, interval: float, intervals: int = INTERVALS_KEPT) -> None:
        self.interval = interval
        self.window = max(interval, SHORTEST)
        self.bins = Bins(interval / PARTS, intervals * PARTS, window=self.window)

    def learn(self, at: float, rate: float | None) -> None:
        self.bins.learn(at, rate)

    def past(self) -> Past | None:
        """None if nothing is known, or nothing of the last horizon."""
        fine = self.bins.last(self.bins.length)
        known = np.flatnonzero(np.isfinite(fine))
        if not len(known) or len(fine) - known[-1] > INTERVALS_AHEAD * PARTS:
            return None
        fine = bridged(fine[known[0] :])
        whole = len(fine) // PARTS
        means = fine[len(fine) - whole * PARTS :].reshape(whole, PARTS).mean(axis=1)
        return Past(self.bins.end_at, self.bins.end, fine, means)

    def actual(self, first: int, count: int) -> Floats:
        """Means of `count` intervals from bin `first` on; NaN for one of which nothing is known."""
        parts = self.bins.between(first, count * PARTS).reshape(count, PARTS)
        known = np.isfinite(parts)
        sums, counts = np.where(known, parts, 0.0).sum(axis=1), known.sum(axis=1)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def bridged(values: Floats) -> Floats:
    """Straight from known to known; before the first and after the last as those."""
    known = np.isfinite(values)
    if known.all():
        return values.copy()
    places = np.arange(len(values))
    return np.asarray(np.interp(places, places[known], values[known]))
