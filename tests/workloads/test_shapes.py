"""Rates at chosen instants, and what every load keeps to."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.workloads import (
    Advertising,
    Bursts,
    Compressed,
    Concatenated,
    Constant,
    Flash,
    Koper,
    Load,
    Noisy,
    NoisySine,
    Ramp,
    RandomWalk,
    Scaled,
    Sine,
    Step,
    Taxi,
    Traffic,
)

DAEDALUS = Sine(low=5000, high=55000)
FLASH = Flash(calm=100, crowd=900, begins=60, rise=10, hold=20, fall=40, duration=200)
STEP = Step(steps=((0, 100), (60, 300), (90, 0)), duration=120)

RATES = {
    "constant": (Constant(level=7), 1234, 7),
    "sine starts low": (DAEDALUS, 0, 5000),
    "sine has two crests, the first at a quarter": (DAEDALUS, 5400, 55000),
    "sine is low again in the middle": (DAEDALUS, 10800, 5000),
    "sine second crest": (DAEDALUS, 16200, 55000),
    "sine ends low": (DAEDALUS, 21600, 5000),
    "sine by mean and amplitude": (Sine(mean=30000, amplitude=25000), 5400, 55000),
    "sine with a phase starts at the mean": (Sine(low=0, high=10, phase=0.25), 0, 5),
    "step before": (STEP, 59.9, 100),
    "step at": (STEP, 60, 300),
    "step last": (STEP, 120, 0),
    "ramp half way": (Ramp(first=100, last=200, duration=60), 30, 150),
    "ramp down": (Ramp(first=200, last=100, duration=60), 60, 100),
    "flash calm before": (FLASH, 59, 100),
    "flash rising": (FLASH, 65, 500),
    "flash at its top": (FLASH, 70, 900),
    "flash end of plateau": (FLASH, 90, 900),
    "flash falling": (FLASH, 110, 500),
    "flash calm after": (FLASH, 131, 100),
    "flash without a rise": (Flash(calm=1, crowd=9, begins=5, rise=0, hold=0, fall=0, duration=9), 5, 9),
    "scaled": (Scaled(DAEDALUS, to=110), 0, 10),
    "compressed": (Compressed(DAEDALUS, factor=10), 540, 55000),
    "concatenated, first": (Concatenated((Constant(1, 10), Constant(2, 10))), 9.9, 1),
    "concatenated, at the seam": (Concatenated((Constant(1, 10), Constant(2, 10))), 10, 2),
    "concatenated, its own time": (Concatenated((Constant(1, 10), Ramp(0, 10, 10))), 15, 5),
    "koper's second minute": (Koper("q3", spread=0), 60, 50000 + 25000 * math.cos(2 * math.pi / 60)),
    "koper's minute lasts": (Koper("q3", spread=0), 119, 50000 + 25000 * math.cos(2 * math.pi / 60)),
    "koper's trough": (Koper("q11", spread=0), 1800, 50000),
    "phoebe starts at the mean": (NoisySine(low=0, high=200, variance=0), 0, 100),
    "phoebe's first crest": (NoisySine(low=0, high=200, variance=0), 1800, 200),
    "advertising at noon": (Advertising(high=100, ripple=0, duration=24), 12, 100),
    "traffic between the spikes": (Traffic(high=100, ripple=0, duration=1000), 400, 18),
    "traffic at its end": (Traffic(high=100, ripple=0, duration=1000), 1000, 10),
    "taxi, second day as the first": (Taxi(high=100, ripple=0), 8640 * (1 + 19.5 / 24), 100),
    "before the start": (Ramp(first=100, last=200, duration=60), -5, 100),
    "after the end": (Ramp(first=100, last=200, duration=60), 99, 200),
}


@pytest.mark.parametrize(("load", "t", "rate"), RATES.values(), ids=RATES)
def test_rate(load: Load, t: float, rate: float) -> None:
    assert load.rate(t) == pytest.approx(rate)


PEAKS = {
    "sine reaches its crest": (DAEDALUS, 55000),
    "sine too short for a crest": (Sine(low=0, high=10, periods=0.25), 5),
    "sine that starts on its crest": (Sine(low=0, high=10, periods=0.25, phase=0.5), 10),
    "step": (STEP, 300),
    "ramp down": (Ramp(first=200, last=100), 200),
    "flash": (FLASH, 900),
    "koper": (Koper("q1"), 260_000),
    "phoebe": (NoisySine(low=0, high=200), 220),
    "phoebe without a crest": (NoisySine(low=0, high=200, periods=0.1, phase=0, variance=0.5, duration=10), 28.647451),
    "ripples stay below": (Taxi(high=300), 300),
    "bursts add their share": (Bursts(Constant(100), size=0.5), 150),
    "noise may add its share": (Noisy(Constant(100), share=0.2), 120),
    "compressed": (Compressed(DAEDALUS, factor=2), 55000),
    "scaled": (Scaled(DAEDALUS, to=110), 110),
    "concatenated": (Concatenated((Constant(1), Constant(2))), 2),
}


@pytest.mark.parametrize(("load", "peak"), PEAKS.values(), ids=PEAKS)
def test_peak(load: Load, peak: float) -> None:
    assert load.peak() == pytest.approx(peak)


DURATIONS = {
    "Daedalus runs for six hours": (DAEDALUS, 21600),
    "compressed": (Compressed(DAEDALUS, factor=10), 2160),
    "scaled": (Scaled(DAEDALUS, to=1), 21600),
    "koper runs for 140 minutes": (Koper(), 140 * 60),
    "two days of taxis at ten times their speed": (Taxi(), 2 * 86400 / 10),
    "noisy": (Noisy(DAEDALUS), 21600),
    "concatenated": (Concatenated((Constant(1, 10), Constant(2, 20))), 30),
}


@pytest.mark.parametrize(("load", "duration"), DURATIONS.values(), ids=DURATIONS)
def test_duration(load: Load, duration: float) -> None:
    assert load.duration == pytest.approx(duration)


REFUSED = {
    "negative level": (lambda: Constant(-1), "level must be 0 records/s or more, got -1"),
    "unknown level": (lambda: Constant(math.nan), "level must be 0 records/s or more, got nan"),
    "no duration": (lambda: Constant(1, 0), "duration must be above 0, got 0"),
    "negative low": (lambda: Sine(low=-1, high=1), "low must be 0 records/s or more, got -1"),
    "high below low": (lambda: Sine(low=5, high=1), "high must be at least low (5), got 1"),
    "wave below zero": (lambda: Sine(mean=1, amplitude=2), "mean - amplitude must be 0 records/s or more, got -1"),
    "half a pair": (lambda: Sine(low=5), "low must be given with high, or mean with amplitude, got ['low']"),
    "both pairs": (lambda: Sine(1, 2, 1, 1), "got ['low', 'high', 'mean', 'amplitude']"),
    "no steps": (lambda: Step(()), "steps must be one or more pairs of seconds and records/s, got ()"),
    "late first step": (lambda: Step(((5, 1),)), "steps must start at 0 seconds, got 5"),
    "steps out of order": (lambda: Step(((0, 1), (9, 1), (9, 2))), "steps must be in order of time, got [0, 9, 9]"),
    "negative step": (lambda: Step(((0, -1),)), "steps must be 0 records/s or more, got -1"),
    "step after the end": (lambda: Step(((0, 1), (9, 1)), 5), "steps must end within the duration (5), got 9"),
    "negative ramp": (lambda: Ramp(0, -5), "last must be 0 records/s or more, got -5"),
    "crowd below calm": (lambda: Flash(10, 5), "crowd must be at least calm (10), got 5"),
    "crowd after the end": (lambda: Flash(1, 5, begins=99, duration=60), "begins + rise must be within the duration"),
    "walk out of bounds": (lambda: RandomWalk(1, 5, start=6), "start must be within 1..5, got 6"),
    "wild walk": (lambda: RandomWalk(1, 5, stride=2), "stride must be in (0, 1], got 2"),
    "nothing to scale": (lambda: Scaled(Constant(0), 5), "of must have a peak above 0 to be scaled, got 0"),
    "more noise than load": (lambda: Noisy(Constant(1), 1.5), "share must be in [0, 1], got 1.5"),
    "noise below zero": (lambda: Koper("q3", spread=30_000), "spread must be 0..25000 records/s, so that no rate is"),
    "another query": (lambda: Koper("q5"), "query must be one of q1, q3, q11, got 'q5'"),  # type: ignore[arg-type]
    "wild wave": (lambda: NoisySine(1, 5, variance=2), "variance must be in [0, 1], got 2"),
    "wild ripple": (lambda: Traffic(1, ripple=-1), "ripple must be in [0, 1], got -1"),
    "no days": (lambda: Taxi(days=0), "days must be above 0, got 0"),
    "burst without end": (
        lambda: Bursts(Constant(1), length=9, every=5),
        "length must be above 0 and at most every",
    ),
    "negative burst": (lambda: Bursts(Constant(1), size=-0.5), "size must be 0 or more, got -0.5"),
    "standing still": (lambda: Compressed(Constant(1), 0), "factor must be above 0, got 0"),
    "nothing to concatenate": (lambda: Concatenated(()), "parts must have at least one load, got ()"),
}


@pytest.mark.parametrize(("wrong", "message"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_setting_is_refused_by_field_rule_and_value(wrong: object, message: str) -> None:
    assert callable(wrong)
    with pytest.raises(ConfigError) as refusal:
        wrong()
    assert message in str(refusal.value)


rates = st.floats(0, 1e9)
seconds = st.floats(1, 1e5)
seeds = st.integers(0, 2**32)


@st.composite
def sines(draw: st.DrawFn) -> Sine:
    low, high = sorted([draw(rates), draw(rates)])
    phase = draw(st.floats(-1, 1))
    return Sine(low, high, periods=draw(st.floats(0.1, 9)), phase=phase, duration=draw(seconds))


@st.composite
def walks(draw: st.DrawFn) -> RandomWalk:
    low, high = sorted([draw(rates), draw(rates)])
    duration = draw(seconds)
    interval = duration / draw(st.floats(0.1, 50))
    return RandomWalk(
        low, high, stride=draw(st.floats(0.01, 1)), interval=interval, seed=draw(seeds), duration=duration
    )


@st.composite
def steps(draw: st.DrawFn) -> Step:
    levels = draw(st.lists(rates, min_size=1, max_size=5))
    return Step(tuple((10.0 * i, level) for i, level in enumerate(levels)), duration=100.0)


@st.composite
def noisy_sines(draw: st.DrawFn) -> NoisySine:
    low, high = sorted([draw(rates), draw(rates)])
    return NoisySine(low, high, variance=draw(st.floats(0, 1)), seed=draw(seeds), duration=draw(seconds))


ripple = st.floats(0, 1)
simple = st.one_of(
    st.builds(Constant, rates, seconds),
    st.builds(Ramp, rates, rates, seconds),
    st.builds(Koper, st.sampled_from(["q1", "q3", "q11"]), st.floats(0, 25_000), seed=seeds),
    st.builds(Advertising, rates, ripple, seeds, seconds),
    st.builds(Traffic, rates, ripple, seeds, seconds),
    st.builds(Taxi, rates, ripple, seeds),
    sines(),
    noisy_sines(),
    walks(),
    steps(),
)
loads: st.SearchStrategy[Load] = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(Noisy, inner, st.floats(0, 1), seeds, st.floats(0.1, 100)),
        st.builds(Bursts, inner, st.floats(0, 3), st.floats(100, 1000), st.floats(1, 100), seeds),
        st.builds(Compressed, inner, st.floats(0.1, 100)),
        st.builds(Scaled, inner.filter(lambda load: load.peak() > 1e-3), rates),
        st.builds(Concatenated, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=4,
)


@given(loads, st.floats(-0.5, 1.5))
def test_every_load_is_a_function_of_time_within_its_peak(load: Load, share: float) -> None:
    t = share * load.duration
    rate = load.rate(t)
    assert 0 <= rate <= load.peak() * (1 + 1e-9) + 1e-9
    assert rate == load.rate(t)
    assert rate == pickle.loads(pickle.dumps(load)).rate(t)  # noqa: S301 - our own


@given(sines(), st.floats(0, 1))
def test_a_sine_stays_within_its_bounds(load: Sine, share: float) -> None:
    low, high = load.bounds()
    assert low - 1e-6 * high <= load.rate(share * load.duration) <= high * (1 + 1e-9)


@given(walks(), st.floats(0, 1))
def test_a_walk_stays_within_its_bounds(load: RandomWalk, share: float) -> None:
    assert load.low * (1 - 1e-9) <= load.rate(share * load.duration) <= load.high * (1 + 1e-9)


def test_another_seed_is_another_noise_and_the_order_of_asking_does_not_matter() -> None:
    def ask(seed: int, order: range) -> dict[int, float]:
        load = Noisy(Constant(100), share=0.3, seed=seed)
        return {t: load.rate(t) for t in order}

    forward, backward = ask(1, range(100)), ask(1, range(99, -1, -1))
    assert forward == backward
    assert forward != ask(2, range(100))


def test_noise_is_spread_evenly_and_lasts_its_interval() -> None:
    load = Noisy(Constant(100, duration=10_000), share=0.5, interval=10)
    draws = [load.rate(t) for t in range(0, 10_000, 10)]
    assert load.rate(12) == load.rate(19.9) != load.rate(20)
    assert sum(draws) / len(draws) == pytest.approx(100, rel=0.03)
    assert min(draws) < 55
    assert max(draws) > 145


@given(loads, st.lists(st.floats(-0.5, 1.5), max_size=20))
def test_many_instants_at_once_are_the_same(load: Load, shares: list[float]) -> None:
    ts = np.array(shares, dtype=np.float64) * load.duration
    given, alone = load.rates(ts), [load.rate(float(t)) for t in ts]
    assert given.dtype == np.float64
    assert given.tolist() == pytest.approx(alone, rel=1e-9, abs=1e-6 * load.peak())


@pytest.mark.parametrize("load", [FLASH, STEP, DAEDALUS, Koper(), Taxi(), Noisy(DAEDALUS), NoisySine(1, 9)], ids=repr)
def test_blocks_of_seconds_join_without_a_seam(load: Load) -> None:
    ts = np.arange(0.0, load.duration + 2)
    blocks = [load.rates(ts[i : i + 1000]) for i in range(0, len(ts), 1000)]
    assert np.concatenate(blocks).tobytes() == load.rates(ts).tobytes()


def test_kopers_noise_is_even_within_its_range_and_changes_each_minute() -> None:
    noise = Koper("q1", seed=3).rates(np.arange(0.0, 8400)) - Koper("q1", spread=0).rates(np.arange(0.0, 8400))
    by_minute = noise.reshape(140, 60)
    assert (by_minute == by_minute[:, :1]).all()
    assert -10_000 < by_minute.min() < -9_000
    assert 9_000 < by_minute.max() < 10_000
    assert abs(by_minute.mean()) < 1_500


def test_the_taxis_drive_as_often_as_in_the_paper() -> None:
    assert Taxi().rates(np.arange(0.0, 17280)).mean() == pytest.approx(3e6 / 172800 * 10, rel=0.03)


def test_traffic_has_two_sharp_spikes() -> None:
    rates = Traffic(high=100, ripple=0).rates(np.arange(0.0, 21600, 60))
    above = rates > 60
    assert np.count_nonzero(np.diff(above.astype(int)) == 1) == 2
    assert 0.05 < above.mean() < 0.15
    assert rates.mean() == pytest.approx(25, abs=2)


def test_a_ripple_is_smooth_and_another_seed_gives_another() -> None:
    rates = Advertising(high=100, seed=1).rates(np.arange(0.0, 21600))
    assert np.abs(np.diff(rates)).max() < 1
    assert (rates != Advertising(high=100, seed=2).rates(np.arange(0.0, 21600))).any()


def test_every_window_has_one_burst_of_its_length() -> None:
    load = Bursts(Constant(10, duration=6000), size=1, every=600, length=50, seed=5)
    windows = (load.rates(np.arange(0.0, 6000)) == 20).reshape(10, 600)
    assert (np.abs(windows.sum(axis=1) - 50) <= 1).all()
    assert len(set(windows.argmax(axis=1).tolist())) > 5
