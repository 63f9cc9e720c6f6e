from __future__ import annotations

import numpy as np
import pytest

from penstock.models.forecast.band import GAIN, LOOPS, Band
from penstock.models.forecast.base import Floats
from penstock.models.forecast.series import Series


def covered(rates: Floats, predict: object, span: int, level: float = 0.9) -> tuple[float, float]:
    """Share of bounds that held after the first 60, and their mean height over the realised maximum."""
    series, band = Series(60.0), Band(span, level)
    held, height = [], []
    for minute, rate in enumerate(rates):
        for part in range(6):
            series.learn(minute * 60.0 + part * 10, float(rate))
        past = series.past()
        assert past is not None
        band.judge(series, past.end)
        bound = band.bound(past, float(predict(minute)))  # type: ignore[operator]
        band.keep(bound)
        coming = rates[minute + 1 : minute + 1 + span]
        if minute >= 60 and len(coming) == span:
            held.append(coming.max() <= bound.upper)
            height.append(bound.upper / coming.max() - 1)
    return float(np.mean(held)), float(np.mean(height))


@pytest.mark.parametrize("span", [2, 15])
@pytest.mark.parametrize("level", [0.8, 0.9])
@pytest.mark.parametrize("bias", [0.5, 1.0, 1.5])
def test_it_covers_what_it_promises_whatever_the_forecast(span: int, level: float, bias: float) -> None:
    rng = np.random.default_rng(7)
    rates = 10_000 * (1 + 0.2 * np.sin(np.arange(900) / 30)) * (1 + rng.normal(0, 0.05, 900))
    share, _ = covered(rates, lambda minute: bias * rates[max(0, minute - 3) : minute + 1].mean(), span, level)
    assert level - 0.05 <= share <= level + 0.05


def test_a_good_forecast_has_a_tight_bound() -> None:
    rng = np.random.default_rng(8)
    rates = 10_000 * (1 + rng.normal(0, 0.01, 600))
    _, height = covered(rates, lambda _: 10_000.0, 2)
    assert 0 < height < 0.03


def test_the_level_goes_up_after_a_miss_and_down_after_a_hit() -> None:
    series, band = Series(60.0), Band(2)
    for minute, (rate, expected) in enumerate(((100.0, 0.9), (100.0, 0.9), (100.0, 0.9 - GAIN * 0.1))):
        for part in range(6):
            series.learn(minute * 60.0 + part * 10, rate)
        past = series.past()
        assert past is not None
        band.judge(series, past.end)
        assert band.tracked == pytest.approx(expected)
        band.keep(band.bound(past, 200.0 if minute == 0 else 20.0))
    for part in range(6):
        series.learn(180.0 + part * 10, 900.0)
    past = series.past()
    assert past is not None
    band.judge(series, past.end)
    assert band.tracked == pytest.approx(0.9 - GAIN * 0.1 + GAIN * 0.9)


def test_unknown_teaches_nothing() -> None:
    series, band = Series(60.0), Band(15)
    for second in range(60):
        series.learn(float(second), 100.0)
    past = series.past()
    assert past is not None
    before = list(band.excesses)
    band.keep(band.bound(past, 100.0))
    for second in range(60, 960):
        series.learn(float(second), None)
    series.learn(960.0, 100.0)
    band.judge(series, series.bins.end + 6)
    assert list(band.excesses) == before
    assert not band.said


def test_it_remembers_only_so_much() -> None:
    series, band = Series(60.0), Band(2)
    for minute in range(2 * LOOPS):
        series.learn(minute * 60.0, 100.0)
        past = series.past()
        if past is not None:
            band.judge(series, past.end)
            band.keep(band.bound(past, 100.0))
    assert len(band.excesses) == LOOPS
    assert len(band.said) <= 3


def test_idle_is_bounded_by_idle() -> None:
    series, band = Series(60.0), Band(2)
    for second in range(120):
        series.learn(float(second), 0.0)
    past = series.past()
    assert past is not None
    assert band.bound(past, 0.0).upper == 0.0
