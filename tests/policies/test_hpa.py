"""Rows that have the name of a Go test have its numbers: kubernetes/kubernetes, pkg/controller/podautoscaler."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import Observation, Worker
from penstock.models.hpa import Moment, Pace, Reading, Tolerance, Verdict, propose, stabilise
from penstock.policies.hpa import Hpa
from penstock.testing import sample

# name: current, ready millicores, unready, missing, target percent -> workers, utilisation, verdict
PROPOSALS: dict[str, tuple[int, tuple[int, ...], int, int, int, int, int, Verdict]] = {
    "ReplicaCalcScaleUp": (3, (300, 500, 700), 0, 0, 30, 5, 50, Verdict.ABOVE),
    "ScaleUpUnreadyLessScale": (3, (500, 700), 1, 0, 30, 4, 60, Verdict.ABOVE),
    "ScaleUpUnreadyNoScale": (3, (400,), 2, 0, 30, 3, 40, Verdict.UNSURE_REVERSES),
    "ScaleUpIgnoresFailedPods": (2, (500, 700), 0, 0, 30, 4, 60, Verdict.ABOVE),
    "ScaleDown": (5, (100, 300, 500, 250, 250), 0, 0, 50, 3, 28, Verdict.BELOW),
    "ScaleDownIncludeUnreadyPods": (5, (100, 300, 500), 2, 0, 50, 2, 30, Verdict.BELOW),
    "ScaleDownExcludeUnscheduledPods": (5, (100,), 4, 0, 50, 1, 10, Verdict.BELOW),
    "Tolerance": (3, (1010, 1030, 1020), 0, 0, 100, 3, 102, Verdict.IN_TOLERANCE),
    "SuperfluousMetrics": (4, (4000, 9500, 3000, 7000), 0, 0, 100, 24, 587, Verdict.ABOVE),
    "MissingMetrics": (4, (400, 95), 0, 2, 100, 3, 24, Verdict.BELOW),
    "MissingMetricsNoChangeEq": (2, (1000,), 0, 1, 100, 2, 100, Verdict.UNSURE_IN_TOLERANCE),
    "MissingMetricsNoChangeGt": (2, (1900,), 0, 1, 100, 2, 190, Verdict.UNSURE_IN_TOLERANCE),
    "MissingMetricsNoChangeLt": (2, (600,), 0, 1, 100, 2, 60, Verdict.BELOW),
    "MissingMetricsUnreadyChange": (3, (450,), 1, 1, 50, 3, 45, Verdict.UNSURE_REVERSES),
    "MissingMetricsUnreadyScaleUp": (3, (2000,), 1, 1, 50, 4, 200, Verdict.ABOVE),
    "MissingMetricsUnreadyScaleDown": (4, (100, 100), 1, 1, 50, 3, 10, Verdict.BELOW),
    "DuringRollingUpdateWithMaxSurge": (2, (100, 100), 0, 1, 50, 2, 10, Verdict.COUNT_REVERSES),
    "missing counts as the target above 100": (2, (500,), 0, 1, 200, 2, 50, Verdict.BELOW),
    "percent is cut, not rounded": (3, (809, 809, 809), 0, 0, 73, 3, 80, Verdict.IN_TOLERANCE),
    "exactly at the tolerance": (10, (900,) * 10, 0, 0, 100, 10, 90, Verdict.IN_TOLERANCE),
    "just below the tolerance": (10, (890,) * 10, 0, 0, 100, 9, 89, Verdict.BELOW),
}


@pytest.mark.parametrize(
    ("current", "ready", "unready", "missing", "target", "workers", "used", "verdict"),
    PROPOSALS.values(),
    ids=PROPOSALS,
)
def test_proposal(
    current: int,
    ready: tuple[int, ...],
    unready: int,
    missing: int,
    target: int,
    workers: int,
    used: int,
    verdict: Verdict,
) -> None:
    got = propose(current, Reading(ready, unready, missing), target, Tolerance())
    assert got is not None
    assert (got.workers, got.utilisation, got.verdict) == (workers, used, verdict)


def test_no_proposal_without_a_ready_report() -> None:
    assert propose(3, Reading((), 2, 1), 50, Tolerance()) is None


def test_tolerances_differ_by_direction() -> None:
    wide_up = Tolerance(up=0.5, down=0.0)
    up, down = propose(2, Reading((700, 700)), 50, wide_up), propose(2, Reading((490, 490)), 50, wide_up)
    assert up is not None
    assert down is not None
    assert (up.verdict, down.verdict) == (Verdict.IN_TOLERANCE, Verdict.BELOW)


def _spread(changes: list[int], seconds: float) -> list[Moment]:
    """In the middle of equal parts of the last `seconds` before now (0), as generateEventsUniformDistribution."""
    part = seconds / len(changes)
    return [Moment(-(seconds - part * (i + 0.5)), change) for i, change in enumerate(changes)]


# name: way, (pods, percent, period), changes, current -> limit; TestScalingWithRules, before bounds and wish cut it
PACES: dict[str, tuple[str, tuple[int, int, float], list[Moment], int, int]] = {
    "up: user policy of 1 %": ("up", (0, 1, 60), [], 3, 4),
    "up: default behavior": ("up", (4, 100, 15), [], 10, 20),
    "up: pods larger than percent": ("up", (100, 100, 60), [], 10, 110),
    "up: percent larger than pods": ("up", (2, 100, 60), [], 10, 20),
    "up: pods only": ("up", (30, 0, 60), [], 10, 40),
    "up: percent only": ("up", (0, 200, 60), [], 10, 30),
    "up: many recent changes": ("up", (5, 0, 120), _spread([1, 5, 9], 120), 100, 100),
    "up: pods and changes": ("up", (150, 0, 120), _spread([1, 5, 9], 120), 100, 235),
    "up: percent and changes": ("up", (0, 200, 120), _spread([1, 5, 9], 120), 100, 255),
    "up: changes both ways": ("up", (0, 300, 300), [*_spread([4], 120), *_spread([-2], 120)], 6, 16),
    "up: old changes are forgotten": ("up", (5, 0, 60), _spread([8, 12, 9, 11], 120), 100, 100),
    "down: pods": ("down", (20, 0, 60), [], 1000, 980),
    "down: pods larger than percent": ("down", (20, 1, 60), [], 100, 80),
    "down: percent smaller than pods": ("down", (2, 1, 60), [], 100, 98),
    "down: all": ("down", (0, 100, 60), [], 10, 0),
    "down: five": ("down", (5, 0, 60), [], 10, 5),
    "down: pods and changes": ("down", (5, 0, 120), _spread([-1, -5, -9], 120), 100, 100),
    "down: percent and changes": ("down", (0, 50, 120), _spread([-2, -4, -6], 120), 100, 56),
    "down: changes both ways": ("down", (0, 50, 180), [*_spread([2], 120), *_spread([-4], 120)], 10, 6),
    "down: changes prevent more": ("down", (0, 10, 120), _spread([-10, -10, -10], 120), 100, 100),
    "down: below zero": ("down", (0, 1000, 120), _spread([-10, -10, -10], 120), 10, -360),
}


@pytest.mark.parametrize(("way", "rule", "changes", "current", "limit"), PACES.values(), ids=PACES)
def test_pace(way: str, rule: tuple[int, int, float], changes: list[Moment], current: int, limit: int) -> None:
    pace = Pace(*rule, "max")
    assert (pace.ceiling if way == "up" else pace.floor)(current, changes, now=0.0) == limit


def test_select_min_takes_the_stricter_rule_and_disabled_none() -> None:
    # calculateScaleDownLimitWithBehaviors: 5 workers, 2 pods or 50 %
    assert Pace(2, 50, 60, "min").floor(5, [], 0.0) == 3
    assert Pace(2, 50, 60, "max").floor(5, [], 0.0) == 2
    assert Pace(1, 50, 60, "min").ceiling(5, [], 0.0) == 6
    assert Pace(1, 50, 60, "disabled").ceiling(5, [], 0.0) == 5
    assert Pace(1, 50, 60, "disabled").floor(5, [], 0.0) == 5


# TestNormalizeDesiredReplicas: recommendations (minutes ago: workers), wish -> stabilised; the window is 5 minutes
STABLE: dict[str, tuple[dict[int, int], int, int]] = {
    "empty log": ({}, 5, 5),
    "stabilize": ({2: 4, 1: 5}, 3, 5),
    "no stabilize": ({2: 1, 1: 2}, 3, 3),
    "no stabilize - old recommendations": ({10: 10, 9: 9}, 3, 3),
    "stabilize - old recommendations": ({10: 10, 1: 4, 2: 5, 9: 9}, 3, 5),
}


@pytest.mark.parametrize(("log", "wish", "workers"), STABLE.values(), ids=STABLE)
def test_stabilise(log: dict[int, int], wish: int, workers: int) -> None:
    recent = [Moment(-60.0 * minutes, number) for minutes, number in log.items()]
    assert stabilise(100, wish, recent, 0.0, up_window=0, down_window=300) == workers


def cold(cpu: float | None) -> Worker:
    return Worker("cold", cpu=cpu, started_at=0.0)


EAGER: dict[str, Any] = {"scale_down_stabilisation": 0.0}
# name: settings, observations (learned and decided on one by one) -> workers, code of the last decision
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "above": ({}, [sample(0, (0.93,) * 4)], 5, "cpu.above_target"),
    "below": (EAGER, [sample(0, (0.2,) * 4)], 1, "cpu.below_target"),
    "near": ({}, [sample(0, (0.78,) * 4)], 4, "cpu.in_tolerance"),
    "no CPU at all": ({}, [sample(0, (None, None))], 2, "cpu.unknown"),
    "only cold ones": ({}, [Observation(0, 1, 1, per_worker=(cold(0.9),))], 1, "cpu.unknown"),
    "requested unknown": ({}, [sample(0, (0.9,), requested=None)], None, "cpu.unknown"),
    "cold ones count as idle": (
        {},
        [sample(0, (0.9, 0.9), requested=3, per_worker=(*sample(0, (0.9, 0.9)).per_worker, cold(1.0)))],
        3,
        "hpa.unsure_reverses",
    ),
    "pending ones count as idle": ({}, [sample(0, (1.0, 1.0, 1.0), requested=4)], 4, "hpa.unsure_in_tolerance"),
    "a silent one counts as busy": ({**EAGER, "target_cpu": 0.6}, [sample(0, (0.5, None))], 2, "hpa.unsure_reverses"),
    "a silent one near the target": (EAGER, [sample(0, (0.6, None))], 2, "hpa.unsure_in_tolerance"),
    "more silent than asked for": (EAGER, [sample(0, (0.1, 0.1, None), requested=1)], 1, "hpa.count_reverses"),
    "down waits for the window": ({}, [sample(0, (0.2,) * 4)], 4, "hpa.stabilised_down"),
    "down to the highest of the window": (
        {"scale_down_stabilisation": 60},
        [sample(0, (0.79,) * 6), sample(30, (0.4,) * 6), sample(61, (0.1,) * 6)],
        3,
        "hpa.stabilised_down",
    ),
    "down after the window": (
        {"scale_down_stabilisation": 60},
        [sample(0, (0.1,) * 4), sample(30, (0.1,) * 4), sample(60, (0.1,) * 4)],
        1,
        "cpu.below_target",
    ),
    "up waits for its window": ({"scale_up_stabilisation": 60}, [sample(0, (0.95,) * 4)], 4, "hpa.stabilised_up"),
    "up at most 4": ({"max_workers": 30, "target_cpu": 0.1}, [sample(0, (0.9,) * 2)], 6, "hpa.scale_up_limited"),
    "up at most double": ({"max_workers": 90, "target_cpu": 0.1}, [sample(0, (0.9,) * 9)], 18, "hpa.scale_up_limited"),
    "up no further in the same period": (
        {"max_workers": 30, "target_cpu": 0.1},
        [sample(0, (0.9,) * 2), sample(10, (0.9,) * 6, last_rescale_at=0.0)],
        6,
        "hpa.scale_up_limited",
    ),
    "up again after the period": (
        {"max_workers": 30, "target_cpu": 0.1},
        [sample(0, (0.9,) * 2), sample(15, (0.9,) * 6, last_rescale_at=0.0)],
        12,
        "hpa.scale_up_limited",
    ),
    "what was not done counts for nothing": (
        {"max_workers": 30, "target_cpu": 0.1},
        [sample(0, (0.9,) * 2), sample(10, (0.9,) * 2)],
        6,
        "hpa.scale_up_limited",
    ),
    "down at most one": ({**EAGER, "scale_down_pods": 1, "scale_down_percent": 0}, [sample(0, (0.1,) * 4)], 3, "_down"),
    "up disabled": ({"scale_up_select": "disabled"}, [sample(0, (1.0,) * 4)], 4, "hpa.scale_up_disabled"),
    "down disabled": (
        {**EAGER, "scale_down_select": "disabled"},
        [sample(0, (0.1,) * 4)],
        4,
        "hpa.scale_down_disabled",
    ),
    "up to the bound": ({"max_workers": 5}, [sample(0, (1.0,) * 5, requested=4)], 5, "bounds.max"),
    "down to the bound": ({**EAGER, "min_workers": 2}, [sample(0, (0.1,) * 4)], 2, "bounds.min"),
    "from above the bound": ({"max_workers": 3}, [sample(0, (0.1,) * 9)], 3, "bounds.max"),
    "from below the bound": ({"min_workers": 3}, [sample(0, (0.1,))], 3, "bounds.min"),
    "a target that tells no times": (
        {},
        [Observation(0, 1, 1, per_worker=(Worker("a", cpu=1.0),))],
        2,
        "cpu.above_target",
    ),
    "half requested: 45 % of the limit is 90 %": (
        {"cpu_request": 0.5},
        [sample(0, (0.45,) * 4)],
        5,
        "cpu.above_target",
    ),
    "half requested: 40 % is the target": ({"cpu_request": 0.5}, [sample(0, (0.4,) * 4)], 4, "cpu.in_tolerance"),
    "half requested: all used is 200 %": ({"cpu_request": 0.5}, [sample(0, (1.0,) * 2)], 5, "cpu.above_target"),
    "half requested: 35 % is less": ({**EAGER, "cpu_request": 0.5}, [sample(0, (0.35,) * 4)], 4, "cpu.below_target"),
    "ready in a moment": ({}, [Observation(5, 1, 1, per_worker=(Worker("a", 1.0, None, 0, 6),))], 1, "cpu.unknown"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    policy = Hpa(**settings)
    for observation in observations:
        policy.learn(observation)
        decision = policy.decide(observation)
    code = "hpa.scale_down_limited" if code == "_down" else code
    assert (decision.workers, decision.reason.code) == (workers, code)


def test_a_person_can_read_it() -> None:
    said = Hpa().decide(sample(0, (0.93,) * 4)).reason
    assert said.sentence == "CPU 93 % of 4 ready workers is above its target of 80 %: 4 x 93/80 -> 5"
    said = Hpa().decide(sample(0, (1.0, 1.0, 1.0), requested=4)).reason
    assert said.sentence == (
        "CPU 100 % of 3 ready workers; with 1 not ready and 0 silent it counts as 75 % of 4, near its target of 80 %:"
        " no change"
    )
    assert said.facts["adjusted_percent"] == 75
