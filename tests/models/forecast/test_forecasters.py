"""What holds for every forecaster, and the two simple ones by hand."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.models.forecast import FORECASTERS, Experts, Forecast, Forecaster, Last, Linear, make
from penstock.models.forecast.linear import ONWARD, onward
from penstock.models.forecast.series import Past

OURS = ["experts", "last", "linear"]


def feed(model: Forecaster, seconds: int, rate: object, start: int = 0, loop: float | None = None) -> Forecast | None:
    """Samples each second; a forecast each `loop` seconds, and at the end."""
    for second in range(start, start + seconds):
        model.learn(float(second), float(rate(second)))  # type: ignore[operator]
        if loop and (second + 1) % loop == 0:
            model.forecast()
    return model.forecast()


def test_forecast_values() -> None:
    ahead = Forecast(100.0, 10.0, (1.0, 5.0, 3.0), "last")
    assert ahead.horizon == 30
    assert [ahead.max(10), ahead.max(11), ahead.max(1000), ahead.max()] == [1.0, 5.0, 5.0, 5.0]
    assert [ahead.mean(10), ahead.mean(20), ahead.mean()] == pytest.approx([1.0, 3.0, 3.0])
    assert [ahead.rate(0), ahead.rate(9.9), ahead.rate(10), ahead.rate(999)] == [1.0, 1.0, 5.0, 3.0]
    assert ahead.over(10).path == (1.0,)
    assert ahead.over(50).path == (1.0, 5.0, 3.0, 3.0, 3.0)
    assert ahead.means(15, 3) == pytest.approx([(10 + 25) / 15, (25 + 30) / 15, 3.0])
    assert [ahead.trend(0), ahead.trend(20), ahead.over(10).trend(20)] == [3.0, -1.0, 1.0]
    slower = Forecast(0.0, 60.0, (0.0, 100.0, 200.0, 300.0, 400.0, 430.0, 460.0, 490.0), "last")
    assert slower.trend(120) == 550.0  # as in its last quarter, not as before


@pytest.mark.parametrize("name", OURS)
def test_nothing_to_go_on(name: str) -> None:
    model = make(name)
    assert model.forecast() is None
    model.learn(0.0, None)
    model.learn(60.0, None)
    assert model.forecast() is None


@pytest.mark.parametrize("interval", [60.0, 10.0])
@pytest.mark.parametrize("name", OURS)
def test_it_reaches_fifteen_intervals_ahead_from_now(name: str, interval: float) -> None:
    said = feed(make(name, interval), round(3 * interval), lambda _: 700.0)
    assert said is not None
    assert said.by == name
    assert said.at == pytest.approx(3 * interval)
    assert said.horizon == pytest.approx(15 * interval)
    assert said.path == pytest.approx([700.0] * 90)


def test_linear_is_exact_on_a_ramp_and_cut_at_both_ends() -> None:
    up = feed(Linear(), 120, lambda s: 1000 + 2 * s)
    assert up is not None
    # a sample stands for its instant, the path for the middle of each step
    assert up.path == pytest.approx([1000 + 2 * (120 + 10 * i + 5) for i in range(90)])
    steep = feed(Linear(), 120, lambda s: 1000 + 200 * s)
    assert steep is not None
    last_minute = float(np.mean([1000 + 200 * s for s in range(60, 120)]))
    assert steep.max() == pytest.approx(3 * last_minute)
    down = feed(Linear(), 120, lambda s: 1300 - 10 * s)
    assert down is not None
    assert down.path[-1] == 0.0


def test_linear_is_not_led_astray_by_a_stumble_of_a_short_interval() -> None:
    """Seen on Spark with loops of 4 s: whoever writes the load is held up for a second, and makes up for it."""

    def rate(second: int) -> float:
        return 10_000 + 100 * second - 6000 * (second in (56, 57)) + 3000 * (second == 59)

    said = feed(Linear(interval=4.0), 60, rate)
    assert said is not None
    assert 15_000 < said.max() < 30_000, "22,000 would be right; through the last four samples it is 48,000"


def test_linear_sees_only_the_last_interval() -> None:
    said = feed(Linear(), 600, lambda s: 100 + 10 * s if s < 540 else 6000.0)
    assert said is not None
    assert said.path == pytest.approx([6000.0] * 90)


def past(fine: list[float]) -> Past:
    means = np.array(fine)
    return Past(600.0, len(means), means, means[len(means) % 6 :].reshape(-1, 6).mean(axis=1))


def test_onward_goes_through_half_a_horizon_and_is_cut_at_both_ends() -> None:
    before = [9000.0, 0.0] * 30  # further back than it looks
    up = onward(past([*before, *(1000.0 + 5 * i for i in range(ONWARD))]), 10.0)
    assert (up.at, up.step, up.by) == (600.0, 10.0, "onward")
    assert up.path == pytest.approx([1000.0 + 5 * (ONWARD + i) for i in range(90)])
    assert onward(past([10.0 + 10 * i for i in range(ONWARD)]), 10.0).max() == pytest.approx(3 * 425.0)
    assert onward(past([1000.0 - 20 * i for i in range(ONWARD)]), 10.0).path[-1] == 0.0
    assert onward(past([700.0]), 10.0).path == pytest.approx([700.0] * 90), "one bin has no slope"


def test_onward_is_calmer_than_the_line_through_the_last_interval() -> None:
    """A load that wanders by a tenth from minute to minute, and rises nowhere."""
    rng = np.random.default_rng(5)
    calm, hasty = [], []
    for _ in range(200):
        walk = 1000 + 100 * np.repeat(rng.uniform(-1, 1, 8), 6) + rng.normal(0, 20, 48)
        calm.append(onward(past(walk.tolist()), 10.0).path[-1])
        line = Linear()
        for i, rate in enumerate(walk.tolist()):
            line.learn(10.0 * i, rate)
        said = line.forecast()
        assert said is not None
        hasty.append(said.path[-1])
    assert np.std(calm) < np.std(hasty) / 2


def test_last_is_the_mean_of_the_last_interval() -> None:
    said = feed(Last(), 180, lambda s: float(s))
    assert said is not None
    assert said.path == pytest.approx([149.5] * 90)


@pytest.mark.parametrize("interval", [60.0, 10.0])
def test_experts_learn_a_ramp(interval: float) -> None:
    said = feed(Experts(interval), round(90 * interval), lambda s: 1000 + s * 600 / interval, loop=interval)
    assert said is not None
    ahead = (np.arange(90) + 0.5) * interval / 6
    assert said.path == pytest.approx(1000 + (90 * interval + ahead) * 600 / interval, rel=0.002)


def test_experts_learn_a_sine() -> None:
    def sine(second: float) -> float:
        return 30_000 - 20_000 * math.cos(2 * math.pi * second / 10_800)

    said = feed(Experts(), 4 * 3600, sine, loop=60)
    assert said is not None
    truth = [sine(4 * 3600 + 10 * i + 5) for i in range(90)]
    assert said.path == pytest.approx(truth, rel=0.01)


def test_time_compressed_is_the_same() -> None:
    rng = np.random.default_rng(6)
    rates = 1000 + 300 * np.sin(np.arange(1200) / 400) + rng.normal(0, 30, 1200)
    slow, fast = Experts(60.0), Experts(10.0)
    for i, rate in enumerate(rates):
        slow.learn(6.0 * i, float(rate))
        fast.learn(float(i), float(rate))
        if i % 10 == 9:
            a, b = slow.forecast(), fast.forecast()
    assert a is not None
    assert b is not None
    assert a.path == pytest.approx(b.path, rel=1e-6)


def test_retraining_experts_forgets_their_record() -> None:
    model = Experts()
    feed(model, 3600, lambda s: 1000 + s, loop=60)
    assert model.record.weight.max() > 0
    work = model.training()
    assert work is not None
    model.adopt(work())
    assert model.record.weight.max() == 0
    assert model.forecast() is not None


@pytest.mark.parametrize("name", OURS)
def test_a_copy_goes_on_the_same(name: str) -> None:
    model = make(name)
    feed(model, 2400, lambda s: 1000 + 200 * math.sin(s / 300), loop=60)
    other = copy.deepcopy(model)
    ends = [feed(m, 600, lambda s: 900 + s % 7, start=2400, loop=60) for m in (model, other)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("name", OURS)
def test_a_gap_is_not_a_load_of_zero(name: str) -> None:
    model = make(name)
    feed(model, 1200, lambda _: 1000.0, loop=60)
    for second in range(1200, 1500):
        model.learn(float(second), None)
    said = model.forecast()
    assert said is not None
    assert said.at == 1500.0
    assert said.path == pytest.approx([1000.0] * 90)
    model.learn(1500.0 + 1200, None)
    assert model.forecast() is None


def test_make_says_what_there_is() -> None:
    assert list(FORECASTERS) == sorted(FORECASTERS)
    with pytest.raises(ConfigError, match=r"forecaster must be one of .*; did you mean 'experts'\?"):
        make("expert")
    with pytest.raises(ConfigError, match="interval must be above 0 seconds, got 0"):
        make("experts", 0.0)


samples = st.lists(
    st.tuples(
        st.one_of(st.floats(-5, 400), st.floats(allow_nan=True, allow_infinity=True)),
        st.one_of(st.none(), st.floats(0, 1e6), st.floats(allow_nan=True, allow_infinity=True)),
        st.integers(1, 40),
    ),
    max_size=40,
)


@pytest.mark.parametrize("name", OURS)
@settings(max_examples=60, deadline=None)
@given(samples=samples, interval=st.sampled_from([60.0, 10.0, 0.5]))
def test_never_negative_never_nan_never_raises(
    name: str, samples: list[tuple[float, float | None, int]], interval: float
) -> None:
    model = make(name, interval)
    now = 0.0
    for step, rate, times in samples:
        for _ in range(times):
            now += step
            model.learn(now, rate)
        if not math.isfinite(now):
            now = 0.0
        said = model.forecast()
        if said is not None:
            assert len(said.path) == 90
            assert all(math.isfinite(value) and value >= 0 for value in said.path)
            assert math.isfinite(said.at)
