"""The face of every forecaster, and what it says: the load of the next fifteen intervals.

Daedalus, sec. 3.3, forecasts 15 minutes ahead in a loop of one minute. Here every length of time is a multiple of one,
the `interval` of the loop, so that an experiment with time compressed six times runs the same with interval 10.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import check

Floats = NDArray[np.float64]

PARTS = 6  # fine bins in an interval: 10 s in a minute
INTERVALS_AHEAD = 15  # the horizon: 15 minutes
INTERVALS_KEPT = 720  # the history: 12 hours
INTERVALS_RECENT = 60  # "recent" in "the recent maximum"
CEILING = 3.0  # no forecast above this many times the recent maximum


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected from an instant on.

    at: when it begins, in seconds.
    step: seconds that each rate holds.
    path: records/s, one after another.
    by: the name of who said so.

    >>> ahead = Forecast(at=0.0, step=10.0, path=(1.0, 2.0, 6.0), by="last")
    >>> ahead.max(20), ahead.max(), ahead.mean(15), ahead.rate(25)
    (2.0, 6.0, 1.3333333333333333, 6.0)
    >>> ahead.over(40).path, ahead.over(15).path
    ((1.0, 2.0, 6.0, 6.0), (1.0, 2.0))
    >>> ahead.trend(20)
    14.0
    """

    at: float
    step: float
    path: tuple[float, ...]
    by: str

    @property
    def horizon(self) -> float:
        """How many seconds it reaches ahead."""
        return self.step * len(self.path)

    def max(self, until: float | None = None) -> float:
        """The highest rate of the next `until` seconds."""
        return max(self.path if until is None else self.over(until).path)

    def mean(self, until: float | None = None) -> float:
        """The mean rate of the next `until` seconds."""
        return float(self.means(self.horizon if until is None else until, 1)[0])

    def rate(self, ahead: float) -> float:
        """The rate `ahead` seconds after the beginning."""
        return self.path[min(max(int(ahead / self.step), 0), len(self.path) - 1)]

    def over(self, horizon: float) -> Forecast:
        """The same for the next `horizon` seconds: cut to them, or with the last rate going on."""
        steps = max(1, ceil(horizon / self.step - 1e-9))
        return replace(self, path=(self.path + self.path[-1:] * (steps - len(self.path)))[:steps])

    def trend(self, beyond: float) -> float:
        """The rate so many seconds after the end, if it goes on as in the last quarter."""
        steps = min(max(1, len(self.path) // 4), len(self.path) - 1)
        slope = (self.path[-1] - self.path[-1 - steps]) / (steps * self.step) if steps else 0.0
        return self.path[-1] + slope * beyond

    def means(self, step: float, count: int) -> Floats:
        """Mean rates of `count` parts of `step` seconds each; beyond the end the last rate goes on."""
        path = self.over(step * count).path
        total = np.concatenate(([0.0], np.cumsum(path))) * self.step
        edges = np.arange(count + 1) * step
        return np.asarray(np.diff(np.interp(edges, np.arange(len(total)) * self.step, total)) / step)


@dataclass
class Forecaster(ABC):
    """Learns from samples, and says what comes. It reads no clock and is the same in a replay.

    interval: seconds of the loop, from which all other lengths of time follow.
    """

    name: ClassVar[str]

    interval: float = 60.0

    def __post_init__(self) -> None:
        check(0 < self.interval < float("inf"), "interval", "be above 0 seconds", self.interval)

    @property
    def step(self) -> float:
        """Seconds of a fine bin."""
        return self.interval / PARTS

    @property
    def horizon(self) -> float:
        """Seconds that it looks ahead."""
        return self.interval * INTERVALS_AHEAD

    @abstractmethod
    def learn(self, at: float, rate: float | None) -> None:
        """Take in a sample: any distance apart, in any order; None is unknown, which is not 0."""

    @abstractmethod
    def forecast(self) -> Forecast | None:
        """What comes from now on; None while there is nothing to go on."""

    @property
    def untrained(self) -> bool:
        """It can say nothing before it is trained."""
        return False

    def training(self) -> Callable[[], object] | None:
        """A pure computation, to run now or elsewhere, whose result `adopt` takes; None while there is too little."""
        return None

    def adopt(self, model: object) -> None:  # noqa: B027 - most have nothing to train
        """Go on with what the training found."""
