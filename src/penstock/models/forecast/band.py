"""A bound that the highest load of the coming span will not exceed, with a given confidence.

Every forecast of the middle under-predicts the highest load to come, so a planner needs a bound. It is learned from how
far the realised maximum was above the predicted one in the last loops: a quantile of these excesses (conformal
prediction), whose level is nudged after every hit and miss (Gibbs and Candès, Adaptive Conformal Inference, 2021),
since the feedback comes a whole span late and loads change meanwhile.

The load is meant as the mean over an interval: single seconds are noise, which the backlog absorbs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from penstock.models.forecast.base import INTERVALS_AHEAD, PARTS
from penstock.models.forecast.series import Past, Series

# 90 loops cover 86 % over fifteen intervals; 150 keep a whole rise and fall in view, and cover 89 %.
LOOPS = 150
GAIN = 0.01  # of the level, per miss; more chases its own delay
INTERVALS_LEVEL = 180  # whose mean is the scale of the load
LOWEST = 0.6  # the level goes no lower; nor above 1, which is the largest excess seen
KNOWN = 0.8  # share of a span that must be known for its maximum to count
# Before anything is known, for the whole horizon; shorter spans take it in proportion to the root of their length.
PRIOR = (-0.02, 0.0, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)


@dataclass(frozen=True, slots=True)
class Bound:
    """What was said at bin `end`: the predicted maximum, the unit that excess is counted in, and the bound."""

    end: int
    predicted: float
    unit: float
    upper: float


@dataclass
class Band:
    """The bound for the next `span` intervals.

    span: intervals.
    level: the confidence.
    """

    span: int
    level: float = 0.9
    excesses: deque[float] = field(init=False, repr=False)
    tracked: float = field(init=False)
    said: list[Bound] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        share = sqrt(self.span / INTERVALS_AHEAD)
        self.excesses = deque((excess * share for excess in PRIOR), maxlen=LOOPS)
        self.tracked = self.level

    def judge(self, series: Series, end: int) -> None:
        """Learn from the spans that are over by bin `end`."""
        while self.said and end - self.said[0].end >= self.span * PARTS:
            bound = self.said.pop(0)
            actual = series.actual(bound.end, self.span)
            known = actual[np.isfinite(actual)]
            if len(known) < KNOWN * self.span or bound.unit <= 0:
                continue
            highest = float(known.max())
            self.excesses.append((highest - bound.predicted) / bound.unit)
            missed = highest > bound.upper
            nudged = self.tracked + GAIN * (self.level if missed else self.level - 1)
            self.tracked = min(max(nudged, LOWEST), 1.0)

    def bound(self, past: Past, predicted: float) -> Bound:
        """The bound, given the predicted maximum.

        Excess is counted in the geometric mean of the predicted maximum and the usual load: between a share of the
        forecast, which means little in a valley, and a fixed number of records/s, which means little at a peak.
        """
        usual = float((past.means[-INTERVALS_LEVEL:] if len(past.means) else past.fine).mean())
        unit = sqrt(max(predicted, 0.01 * usual) * usual)
        excess = float(np.quantile(np.array(self.excesses), self.tracked))
        return Bound(past.end, predicted, unit, max(0.0, predicted + excess * unit))

    def keep(self, bound: Bound) -> None:
        """Remember what was said, to learn from it."""
        self.said.append(bound)


def coverage(said: Sequence[float], realised: Sequence[float]) -> float:
    """The share of bounds that held.

    >>> coverage([10, 10, 10, 10], [7, 10, 8, 11])
    0.75
    """
    return float(np.mean(np.asarray(realised) <= np.asarray(said)))
