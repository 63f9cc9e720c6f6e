"""HPA at 35 %; test_hpa has the rest."""

from __future__ import annotations

import pytest

from penstock.core import Policy
from penstock.policies.flink_reactive import FlinkReactive
from penstock.testing import PolicyContract, sample

# name: CPU of four workers -> workers, code
DECISIONS: dict[str, tuple[float, int, str]] = {
    "half busy is too busy": (0.5, 6, "cpu.above_target"),
    "all busy": (1.0, 8, "hpa.scale_up_limited"),
    "near": (0.35, 4, "cpu.in_tolerance"),
    "just in tolerance": (0.38, 4, "cpu.in_tolerance"),
    "down waits for five minutes": (0.1, 4, "hpa.stabilised_down"),
}


@pytest.mark.parametrize(("cpu", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(cpu: float, workers: int, code: str) -> None:
    policy = FlinkReactive()
    observation = sample(0, (cpu,) * 4)
    policy.learn(observation)
    decision = policy.decide(observation)
    assert (decision.workers, decision.reason.code) == (workers, code)


def test_down_after_five_minutes() -> None:
    policy = FlinkReactive()
    for at in range(0, 301, 15):
        observation = sample(at, (0.1,) * 4)
        policy.learn(observation)
        decision = policy.decide(observation)
    assert (decision.workers, decision.reason.code) == (2, "cpu.below_target")


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return FlinkReactive(min_workers=2, max_workers=9)
