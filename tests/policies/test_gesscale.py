"""Arkian et al., ICCCN 2021, algorithms 1 to 4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from penstock.core import Decision, Node, Observation, Operator, Policy
from penstock.errors import ConfigError
from penstock.models.scaling_law import ScalingLaw
from penstock.policies.gesscale import Gesscale
from penstock.testing import PolicyContract, history, sample


@dataclass(frozen=True)
class Phase:
    """Some minutes of a job: records/s of its operator, and backpressure of its source and of the operator itself."""

    seconds: int
    workers: int
    rate: float
    above: float | None = 0.0
    itself: float | None = 0.0
    input_rate: float | None = None
    known: tuple[tuple[str, Any], ...] = ()

    def samples(self, start: float) -> Iterator[Observation]:
        load = self.rate if self.input_rate is None else self.input_rate
        source = Operator("read", self.workers, self.rate, self.rate, 0.2, self.above, downstream=("nearest",))
        operator = Operator("nearest", self.workers, self.rate, self.rate, 0.9, self.itself)
        for i in range(0, self.seconds, 5):
            known: dict[str, Any] = {"input_rate": load, "processed_rate": self.rate, "backlog": 0.0}
            known |= {"operators": (source, operator), **dict(self.known)}
            yield sample(start + i, (0.5,) * self.workers, **known)


def cold(**settings: Any) -> Gesscale:
    """Looks at once."""
    return Gesscale(**{"warm_up": 0.0, **settings})


def run(policy: Policy, *phases: Phase) -> Decision:
    """Decisions every minute; the last one."""
    at, decision = 0.0, None
    for phase in phases:
        for observation in phase.samples(at):
            policy.learn(observation)
            if observation.at % 60 == 0:
                decision = policy.decide(observation)
        at += phase.seconds
    assert decision is not None
    return decision


ROOT = Phase(125, 2, 2000, above=1.0)  # two workers at their limit for two minutes: a worker does 1000
# name: settings, phases -> workers, code
DECISIONS: dict[str, tuple[dict[str, Any], tuple[Phase, ...], int | None, str]] = {
    "no backpressure, nothing modelled": ({}, (Phase(125, 4, 10),), 4, "gesscale.unmeasured"),
    "a root seen once": ({}, (Phase(60, 2, 2000, above=1.0),), 2, "backpressure.unconfirmed"),
    "a root confirmed after a minute": ({}, (Phase(65, 2, 2000, above=1.0),), 3, "backpressure.root"),
    "0.5 above is not high": ({}, (Phase(125, 2, 2000, above=0.5),), 2, "gesscale.unmeasured"),
    "0.5 itself is not high": ({}, (Phase(65, 2, 2000, above=0.51, itself=0.5),), 3, "backpressure.root"),
    "passed on from below is not the root": ({}, (Phase(125, 2, 2000, 1.0, 0.8),), 2, "gesscale.unmeasured"),
    "gone and back is not confirmed": (
        {},
        (Phase(30, 2, 2000, above=1.0), Phase(90, 2, 2000), Phase(65, 2, 2000, above=1.0)),
        2,
        "backpressure.unconfirmed",
    ),
    "a rescale starts over": (
        {},
        (Phase(65, 2, 2000, above=1.0), Phase(60, 3, 3000, above=1.0)),
        3,
        "backpressure.unconfirmed",
    ),
    "no confirmation asked for": ({"confirmation": 0.0}, (Phase(5, 2, 2000, above=1.0),), 3, "backpressure.root"),
    "up to the bound": ({"max_workers": 2}, (ROOT,), 2, "bounds.max"),
    "as many as fit": ({}, (ROOT, Phase(125, 4, 1500)), 2, "capacity.still_fits"),
    "a large drop": ({}, (ROOT, Phase(125, 10, 600)), 1, "capacity.still_fits"),
    "not below the bound": ({"min_workers": 2}, (ROOT, Phase(125, 10, 600)), 2, "capacity.still_fits"),
    # Algorithm 4 as printed would end at 2, with 2000 for 2050.
    "never less than there is to do": ({}, (ROOT, Phase(125, 4, 2050)), 3, "capacity.still_fits"),
    "exactly enough is enough": ({}, (ROOT, Phase(125, 4, 2000)), 2, "capacity.still_fits"),
    "a quarter to spare is too little": ({}, (ROOT, Phase(125, 4, 3000)), 4, "capacity.fits"),
    "none fewer would do": ({"threshold": 0.1}, (ROOT, Phase(125, 2, 1500)), 2, "capacity.below_load"),
    "what comes counts, not what is done": (
        {},
        (ROOT, Phase(125, 4, 1500, input_rate=2500.0)),
        3,
        "capacity.still_fits",
    ),
    "a minute undisturbed before anything goes": ({}, (ROOT, Phase(60, 4, 100)), 4, "gesscale.unsettled"),
    "one worker stays": ({}, (ROOT, Phase(125, 1, 100)), 1, "capacity.to_spare"),
    "backpressure unknown, but a backlog": (
        {},
        (Phase(65, 2, 2000, None, None, known=(("backlog", 30_000.0),)),),
        3,
        "backpressure.root",
    ),
    "some backlog is no backpressure": (
        {},
        (Phase(65, 2, 2000, None, None, known=(("backlog", 19_000.0),)),),
        2,
        "gesscale.unmeasured",
    ),
    "neither backpressure nor backlog": (
        {},
        (Phase(65, 2, 2000, None, None, known=(("backlog", None),)),),
        2,
        "gesscale.unknown",
    ),
    "no operators: the job behind its log": (
        {},
        (Phase(65, 2, 2000, known=(("operators", ()), ("backlog", 30_000.0))),),
        3,
        "backpressure.root",
    ),
    "a source can be the root": (
        {},
        (Phase(65, 2, 2000, 0.1, known=(("backlog", 30_000.0),)),),
        3,
        "backpressure.root",
    ),
    "while it stands still nothing is learned": (
        {},
        (Phase(65, 2, 0, 1.0, input_rate=2000.0),),
        2,
        "gesscale.unknown",
    ),
    "catching up is left to it": ({}, (Phase(125, 2, 2000, 1.0, input_rate=1500.0),), 2, "backpressure.catching_up"),
    "unless told otherwise": (
        {"catching_up": True},
        (Phase(125, 2, 2000, 1.0, input_rate=1500.0),),
        3,
        "backpressure.root",
    ),
    "nothing comes: as few as there may be": ({}, (ROOT, Phase(125, 4, 0)), 1, "capacity.still_fits"),
    "nothing comes: left alone if told so": ({"stay_idle": True}, (ROOT, Phase(125, 4, 0)), 4, "gesscale.idle"),
    "little is not nothing": ({"stay_idle": True}, (ROOT, Phase(125, 4, 1)), 1, "capacity.still_fits"),
    "what waits is not nothing": (
        {"stay_idle": True},
        (ROOT, Phase(125, 4, 1500, input_rate=0.0)),
        2,
        "capacity.still_fits",
    ),
    "a cold job is not looked at": ({"warm_up": 120.0}, (Phase(120, 2, 2000, 1.0),), 2, "gesscale.unknown"),
    "a warm one is": ({"warm_up": 120.0}, (Phase(185, 2, 2000, 1.0),), 3, "backpressure.root"),
    "requested unknown": ({}, (Phase(65, 2, 2000, known=(("requested", None),)),), None, "gesscale.unknown"),
}


@pytest.mark.parametrize(("settings", "phases", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], phases: tuple[Phase, ...], workers: int | None, code: str) -> None:
    decision = run(cold(**settings), *phases)
    assert (decision.workers, decision.reason.code) == (workers, code)


def test_an_operator_that_went_silent_keeps_its_workers() -> None:
    """One that was at its limit may still be near it, whatever the others have to spare."""
    policy = cold()
    policy._laws = {"read": ScalingLaw(1000), "nearest": ScalingLaw(1000)}
    assert run(policy, Phase(125, 4, 100)).workers == 1
    decision = run(policy, Phase(125, 4, 100, above=0.0, itself=None))
    assert (decision.workers, decision.reason.code) == (4, "gesscale.unknown")


def test_blind_is_held() -> None:
    policy = cold()
    run(policy, ROOT, Phase(120, 4, 100))
    assert policy.decide(Observation(305.0, requested=4)).workers == 4


def test_the_walk_down_can_be_followed() -> None:
    decision = run(cold(), ROOT, Phase(125, 4, 2050))
    assert [(o.workers, o.chosen, o.reason.code) for o in decision.options] == [
        (4, False, "capacity.to_spare"),
        (3, True, "capacity.to_spare"),
        (2, False, "capacity.below_load"),
    ]
    assert decision.expects is not None
    assert decision.expects.capacity == pytest.approx(3000)


def test_a_person_can_read_it() -> None:
    policy = cold()
    assert run(policy, ROOT).reason.sentence == (
        "nearest is the root of backpressure (100% above it, 0% itself) at its limit of 2000 records/s:"
        " one more worker, 3"
    )
    decision = run(cold(), ROOT, Phase(125, 4, 1500))
    assert [reason.sentence for reason in decision.reasons] == [
        "4 workers can do 4000 records/s in nearest, where 1500 come: 62% to spare",
        "2 of 4 workers still do 2000 records/s in nearest, where 1500 come",
    ]


# Milliseconds between fog nodes: a to c near, d farther, e farthest.
APART = {"ab": 10, "ac": 20, "bc": 20, "ad": 100, "bd": 100, "cd": 100, "ae": 300, "be": 300, "ce": 300, "de": 300}


def nodes(used: str) -> tuple[tuple[str, Any], ...]:
    def between(one: str, other: str) -> float:
        return APART["".join(sorted(one + other))] / 1000

    found = tuple(Node(n, n in used, {o: between(n, o) for o in "abcde" if o != n}) for n in "abcde")
    return (("nodes", found),)


def test_up_takes_the_nearest_node() -> None:
    decision = run(cold(), replace(ROOT, known=nodes("ab")))
    assert (decision.workers, decision.nodes) == (3, ("a", "b", "c"))
    assert [reason.code for reason in decision.reasons] == ["nodes.added", "backpressure.root"]


def test_down_gives_back_the_farthest_nodes_first() -> None:
    decision = run(cold(), replace(ROOT, known=nodes("ab")), Phase(125, 5, 1500, known=nodes("abcde")))
    assert (decision.workers, decision.nodes) == (2, ("a", "b"))


def test_no_node_is_left() -> None:
    decision = run(cold(), Phase(65, 5, 4000, 1.0, known=nodes("abcde")))
    assert (decision.workers, decision.reason.code) == (5, "nodes.none_free")


def test_three_measurements_fit_the_law() -> None:
    law = ScalingLaw(alpha=1000, beta=0.9, gamma=1500)
    policy = cold(confirmation=0.0)
    for used, delay in (("a", 0.0), ("ab", 0.01), ("abcd", 0.1), ("abcde", 0.3)):
        run(policy, Phase(65, len(used), law.throughput(len(used), delay), above=1.0, known=nodes(used)))
    fitted = policy._laws["nearest"]
    assert (fitted.alpha, fitted.beta, fitted.gamma) == pytest.approx((1000, 0.9, 1500), rel=1e-3)


def test_the_law_knows_what_distance_costs() -> None:
    """With a fifth node 300 ms away five do less than four without it: removing it is no loss."""
    policy = cold()
    policy._laws["nearest"] = ScalingLaw(1000, 1.0, 8000)
    assert run(policy, Phase(125, 5, 1800, known=nodes("abcde"))).workers == 2
    assert policy._laws["nearest"].throughput(5, 0.3) == pytest.approx(2600)
    assert policy._laws["nearest"].throughput(4, 0.1) == pytest.approx(3200)


def test_a_law_of_nonsense_removes_nothing() -> None:
    policy = cold()
    policy._laws["nearest"] = ScalingLaw(100, 1.0, 9000)
    decision = run(policy, Phase(125, 5, 0.0, known=nodes("abcde")))
    assert (decision.workers, decision.reason.code) == (5, "capacity.below_load")


def test_memory_is_bounded() -> None:
    policy = cold(confirmation=0.0, max_workers=100)
    for workers in range(1, 60):
        run(policy, Phase(5, workers, 1000.0 * workers, above=1.0))
    assert [m.workers for m in policy._measured["nearest"]] == list(range(48, 60)), "the newest stay"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 30}, "threshold must be in [0, 1), got 30"),
        ({"backpressure": 1.0}, "backpressure must be in (0, 1), got 1.0"),
        ({"window": 0}, "window must be above 0 seconds, got 0"),
        ({"confirmation": -1}, "confirmation must be 0 seconds or more, got -1"),
        ({"warm_up": -1}, "warm_up must be 0 seconds or more, got -1"),
        ({"late": -1}, "late must be 0 seconds or more, got -1"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        Gesscale(**settings)
    assert message in str(error.value)


def with_operators(observations: Iterator[Observation]) -> Iterator[Observation]:
    for i, seen in enumerate(observations):
        workers, load = seen.requested or 1, seen.processed_rate
        pressure = None if i % 13 == 0 else 0.9 if (seen.input_rate or 0.0) > 1000 * workers else 0.1
        source = Operator("read", workers, load, load, 0.3, pressure, downstream=("nearest",))
        operators = (source, Operator("nearest", workers, load, load, 0.8, 0.0))
        yield seen if seen.blind else replace(seen, operators=operators, **dict(nodes("abcde"[:workers])))


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return Gesscale(min_workers=2, max_workers=9)


class TestContractWithOperatorsAndNodes(PolicyContract):
    def make(self) -> Policy:
        return Gesscale(min_workers=2, max_workers=5)

    def history(self) -> list[Observation]:
        return [o for n, start in ((2, 1e6), (5, 1.1e6), (3, 1.2e6)) for o in with_operators(history(n, start=start))]
