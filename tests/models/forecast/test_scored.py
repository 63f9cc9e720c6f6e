from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.models.forecast import Experts, Forecast, Forecaster, Outlook, Scored, make, wape


def found(level: float) -> float:
    """What training finds: the level of the last samples."""
    return level


@dataclass
class Stubborn(Forecaster):
    """Says the same until it is trained anew; then, the load at the time when the training began."""

    name: ClassVar[str] = "stubborn"

    level: float | None = 100.0
    at: float = 0.0
    rate: float = 0.0

    def learn(self, at: float, rate: float | None) -> None:
        self.at = at
        self.rate = self.rate if rate is None else rate

    def forecast(self) -> Forecast | None:
        return None if self.level is None else Forecast(self.at, self.step, (self.level,) * 90, self.name)

    @property
    def untrained(self) -> bool:
        return self.level is None

    def training(self) -> Callable[[], object] | None:
        return partial(found, self.rate)

    def adopt(self, model: object) -> None:
        assert isinstance(model, float)
        self.level = model


def loops(scored: Scored, rate: Callable[[int], float | None], first: int, last: int) -> list[Outlook | None]:
    """One outlook per minute, for the minutes `first` to `last`; the rate is by the minute."""
    outlooks = []
    for minute in range(first, last):
        for second in range(60):
            scored.learn(minute * 60.0 + second, rate(minute))
        outlooks.append(scored.outlook())
    return outlooks


def seen(outlooks: list[Outlook | None], what: str) -> list[object]:
    return [None if outlook is None else getattr(outlook, what) for outlook in outlooks]


WAPES: dict[str, tuple[list[float], list[float], float | None]] = {
    "by hand": ([100, 200, 300], [110, 180, 300], 30 / 600),
    "right": ([5, 5], [5, 5], 0.0),
    "twice too much": ([10, 10], [30, 30], 2.0),
    "unknown is left out": ([100, math.nan], [90, 7], 0.1),
    "all unknown": ([math.nan], [7], None),
    "nothing, as said": ([0, 0], [0, 0], 0.0),
    "nothing, though said otherwise": ([0, 0], [0, 3], 1.0),
}


@pytest.mark.parametrize(("actual", "said", "expected"), WAPES.values(), ids=WAPES)
def test_wape(actual: list[float], said: list[float], expected: float | None) -> None:
    got = wape(np.array(actual, dtype=float), np.array(said, dtype=float))
    assert got == expected if expected is None else got == pytest.approx(expected)


def test_the_last_forecast_is_judged_by_what_came_since() -> None:
    outlooks = loops(Scored(Stubborn()), lambda minute: 80.0 if minute % 2 else 100.0, 0, 5)
    assert seen(outlooks, "wape") == [None, *(pytest.approx(x) for x in (0.25, 0.0, 0.25, 0.0))]


def test_at_exactly_a_quarter_the_line_takes_over_and_gives_back() -> None:
    rates = [100.0, 100.0, 80.0, 100.0, 81.0, 100.0]
    outlooks = loops(Scored(Stubborn()), lambda minute: rates[minute], 0, 6)
    assert seen(outlooks, "fell_back") == [False, False, True, False, False, False]
    assert seen(outlooks, "by") == ["stubborn", "stubborn", "linear", *["stubborn"] * 3]
    assert seen(outlooks, "poor_loops") == [0, 0, 1, 0, 0, 0]
    third = outlooks[2]
    assert third is not None
    assert third.forecast.path == pytest.approx([80.0] * 90)


def test_matured_forecasts_are_judged_over_their_whole_horizon() -> None:
    scored = Scored(Stubborn())
    outlooks = loops(scored, lambda minute: 100.0 if minute < 10 else 90.0, 0, 30)
    judged = seen(outlooks, "matured_wape")
    assert judged[:15] == [None] * 15
    # said after minute 0, of minutes 1..15: nine right, six 10 too high
    assert judged[15] == pytest.approx(60 / (9 * 100 + 6 * 90))
    assert judged[16] == pytest.approx(70 / (8 * 100 + 7 * 90))
    assert judged[-1] == pytest.approx(10 / 90)


def test_unknown_loops_neither_add_nor_end() -> None:
    rates: list[float | None] = [100.0, 50.0, 50.0, None, None, 50.0, 100.0]
    outlooks = loops(Scored(Stubborn()), lambda minute: rates[minute], 0, 7)
    assert seen(outlooks, "wape")[3:5] == [None, None]
    assert seen(outlooks, "poor_loops") == [0, 1, 2, 2, 2, 3, 0]


def test_asked_twice_in_a_loop_it_counts_once() -> None:
    scored = Scored(Stubborn())
    loops(scored, lambda minute: 50.0, 0, 3)
    again = scored.outlook()
    assert again == scored.outlook()
    assert again is not None
    assert again.poor_loops == 2


def test_after_fifteen_poor_loops_it_is_trained_and_swapped_in_three_later() -> None:
    scored = Scored(Stubborn(level=100.0))
    outlooks = loops(scored, lambda minute: 50.0 + minute, 0, 24)
    poor = seen(outlooks, "poor_loops")
    assert poor[:19] == [0, *range(1, 18), 0]  # 15 poor ones in loop 15; 16 and 17 while it trains; swapped in loop 18
    assert isinstance(scored.forecaster, Stubborn)
    assert scored.forecaster.level == 50.0 + 15  # of when the training began
    assert scored.retrained == 1
    assert seen(outlooks, "fell_back")[15:18] == [True] * 3
    assert seen(outlooks, "by")[-1] == "stubborn"


def test_who_needs_training_first_gets_it_and_the_line_speaks_meanwhile() -> None:
    outlooks = loops(Scored(Stubborn(level=None)), lambda _: 70.0, 0, 6)
    assert seen(outlooks, "by") == ["linear"] * 3 + ["stubborn"] * 3
    assert seen(outlooks, "fell_back") == [True] * 3 + [False] * 3
    assert seen(outlooks, "wape") == [None] * 4 + [0.0] * 2


def test_a_trained_model_that_falls_silent_is_trained_anew() -> None:
    @dataclass
    class Mute(Stubborn):
        trainings: int = 0

        @property
        def untrained(self) -> bool:
            return False

        def adopt(self, model: object) -> None:
            super().adopt(model)
            self.trainings += 1

    scored = Scored(Mute(level=None))
    outlooks = loops(scored, lambda _: 70.0, 0, 20)
    assert seen(outlooks, "poor_loops")[:16] == list(range(16))
    assert seen(outlooks, "by")[17:19] == ["linear", "stubborn"]
    assert isinstance(scored.forecaster, Mute)
    assert scored.forecaster.trainings == 1


@pytest.mark.parametrize("cut", [14, 15, 16, 17, 18])
def test_a_copy_made_in_mid_training_agrees_to_the_byte(cut: int) -> None:
    def rate(minute: int) -> float:
        return 50.0 + 3 * math.sin(minute)

    scored = Scored(Stubborn(level=100.0))
    loops(scored, rate, 0, cut + 1)
    thawed = pickle.loads(pickle.dumps(scored))  # noqa: S301 - our own bytes
    runs = [loops(each, rate, cut + 1, 24) for each in (scored, copy.deepcopy(scored), thawed)]
    assert repr(runs[0]) == repr(runs[1]) == repr(runs[2])
    assert seen(runs[0], "by")[-1] == "stubborn"


def test_the_same_samples_give_the_same_outlooks_to_the_byte() -> None:
    def rate(minute: int) -> float:
        return 1000.0 * (1 + minute % 2)  # so jumpy that the experts are poor, and lose their record

    first, second = Scored(Experts()), Scored(Experts(), retrain_after=15)
    runs = [loops(each, rate, 0, 40) for each in (first, second)]
    assert repr(runs[0]) == repr(runs[1])


def test_bounds_are_above_the_forecast_and_in_order() -> None:
    outlooks = loops(Scored(make("experts")), lambda minute: 1000.0 + 300 * math.sin(minute / 9), 0, 120)
    for outlook in outlooks[20:]:
        assert outlook is not None
        assert outlook.upper_horizon >= outlook.upper_next > 0
    highest = [1000 + 300 * max(math.sin(m / 9) for m in range(n + 1, n + 16)) for n in range(60, 105)]
    held = [o is not None and o.upper_horizon >= high for o, high in zip(outlooks[60:105], highest, strict=True)]
    assert np.mean(held) >= 0.8


def test_blind_it_says_nothing() -> None:
    scored = Scored(make("experts"))
    assert scored.outlook() is None
    loops(scored, lambda _: 100.0, 0, 5)
    assert loops(scored, lambda _: None, 5, 21)[-1] is None
    back = loops(scored, lambda _: 100.0, 21, 22)[-1]
    assert back is not None
    assert back.forecast.path == pytest.approx([100.0] * 90)


@pytest.mark.parametrize(
    ("setting", "value"), [("max_wape", 0.0), ("retrain_after", 0), ("swap_after", 0), ("level", 1.0)]
)
def test_settings_are_checked(setting: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{setting} must"):
        Scored(Stubborn(), **{setting: value})  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(
    rates=st.lists(st.one_of(st.none(), st.floats(0, 1e7), st.floats()), min_size=1, max_size=80),
    interval=st.sampled_from([60.0, 10.0]),
    every=st.integers(1, 20),
)
def test_any_load_has_a_sane_outlook(rates: list[float | None], interval: float, every: int) -> None:
    scored = Scored(make("experts", interval))
    for i, rate in enumerate(rates):
        scored.learn(i * interval / 3, rate)
        if i % every == 0:
            outlook = scored.outlook()
            if outlook is not None:
                assert all(math.isfinite(value) and value >= 0 for value in outlook.forecast.path)
                assert math.isfinite(outlook.upper_horizon)
                assert 0 <= outlook.upper_next <= outlook.upper_horizon
