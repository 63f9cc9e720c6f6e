from __future__ import annotations

import pytest

from penstock.models.window import SLICES, SlidingMeans, Window


def test_mean_and_slope_of_the_last_seconds() -> None:
    window = Window(10)
    assert window.mean is None
    assert window.slope is None
    for second in range(31):
        window.add(second, 2.0 * second)
    assert window.mean == pytest.approx(2 * 25.5), "21 to 30: the oldest of 10 s is out"
    assert window.slope == pytest.approx(2.0)


def test_gaps_age_and_a_clock_that_goes_back() -> None:
    window = Window(10)
    window.add(0, 5.0)
    window.add(4, None)
    assert window.mean == 5.0, "unknown is no sample"
    window.add(11, None)
    assert window.mean is None, "but time passes"
    window.add(12, 1.0)
    window.add(13, 3.0)
    window.add(2, 7.0)
    assert window.mean == 7.0, "what was after now is gone"
    window.add(2, 9.0)
    assert window.mean == 8.0
    assert window.slope is None, "one moment has no slope"


def test_memory_is_bounded() -> None:
    window = Window(1000, most=5)
    for i in range(100):
        window.add(i / 100, float(i))
    assert window.mean == 97.0


def filled(seconds: float, step: float = 1.0, start: float = 0.0, window: float = 60.0) -> SlidingMeans:
    means = SlidingMeans(window)
    at = start
    while at <= start + seconds:
        means.add(at, {"x": 1.0})
        at += step
    return means


def test_memory_does_not_grow_with_the_pace() -> None:
    means = filled(300, step=0.01)
    assert len(means._slices) <= SLICES + 2


def test_it_forgets() -> None:
    means = SlidingMeans(60.0)
    means.add(0, {"x": 100.0})
    means.add(50, {"x": 2.0})
    assert means.mean("x", 50) == 51.0
    assert means.mean("x", 60) == 2.0
    assert means.mean("x", 200) is None
    assert not means.covers(200), "an outage longer than the window leaves nothing"


def test_what_is_no_number_is_unknown() -> None:
    means = SlidingMeans(60.0)
    means.add(0, {"x": None, "y": float("nan"), "z": 3.0})
    assert (means.mean("x", 0), means.mean("y", 0), means.mean("z", 0)) == (None, None, 3.0)


def test_covers_only_a_whole_window() -> None:
    assert not filled(59).covers(59)
    assert filled(60).covers(60)
    assert filled(60, step=5).covers(60)


def test_the_clock_may_step_back() -> None:
    means = filled(100)
    means.add(20, {"x": 7.0})
    assert means.mean("x", 20) == 7.0, "what is in the future is forgotten"
    assert means.since == 20
    for at in range(21, 101):
        means.add(at, {"x": 1.0})
    assert means.mean("x", 100) == 1.0
    assert means.covers(100)
