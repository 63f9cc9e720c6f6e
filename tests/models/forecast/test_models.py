"""The single experts, where there is a right answer."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.models.forecast import lags, season, small_arima, trend
from penstock.models.forecast.base import Floats
from penstock.models.forecast.experts import EXPERTS, weighted_median
from penstock.models.forecast.series import Past

AHEAD = np.arange(1, 16)


def past(values: object) -> Past:
    means = np.asarray(values, dtype=np.float64)
    fine = np.interp((np.arange(len(means) * 6) + 0.5) / 6 - 0.5, np.arange(len(means)), means)
    return Past(0.0, len(fine), fine, means)


def sine(minutes: object, period: float = 180.0) -> Floats:
    return np.asarray(30_000 - 20_000 * np.cos(2 * np.pi * np.asarray(minutes) / period))


@pytest.mark.parametrize("name", EXPERTS)
def test_a_constant_load_stays(name: str) -> None:
    path = EXPERTS[name](past(np.full(300, 500.0)))
    assert path is None or path == pytest.approx(np.full(15, 500.0))


@pytest.mark.parametrize("expert", [lags.long_lags, lags.short_lags])
def test_regressions_are_exact_on_a_ramp(expert: object) -> None:
    path = expert(past(100.0 + 7.0 * np.arange(200)))  # type: ignore[operator]
    assert path == pytest.approx(100.0 + 7.0 * (199 + AHEAD), rel=1e-6)


def test_the_long_regression_and_the_season_know_a_sine() -> None:
    minutes = np.arange(400.0)
    truth = sine(399 + AHEAD)
    assert lags.long_lags(past(sine(minutes))) == pytest.approx(truth, rel=0.005)
    assert season.season(past(sine(minutes))) == pytest.approx(truth, rel=0.001)


def test_the_length_of_a_season() -> None:
    noise = np.random.default_rng(1).normal(0, 1000, 400)
    assert season.season_length(sine(np.arange(400.0), 90.0)) == 90
    found = season.season_length(sine(np.arange(400.0), 90.0) + noise)
    assert found is not None
    assert abs(found - 90) <= 2
    assert season.season_length(np.arange(400.0)) is None
    assert season.season_length(np.full(400, 3.0)) is None


def test_correlation_is_pearsons() -> None:
    values = np.random.default_rng(2).uniform(0, 9, 80)
    found = season.correlations(values, 40)
    for lag in (1, 7, 40):
        assert found[lag] == pytest.approx(np.corrcoef(values[lag:], values[:-lag])[0, 1])


def test_a_trend_goes_on_and_dies_out() -> None:
    path = trend.coarse_trend(past(1000.0 + 10.0 * np.arange(200)))
    assert path is not None
    steps = np.diff(path)
    assert path[0] == pytest.approx(1000 + 10 * 200, rel=0.002)
    assert steps[1:] / steps[:-1] == pytest.approx(np.full(13, trend.DAMPING))


def test_a_trend_in_noise_is_smoothed() -> None:
    values = 1000 + np.random.default_rng(3).normal(0, 50, 300)
    path = trend.coarse_trend(past(values))
    assert path is not None
    assert np.abs(path - 1000).max() < 50


def test_filters_are_the_recursion_they_stand_for() -> None:
    filters = trend.bank(1, 90)
    values = np.random.default_rng(4).normal(0, 1, 90)
    row = 5
    gain = np.array([filters.level[row, -1], filters.slope[row, -1]])
    level = slope = 0.0
    for value in values:
        foretold = level + trend.DAMPING * slope
        level, slope = foretold + gain[0] * (value - foretold), trend.DAMPING * slope + gain[1] * (value - foretold)
    assert filters.level[row] @ values == pytest.approx(level)
    assert filters.slope[row] @ values == pytest.approx(slope)


def test_a_small_arima_finds_an_autoregression() -> None:
    rng = np.random.default_rng(5)
    steps = np.zeros(240)
    for i in range(1, 240):
        steps[i] = 0.8 * steps[i - 1] + rng.normal(0, 10)
    values = 5000 + np.cumsum(steps)
    path = small_arima.small_arima(values)
    expected = values[-1] + (values[-1] - values[-2]) * np.cumsum(0.8**AHEAD)
    assert path == pytest.approx(expected, abs=0.35 * abs(expected[-1] - values[-1]) + 20)


def test_roots_are_pulled_in() -> None:
    for weights in ([1.2], [0.5, 0.9], [2.0, -1.5, 0.4], [0.1, 0.1, 0.1, 1.4]):
        stable = small_arima.stabilised(np.array(weights))
        roots = np.roots([1.0, *(-stable)])
        assert np.abs(roots).max() <= small_arima.STABLE + 1e-9
    assert small_arima.stabilised(np.array([0.5])).tolist() == [0.5]


def test_who_has_too_little_is_silent() -> None:
    speaking = {
        minutes: {name for name, expert in EXPERTS.items() if expert(past(sine(np.arange(float(minutes))))) is not None}
        for minutes in (1, 4, 30, 40, 300)
    }
    assert speaking[1] == {"last", "fine trend"}
    assert speaking[4] == {"last", "trend", "fine trend"}
    assert "short arima" in speaking[30]
    assert "short lags" in speaking[40]
    assert speaking[300] == set(EXPERTS)


def test_weighted_median() -> None:
    values = np.array([[1.0, 5.0], [2.0, 1.0], [100.0, 3.0]])
    assert weighted_median(values, np.ones((3, 2))).tolist() == [2.0, 3.0]
    heavy = np.array([[1e6, 1.0], [1.0, 1.0], [1.0, 1e6]])
    assert weighted_median(values, heavy) == pytest.approx([1.0, 3.0], abs=1e-3)
