"""DS2-modern-adapted: up above 5 s of event-time lag, down below 1 s (Koper 2022, sec. 3.5.4 and 4.6)."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import Observation, Operator, Policy
from penstock.errors import ConfigError
from penstock.policies.ds2_modern_adapted import Ds2ModernAdapted
from penstock.testing import PolicyContract


def seen(load: float, latency: float | None, at: float = 0.0, **known: Any) -> Observation:
    """Four workers that could take 200 records/s each."""
    operators = (Operator("map", 4, rate_in=400.0, busy=0.5),)
    return Observation(at, 4, 4, input_rate=load, latency=latency, operators=operators, **known)


# name: settings, observation -> workers, code
DECISIONS: dict[str, tuple[dict[str, Any], Observation, int, str]] = {
    "up with lag": ({}, seen(1000, 5.1), 5, "dataflow.below"),
    "up without": ({}, seen(1000, 5.0), 4, "latency.too_low"),
    "down without lag": ({}, seen(100, 0.9), 1, "dataflow.above"),
    "down with": ({}, seen(100, 1.0), 4, "latency.too_high"),
    "fits, whatever the lag": ({}, seen(800, 60.0), 4, "dataflow.fits"),
    "lag not known": ({}, seen(100, None), 4, "latency.unknown"),
    "nothing arrives and nothing waits": ({}, seen(0, None, backlog=0.0), 1, "dataflow.above"),
    "other thresholds": ({"scale_up_latency": 1.0}, seen(1000, 1.5), 5, "dataflow.below"),
    "over-provisioned": ({"over_provisioning": 0.66}, seen(1000, 9.0), 9, "dataflow.below"),
    "in cooldown": ({}, seen(1000, 9.0, at=239, last_rescale_at=0.0), 4, "cooldown.resting"),
    "up to the bound": ({"max_workers": 4}, seen(1000, 9.0), 4, "bounds.max"),
    "blind": ({}, Observation(0, 4, 4), 4, "dataflow.unknown"),
}


@pytest.mark.parametrize(("settings", "observation", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observation: Observation, workers: int, code: str) -> None:
    policy = Ds2ModernAdapted(**{"over_provisioning": 0.0, **settings})
    policy.learn(observation)
    decision = policy.decide(observation)
    assert (decision.workers, decision.reason.code) == (workers, code)


def test_a_person_can_read_it() -> None:
    policy = Ds2ModernAdapted(over_provisioning=0.0)
    policy.learn(seen(1000, 2.0))
    assert policy.decide(seen(1000, 2.0)).reason.sentence == "Latency 2.0 s is not above 5 s: 4 do, not 5"


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"scale_up_latency must be at least scale_down_latency \(6\), got 5.0"):
        Ds2ModernAdapted(scale_down_latency=6)
    with pytest.raises(ConfigError, match="scale_down_latency must be 0 seconds or more, got -1"):
        Ds2ModernAdapted(scale_down_latency=-1)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return Ds2ModernAdapted(min_workers=2, max_workers=9, cooldown=30, scale_up_latency=1.4, scale_down_latency=1.2)
