"""What is called "add executors" or "remove executors" has the numbers of Spark's own tests of those names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.core import Batch, Observation, Policy, Worker
from penstock.errors import ConfigError
from penstock.policies.spark_dra import SparkDra
from penstock.testing import PolicyContract, history, sample


def seconds(policy: Policy, start: int, end: int, requested: int, obedient: bool = True, **known: Any) -> list[int]:
    """What is asked for from second to second; an obedient job does it."""
    asked = []
    for at in range(start, end):
        observation = sample(float(at), (0.9,) * requested, **known)
        policy.learn(observation)
        workers = policy.decide(observation).workers
        assert workers is not None
        asked.append(workers)
        requested = workers if obedient else requested
    return asked


def test_add_executors() -> None:
    """A second of patience, then 1, 2, 4 ... until the limit."""
    assert seconds(SparkDra(max_workers=10), 0, 8, 1, backlog=500.0) == [1, 2, 4, 8, 10, 10, 10, 10]


def test_add_executors_capped_by_the_tasks() -> None:
    assert seconds(SparkDra(tasks=5), 0, 7, 1, backlog=500.0) == [1, 2, 4, 5, 5, 5, 5]
    assert seconds(SparkDra(tasks=10, tasks_per_worker=2), 0, 5, 1, backlog=500.0) == [1, 2, 4, 5, 5]


def test_timeouts() -> None:
    patient = SparkDra(backlog_timeout=3.0, sustained_backlog_timeout=2.0)
    assert seconds(patient, 0, 9, 1, backlog=1.0) == [1, 1, 1, 2, 2, 4, 4, 8, 8]


def test_what_is_not_granted_does_not_double() -> None:
    assert seconds(SparkDra(), 0, 6, 1, obedient=False, backlog=1.0) == [1, 2, 2, 2, 2, 2]


def test_an_empty_queue_starts_over() -> None:
    policy = SparkDra()
    assert seconds(policy, 0, 3, 1, backlog=1.0) == [1, 2, 4]
    assert seconds(policy, 3, 4, 4, backlog=0.0) == [4]
    assert seconds(policy, 4, 7, 4, backlog=1.0) == [4, 5, 7]


def idle(at: float, cpus: tuple[float | None, ...], **known: Any) -> Observation:
    return sample(at, cpus, **{"backlog": 0.0, **known})


MINUTE = range(0, 61, 5)
# name: settings, observations (learned and decided on one by one) -> workers, code of the last decision
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "tasks wait": ({}, [idle(0, (0.9,), backlog=1.0)], 1, "tasks.waiting"),
    "tasks wait for a second": ({}, [idle(t, (0.9,), backlog=1.0) for t in (0, 1)], 2, "tasks.backlogged"),
    "tasks wait, all allowed are there": (
        {"max_workers": 2},
        [idle(t, (0.9, 0.9), backlog=1.0) for t in (0, 1)],
        2,
        "tasks.all_placed",
    ),
    "a late batch has tasks waiting": (
        {"batch_interval": 3.0},
        [idle(t, (0.9,), batch=Batch(1, 0.0, 3.1, 9)) for t in (0, 1)],
        2,
        "tasks.backlogged",
    ),
    "a backlog between batches has none": (
        {"batch_interval": 3.0},
        [idle(t, (0.9,), backlog=900.0, batch=Batch(1, 0.0, 2.9, 9)) for t in (0, 1)],
        1,
        "tasks.none_waiting",
    ),
    "remove executors: idle for a minute": ({}, [idle(t, (0.5, 0.0, 0.01)) for t in MINUTE], 1, "workers.idle"),
    "remove executors: not all": (
        {"min_workers": 5},
        [idle(t, (0.0,) * 10) for t in MINUTE],
        5,
        "bounds.min",
    ),
    "idle, but not for long": ({}, [idle(t, (0.5, 0.0)) for t in range(0, 60, 5)], 2, "tasks.none_waiting"),
    "idle, with a task in between": (
        {},
        [idle(t, (0.5, 0.3 if t == 30 else 0.0)) for t in MINUTE],
        2,
        "tasks.none_waiting",
    ),
    "silent is not idle": ({}, [idle(t, (0.5, None)) for t in MINUTE], 2, "tasks.none_waiting"),
    "silent in between": ({}, [idle(t, (0.5, None if t == 30 else 0.0)) for t in MINUTE], 2, "tasks.none_waiting"),
    "nobody looked in between": ({}, [idle(t, (0.5, 0.0)) for t in (0, 5, 60)], 2, "tasks.none_waiting"),
    "the clock went back": (
        {},
        [*(idle(t, (0.5, 0.0)) for t in range(0, 56, 5)), idle(20, (0.5, 0.0)), idle(45, (0.5, 0.0))],
        2,
        "tasks.none_waiting",
    ),
    "idle while tasks wait stay": ({}, [idle(t, (0.9, 0.0), backlog=1.0) for t in MINUTE], 3, "tasks.backlogged"),
    "those already leaving do not go twice": (
        {},
        [*(idle(t, (0.5, 0.0, 0.0)) for t in MINUTE), idle(61, (0.5, 0.0, 0.0), requested=1)],
        1,
        "workers.idle",
    ),
    "neither backlog nor batch": ({}, [idle(t, (0.0, 0.0), backlog=None) for t in MINUTE], 2, "tasks.unknown"),
    "requested unknown": ({}, [idle(0, (0.9,), requested=None)], None, "tasks.unknown"),
    "from above the bound": ({"max_workers": 2}, [idle(0, (0.9,) * 4)], 2, "bounds.max"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    policy = SparkDra(**settings)
    for observation in observations:
        policy.learn(observation)
        decision = policy.decide(observation)
    assert (decision.workers, decision.reason.code) == (workers, code)


def test_memory_follows_the_workers() -> None:
    policy = SparkDra()
    for at in range(1000):
        policy.learn(replace(idle(at, (0.0,)), per_worker=(Worker(f"w{at}", 0.0),)))
    assert len(policy._idle_since) == 1


def test_a_person_can_read_it() -> None:
    policy = SparkDra()
    for t in MINUTE:
        policy.learn(idle(t, (0.5, 0.0, 0.01)))
    said = policy.decide(idle(60, (0.5, 0.0, 0.01))).reason.sentence
    assert said == "2 of 3 had nothing to do for 60 s: 1 stay"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backlog_timeout": 0}, "backlog_timeout must be above 0 seconds, got 0"),
        ({"idle_timeout": -1}, "idle_timeout must be above 0 seconds, got -1"),
        ({"idle_cpu": 5}, "idle_cpu must be in [0, 1), got 5"),
        ({"batch_interval": 0}, "batch_interval must be above 0 seconds, got 0"),
        ({"tasks": 0}, "tasks must be at least 1, got 0"),
        ({"tasks_per_worker": 0}, "tasks_per_worker must be at least 1, got 0"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        SparkDra(**settings)
    assert message in str(error.value)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return SparkDra(min_workers=2, max_workers=9)


class TestContractWithIdleWorkers(TestContract):
    def history(self) -> list[Observation]:
        return list(self._resting(history(9)))

    def _resting(self, observations: Iterator[Observation]) -> Iterator[Observation]:
        for i, seen in enumerate(observations):
            workers = tuple(replace(w, cpu=0.0) if n > 3 and i % 70 < 60 else w for n, w in enumerate(seen.per_worker))
            yield seen if seen.blind else replace(seen, per_worker=workers, backlog=0.0)
