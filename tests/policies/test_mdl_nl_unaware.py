"""Arkian et al., ICCCN 2021, sec. V-A and equation 2. See test_gesscale for what it shares with Gesscale."""

from __future__ import annotations

import pytest

from penstock.core import Decision, Node, Observation, Operator, Policy
from penstock.policies.gesscale import Gesscale
from penstock.policies.mdl_nl_unaware import MdlNlUnaware
from penstock.testing import PolicyContract, sample

NAMES = "abcdef"


def job(at: float, workers: int, rate: float, above: float, used: str) -> Observation:
    """Nodes stand on a line, 100 ms apart."""
    nodes = tuple(Node(n, n in used, {o: abs(ord(n) - ord(o)) / 10 for o in NAMES if o != n}) for n in NAMES)
    source = Operator("read", workers, rate, rate, 0.2, above, downstream=("nearest",))
    operators = (source, Operator("nearest", workers, rate, rate, 0.9, 0.0))
    known = {"input_rate": rate, "processed_rate": rate, "backlog": 0.0, "operators": operators, "nodes": nodes}
    return sample(at, (0.5,) * workers, **known)


def run(policy: Policy, *phases: tuple[int, float, float, str]) -> Decision:
    """Two minutes each of (workers, rate, backpressure above, nodes in use); the last decision."""
    assert isinstance(policy, Gesscale)
    policy.warm_up = 0.0
    for i, (workers, rate, above, used) in enumerate(phases):
        for at in range(125 * i, 125 * (i + 1), 5):
            observation = job(at, workers, rate, above, used)
            policy.learn(observation)
            if (at - 125 * i) % 60 == 0:
                decision = policy.decide(observation)
    return decision


def test_up_by_one_on_any_node() -> None:
    decisions = [run(MdlNlUnaware(seed=seed), (2, 2000, 1.0, "ab")) for seed in range(60)]
    assert {(d.workers, d.reason.code) for d in decisions} == {(3, "backpressure.root")}
    assert {d.nodes[-1] for d in decisions} == set("cdef")


def test_the_model_is_linear_whatever_the_distance() -> None:
    policy = MdlNlUnaware()
    run(policy, (2, 1800, 1.0, "ab"), (3, 2400, 1.0, "abd"))
    law = policy._laws["nearest"]
    assert (law.beta, law.gamma) == (1.0, 0.0)
    assert law.alpha == pytest.approx(2400 / 3), "the newest measurement alone"


# name: rate of four workers, after two did 2000 at their limit -> workers, code
DOWN: dict[str, tuple[float, int, str]] = {
    "as many as fit": (1500, 2, "capacity.still_fits"),
    "a large drop": (600, 1, "capacity.still_fits"),
    "a quarter to spare is too little": (3000, 4, "capacity.fits"),
}


@pytest.mark.parametrize(("rate", "workers", "code"), DOWN.values(), ids=DOWN)
def test_down(rate: float, workers: int, code: str) -> None:
    decision = run(MdlNlUnaware(), (2, 2000, 1.0, "ab"), (4, rate, 0.0, "abcd"))
    assert (decision.workers, decision.reason.code) == (workers, code)
    assert set(decision.nodes) <= set("abcd")


def test_it_takes_a_far_node_for_as_good_as_a_near_one() -> None:
    """Gesscale learns what distance costs and gives the far node back; the linear model does not see it."""
    far = (2, 2000, 1.0, "ab"), (3, 2000, 1.0, "abf"), (3, 1200, 0.0, "abf")
    assert run(Gesscale(), *far).nodes == ("a", "b")
    assert run(MdlNlUnaware(threshold=0.2), *far).workers == 2
    assert any(run(MdlNlUnaware(seed=seed, threshold=0.2), *far).nodes != ("a", "b") for seed in range(9))


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return MdlNlUnaware(min_workers=2, max_workers=9, seed=3)
