from __future__ import annotations

import pytest

from penstock.models.window import Window


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
