"""Arkian et al., ICCCN 2021, sec. V-A: the thresholds of THR-NLaware, any node. See test_thr_nl_aware for those."""

from __future__ import annotations

import pytest

from penstock.core import Decision, Node, Policy
from penstock.policies.thr_nl_unaware import ThrNlUnaware
from penstock.testing import PolicyContract, sample

NODES = tuple(Node(name, name in "ab", {"a": 0.1, "b": 0.1}) for name in "abcdefgh")


def _decided(cpu: float, nodes: tuple[Node, ...] = NODES, seed: int = 0) -> Decision:
    policy = ThrNlUnaware(seed=seed, warm_up=0.0)
    for at in range(0, 61, 5):
        observation = sample(at, (cpu, cpu), nodes=nodes)
        policy.learn(observation)
    return policy.decide(observation)


@pytest.mark.parametrize(
    ("cpu", "workers", "code"),
    [
        pytest.param(0.95, 3, "cpu.above_threshold", id="above 90 %"),
        pytest.param(0.7, 2, "cpu.between_thresholds", id="between"),
        pytest.param(0.4, 1, "cpu.below_threshold", id="below 50 %"),
    ],
)
def test_decision(cpu: float, workers: int, code: str) -> None:
    decision = _decided(cpu)
    assert (decision.workers, decision.reason.code) == (workers, code)
    assert len(decision.nodes) == (0 if workers == 2 else workers)


def test_any_node_by_the_seed() -> None:
    added = {_decided(0.95, seed=seed).nodes[-1] for seed in range(60)}
    assert added == set("cdefgh")
    assert {_decided(0.4, seed=seed).nodes for seed in range(60)} == {("a",), ("b",)}
    assert _decided(0.95, seed=7) == _decided(0.95, seed=7)


def test_only_a_number_without_nodes() -> None:
    assert _decided(0.95, nodes=()).nodes == ()


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return ThrNlUnaware(min_workers=2, max_workers=6, seed=5)
