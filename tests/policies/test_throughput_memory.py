"""Koper's next-generation sketch (2022, sec. 6.3): lag says when, the best throughput seen with lag how much."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import Decision, Observation, Policy
from penstock.errors import ConfigError
from penstock.models.throughput import Memory
from penstock.policies.throughput_memory import ThroughputMemory
from penstock.testing import PolicyContract


def test_memory() -> None:
    memory = Memory()
    assert memory.capacity(3) is None
    assert memory.smallest(100, 1, 12) is None
    memory.note(4, 4000)
    memory.note(8, 6000)
    memory.note(4, 3500)
    assert memory.capacity(4) == 4000, "the highest counts"
    assert memory.capacity(2) == 2000
    assert memory.capacity(6) == 4500, "between two, by the larger"
    assert memory.smallest(4000, 1, 12) == 4
    assert memory.smallest(5100, 1, 12) == 7
    assert memory.smallest(99_000, 1, 12) == 12


def seen(
    at: float, load: float = 1000.0, read: float = 1000.0, lag: float = 0.0, workers: int = 4, **known: Any
) -> Observation:
    """`lag` in seconds of input."""
    fields: dict[str, Any] = {"input_rate": load, "processed_rate": read, "backlog": lag * load} | known
    return Observation(at, workers, fields.pop("requested", workers), **fields)


def lagging(
    start: int = 0, end: int = 75, workers: int = 4, read: float = 800.0, load: float = 1000.0
) -> list[Observation]:
    """Ever more waits; what is read meanwhile is all that these workers can read."""
    return [seen(at, load, read, 2.0 + at / 10, workers) for at in range(start, end, 5)]


def calm(start: int, end: int, workers: int = 4, load: float = 500.0, **known: Any) -> list[Observation]:
    return [seen(at, load, load, 0.0, workers, **known) for at in range(start, end, 5)]


# name: settings, observations (learned and decided on one by one) -> workers, code of the last decision
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "1000 and 20 % more at 200 each": ({}, lagging(), 6, "throughput.lagging"),
    "without more": ({"over_provisioning": 0.0}, lagging(), 5, "throughput.lagging"),
    "nothing known before a window is over": ({"scale_up_lag": 3.0}, lagging(end=55), 4, "throughput.learning"),
    "too little lag": ({"scale_up_lag": 20.0}, lagging(), 4, "throughput.waiting"),
    "lag that shrinks": ({}, [seen(at, lag=20 - at / 10) for at in range(0, 75, 5)], 4, "throughput.waiting"),
    "enough by the memory, yet it grows": ({}, lagging(read=2000.0), 5, "throughput.lagging"),
    "no lag: down by what was seen": ({}, [*lagging(), *calm(75, 200)], 3, "throughput.spare"),
    "no lag: what runs is needed": ({}, [*lagging(), *calm(75, 200, load=660.0)], 4, "throughput.fits"),
    "no lag and nothing known: find out": ({}, calm(0, 20), 3, "throughput.exploring"),
    "find out faster": ({"explore": 2}, calm(0, 20), 2, "throughput.exploring"),
    "or not": ({"explore": 0}, calm(0, 20), 4, "throughput.fits"),
    "not below the bound": ({"min_workers": 4}, calm(0, 20), 4, "throughput.fits"),
    "in cooldown": ({}, calm(0, 20, last_rescale_at=-200.0), 4, "cooldown.resting"),
    "after cooldown": ({}, calm(0, 20, last_rescale_at=-225.0), 3, "throughput.exploring"),
    "cooldown from when workers came": ({}, [*calm(0, 20), *calm(20, 40, workers=5)], 5, "cooldown.resting"),
    "what is read while workers come is not remembered": (
        {"cooldown": 0.0},
        [*lagging(end=40), *lagging(40, 95, workers=5)],
        5,
        "throughput.learning",
    ),
    "nor what is read across a gap": ({}, [*lagging(end=40), *lagging(150, 190)], 4, "throughput.learning"),
    "nor without lag": ({}, [*calm(0, 100, load=900.0), *lagging(100, 130)], 4, "throughput.learning"),
    "backlog not known": ({}, [seen(at, backlog=None) for at in (0, 1)], 4, "throughput.unknown"),
    "input not known": ({}, [seen(at, input_rate=None) for at in (0, 1)], 4, "throughput.unknown"),
    "idle for good": ({}, [*lagging(), *calm(75, 200, load=0.0)], 1, "throughput.spare"),
    "blind": ({}, [*lagging(), Observation(80, requested=4)], 4, "throughput.unknown"),
    "requested not known": ({}, [Observation(0, 4, None, backlog=1.0)], None, "throughput.unknown"),
    "up to the bound": ({"max_workers": 4}, lagging(), 4, "bounds.max"),
    "the most if none is enough": ({"max_workers": 5}, lagging(load=9000.0), 5, "throughput.lagging"),
    "from above the bound, resting": ({"max_workers": 3}, calm(0, 9, last_rescale_at=0.0), 3, "bounds.max"),
    "a clock that goes back": ({}, [*calm(5000, 5020), *lagging()], 6, "throughput.lagging"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    decision = run(ThroughputMemory(**settings), observations)
    assert (decision.workers, decision.reason.code) == (workers, code)


def run(policy: Policy, observations: list[Observation]) -> Decision:
    for observation in observations:
        policy.learn(observation)
        decision = policy.decide(observation)
    return decision


def test_a_person_can_read_it() -> None:
    decision = run(ThroughputMemory(max_workers=8), lagging())
    assert decision.reason.sentence == (
        "The lag of 6.2 s grows; the load with its reserve is 1,200 records/s, and by what was seen 6 workers manage"
        " 1,200: 4 -> 6"
    )
    why_not_five = decision.options[4]
    assert (why_not_five.workers, why_not_five.chosen) == (5, False)
    assert why_not_five.reason.sentence == "5 workers manage 1,000 records/s: too little for 1,200"
    assert [option.workers for option in decision.options if option.chosen] == [6]
    assert decision.expects is not None
    assert decision.expects.capacity == 1200


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "up below down": ({"scale_up_lag": 0.5}, r"scale_up_lag must be at least scale_down_lag \(1\), got 0.5"),
    "no lag at all": ({"scale_down_lag": 0}, "scale_down_lag must be above 0 seconds, got 0"),
    "negative": ({"explore": -1}, "explore must be 0 or more, got -1"),
    "no window": ({"window": 0}, "window must be above 0 seconds, got 0"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ThroughputMemory(**settings)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return ThroughputMemory(min_workers=2, max_workers=9, cooldown=30, window=20)
