"""Days of real services, drawn afresh: an advertising network, a city's traffic, a city's taxis.

Each is an outline, a few points of (time, share of the highest rate), joined by half cosines so that it has no corners,

    share(t) = a + (b - a) (1 - cos(pi (t - t_a) / (t_b - t_a))) / 2    between the points (t_a, a) and (t_b, b),

times a ripple, 1 + ripple n(t), with n going straight between numbers in -1..1 that are drawn a few hundred times
along the outline. The points say what such a day looks like (night, rush hour, dip); none is taken from
anybody's data, but for the few rates that Phoebe's paper prints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import check
from penstock.workloads.base import Load, check_above_zero, check_rate, uniforms

DAY = 86400.0
Points = tuple[tuple[float, float], ...]


def outline(points: Points, ts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The heights at some instants, along half cosines.

    >>> outline(((0, 0.0), (4, 1.0)), np.array([0, 1, 2, 4])).round(3).tolist()
    [0.0, 0.146, 0.5, 1.0]
    """
    times, heights = np.array(points, dtype=np.float64).T
    left = np.clip(np.searchsorted(times, ts, side="right") - 1, 0, len(times) - 2)
    share = np.clip((ts - times[left]) / (times[left + 1] - times[left]), 0.0, 1.0)
    return np.asarray(heights[left] + (heights[left + 1] - heights[left]) * (1 - np.cos(np.pi * share)) / 2)


@dataclass(frozen=True, slots=True)
class Outlined(Load):
    """What the days share: an outline over 0..1, its height and its ripple.

    high: the highest rate in records/s, which the ripple does not exceed.
    ripple: how far the rate wanders off its outline, as a share.
    seed: another seed, another ripple.
    duration: seconds into which the load is fitted.
    """

    points: ClassVar[Points]
    ripples: ClassVar[float] = 360.0  # draws of the ripple within 0..1

    high: float
    ripple: float = 0.05
    seed: int = 0
    duration: float = 21600.0

    def __post_init__(self) -> None:
        check_rate("high", self.high)
        check(0 <= self.ripple <= 1, "ripple", "be in [0, 1]", self.ripple)
        check_above_zero("duration", self.duration)

    def cycle(self) -> float:
        """Seconds for which the outline lasts; then it begins again."""
        return self.duration

    def at(self, t: float) -> float:
        return float(self.along(np.array([t]))[0])

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        places = ts / self.cycle()
        steps = np.floor(places * self.ripples)
        share = places * self.ripples - steps
        draws = uniforms(self.seed, steps) * (1 - share) + uniforms(self.seed, steps + 1) * share
        heights = outline(self.points, np.where(places == 1, 1.0, places % 1.0))
        return np.asarray(self.high * heights * (1 + self.ripple * (2 * draws - 1)) / (1 + self.ripple))

    def peak(self) -> float:
        return self.high


@dataclass(frozen=True, slots=True)
class Advertising(Outlined):
    """A day of an advertising network, as the load of Daedalus' advertising job (sec. 4.2): night, noon, evening.

    A quiet night, a steep morning up to the noon peak, a slack afternoon, a lower evening one; by default in six hours.
    Its mean is below two fifths of its peak: the 5.5 of 12 workers that the paper reports leave no room for much more.

    >>> day = Advertising(high=60_000, ripple=0)
    >>> round(day.rate(0)), round(day.rate(21600 * 12 / 24)), round(day.rate(21600 * 20 / 24))
    (10800, 60000, 34800)
    """

    kind: ClassVar[str] = "advertising"
    points: ClassVar[Points] = (
        (0.0, 0.18),
        (3.5 / 24, 0.10),
        (7 / 24, 0.30),
        (8 / 24, 0.28),
        (12 / 24, 1.0),
        (15.5 / 24, 0.38),
        (17 / 24, 0.38),
        (20 / 24, 0.58),
        (1.0, 0.18),
    )


@dataclass(frozen=True, slots=True)
class Traffic(Outlined):
    """A city's traffic with two sharp spikes, as in Daedalus' traffic job (sec. 4.2, 4.5.3): morning and evening rush.

    Its mean is about a quarter of its peak: the 3.5 of 12 workers that the paper reports leave no room for more.

    >>> load = Traffic(high=1000, ripple=0)
    >>> round(load.rate(21600 * 0.32)), round(load.rate(21600 * 0.75)), round(load.rate(0))
    (800, 1000, 100)
    """

    kind: ClassVar[str] = "traffic"
    points: ClassVar[Points] = (
        (0.0, 0.10),
        (0.24, 0.12),  # a spike rises and falls within less than half an hour each of the six hours
        (0.32, 0.80),
        (0.40, 0.18),
        (0.66, 0.16),
        (0.75, 1.0),
        (0.83, 0.16),
        (1.0, 0.10),
    )


@dataclass(frozen=True, slots=True)
class Commuting(Outlined):
    """A city's cars over a day in six hours, as Phoebe's top speed job counts them (sec. IV-D): two rush hours.

    Through the rates that the paper has for its eight failures (table II), with the two crests that its recorded runs
    have between them; its mean is half of its peak, as theirs.

    >>> load = Commuting(ripple=0)
    >>> [round(load.rate(1185 + 2745 * i), -3) for i in range(8)]
    [52000.0, 54000.0, 140000.0, 73000.0, 84000.0, 135000.0, 166000.0, 62000.0]
    """

    kind: ClassVar[str] = "commuting"
    points: ClassVar[Points] = tuple(
        (seconds / 21600, rate / 180)
        for seconds, rate in (
            (0, 52),
            (1185, 52),
            (3930, 54),
            (4800, 60),
            (6675, 140),
            (7000, 150),
            (8200, 80),
            (9420, 73),
            (12165, 84),
            (13000, 79),
            (14910, 135),
            (16350, 180),
            (17655, 166),
            (19300, 68),
            (20400, 62),
            (21600, 55),
        )
    )

    high: float = 180_000.0
    ripple: float = 0.02


@dataclass(frozen=True, slots=True)
class Taxi(Outlined):
    """Two working days of a city's taxis at ten times their speed, as in Gesscale (sec. V-A), from midnight on.

    As sec. V-B tells its load: low until five, a steep morning, a day that goes up and down with the dip when shifts
    change in the afternoon, the evening peak, and a steep fall from eight on. By default at the mean of that paper: a
    million rides of two days, three records each, ten times faster are 174 records/s. The ripple is that of chance:
    350 rides in six seconds, each three records.

    >>> load = Taxi(ripple=0, high=290)
    >>> load.duration, round(load.rate(17280 * 19.5 / 48)), round(load.rate(17280 * 5 / 48))
    (17280.0, 290, 38)

    days: how many days.
    speed: how many times faster than the clock.
    """

    kind: ClassVar[str] = "taxi"
    ripples: ClassVar[float] = 1440.0
    points: ClassVar[Points] = (
        (0.0, 0.28),
        (3 / 24, 0.15),
        (5 / 24, 0.13),
        (8.5 / 24, 0.84),
        (10.5 / 24, 0.74),
        (14.5 / 24, 0.84),
        (16.7 / 24, 0.66),
        (19.5 / 24, 1.0),
        (20.5 / 24, 0.95),
        (23 / 24, 0.35),
        (1.0, 0.28),
    )

    high: float = 325.0
    ripple: float = 0.11
    duration: float = field(init=False)
    days: float = 2.0
    speed: float = 10.0

    def __post_init__(self) -> None:
        check_above_zero("days", self.days)
        check_above_zero("speed", self.speed)
        object.__setattr__(self, "duration", self.days * DAY / self.speed)
        Outlined.__post_init__(self)  # super() does not survive slots: the decorator makes another class

    def cycle(self) -> float:
        return DAY / self.speed
