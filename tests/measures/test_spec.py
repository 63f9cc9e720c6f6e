"""SPEC's measures and the excess time, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.measures import Series, elasticity, excess_time
from penstock.models.limit import ideal


def linear(workers: int) -> float:
    return 100.0 * workers


def test_every_number_by_hand() -> None:
    # demand 1, 2, 4, 4, 1 against supply 2, 2, 2, 4, 4; a row whose load is not known does not count
    series = Series.ticks(10, input_rate=[50, 200, 400, 301, 0, np.nan], workers=[2, 2, 2, 4, 4, 9])
    found = elasticity(series, linear, max_workers=6)
    assert found is not None
    assert found.known == 50
    assert found.accuracy_under == pytest.approx((2 / 4) / 5)
    assert found.accuracy_over == pytest.approx((1 / 1 + 3 / 1) / 5)
    assert (found.workers_under, found.workers_over) == pytest.approx((2 / 5, 4 / 5))
    assert (found.timeshare_under, found.timeshare_over) == pytest.approx((1 / 5, 2 / 5))


def test_rows_count_by_their_time() -> None:
    whole = Series.ticks(1, input_rate=[200, 200], workers=[1, 3])
    series = Series(
        at=np.array([0.0, 9.0]),
        seconds=np.array([9.0, 1.0]),
        **{name: getattr(whole, name) for name in ("workers", "input_rate", "processed_rate", "backlog", "latency")},
    )
    found = elasticity(series, [100, 200, 300], max_workers=3)
    assert found is not None
    assert (found.timeshare_under, found.timeshare_over) == pytest.approx((0.9, 0.1))
    assert (found.accuracy_under, found.accuracy_over) == pytest.approx((0.45, 0.05))


def test_more_than_all_workers_can_do_needs_all_of_them() -> None:
    found = elasticity(Series.ticks(1, input_rate=[999], workers=[3]), linear, max_workers=3)
    assert found is not None
    assert found.accuracy_under == found.accuracy_over == 0


def test_never_known_together() -> None:
    assert elasticity(Series.ticks(1, input_rate=[1, np.nan], workers=[np.nan, 1]), linear, max_workers=3) is None


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=30))
def test_the_ideal_is_ideal(load: list[float]) -> None:
    series = Series.ticks(1, input_rate=load, workers=ideal(load, linear, max_workers=10))
    found = elasticity(series, linear, max_workers=10)
    assert found is not None
    assert found.timeshare_under == found.timeshare_over == found.accuracy_under == found.accuracy_over == 0


EXCESS: dict[str, tuple[dict[str, list[float]], float | None]] = {
    "nothing left": ({"input_rate": [9, 9], "backlog": [5, 0], "workers": [1, 1]}, 0.0),
    "left when the load was": ({"input_rate": [9, 9], "backlog": [5, 400], "workers": [1, 2]}, 2 / 20),
    "stopped for a restart just then": ({"input_rate": [9, 9], "backlog": [5, 400], "workers": [2, 0]}, 2 / 20),
    "never any workers": ({"input_rate": [9, 9], "backlog": [5, 400], "workers": [0, 0]}, None),
    "drained two rows later": (
        {"input_rate": [9, 9, 0, 0, 0], "backlog": [5, 9, 9, 9, 0], "workers": [1] * 5},
        20 / 20,
    ),
    "drained at once": ({"input_rate": [9, 9, 0, 0], "backlog": [5, 9, 0, 0], "workers": [1] * 4}, 0.0),
    "still draining at the end": (
        {"input_rate": [9, 9, 0], "backlog": [5, 900, 500], "workers": [1, 1, 1]},
        (10 + 5) / 20,
    ),
    "no load": ({"input_rate": [0, 0], "backlog": [5, 5], "workers": [1, 1]}, None),
    "no idea what is left": ({"input_rate": [9, 9], "workers": [1, 1]}, None),
}


@pytest.mark.parametrize(("rows", "expected"), EXCESS.values(), ids=EXCESS)
def test_excess_time(rows: dict[str, list[float]], expected: float | None) -> None:
    found = excess_time(Series.ticks(10, **rows), linear)  # type: ignore[arg-type]
    assert found == (None if expected is None else pytest.approx(expected))


def test_workers_that_do_nothing_never_finish() -> None:
    with pytest.raises(ConfigError, match="capacity of 1 workers must be above 0 records/s, got 0"):
        excess_time(Series.ticks(1, input_rate=[9], backlog=[5], workers=[1]), [0])
