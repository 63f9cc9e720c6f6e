"""Distributions over time, against the plain definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.measures import Series, distribution, latency


def test_by_hand() -> None:
    spread = distribution(np.array([3.0, 1.0, np.nan, 3.0, 2.0]), np.array([1.0, 5.0, 100.0, 1.0, 3.0]))
    assert spread.values.tolist() == [1, 2, 3]
    assert spread.shares.tolist() == pytest.approx([0.5, 0.8, 1.0])
    assert [spread.quantile(q) for q in (0, 0.5, 0.51, 0.8, 0.81, 1)] == [1, 1, 2, 2, 3, 3]
    assert [spread.share(x) for x in (0.9, 1, 2.5, 9)] == pytest.approx([0, 0.5, 0.8, 1])


def test_nothing_known() -> None:
    spread = distribution(np.array([np.nan]), np.array([5.0]))
    assert spread.quantile(0.5) is spread.share(1.0) is None


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=60), st.integers(2, 20))
def test_a_thinned_distribution_lies_on_the_whole_one(rows: list[tuple[int, int]], points: int) -> None:
    values, seconds = np.array(rows, dtype=np.float64).T
    whole = distribution(values, seconds)
    thin = whole.thinned(points)
    assert len(thin.values) <= points + 1
    assert thin.values[-1] == values.max()
    assert thin.shares[-1] == pytest.approx(1)
    assert [whole.share(float(value)) for value in thin.values] == thin.shares.tolist()


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.floats(0.01, 1))
def test_quantiles_of_equal_times_are_those_of_sorting(values: list[int], share: float) -> None:
    series = Series.ticks(1, latency=values)
    spread = distribution(series.latency, series.seconds)
    found = spread.quantile(share)
    assert found is not None
    assert sum(value <= found for value in values) >= share * len(values) * (1 - 1e-9)
    assert sum(value < found for value in values) <= share * len(values) * (1 + 1e-9)
    assert latency(series).mean == pytest.approx(np.mean(values))


def test_a_figure_needs_two_points() -> None:
    with pytest.raises(ConfigError, match="points must be at least 2, got 1"):
        distribution(np.arange(5.0), np.ones(5)).thinned(1)
