from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from penstock.models.forecast.series import Bins, Series, Sieve, bridged


def filled(samples: Mapping[float, float | None], interval: float = 60.0) -> Series:
    series = Series(interval)
    for at, rate in samples.items():
        series.learn(at, rate)
    return series


@pytest.mark.parametrize("interval", [60.0, 10.0])
def test_means_of_whole_intervals_that_end_now(interval: float) -> None:
    series = Series(interval)
    for second in range(int(4 * interval)):
        series.learn(float(second), 100.0 * (second // interval))
    past = series.past()
    assert past is not None
    assert past.at == pytest.approx(4 * interval)
    assert past.means == pytest.approx([0, 100, 200, 300])
    assert len(past.fine) == 24


def test_means_end_now_and_not_with_a_full_minute() -> None:
    past = filled({float(s): float(s) for s in range(90)}).past()
    assert past is not None
    assert past.at == 90.0
    assert past.means == pytest.approx([59.5])  # seconds 30 to 89


def test_nothing_known() -> None:
    assert Series(60.0).past() is None
    assert filled({0.0: None, 30.0: None, 60.0: None}).past() is None


def test_a_gap_is_bridged_for_models_and_unknown_to_judges() -> None:
    samples: dict[float, float | None] = {float(s): 100.0 for s in range(60)}
    samples |= {float(s): None for s in range(60, 180)}
    samples |= {float(s): 400.0 for s in range(180, 240)}
    series = filled(samples)
    past = series.past()
    assert past is not None
    assert past.means[0] == pytest.approx(100.0)
    assert 100 < past.means[1] < past.means[2] < 400
    actual = series.actual(past.end - 24, 4)
    assert actual[[0, 3]] == pytest.approx([100.0, 400.0])
    assert np.isnan(actual[[1, 2]]).all()


def test_silence_is_a_gap_as_well_as_unknown() -> None:
    late = filled({float(s): 100.0 for s in range(60)} | {600.0: 100.0})
    past = late.past()
    assert past is not None
    assert np.isnan(late.actual(past.end - 12, 1)).all()


def test_nothing_lately_is_nothing_known() -> None:
    known: dict[float, float | None] = {float(s): 100.0 for s in range(60)}
    assert filled(known | {60.0 + 880: None}).past() is not None
    assert filled(known | {60.0 + 960: None}).past() is None


@pytest.mark.parametrize("absurd", [1000.0, 1e9])
def test_one_absurd_sample_hardly_moves_a_mean(absurd: float) -> None:
    rates = {float(s): 100.0 + s % 3 for s in range(180)}
    calm, jolted = filled(dict(rates)).past(), filled({**rates, 90.0: absurd}).past()
    assert calm is not None
    assert jolted is not None
    assert jolted.means == pytest.approx(calm.means, rel=0.002)


def test_a_real_jump_passes_at_once() -> None:
    past = filled({float(s): 100.0 if s < 60 else 1000.0 for s in range(120)}).past()
    assert past is not None
    assert past.means == pytest.approx([100.0, 1000.0])


def test_a_load_in_bursts_keeps_its_peaks() -> None:
    past = filled({float(s): 5000.0 if s % 10 == 0 else 0.0 for s in range(300)}).past()
    assert past is not None
    assert past.means == pytest.approx([500.0] * 5)


def test_a_jump_is_held_back_for_one_sample() -> None:
    sieve = Sieve(60.0)
    for second in range(10):
        sieve.let(float(second), 100.0)
    assert sieve.let(10.0, 900.0) == []
    assert sieve.let(11.0, 950.0) == [(10.0, 900.0), (11.0, 950.0)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, 1e18])
def test_impossible_rates_are_ignored(bad: float) -> None:
    past = filled({float(s): 100.0 if s % 2 else bad for s in range(120)}).past()
    assert past is not None
    assert past.means == pytest.approx([100.0, 100.0])


def test_impossible_times_are_ignored() -> None:
    series = filled({float(s): 100.0 for s in range(60)})
    for at in (math.nan, math.inf, -math.inf, 1e300):
        series.learn(at, 9000.0)
    past = series.past()
    assert past is not None
    assert (past.at, past.means.tolist()) == (60.0, [100.0])


def test_the_clock_going_back_a_little_counts_for_now() -> None:
    series = filled({float(s): 100.0 for s in range(58)})
    for at in (57.5, 57.0, 58.0, 59.0):
        series.learn(at, 100.0)
    past = series.past()
    assert past is not None
    assert (past.at, past.means.tolist()) == (60.0, [100.0])


def test_the_clock_going_back_far_goes_on_from_there() -> None:
    series = filled({5000.0 + s: 100.0 for s in range(120)})
    before = series.bins.end
    for second in range(60):
        series.learn(float(second), 200.0)
    past = series.past()
    assert past is not None
    assert past.at == 60.0
    assert past.end == before + 6
    assert past.means == pytest.approx([100.0, 100.0, 200.0])


def test_a_gap_longer_than_the_history_begins_anew() -> None:
    series = filled({float(s): 100.0 for s in range(120)})
    for second in range(60):
        series.learn(1e6 + second, 300.0)
    past = series.past()
    assert past is not None
    assert past.means == pytest.approx([300.0], abs=1.0)


def test_seldom_samples_count_at_once() -> None:
    past = filled({60.0 * i: 10.0 * i for i in range(11)}).past()
    assert past is not None
    assert past.fine[-1] == 100.0


def test_bins_keep_only_so_many() -> None:
    bins = Bins(1.0, 50, window=10.0)
    for second in range(1000):
        bins.learn(float(second), float(second))
    assert bins.last(100).tolist() == [float(s) for s in range(950, 1000)]
    assert bins.between(990, 3).tolist() == [990.0, 991.0, 992.0]
    assert np.isnan(bins.between(100, 2)).all()
    assert np.isnan(bins.between(1000, 2)).all()


def test_bridged() -> None:
    values = np.array([np.nan, 1.0, np.nan, 3.0, np.nan])
    assert bridged(values).tolist() == [1.0, 1.0, 2.0, 3.0, 3.0]
