from __future__ import annotations

from copy import copy, deepcopy
from math import inf, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.models.welford import Moments, Paired

numbers = st.floats(-1e6, 1e6, allow_nan=False)
pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40)


def _moments(values: list[float]) -> Moments:
    seen = Moments()
    seen.add_many(values)
    return seen


def _paired(points: list[tuple[float, float]]) -> Paired:
    seen = Paired()
    seen.add_many([x for x, _ in points], [y for _, y in points])
    return seen


def _close(a: float | None, b: float | None, scale: float) -> None:
    assert a is not None
    assert b is not None
    assert a == pytest.approx(b, rel=1e-9, abs=1e-9 * scale)


def _same(a: Paired, b: Paired, points: list[tuple[float, float]]) -> None:
    x_scale, y_scale = (max(abs(p[i]) for p in points) or 1.0 for i in (0, 1))
    assert a.weight == b.weight == len(points)
    _close(a.x_mean, b.x_mean, x_scale)
    _close(a.y_mean, b.y_mean, y_scale)
    _close(a.x_variance, b.x_variance, x_scale**2)
    _close(a.y_variance, b.y_variance, y_scale**2)
    _close(a.covariance, b.covariance, x_scale * y_scale)


@given(st.lists(st.tuples(numbers, numbers, st.integers(1, 5)), min_size=1, max_size=20))
def test_a_weight_counts_as_often(points: list[tuple[float, float, int]]) -> None:
    weighed, repeated = Paired(), [(x, y) for x, y, times in points for _ in range(times)]
    one, every = Moments(), Moments()
    for x, y, times in points:
        weighed.add(x, y, times)
        one.add(x, times)
        every.add_many([x] * times)
    _same(weighed, _paired(repeated), repeated)
    scale = max(abs(x) for x, _, _ in points) or 1.0
    _close(one.mean, every.mean, scale)
    _close(one.variance, every.variance, scale**2)


@given(st.lists(numbers, min_size=1, max_size=40), st.integers(0, 40))
def test_any_split_merges_to_the_whole(values: list[float], cut: int) -> None:
    left, right = _moments(values[:cut]), _moments(values[cut:])
    left.merge(right)
    scale = max(map(abs, values)) or 1.0
    assert left.weight == len(values)
    _close(left.mean, float(np.mean(values)), scale)
    _close(left.variance, float(np.var(values)), scale**2)


@given(st.lists(numbers, min_size=1, max_size=40))
def test_one_by_one_is_the_batch(values: list[float]) -> None:
    seen, batch = Moments(), _moments(values)
    for value in values:
        seen.add(value)
    scale = max(map(abs, values)) or 1.0
    _close(seen.mean, batch.mean, scale)
    _close(seen.variance, batch.variance, scale**2)


@given(pairs, st.integers(0, 40))
def test_pairs_split_anywhere_merge_to_the_whole(points: list[tuple[float, float]], cut: int) -> None:
    left, right = _paired(points[:cut]), _paired(points[cut:])
    left.merge(right)
    _same(left, _paired(points), points)


@given(pairs)
def test_pairs_one_by_one_are_the_batch(points: list[tuple[float, float]]) -> None:
    seen = Paired()
    for x, y in points:
        seen.add(x, y)
    _same(seen, _paired(points), points)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e5)), min_size=3, max_size=40), st.integers(0, 40))
def test_the_line_is_numpys(points: list[tuple[float, float]], cut: int) -> None:
    xs, ys = np.array(points).T
    assume(xs.std() > 1e-3)
    seen = _paired(points[:cut])
    seen.merge(_paired(points[cut:]))
    slope, intercept = np.polyfit(xs, ys, 1)
    _close(seen.slope, float(slope), 1e5 / xs.std())
    _close(seen.intercept, float(intercept), 1e5 / xs.std())
    if ys.std() > 1e-3:
        assert seen.correlation == pytest.approx(np.corrcoef(xs, ys)[0, 1], abs=1e-6)


def _far_out(seed: int, count: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(1e9, 1.0, count)


def test_a_million_far_from_zero_in_batches() -> None:
    values, seen = _far_out(1, 1_000_000), Moments()
    for part in np.array_split(values, 997):
        seen.add_many(part)
    assert seen.weight == 1_000_000
    assert seen.mean == pytest.approx(values.mean(), abs=1e-6)
    assert seen.variance == pytest.approx(values.var(), rel=1e-6)


def test_many_far_from_zero_one_by_one() -> None:
    values, seen = _far_out(2, 100_000), Moments()
    for value in values.tolist():
        seen.add(value)
    assert seen.mean == pytest.approx(values.mean(), abs=1e-4)
    assert seen.variance == pytest.approx(values.var(), rel=1e-5)


def test_a_line_far_from_zero() -> None:
    xs, seen = _far_out(3, 100_000), Paired()
    for part in np.array_split(xs, 100):
        seen.add_many(part, 3 * (part - 1e9) + 7)
    assert seen.slope == pytest.approx(3, rel=1e-9)
    assert seen.correlation == pytest.approx(1)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e9 + 0.1, -7.7])
def test_equal_values_have_no_variance_and_no_slope(value: float) -> None:
    seen = Paired()
    for _ in range(20):
        seen.add_many([value] * 7, range(7))
        seen.add(value, 3.0)
        seen.fade(0.9)
    assert (seen.x_variance, seen.slope, seen.intercept, seen.correlation) == (0.0, None, None, None)
    assert seen.y_variance is not None
    assert seen.y_variance > 1


def test_a_flat_line_has_a_slope_but_no_correlation() -> None:
    seen = _paired([(1, 5.0), (2, 5.0), (4, 5.0)])
    assert (seen.slope, seen.intercept, seen.correlation) == (0.0, 5.0, None)


def test_nothing_seen_is_unknown() -> None:
    empty, pair = Moments(), Paired()
    empty.merge(Moments())
    empty.add_many([])
    pair.merge(Paired())
    pair.add_many([], [])
    assert (empty.weight, empty.mean, empty.variance, empty.deviation) == (0, None, None, None)
    known = (pair.x_mean, pair.y_mean, pair.x_variance, pair.y_variance, pair.covariance)
    assert (*known, pair.slope, pair.intercept, pair.correlation) == (None,) * 8


def test_fading_is_weighting() -> None:
    seen = _moments([1.0, 3.0])
    seen.fade(0.25)
    assert (seen.weight, seen.mean, seen.variance) == (0.5, 2.0, 1.0)
    seen.add(8.0)
    values, weights = np.array([1.0, 3.0, 8.0]), np.array([0.25, 0.25, 1.0])
    mean = np.average(values, weights=weights)
    assert seen.weight == 1.5
    assert seen.mean == pytest.approx(mean)
    assert seen.variance == pytest.approx(np.average((values - mean) ** 2, weights=weights))


def test_a_faded_line_turns_to_the_new_one() -> None:
    seen = _paired([(x, 2.0 * x) for x in range(10)])
    for _ in range(20):
        seen.fade(0.5)
        seen.add_many(range(10), [5.0 * x + 1 for x in range(10)])
    assert seen.slope == pytest.approx(5, rel=1e-4)
    assert seen.intercept == pytest.approx(1, abs=1e-3)
    assert seen.weight == pytest.approx(20, abs=1e-3)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    for seen in (Moments(), Paired()):
        with pytest.raises(ValueError, match=r"share must be in \(0, 1\]"):
            seen.fade(share)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_what_is_not_finite_is_refused_and_leaves_no_trace(bad: float) -> None:
    seen, pair = _moments([1.0]), _paired([(1.0, 2.0)])
    before, pair_before = copy(seen), copy(pair)
    with pytest.raises(ValueError, match="finite"):
        seen.add(bad)
    with pytest.raises(ValueError, match="finite"):
        seen.add_many([1.0, bad])
    with pytest.raises(ValueError, match="finite"):
        pair.add(1.0, bad)
    with pytest.raises(ValueError, match="finite"):
        pair.add_many([bad, 1.0], [1.0, 1.0])
    assert (seen, pair) == (before, pair_before)


def test_pairs_must_match() -> None:
    with pytest.raises(ValueError, match="equally many, got 2 and 1"):
        Paired().add_many([1, 2], [1])


def test_copies_go_their_own_way() -> None:
    for duplicate in (copy, deepcopy):
        seen = _paired([(1, 1), (2, 3)])
        other = duplicate(seen)
        other.add(5, 5)
        assert (seen.weight, seen.slope, other.weight) == (2, 2.0, 3)


def test_merging_with_itself_counts_twice() -> None:
    seen = _moments([1.0, 3.0])
    seen.merge(seen)
    assert (seen.weight, seen.mean, seen.variance) == (4, 2.0, 1.0)
