"""TWRES: capacity by non-negative least squares against the forecast, and one more where latency is too high."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import sin

import pytest

from penstock.core import Decision, Observation, Policy
from penstock.errors import ConfigError
from penstock.models.profiling import Limit, Point, ProfilingData
from penstock.policies import make
from penstock.policies.twres import Twres, capacities
from penstock.testing import PolicyContract

PER_WORKER = 16_000.0


@cache
def profile(per_worker: float = PER_WORKER) -> str:
    limits = tuple(Limit(n, per_worker * n) for n in (2, 5, 8, 11, 15, 18, 21, 24))
    return ProfilingData((Point(2, 1.0, 1.0, 1.0),), limits).text()


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return Twres(min_workers=2, max_workers=9, profile=profile(1000.0), interval=60)


def decided(load: float, current: int, policy: Twres | None = None, **known: object) -> Decision:
    """After half an hour of this load."""
    policy = policy or Twres(max_workers=24, profile=profile())
    last = Observation(at=1800.0, workers=current, requested=current, input_rate=load, latency=1.0)
    for t in range(0, 1800, 10):
        policy.learn(replace(last, at=float(t), input_rate=load * (1 + 0.005 * sin(t))))
    return policy.decide(replace(last, **known))  # type: ignore[arg-type]


TABLE: dict[str, tuple[float, int, dict[str, object], int, str]] = {
    "the fewest that can do it": (52_000.0, 12, {}, 4, "twres.in"),
    "out": (140_000.0, 4, {}, 9, "twres.out"),
    "stay": (140_000.0, 9, {}, 9, "twres.fits"),
    "out, whatever the latency": (140_000.0, 4, {"latency": 30.0}, 9, "twres.out"),
    "enough, but late: one more than now": (52_000.0, 6, {"latency": 2.1}, 7, "latency.above_limit"),
    "just right, but late": (52_000.0, 4, {"latency": 2.1}, 5, "latency.above_limit"),
    "2000 ms are not above 2000 ms": (52_000.0, 6, {"latency": 2.0}, 4, "twres.in"),
    "all there are, and late": (52_000.0, 24, {"latency": 9.0}, 24, "bounds.max"),
    "latency unknown: no worker goes": (52_000.0, 6, {"latency": None}, 6, "latency.unknown"),
    "latency unknown: some come": (140_000.0, 6, {"latency": None}, 9, "twres.out"),
    "more than there is": (500_000.0, 12, {}, 24, "twres.none_fits"),
    "out of bounds": (52_000.0, 30, {}, 24, "bounds.max"),
    "nothing measured": (52_000.0, 6, {"workers": None, "input_rate": None, "latency": None}, 6, "metrics.blind"),
}


@pytest.mark.parametrize("name", TABLE)
def test_table(name: str) -> None:
    load, current, known, workers, code = TABLE[name]
    decision = decided(load, current, None, **known)
    assert (decision.workers, decision.reasons[-1].code) == (workers, code), decision


def test_the_walk_ends_with_the_chosen() -> None:
    decision = decided(52_000.0, 12)
    assert [(o.workers, o.chosen, o.reason.code) for o in decision.options] == [
        (1, False, "capacity.below_load"),
        (2, False, "capacity.below_load"),
        (3, False, "capacity.below_load"),
        (4, True, "capacity.enough"),
    ]
    assert decision.expects is not None
    assert decision.expects.capacity == pytest.approx(4 * PER_WORKER)
    assert decision.expects.peak == pytest.approx(52_000, rel=0.02)


def test_capacity_with_overhead_that_fades() -> None:
    limits = tuple(Limit(n, 500.0 + 1000.0 * n + 300.0 / n) for n in (1, 2, 4, 8))
    found = capacities(ProfilingData((), limits), 1, 6)
    assert found[6] == pytest.approx(500 + 6000 + 50)
    assert found[3] == pytest.approx(500 + 3000 + 100)


def test_without_a_profile_it_holds() -> None:
    decision = decided(140_000.0, 4, Twres(max_workers=24))
    assert (decision.workers, decision.reasons[-1].code) == (4, "profile.missing")


def test_before_any_load_it_holds() -> None:
    last = Observation(at=0.0, workers=4, requested=4, latency=1.0)
    decision = Twres(max_workers=24, profile=profile()).decide(last)
    assert (decision.workers, decision.reasons[-1].code) == (4, "load.unknown")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"profile": "{}"}, "profile must be what `penstock profile` wrote"),
        ({"max_latency": 0.0}, "max_latency must be above 0 seconds, got 0.0"),
        ({"horizon": 0.0}, "horizon must be above 0 seconds, got 0.0"),
    ],
)
def test_bad_settings(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make("twres", **settings)
    assert said in str(caught.value)
