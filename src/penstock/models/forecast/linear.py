"""The two simplest forecasters: as in the last interval, and straight on with the slope of its samples.

The second is the fall-back of Daedalus, sec. 3.3: a regression on the latest load, projected over the horizon. `onward`
is a calmer line, through half a horizon, for who wants to know where a rise would lead if it did not die out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock.models.forecast.base import CEILING, INTERVALS_AHEAD, PARTS, Floats, Forecast, Forecaster
from penstock.models.forecast.series import Past, Series

ONWARD = INTERVALS_AHEAD * PARTS // 2  # fine bins that the calmer line goes through: noise has no slope over so many


@dataclass
class _OfSeries(Forecaster):
    """All that they learn is the series."""

    series: Series = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.series = Series(self.interval)

    def learn(self, at: float, rate: float | None) -> None:
        self.series.learn(at, rate)


@dataclass
class Last(_OfSeries):
    """The mean of the last interval, all the way."""

    name: ClassVar[str] = "last"

    def forecast(self) -> Forecast | None:
        past = self.series.past()
        if past is None:
            return None
        level = float(past.fine[-PARTS:].mean())
        return Forecast(past.at, self.step, (level,) * (INTERVALS_AHEAD * PARTS), self.name)


@dataclass
class Linear(_OfSeries):
    """A straight line through the samples of the last interval, cut to [0, 3 x the recent maximum].

    Of an interval shorter than 20 s, as in an experiment whose time is scaled, through those of 20 s: the slope of
    four samples of a writer that was held up for a second is not the load's.
    """

    name: ClassVar[str] = "linear"

    def forecast(self) -> Forecast | None:
        past = self.series.past()
        if past is None:
            return None
        # By their distance to now; after a gap, or with a single sample, there is no slope to go by.
        samples = np.array(self.series.bins.recent) - (past.at, 0.0)
        samples = samples[np.abs(samples[:, 0]) <= self.series.window + self.step]
        level = float(past.fine[-PARTS:].mean())
        return _straight(past, self.step, samples[:, 0], samples[:, 1], level, self.name)


def onward(past: Past, step: float) -> Forecast:
    """Straight on through the means of the last half horizon, within the same limits; `step`: seconds of a fine bin.

    Forecasters let a slope die out, and are right to on the whole; a steep rise still outruns them.
    """
    means = past.fine[-ONWARD:]
    when = np.asarray((np.arange(len(means)) - len(means) + 0.5) * step, dtype=np.float64)
    return _straight(past, step, when, means, float(means.mean()), "onward")


def _straight(past: Past, step: float, when: Floats, rates: Floats, level: float, by: str) -> Forecast:
    """The line through these rates over the horizon; level where they have no slope."""
    slope, spread = 0.0, float(((when - when.mean()) ** 2).sum()) if len(when) > 1 else 0.0
    if spread > 0:
        slope = float((when - when.mean()) @ (rates - rates.mean())) / spread
        level = float(rates.mean() - slope * when.mean())
    ahead = (np.arange(INTERVALS_AHEAD * PARTS) + 0.5) * step
    path = np.clip(level + slope * ahead, 0.0, CEILING * past.ceiling)
    return Forecast(past.at, step, tuple(path.tolist()), by)
