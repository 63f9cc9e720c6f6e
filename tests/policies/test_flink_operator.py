"""Rows that begin with "test" have the numbers of the Java test of that name: flink-autoscaler, JobVertexScalerTest.

There a value may be rounded up to a divisor of the key groups; rows where that happens are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from penstock.core import Decision, Observation, Operator, Policy
from penstock.errors import ConfigError
from penstock.models.catch_up import Aims, Load, loads, readings
from penstock.policies import parameters
from penstock.policies.flink_operator import FlinkOperator
from penstock.testing import PolicyContract, history, sample

# name: utilisation, most down, most up, workers, rate, true rate -> workers
WORKERS: dict[str, tuple[float, float, float, int, float, float, int]] = {
    "testParallelismScaling: half the rate": (1.0, 0.6, 1e5, 10, 50, 100, 5),
    "testParallelismScaling: at the target": (0.8, 0.6, 1e5, 10, 80, 100, 10),
    "testParallelismScaling: below it": (0.8, 0.6, 1e5, 10, 60, 100, 8),
    "testParallelismScaling: a little more below": (0.8, 0.6, 1e5, 10, 59, 100, 8),
    "testParallelismScaling: far above": (0.5, 0.6, 1e5, 2, 100, 40, 10),
    "testParallelismScaling: above": (0.6, 0.6, 1e5, 2, 100, 100, 4),
    "testParallelismScaling: at most half fewer": (1.0, 0.5, 1e5, 10, 10, 100, 5),
    "testParallelismScaling: at most 60 % fewer": (1.0, 0.6, 1e5, 10, 10, 100, 4),
    "testParallelismScaling: at most half more": (1.0, 0.6, 0.5, 10, 200, 10, 15),
    "testParallelismScaling: at most 60 % more": (1.0, 0.6, 0.6, 10, 200, 10, 16),
    "nothing to do": (0.7, 0.6, 1e5, 10, 0, float("inf"), 4),
    "one stays": (0.7, 0.6, 1e5, 1, 0, float("inf"), 1),
}


@pytest.mark.parametrize(("target", "down", "up", "current", "rate", "true", "workers"), WORKERS.values(), ids=WORKERS)
def test_workers(target: float, down: float, up: float, current: int, rate: float, true: float, workers: int) -> None:
    aims = Aims(target, 0.3, catch_up=0, restart=300, down_factor=down, up_factor=up)
    assert aims.workers(Load("count", rate, 1e9, true), current) == workers


def test_required_capacity() -> None:
    aims = Aims(0.7, 0.3, catch_up=1800, restart=300, down_factor=0.6, up_factor=1e5)
    load = Load("count", rate=700, lag=90_000, true_rate=1000)
    assert aims.required(load, 0.7) == 1167, "1000 at 70 %, 50 for the lag, 117 for the restart"
    assert aims.required(load, 1.0, restart=False) == 750
    assert aims.required(load, 1.3, restart=False) == 750, "nothing is more than busy"
    assert aims.required(load, 0.0) == float("inf")


def test_loads_through_the_dataflow() -> None:
    """Two sources of 100 and 300; a split makes 10 words of a line, a filter keeps half of them."""
    operators = (
        Operator("filter", 2, 4000, 2000, 0.5),
        Operator("a", 2, 100, 100, 0.1, downstream=("split",)),
        Operator("b", 2, None, 300, 0.1, downstream=("split",)),
        Operator("split", 2, 400, 4000, 0.8, downstream=("filter",)),
    )
    means = readings(operators)
    found = loads(operators, means.get, rate=800.0, lag=80.0)
    expected = {"a": (200, 20, 1000), "b": (600, 60, 3000), "split": (800, 80, 500), "filter": (8000, 800, 8000)}
    for name, load in found.items():
        assert load is not None
        assert (load.rate, load.lag, load.true_rate) == pytest.approx(expected[name]), name
    unknown = {**means, "split out": None, "b busy": None}
    found = loads(operators, unknown.get, rate=800.0, lag=80.0)
    assert [name for name, load in found.items() if load is None] == ["filter", "b"]


@dataclass(frozen=True)
class Phase:
    """Some time of a job that has `load` to do and could do `true` records/s."""

    seconds: int
    workers: int
    load: float
    true: float
    backlog: float | None = 0.0
    known: tuple[tuple[str, Any], ...] = ()

    def samples(self, start: float) -> Iterator[Observation]:
        done = min(self.load, self.true)
        source = Operator("read", self.workers, done, done, 0.01, downstream=("count",))
        count = Operator("count", self.workers, done, done, done / self.true if self.true else 0.0)
        known: dict[str, Any] = {"input_rate": self.load, "processed_rate": done, "backlog": self.backlog}
        known |= {"operators": (source, count), **dict(self.known)}
        for i in range(0, self.seconds, 10):
            yield sample(start + i, (0.5,) * self.workers, **known)


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


# As in JobVertexScalerTest: full use, no catching up, and here a minute's window.
TEST: dict[str, Any] = {"utilisation_target": 1.0, "catch_up_duration": 0.0, "stabilisation": 0.0}
TEST |= {"metrics_window": 60.0, "scale_down_interval": 0.0, "max_workers": 100}
QUICK: dict[str, Any] = {"stabilisation": 0.0, "metrics_window": 60.0, "scale_down_interval": 0.0, "max_workers": 100}
BLOCK = {**TEST, "block_ineffective": True}
TWICE = (Phase(180, 5, 100, 50), Phase(180, 10, 180, 90))  # up to 10, which brought 40 of 50, and up to 20
UNKNOWN = (Operator("read", 4, 100, 100, None, downstream=("count",)), Operator("count", 4, 100, 100, 0.1))
# name: settings, phases -> workers, code
DECISIONS: dict[str, tuple[dict[str, Any], tuple[Phase, ...], int | None, str]] = {
    "testIneffectiveScalingDetection: first": (BLOCK, TWICE[:1], 10, "capacity.below_target"),
    "testIneffectiveScalingDetection: effective": (BLOCK, TWICE, 20, "capacity.below_target"),
    "testIneffectiveScalingDetection: 4 of 90": (BLOCK, (*TWICE, Phase(180, 20, 180, 94)), 20, "flink.ineffective"),
    "testIneffectiveScalingDetection: 8 of 90": (BLOCK, (*TWICE, Phase(180, 20, 180, 98)), 20, "flink.ineffective"),
    "testIneffectiveScalingDetection: by hand": (
        BLOCK,
        (*TWICE, Phase(180, 20, 180, 94), Phase(180, 10, 180, 90)),
        20,
        "capacity.below_target",
    ),
    "testIneffectiveScalingDetection: 10 of 90": (
        BLOCK,
        (*TWICE, Phase(180, 20, 180, 100)),
        36,
        "capacity.below_target",
    ),
    "testIneffectiveScalingDetection: off": (TEST, (*TWICE, Phase(180, 20, 180, 90)), 40, "capacity.below_target"),
    "testIneffectiveScalingDetection: down": (BLOCK, (*TWICE, Phase(180, 20, 45, 90)), 10, "capacity.above_target"),
    "testScaleDownAfterScaleUpDetection: at once": (
        {**TEST, "scale_up_grace": 3600.0},
        (Phase(180, 5, 100, 50), Phase(180, 10, 50, 100)),
        10,
        "flink.scale_up_grace",
    ),
    "testScaleDownAfterScaleUpDetection: later": (
        {**TEST, "scale_up_grace": 60.0},
        (Phase(180, 5, 100, 50), Phase(180, 10, 50, 100)),
        5,
        "capacity.above_target",
    ),
    # 500 / 0.7 + 500 * 300 / 1800 = 798 of 1000 -> 4 of 5, but up to 500 / 0.4 + 83 = 1333 nothing is done
    "within the boundary below": (QUICK, (Phase(180, 5, 500, 1000),), 5, "flink.within_bounds"),
    "beyond the boundary below": (QUICK, (Phase(180, 5, 250, 1000),), 2, "capacity.above_target"),
    "within the boundary above": (QUICK, (Phase(180, 5, 900, 1000),), 5, "flink.within_bounds"),
    "beyond the boundary above": (QUICK, (Phase(180, 5, 1100, 1000),), 9, "capacity.below_target"),
    "a backlog to catch up with": (QUICK, (Phase(180, 5, 900, 1000, backlog=200_000.0),), 8, "capacity.below_target"),
    "a tighter boundary": (
        {**QUICK, "utilisation_boundary": 0.1},
        (Phase(180, 5, 900, 1000),),
        8,
        "capacity.below_target",
    ),
    # 100 / 0.7 + 17 + 17 would do: but 310 s of backlog are more than 300
    "nothing goes while far behind": (QUICK, (Phase(180, 9, 100, 1000, backlog=31_000.0),), 9, "flink.within_bounds"),
    "down is delayed": (
        {**QUICK, "scale_down_interval": 600.0},
        (Phase(660, 5, 250, 1000),),
        5,
        "flink.scale_down_delayed",
    ),
    "down after the interval": (
        {**QUICK, "scale_down_interval": 600.0},
        (Phase(670, 5, 250, 1000),),
        2,
        "capacity.above_target",
    ),
    "down to the most of the interval": (
        {**QUICK, "scale_down_interval": 600.0},
        (Phase(300, 5, 300, 1000), Phase(370, 5, 200, 1000)),
        3,
        "flink.scale_down_most",
    ),
    "enough use in between starts over": (
        {**QUICK, "scale_down_interval": 600.0},
        (Phase(300, 5, 250, 1000), Phase(120, 5, 700, 1000), Phase(480, 5, 250, 1000)),
        5,
        "flink.scale_down_delayed",
    ),
    "the job settles first": ({}, (Phase(300, 5, 5000, 1000),), 5, "flink.stabilising"),
    "then the window fills": ({}, (Phase(1200, 5, 5000, 1000),), 5, "flink.window_not_full"),
    "then it acts": ({"max_workers": 100}, (Phase(1210, 5, 1100, 1000),), 9, "capacity.below_target"),
    "a rescale settles again": (
        {"max_workers": 100},
        (Phase(1210, 5, 1100, 1000), Phase(290, 9, 1100, 1800)),
        9,
        "flink.stabilising",
    ),
    "a restart settles again": (
        {"max_workers": 100},
        (Phase(1210, 5, 1100, 1000), Phase(290, 5, 1100, 1000, known=(("uptime", 1.0),))),
        5,
        "flink.stabilising",
    ),
    "up to the bound": ({**QUICK, "max_workers": 6}, (Phase(180, 5, 5000, 1000),), 6, "bounds.max"),
    "down to the bound": ({**QUICK, "min_workers": 4}, (Phase(180, 5, 100, 1000),), 4, "bounds.min"),
    "nothing comes": (QUICK, (Phase(180, 5, 0, 1000),), 2, "capacity.above_target"),
    "standing still teaches nothing": (QUICK, (Phase(180, 5, 100, 0),), 5, "flink.window_not_full"),
    "one operator unknown: nothing goes": (
        QUICK,
        (Phase(180, 4, 100, 1000, known=(("operators", UNKNOWN),)),),
        4,
        "flink.unknown",
    ),
    "backlog unknown: nothing goes": (QUICK, (Phase(180, 5, 100, 1000, backlog=None),), 5, "flink.unknown"),
    "input unknown": (QUICK, (Phase(180, 5, 100, 1000, known=(("input_rate", None),)),), 5, "flink.unknown"),
    "no operators: CPU is the busy time": (
        QUICK,
        (Phase(180, 5, 1100, 500, known=(("operators", ()),)),),
        9,
        "capacity.below_target",
    ),
    "operators that share: their busy time adds up": (
        {**QUICK, "layout": "shared"},
        (Phase(180, 5, 1100, 1000),),
        9,
        "capacity.below_target",
    ),
    "requested unknown": (QUICK, (Phase(180, 5, 100, 1000, known=(("requested", None),)),), None, "flink.unknown"),
}


@pytest.mark.parametrize(("settings", "phases", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], phases: tuple[Phase, ...], workers: int | None, code: str) -> None:
    decision = run(FlinkOperator(**settings), *phases)
    assert (decision.workers, decision.reason.code) == (workers, code)


def test_the_highest_of_all_operators_counts() -> None:
    decision = run(FlinkOperator(**QUICK), Phase(180, 5, 1100, 1000))
    assert {o.reason.facts["operator"]: (o.workers, o.chosen) for o in decision.options} == {
        "read": (2, False),
        "count": (9, True),
    }
    assert decision.expects is not None
    assert decision.expects.capacity == pytest.approx(1800)


def test_what_was_ineffective_is_told_when_it_is_not_blocked() -> None:
    decision = run(FlinkOperator(**TEST), *TWICE, Phase(180, 20, 180, 90))
    assert [reason.code for reason in decision.reasons] == ["flink.last_was_ineffective", "capacity.below_target"]


def test_a_person_can_read_it() -> None:
    said = run(FlinkOperator(**QUICK), Phase(180, 5, 1100, 1000, backlog=90_000.0)).reason.sentence
    assert said == ("count needs 1805 records/s for 1100 at 70% use and 90000 to catch up, and can do 1000: 5 -> 10")
    said = run(FlinkOperator(**QUICK), Phase(180, 5, 0, 1000)).reason.sentence
    assert said.endswith("and has had nothing to do: 5 -> 2")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"utilisation_target": 70}, "utilisation_target must be in (0, 1], got 70"),
        ({"max_scale_down_factor": 0}, "max_scale_down_factor must be in (0, 1], got 0"),
        ({"max_scale_up_factor": 0}, "max_scale_up_factor must be above 0, got 0"),
        ({"metrics_window": 0}, "metrics_window must be above 0 seconds, got 0"),
        ({"restart_time": -1}, "restart_time must be 0 or more, got -1"),
        ({"scale_down_interval": -1}, "scale_down_interval must be 0 seconds or more, got -1"),
        ({"layout": "stacked"}, "layout must be apart or shared, got 'stacked'"),
    ],
)
def test_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        FlinkOperator(**settings)
    assert message in str(error.value)


def test_every_setting_is_documented() -> None:
    assert all(p.doc for p in parameters(FlinkOperator))


class TestContract(PolicyContract):
    def make(self) -> Policy:
        short: dict[str, Any] = {"stabilisation": 30.0, "metrics_window": 120.0, "scale_down_interval": 300.0}
        return FlinkOperator(min_workers=2, max_workers=9, **short)


class TestContractWithOperators(TestContract):
    def history(self) -> list[Observation]:
        return [o for n, start in ((2, 1e6), (9, 1.1e6), (3, 1.2e6)) for o in self._operators(history(n, start=start))]

    def _operators(self, observations: Iterator[Observation]) -> Iterator[Observation]:
        for i, seen in enumerate(observations):
            workers, load = seen.requested or 1, seen.processed_rate
            busy = None if i % 11 == 0 or load is None else min(1.0, load / (1000 * workers))
            source = Operator("read", workers, load, load, 0.1, downstream=("count",))
            yield (
                seen if seen.blind else replace(seen, operators=(source, Operator("count", workers, load, load, busy)))
            )
