"""Phoebe as a whole: what it decides on its profile and forecast, and what keeps it from deciding."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import pi, sin

import pytest

from penstock.core import Decision, Observation, Policy
from penstock.errors import ConfigError
from penstock.models.outage import Outage
from penstock.models.profiling import Limit, ObservedRecovery, Point, ProfilingData
from penstock.policies import make
from penstock.policies.phoebe import Phoebe
from penstock.testing import PolicyContract

PER_WORKER = 16_000.0  # about what the paper's cars had
DOWN = 88.0  # s, and its downtime


@cache
def profile(per_worker: float = PER_WORKER, failures: bool = True) -> str:
    """What the profiling phase of sec. IV-B would find of a job whose workers add up."""
    points, limits, known = [], [], []
    for n in (2, 5, 8, 11, 15, 18, 21, 24):
        limits.append(Limit(n, per_worker * n))
        for step in range(1, 30):
            rate = step * per_worker * 1.25
            fits = rate <= per_worker * n
            points.append(Point(n, rate, 1.0 if fits else 30.0, min(rate, per_worker * n)))
            if not fits:
                break
        seconds = Outage(DOWN).recovery(0.5, 1.0, 10.0)
        assert seconds is not None
        known.append(ObservedRecovery(n, 0.5 * per_worker * n, seconds))
    return ProfilingData(tuple(points), tuple(limits), tuple(known) if failures else ()).text()


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return Phoebe(min_workers=2, max_workers=9, profile=profile(1000.0), interval=60, min_uptime=60)


def seen(at: float, load: float, workers: int = 12, **known: object) -> Observation:
    base = Observation(
        at=at,
        workers=workers,
        requested=workers,
        uptime=10_000.0 + at,
        input_rate=load,
        processed_rate=load,
        backlog=load / 10,
        latency=1.0,
    )
    return replace(base, **known)  # type: ignore[arg-type]


def decided(load: float, policy: Phoebe | None = None, current: int = 12, **known: object) -> Decision:
    """After half an hour of this load."""
    policy = policy or Phoebe(max_workers=24, profile=profile())
    for t in range(0, 1800, 10):
        policy.learn(seen(float(t), load * (1 + 0.005 * sin(t)), current))
    return policy.decide(replace(seen(1800.0, load, current), **known))  # type: ignore[arg-type]


# A stop of 88 s is over after 180 s where T_max is 98 / 92 + 1 times the load: 180 K with 23.2 workers, 52 K with 6.7.
TABLE: dict[str, tuple[float, int, dict[str, object], int, str]] = {
    "52 K, as at the first failure": (52_000.0, 12, {}, 7, "phoebe.in"),
    "84 K": (84_000.0, 12, {}, 11, "phoebe.in"),
    "90 K stays": (90_000.0, 12, {}, 12, "phoebe.fits"),
    "140 K": (140_000.0, 12, {}, 19, "phoebe.out"),
    "166 K, the highest": (166_000.0, 12, {}, 22, "phoebe.out"),
    "more than there is": (300_000.0, 12, {}, 24, "phoebe.none_fits"),
    "next to nothing": (100.0, 12, {}, 1, "phoebe.in"),
    "too young": (140_000.0, 12, {"uptime": 599.0}, 12, "phoebe.recovering"),
    "old enough": (140_000.0, 12, {"uptime": 600.0}, 19, "phoebe.out"),
    "rescaled lately": (140_000.0, 12, {"uptime": 540.0, "last_rescale_at": 1245.0}, 12, "phoebe.recovering"),
    "rescaled an interval ago": (140_000.0, 12, {"uptime": 560.0, "last_rescale_at": 1200.0}, 19, "phoebe.out"),
    "failed since": (140_000.0, 12, {"uptime": 100.0, "last_rescale_at": 1200.0}, 12, "phoebe.recovering"),
    "uptime unknown": (140_000.0, 12, {"uptime": None}, 12, "uptime.unknown"),
    "nothing measured": (
        140_000.0,
        12,
        {"uptime": None, "input_rate": None, "processed_rate": None, "backlog": None, "latency": None, "workers": None},
        12,
        "metrics.blind",
    ),
    "out of bounds": (52_000.0, 30, {}, 24, "bounds.max"),
}


@pytest.mark.parametrize("name", TABLE)
def test_table(name: str) -> None:
    load, current, known, workers, code = TABLE[name]
    decision = decided(load, None, current, **known)
    assert (decision.workers, decision.reasons[-1].code) == (workers, code), decision


def test_the_decision_says_what_it_reckoned_with() -> None:
    decision = decided(140_000.0)
    view, chosen = decision.reasons
    assert view.code == "phoebe.view"
    assert view.facts["projected"] == pytest.approx(140_000, rel=0.02)
    assert view.facts["downtime"] == pytest.approx(DOWN, abs=1)
    assert "the fewest that recover from a failure in" in chosen.sentence
    assert decision.expects is not None
    assert decision.expects.recovery == pytest.approx(DOWN + 98 * 140 / (19 * 16 - 140), rel=0.05)
    assert [option.workers for option in decision.options] == list(range(1, 20))


def test_a_rising_load_is_scaled_for_before_it_comes() -> None:
    """With all the time to recover, the forecast decides: the backlog must be worked off while more comes."""
    policy = Phoebe(max_workers=24, profile=profile(), recovery_target=2000.0)
    steady = decided(110_000.0, Phoebe(max_workers=24, profile=profile(), recovery_target=2000.0))
    for t in range(0, 1800, 10):
        policy.learn(seen(float(t), 20_000.0 + 50 * t))
    rising = policy.decide(seen(1800.0, 110_000.0))
    assert rising.workers is not None
    assert steady.workers is not None
    assert rising.workers > steady.workers


def test_a_shorter_target_asks_for_more() -> None:
    few = decided(84_000.0, Phoebe(max_workers=24, profile=profile(), recovery_target=600.0))
    many = decided(84_000.0, Phoebe(max_workers=24, profile=profile(), recovery_target=130.0))
    assert (few.workers, many.workers) == (7, 18)


def test_without_failures_in_the_profile_the_given_downtime_counts() -> None:
    bare = profile(failures=False)
    short = decided(84_000.0, Phoebe(max_workers=24, profile=bare, downtime=30.0))
    long = decided(84_000.0, Phoebe(max_workers=24, profile=bare, downtime=120.0))
    assert (short.workers, long.workers) == (7, 17)


def test_without_a_profile_it_holds() -> None:
    decision = decided(140_000.0, Phoebe(max_workers=24))
    assert (decision.workers, decision.reasons[-1].code) == (12, "profile.missing")


def test_before_any_load_it_holds() -> None:
    policy = Phoebe(max_workers=24, profile=profile())
    decision = policy.decide(seen(0.0, 0.0, input_rate=None))
    assert (decision.workers, decision.reasons[-1].code) == (12, "load.unknown")


def test_what_was_observed_is_told_with_the_next_decision() -> None:
    policy = Phoebe(max_workers=24, profile=profile())
    for t in range(0, 900, 5):
        policy.learn(seen(float(t), 250_000.0, processed_rate=150_000.0, backlog=5e6, latency=60.0))
    assert "capacity.observed" in [r.code for r in policy.decide(seen(900.0, 250_000.0)).reasons]
    assert "capacity.observed" not in [r.code for r in policy.decide(seen(900.0, 250_000.0)).reasons]


def test_what_a_failure_would_take_now() -> None:
    policy = Phoebe(max_workers=24, profile=profile())
    assert policy.recovery_now(seen(0.0, 84_000.0)) is None
    decided(84_000.0, policy)
    at_twelve = policy.recovery_now(seen(1800.0, 84_000.0))
    assert at_twelve == pytest.approx(DOWN + 98 * 84 / (12 * 16 - 84), rel=0.05)
    assert policy.recovery_now(seen(1800.0, 84_000.0, requested=5)) is None


def test_small_steps_in_are_left_out_where_told_so() -> None:
    eager = decided(84_000.0, current=13)
    calm = decided(84_000.0, Phoebe(max_workers=24, profile=profile(), least_step_in=3), current=13)
    assert (eager.workers, calm.workers) == (11, 13)
    assert calm.reasons[-1].code == "phoebe.small_step"


def test_a_day_has_few_rescales() -> None:
    """A wave of two hours: about a rescale per interval on its slopes, none beyond one per interval."""
    policy = Phoebe(max_workers=24, profile=profile())
    workers, changed_at, changes = 24, None, 0
    for t in range(0, 4 * 7200, 10):
        load = 100_000 * (1 + sin(2 * pi * t / 7200))
        last = seen(float(t), load, workers, last_rescale_at=changed_at)
        last = last if changed_at is None else replace(last, uptime=max(0.0, t - changed_at - 30.0))
        policy.learn(last)
        if t % 600 == 0 and (decision := policy.decide(last)).workers not in (None, workers):
            assert decision.workers is not None
            workers, changed_at, changes = decision.workers, float(t), changes + 1
    assert 12 <= changes <= 48


BAD: dict[str, tuple[dict[str, object], str]] = {
    "no profile": ({"profile": "none"}, "profile must be what `penstock profile` wrote, got 'none'"),
    "target": ({"recovery_target": 0.0}, "recovery_target must be above 0 seconds, got 0.0"),
    "horizon": ({"horizon": -1.0}, "horizon must be above 0 seconds, got -1.0"),
    "uptime": ({"min_uptime": -1.0}, "min_uptime must be 0 seconds or more, got -1.0"),
    "step": ({"least_step_in": 0}, "least_step_in must be at least 1 worker, got 0"),
    "forecaster": ({"forecaster": "oracle"}, "phoebe.forecaster must be "),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_settings(name: str) -> None:
    settings, said = BAD[name]
    with pytest.raises(ConfigError) as caught:
        make("phoebe", **settings)
    assert said in str(caught.value)
