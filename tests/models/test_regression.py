"""Ridge and non-negative least squares: exact where there is nothing to shrink, optimal where there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from penstock.models.regression import nnls, ridge

NUMBERS = st.integers(-10, 10).map(float)


def test_ridge_finds_a_line_without_noise() -> None:
    x = np.array([[2.0], [5.0], [8.0], [11.0], [15.0]])
    line = ridge(x, 1000 + 16_000 * x[:, 0])
    assert line.predict([[24.0]])[0] == pytest.approx(1000 + 16_000 * 24, rel=1e-3)


def test_ridge_shrinks_more_when_there_is_only_noise() -> None:
    noise = np.random.default_rng(4).standard_normal(20)
    x = np.random.default_rng(5).standard_normal((20, 3))
    assert ridge(x, noise).strength > ridge(x, x @ [1.0, -2.0, 3.0]).strength


def test_what_never_varies_has_no_say() -> None:
    line = ridge([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [4.0, 7.0]], [10.0, 20.0, 30.0, 40.0])
    assert line.weights[1] == 0
    assert line.predict([[5.0, 100.0]])[0] == pytest.approx(50, rel=1e-2)


def test_ridge_of_one_value_is_that_value() -> None:
    assert ridge([[3.0]], [5.0]).predict([[100.0]])[0] == 5.0


@pytest.mark.parametrize(("x", "y"), [([], []), ([[1.0], [2.0]], [1.0]), ([1.0, 2.0], [1.0, 2.0])])
def test_ridge_needs_a_row_for_each_value(x: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match="a row for each"):
        ridge(x, y)


def test_nnls_is_least_squares_where_that_is_positive() -> None:
    x = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 4.0], [1.0, 7.0]])
    assert nnls(x, x @ [3.0, 2.0]).tolist() == pytest.approx([3.0, 2.0])


@given(arrays(float, (6, 3), elements=NUMBERS), arrays(float, 6, elements=NUMBERS))
def test_nnls_keeps_the_conditions_of_an_optimum(x: np.ndarray, y: np.ndarray) -> None:
    """Karush, Kuhn, Tucker: no weight is negative, and no change that is allowed makes the error smaller."""
    weights = nnls(x, y)
    assert (weights >= 0).all()
    slope = x.T @ (x @ weights - y)
    scale = 1e-5 * (1 + float(np.abs(x).max()) * float(np.abs(y).max()) * len(y))
    assert (slope >= -scale).all()
    assert np.abs(weights * slope).max() <= scale * (1 + float(weights.max()))
