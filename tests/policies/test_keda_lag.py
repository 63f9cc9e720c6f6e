"""Rows with the name of a Go test have its numbers: kubernetes/kubernetes, replica_calculator_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import Observation, Policy
from penstock.errors import ConfigError
from penstock.policies import parameters
from penstock.policies.keda_lag import KedaLag
from penstock.testing import PolicyContract, sample


def lagging(at: float, workers: int, lag: float | None, **known: Any) -> Observation:
    return sample(at, (0.5,) * workers, backlog=lag, **known)


EAGER: dict[str, Any] = {"scale_down_stabilisation": 0.0}
# name: settings, observations (learned and decided on one by one) -> workers, code of the last decision
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "ScaleUpPerPodCMExternal": ({"lag_threshold": 2150}, [lagging(0, 3, 8600)], 4, "lag.above_target"),
    "ScaleDownPerPodCMExternal": ({"lag_threshold": 2867, **EAGER}, [lagging(0, 5, 8600)], 3, "lag.below_target"),
    "50 of lag at KEDA's default of 10": ({"lag_threshold": 10}, [lagging(0, 1, 50)], 5, "lag.above_target"),
    "within default tolerance": ({"lag_threshold": 2900, **EAGER}, [lagging(0, 3, 8600)], 3, "lag.in_tolerance"),
    "the default is for streams": ({}, [lagging(0, 2, 45_000)], 5, "lag.above_target"),
    "within a tenth above": ({}, [lagging(0, 4, 44_000)], 4, "lag.in_tolerance"),
    "within a tenth below": (EAGER, [lagging(0, 4, 36_000)], 4, "lag.in_tolerance"),
    "just beyond": ({}, [lagging(0, 4, 44_001)], 5, "lag.above_target"),
    "no lag at all": (EAGER, [lagging(0, 4, 0)], 1, "bounds.min"),
    "down waits for the window": ({}, [lagging(0, 4, 0)], 4, "hpa.stabilised_down"),
    "up waits for its window": ({"scale_up_stabilisation": 60}, [lagging(0, 4, 90_000)], 4, "hpa.stabilised_up"),
    "at most double or four more": ({"max_workers": 30}, [lagging(0, 2, 1e9)], 6, "hpa.scale_up_limited"),
    "up to the bound": ({"max_workers": 5}, [lagging(0, 4, 1e9)], 5, "bounds.max"),
    "no more than partitions": ({"partitions": 6}, [lagging(0, 4, 1e9)], 6, "lag.above_target"),
    "exactly one over the partitions": ({"partitions": 6}, [lagging(0, 4, 69_999)], 6, "lag.above_target"),
    "at the partitions": ({"partitions": 6}, [lagging(0, 6, 1e9)], 6, "lag.in_tolerance"),
    "more than partitions go": ({"partitions": 4, **EAGER}, [lagging(0, 6, 1e9)], 4, "lag.below_target"),
    "idle workers allowed": (
        {"partitions": 6, "allow_idle_workers": True},
        [lagging(0, 4, 80_000)],
        8,
        "lag.above_target",
    ),
    "an outage is not a lag of 0": ({**EAGER}, [lagging(0, 4, 9), lagging(15, 4, None)], 4, "lag.unknown"),
    "nor is one that cannot be": (EAGER, [lagging(0, 4, 9), lagging(15, 4, -1.0)], 4, "lag.unknown"),
    "nor no number": (EAGER, [lagging(0, 4, 9), lagging(15, 4, float("nan"))], 4, "lag.unknown"),
    "requested unknown": ({}, [lagging(0, 4, 1e9, requested=None)], None, "lag.unknown"),
    "inactive": (
        {"activation_lag": 100, "scale_down_stabilisation": 3600},
        [lagging(t, 8, 90) for t in range(0, 301, 15)],
        1,
        "lag.inactive",
    ),
    "inactive, but not for long": (
        {"activation_lag": 100, "scale_down_stabilisation": 3600},
        [lagging(t, 8, 90) for t in range(0, 286, 15)],
        8,
        "hpa.stabilised_down",
    ),
    "active in between": (
        {"activation_lag": 100, "scale_down_stabilisation": 3600},
        [lagging(t, 8, 101 if t == 150 else 90) for t in range(0, 301, 15)],
        8,
        "hpa.stabilised_down",
    ),
    "unknown in between may have been active": (
        {"activation_lag": 100, "scale_down_stabilisation": 3600},
        [lagging(t, 8, None if t == 150 else 90) for t in range(0, 301, 15)],
        8,
        "hpa.stabilised_down",
    ),
    "inactive, at once": ({"cooldown": 0}, [lagging(0, 8, 0)], 1, "lag.inactive"),
    "from above the bound": ({"max_workers": 3}, [lagging(0, 9, 1e9)], 3, "bounds.max"),
    "from below the bound": ({"min_workers": 3}, [lagging(0, 1, 0)], 3, "bounds.min"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    policy = KedaLag(**settings)
    for observation in observations:
        policy.learn(observation)
        decision = policy.decide(observation)
    assert (decision.workers, decision.reason.code) == (workers, code)


def test_a_person_can_read_it() -> None:
    policy = KedaLag(partitions=6)
    said = [policy.decide(lagging(0, 4, lag)).reason.sentence for lag in (45_000, 1e6)]
    assert said == [
        "45000 records of lag are 11250 for each of 4, above the 10000 to aim at: 45000/10000 -> 5",
        "1000000 records of lag, counted as 6 partitions' worth are 15000 for each of 4, above the 10000 to aim at:"
        " 60000/10000 -> 6",
    ]


def test_cpu_is_no_setting() -> None:
    assert "target_cpu" not in {p.name for p in parameters(KedaLag)}
    assert all(p.doc for p in parameters(KedaLag))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lag_threshold": 0}, "lag_threshold must be above 0 records, got 0"),
        ({"activation_lag": -1}, "activation_lag must be 0 records or more, got -1"),
        ({"cooldown": -1}, "cooldown must be 0 seconds or more, got -1"),
        ({"partitions": 0}, "partitions must be at least 1, got 0"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        KedaLag(**settings)
    assert message in str(error.value)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return KedaLag(min_workers=2, max_workers=9, lag_threshold=500.0, partitions=8)
