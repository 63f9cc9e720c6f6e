"""Student's t against its own density, and intervals by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.errors import ConfigError
from penstock.measures import Interval, over_seeds
from penstock.measures.seeds import student


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 10, 11, 12, 15, 20, 30, 60, 120, 1000])
def test_ninety_five_percent_lie_within(freedom: int) -> None:
    t = student(freedom)
    xs = np.linspace(0, t, 200_001)
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    density = np.exp(log_scale - (freedom + 1) / 2 * np.log1p(xs**2 / freedom))
    inside = 2 * float(((density[1:] + density[:-1]) / 2).sum() * (xs[1] - xs[0]))
    steepness = 2 * float(density[-1])
    assert abs(inside - 0.95) / steepness < 0.0005  # so t itself is right to three digits after the point


KNOWN = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 11: 2.201, 14: 2.145, 20: 2.086, 29: 2.045, 40: 2.021, 100: 1.984}


@pytest.mark.parametrize(("freedom", "t"), KNOWN.items())
def test_the_printed_tables(freedom: int, t: float) -> None:
    assert round(student(freedom), 3) == t


def test_by_hand() -> None:
    found = over_seeds([1, 2, 3, 4, 5])  # standard deviation sqrt(2.5), over sqrt(5): sqrt(0.5)
    assert (found.mean, found.n) == (3, 5)
    assert found.low == pytest.approx(3 - 2.7764 * math.sqrt(0.5))
    assert found.high == pytest.approx(3 + 2.7764 * math.sqrt(0.5))


def test_one_value_has_no_interval_and_equal_ones_a_narrow_one() -> None:
    assert over_seeds([7]) == Interval(7, None, None, 1)
    assert over_seeds([7, 7, 7]) == Interval(7, 7, 7, 3)


@pytest.mark.parametrize(
    ("values", "message"), [([], "values must be at least one"), ([math.nan], "values must be num")]
)
def test_no_number_no_mean(values: list[float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        over_seeds(values)


def test_no_freedom() -> None:
    with pytest.raises(ConfigError, match="freedom must be at least 1, got 0"):
        student(0)
