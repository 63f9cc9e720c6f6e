"""A mean over runs that differ in their seed alone, with the interval in which the true one lies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import fmean, stdev

from penstock.errors import check

# Student's t for 95 % of both sides, by degrees of freedom from 1: the usual table, for here the formula is off.
TABLE = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
NORMAL = 1.959963985  # the same for infinitely many


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean of `n` values and its 95 % interval, which one value alone does not have."""

    mean: float
    low: float | None
    high: float | None
    n: int


def over_seeds(values: Iterable[float]) -> Interval:
    """The mean of one measure over runs with different seeds, with Student's 95 % interval.

    >>> over_seeds([5.1, 5.5, 5.3])
    Interval(mean=5.3, low=4.803..., high=5.796..., n=3)
    """
    known = [float(value) for value in values]
    check(bool(known), "values", "be at least one", known)
    check(all(isfinite(value) for value in known), "values", "be numbers", known)
    mean = fmean(known)
    if len(known) == 1:
        return Interval(mean, None, None, 1)
    half = student(len(known) - 1) * stdev(known) / sqrt(len(known))
    return Interval(mean, mean - half, mean + half, len(known))


def student(freedom: int) -> float:
    """Student's t that 95 % stay within, to three digits after the point and better.

    Above the table by the expansion around the normal quantile (Abramowitz and Stegun, 26.7.5), to its third term.

    >>> student(4), round(student(30), 3)
    (2.7764, 2.042)
    """
    check(freedom >= 1, "freedom", "be at least 1", freedom)
    if freedom <= len(TABLE):
        return TABLE[freedom - 1]
    z = NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
