"""Rows that begin with the name of one of Spark's tests (ExecutorAllocationManagerSuite) have its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.core import Batch, Observation, Policy
from penstock.errors import ConfigError
from penstock.policies.spark_dstreams import SparkDstreams
from penstock.testing import PolicyContract, sample


def batch(number: int, seconds: float, workers: int = 2, at: float | None = None, **known: Any) -> Observation:
    at = float(number) if at is None else at
    return sample(at, (0.5,) * workers, backlog=1.0, batch=Batch(number, at, seconds, 1000), **known)


SECOND: dict[str, Any] = {"batch_interval": 1.0}
# name: settings, observations (learned one by one, decided on after the last) -> workers, code
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "basic functionality: the interval": (SECOND, [batch(1, 1.0)], 3, "batch.above_ratio"),
    "basic functionality: twice the interval": (SECOND, [batch(1, 2.0)], 4, "batch.above_ratio"),
    "basic functionality: more than the up ratio": (SECOND, [batch(1, 0.901)], 3, "batch.above_ratio"),
    "basic functionality: less than the up ratio": (SECOND, [batch(1, 0.899)], 2, "batch.in_ratio"),
    "basic functionality: more than the down ratio": (SECOND, [batch(1, 0.301)], 2, "batch.in_ratio"),
    "basic functionality: less than the down ratio": (SECOND, [batch(1, 0.299)], 1, "batch.below_ratio"),
    "requestExecutors policy: 1 and 1 more": (SECOND, [batch(1, 1.0, 1)], 2, "batch.above_ratio"),
    "requestExecutors policy: 2 and 2 more": (SECOND, [batch(1, 2.0, 2)], 4, "batch.above_ratio"),
    "requestExecutors policy: at most 2": ({**SECOND, "max_workers": 2}, [batch(1, 2.0, 1)], 2, "bounds.max"),
    "killExecutor policy: at least 2": ({**SECOND, "min_workers": 2}, [batch(1, 0.1, 2)], 2, "bounds.min"),
    "a half goes up": (SECOND, [batch(1, 2.5)], 5, "batch.above_ratio"),
    "exactly the up ratio": (SECOND, [batch(1, 0.9)], 3, "batch.above_ratio"),
    "exactly the down ratio": (SECOND, [batch(1, 0.3)], 1, "batch.below_ratio"),
    "the mean counts": (SECOND, [batch(1, 0.2), batch(2, 1.8), batch(3, 1.0)], 3, "batch.above_ratio"),
    "a batch counts once": (
        SECOND,
        [batch(1, 4.0), batch(2, 0.1, at=2.0), batch(2, 0.1, at=3.0)],
        4,
        "batch.above_ratio",
    ),
    "the interval of the job": ({"batch_interval": 10.0}, [batch(1, 3.5)], 2, "batch.in_ratio"),
    "those on their way count": (SECOND, [batch(1, 1.0, 2, requested=5)], 6, "batch.above_ratio"),
    "no batch": (SECOND, [sample(0, (None, None), backlog=5.0)], 2, "batch.unknown"),
    "no batches: CPU stands for them, up": ({}, [sample(0, (0.95, 0.95))], 3, "batch.above_ratio"),
    "no batches: CPU stands for them, down": ({}, [sample(0, (0.1, 0.1))], 1, "batch.below_ratio"),
    "no batches and a silent worker": ({}, [sample(0, (0.1, None))], 2, "batch.unknown"),
    "a first batch from long ago": (
        SECOND,
        [sample(1000, (0.5, 0.5), batch=Batch(7, 10.0, 0.1, 5))],
        2,
        "batch.unknown",
    ),
    "requested unknown": (SECOND, [batch(1, 2.0, requested=None)], None, "batch.unknown"),
    "blind": (SECOND, [batch(1, 0.1), Observation(2.0, requested=2)], 2, "batch.unknown"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    policy = SparkDstreams(**settings)
    for observation in observations:
        policy.learn(observation)
    decision = policy.decide(observations[-1])
    assert (decision.workers, decision.reason.code) == (workers, code)


def test_every_interval_begins_anew() -> None:
    policy = SparkDstreams(batch_interval=1.0)
    policy.learn(batch(1, 2.0))
    assert policy.decide(batch(1, 2.0)).workers == 4
    assert policy.decide(batch(1, 2.0)).reason.code == "batch.unknown", "that batch has been counted"


def test_a_person_can_read_it() -> None:
    policy = SparkDstreams()
    policy.learn(batch(1, 4.0))
    said = policy.decide(batch(1, 4.0)).reason.sentence
    assert said == "1 batch took 4.00 s of 3 s: a ratio of 1.33 is at least 0.9, so 1 more, 3"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_interval": 0}, "batch_interval must be above 0 seconds, got 0"),
        ({"scaling_down_ratio": 0}, "scaling_down_ratio must be above 0, got 0"),
        ({"scaling_up_ratio": 0.3}, "scaling_up_ratio must be above scaling_down_ratio (0.3), got 0.3"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        SparkDstreams(**settings)
    assert message in str(error.value)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return SparkDstreams(min_workers=2, max_workers=9)


class TestContractWithBatches(TestContract):
    def history(self) -> list[Observation]:
        return list(self._batches(super().history()))

    def _batches(self, observations: list[Observation]) -> Iterator[Observation]:
        for i, seen in enumerate(observations):
            took = (seen.input_rate or 1000.0) / (800.0 * (seen.requested or 1)) * 3
            yield seen if seen.blind else replace(seen, batch=Batch(i, seen.at, took, 100, cold=i % 9 == 0))
