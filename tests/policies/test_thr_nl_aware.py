"""Arkian et al., ICCCN 2021, sec. V-A: above 90 % one more, below 50 % one fewer; THR-NLaware and THR-NLunaware."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.core import Decision, Node, Observation, Policy
from penstock.errors import ConfigError
from penstock.policies.thr_nl_aware import ThrNlAware
from penstock.testing import PolicyContract, history, sample


def minutes(start: float, seconds: float, cpus: tuple[float | None, ...], **known: Any) -> list[Observation]:
    return [sample(start + i, cpus, **known) for i in range(0, int(seconds) + 1, 5)]


# name: settings, observations (decided on after the last) -> workers, code
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "above 90 %": ({}, minutes(0, 60, (0.95,) * 4), 5, "cpu.above_threshold"),
    "exactly 90 % is not above": ({}, minutes(0, 60, (0.9,) * 4), 4, "cpu.between_thresholds"),
    "between": ({}, minutes(0, 60, (0.7,) * 4), 4, "cpu.between_thresholds"),
    "below 50 %": ({}, minutes(0, 60, (0.3,) * 4), 3, "cpu.below_threshold"),
    "far below is one fewer all the same": ({}, minutes(0, 60, (0.01,) * 8), 7, "cpu.below_threshold"),
    "a minute, not a moment": (
        {},
        [*minutes(0, 55, (0.7,) * 4), sample(60, (1.0,) * 4)],
        4,
        "cpu.between_thresholds",
    ),
    "no whole minute yet": ({}, minutes(0, 30, (1.0,) * 4), 4, "cpu.unsettled"),
    "a change starts a new minute": (
        {},
        [*minutes(0, 60, (1.0,) * 4), *minutes(65, 30, (1.0,) * 5)],
        5,
        "cpu.unsettled",
    ),
    "a cold job is not looked at": ({"warm_up": 120.0}, minutes(0, 115, (1.0,) * 4), 4, "cpu.unknown"),
    "a warm one for a minute": ({"warm_up": 120.0}, minutes(0, 180, (1.0,) * 4), 5, "cpu.above_threshold"),
    "a restart starts a new minute": (
        {},
        [*minutes(0, 60, (1.0,) * 4, uptime=600.0), *minutes(65, 30, (0.1,) * 4, uptime=1.0)],
        4,
        "cpu.unsettled",
    ),
    "standing still is not idling": (
        {},
        minutes(0, 60, (0.0,) * 4, processed_rate=0.0, input_rate=9.0),
        4,
        "cpu.unknown",
    ),
    "not all workers are there": ({}, minutes(0, 60, (0.1,) * 4, requested=6), 6, "cpu.unknown"),
    "a silent one counts as busy on the way down": ({}, minutes(0, 60, (0.3, None)), 2, "cpu.between_thresholds"),
    "and may leave room all the same": ({}, minutes(0, 60, (0.1, 0.1, None)), 2, "cpu.below_threshold"),
    "a silent one counts as idle on the way up": ({}, minutes(0, 60, (1.0, 1.0, None)), 3, "cpu.between_thresholds"),
    "no CPU": ({}, minutes(0, 60, (None, None)), 2, "cpu.unknown"),
    "requested unknown": ({}, minutes(0, 60, (0.95,), requested=None), None, "cpu.unknown"),
    "up to the bound": ({"max_workers": 4}, minutes(0, 60, (0.95,) * 4), 4, "bounds.max"),
    "down to the bound": ({"min_workers": 4}, minutes(0, 60, (0.1,) * 4), 4, "bounds.min"),
    "from above the bound": ({"max_workers": 3}, minutes(0, 60, (0.7,) * 4), 3, "bounds.max"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    decision = _run(ThrNlAware(**{"warm_up": 0.0, **settings}), observations)
    assert (decision.workers, decision.reason.code) == (workers, code)


def _run(policy: Policy, observations: list[Observation]) -> Decision:
    for observation in observations:
        policy.learn(observation)
    return policy.decide(observations[-1])


def nodes(used: str) -> tuple[Node, ...]:
    """On a line, a tenth of a second apart."""
    return tuple(Node(n, n in used, {o: abs(ord(n) - ord(o)) / 10 for o in "abcdef" if o != n}) for n in "abcdef")


def test_up_takes_the_nearest_node() -> None:
    decision = _run(ThrNlAware(warm_up=0.0), minutes(0, 60, (0.95,) * 3, nodes=nodes("bcd")))
    assert (decision.workers, decision.nodes) == (4, ("b", "c", "d", "a"))


def test_down_gives_back_the_farthest_node() -> None:
    decision = _run(ThrNlAware(warm_up=0.0), minutes(0, 60, (0.1,) * 3, nodes=nodes("abf")))
    assert (decision.workers, decision.nodes) == (2, ("a", "b"))


def test_no_node_is_left() -> None:
    decision = _run(ThrNlAware(warm_up=0.0), minutes(0, 60, (0.95,) * 6, nodes=nodes("abcdef")))
    assert (decision.workers, decision.reason.code, decision.nodes) == (6, "nodes.none_free", ())


def test_a_person_can_read_it() -> None:
    decision = _run(ThrNlAware(warm_up=0.0), minutes(0, 60, (0.95,) * 4))
    assert decision.reason.sentence == "CPU 95% is above 90%: one more worker, 5"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"up_cpu": 90}, "up_cpu must be in (0, 1], got 90"),
        ({"down_cpu": 0.95}, "down_cpu must be in [0, up_cpu (0.9)), got 0.95"),
        ({"warm_up": -1}, "warm_up must be 0 seconds or more, got -1"),
        ({"window": 0}, "window must be above 0 seconds, got 0"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        ThrNlAware(**settings)
    assert message in str(error.value)


def in_the_fog(observations: Iterator[Observation]) -> Iterator[Observation]:
    for observation in observations:
        workers = observation.requested or 0
        yield observation if observation.blind else replace(observation, nodes=nodes("abcdef"[:workers]))


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return ThrNlAware(min_workers=2, max_workers=6)


class TestContractInTheFog(TestContract):
    def history(self) -> list[Observation]:
        return [o for n, start in ((2, 1e6), (6, 1.1e6), (3, 1.2e6)) for o in in_the_fog(history(n, start=start))]
