"""Varga v2 is Varga v1 that rests for 120 s after a change of the worker count (Koper 2022, Eq. 3.6)."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import Decision, Observation, Operator, Policy
from penstock.errors import ConfigError
from penstock.policies.varga_v1 import VargaV1
from penstock.policies.varga_v2 import VargaV2
from penstock.testing import PolicyContract


def seen(at: float, idle: float, workers: int = 4, requested: int | None = None, **known: Any) -> Observation:
    operators = (Operator("map", workers, idle=idle),)
    fields: dict[str, Any] = {"backlog": 0.0, "processed_rate": 10_000.0, "operators": operators} | known
    return Observation(at, workers, workers if requested is None else requested, **fields)


def run(policy: Policy, observations: list[Observation]) -> Decision:
    for observation in observations:
        policy.learn(observation)
        decision = policy.decide(observation)
    return decision


def steady(start: int, end: int, idle: float, workers: int = 4) -> list[Observation]:
    return [seen(at, idle, workers) for at in range(start, end, 15)]


# name: settings, observations (learned and decided on one by one) -> workers, code of the last decision
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "as v1 without a change": ({}, [seen(0, 0.3), seen(1, 0.3)], 6, "utilisation.above_target"),
    "up right after a rescale": ({}, [*steady(0, 30, 0.5), seen(30, 0.0, 6)], 6, "cooldown.resting"),
    "up when the rest is over": (
        {},
        [*steady(0, 30, 0.5), *steady(30, 165, 0.3, 6)],
        9,
        "utilisation.above_target",
    ),
    "by the target's word": ({}, [seen(100, 0.0, last_rescale_at=50.0)], 4, "cooldown.resting"),
    "long ago by the target's word": (
        {},
        [seen(t, 0.3, last_rescale_at=50.0) for t in (200, 201)],
        6,
        "utilisation.above_target",
    ),
    "a worker that comes late prolongs it": (
        {},
        [seen(0, 0.5, 4), seen(10, 0.5, 4, 6), seen(100, 0.5, 6, 6), seen(150, 0.0, 6, 6)],
        6,
        "cooldown.resting",
    ),
    "the rest alone takes nothing away": ({}, [*steady(0, 480, 0.5), seen(480, 0.9, 3)], 3, "cooldown.resting"),
    "down through stabilisation": ({}, [*steady(0, 500, 0.9), seen(500, 0.9)], 1, "utilisation.below_target"),
    "even without stabilisation": ({"scale_down_stabilisation": 0.0}, [*steady(0, 30, 0.9), seen(30, 0.9, 3)], 3, "_"),
    "blind": ({}, [seen(0, 0.9), Observation(1, requested=4)], 4, "varga.unknown"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    decision = run(VargaV2(**settings), observations)
    code = "cooldown.resting" if code == "_" else code
    assert (decision.workers, decision.reason.code) == (workers, code)


def test_the_rest_cures_what_keeps_v1_over_provisioned() -> None:
    """Sec. 5.9: after a scale-down the records of the downtime spike utilisation: v1 goes right back up, v2 not."""
    story = [*steady(0, 30, 0.7), seen(30, 0.0, 3, backlog=200_000.0), seen(45, 0.0, 3, backlog=300_000.0)]
    assert (run(VargaV1(), story).workers or 0) > 3
    assert run(VargaV2(), story).workers == 3


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="cooldown must be 0 seconds or more, got -1"):
        VargaV2(cooldown=-1)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return VargaV2(min_workers=2, max_workers=9, lag_threshold=100, scale_down_stabilisation=60, cooldown=30)
