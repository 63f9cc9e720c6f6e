"""Varga's two ratios with the values of Koper's thesis (sec. 3.3 and 4.6): targets .3/.5/.7, threshold 50,000."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import Decision, Observation, Operator, Policy
from penstock.errors import ConfigError
from penstock.models.hpa import Tolerance
from penstock.models.varga import proposal, relative_lag_change, utilisation
from penstock.policies.varga_v1 import VargaV1
from penstock.testing import PolicyContract, sample

MEASURES: dict[str, tuple[float | None, float | None]] = {
    "keeps up": (relative_lag_change(80_000, 0, 1000, 50_000), 1.0),
    "lag grows by half of what is consumed": (relative_lag_change(80_000, 500, 1000, 50_000), 1.5),
    "lag shrinks": (relative_lag_change(80_000, -500, 1000, 50_000), 0.5),
    "below the threshold it asks for nothing": (relative_lag_change(20_000, 500, 1000, 50_000), -1.5),
    "at the threshold too": (relative_lag_change(50_000, 500, 1000, 50_000), -1.5),
    "nothing is consumed": (relative_lag_change(80_000, 500, 0, 50_000), None),
    "utilisation is of instances": (utilisation([Operator("a", 1, idle=0.2), Operator("b", 3, idle=0.6)]), 0.5),
    "idle by the rest of the time": (utilisation([Operator("a", 1, busy=0.5, backpressure=0.3)]), 0.8),
    "who is silent is left out": (utilisation([Operator("a", 1, idle=0.2), Operator("b", 3)]), 0.8),
    "all silent": (utilisation([Operator("a", 1)]), None),
}


@pytest.mark.parametrize(("measured", "expected"), MEASURES.values(), ids=MEASURES)
def test_measure(measured: float | None, expected: float | None) -> None:
    assert measured == (None if expected is None else pytest.approx(expected))


# name: requested, running, ratio -> workers
PROPOSALS: dict[str, tuple[int, int, float, int]] = {
    "Koper's example: 90 % to 60 %": (10, 10, 1.5, 15),
    "in tolerance above": (10, 10, 1.1, 10),
    "in tolerance below": (10, 10, 0.9, 10),
    "down": (10, 10, 0.31, 4),
    "negative": (10, 10, -1.5, -15),
    "those to come count as doing nothing": (10, 5, 1.6, 10),
    "more than those to come": (10, 5, 2.5, 13),
    "down by those that run": (10, 5, 0.5, 3),
    "no dust from floats": (3, 3, 0.7 / 0.1 / 7 * 2, 6),
}


@pytest.mark.parametrize(("requested", "running", "ratio", "workers"), PROPOSALS.values(), ids=PROPOSALS)
def test_proposal(requested: int, running: int, ratio: float, workers: int) -> None:
    assert proposal(requested, running, ratio, Tolerance()) == workers


def seen(at: float, idle: float | None, lag: float | None = 0.0, workers: int = 4, **known: Any) -> Observation:
    operators = (Operator("source", workers, idle=idle, downstream=("map",)), Operator("map", workers, idle=idle))
    fields: dict[str, Any] = {"backlog": lag, "processed_rate": 10_000.0, "operators": operators} | known
    return Observation(at, workers, known.pop("requested", workers), **{k: v for k, v in fields.items() if k in FIELDS})


FIELDS = {"backlog", "processed_rate", "operators", "input_rate", "latency", "last_rescale_at"}
NOW: dict[str, Any] = {"scale_down_stabilisation": 0.0}
# name: settings, observations (learned and decided on one by one) -> workers, code of the last decision
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "utilisation 70 % to 50 %": ({}, [seen(0, 0.3), seen(1, 0.3)], 6, "utilisation.above_target"),
    "the same to 70 %": ({"target_utilisation": 0.7}, [seen(0, 0.3), seen(1, 0.3)], 4, "varga.fits"),
    "the same to 30 %, as fast as HPA may": (
        {"target_utilisation": 0.3, "max_workers": 30},
        [seen(0, 0.0), seen(1, 0.0)],
        8,
        "varga.paced",
    ),
    "lag asks for more": ({}, [seen(0, 0.45, 60_000), seen(1, 0.45, 68_000)], 8, "lag.above_target"),
    "lag below its threshold asks for nothing": (NOW, [seen(0, 0.9, 1000), seen(1, 0.9, 40_000)], 1, "_below"),
    "steady lag keeps what runs": (NOW, [seen(0, 0.9, 60_000), seen(1, 0.9, 60_000)], 4, "varga.fits"),
    "shrinking lag does not": (NOW, [seen(0, 0.9, 90_000), seen(1, 0.9, 85_000)], 2, "_below"),
    "steady lag that is little for each worker does not keep them": (
        {**NOW, "lag_of": "worker"},
        [seen(0, 0.9, 60_000), seen(1, 0.9, 60_000)],
        1,
        "_below",
    ),
    "much for each worker does": (
        {**NOW, "lag_of": "worker"},
        [seen(0, 0.9, 240_000), seen(1, 0.9, 240_000)],
        4,
        "varga.fits",
    ),
    "and asks for more when it grows": (
        {"lag_of": "worker"},
        [seen(0, 0.45, 240_000), seen(1, 0.45, 248_000)],
        8,
        "lag.above_target",
    ),
    "a target below 1 adds reserve": (
        {"target_lag_change": 0.8},
        [seen(0, 0.5, 60_000), seen(1, 0.5, 60_000)],
        5,
        "lag.above_target",
    ),
    "down waits for the window": ({}, [seen(0, 0.9), seen(1, 0.9)], 4, "varga.stabilised"),
    "down after the window": ({}, [seen(t, 0.9) for t in range(0, 497, 15)], 1, "_below"),
    "down to the highest of the window": (
        {"scale_down_stabilisation": 60.0},
        [*(seen(t, 0.75) for t in range(0, 45, 15)), *(seen(t, 0.9) for t in range(45, 76, 15))],
        2,
        "varga.stabilised",
    ),
    "the rescale's own lag scales it back up (sec. 5.9)": (
        {},
        [seen(0, 0.9, 60_000, 2), seen(10, 0.0, 200_000, 2), seen(15, 0.0, 300_000, 2, last_rescale_at=9.0)],
        6,
        "lag.above_target",
    ),
    "lag alone not known: up": ({}, [seen(0, 0.3, None)], 6, "utilisation.above_target"),
    "lag alone not known: not down": (NOW, [seen(0, 0.9, None)], 4, "varga.unknown"),
    "utilisation alone not known: up": ({}, [seen(0, None, 60_000), seen(1, None, 65_000)], 6, "lag.above_target"),
    "utilisation alone not known: not down": (NOW, [seen(0, None, 0), seen(1, None, 0)], 4, "varga.unknown"),
    "neither known": ({}, [seen(0, None, None)], 4, "varga.unknown"),
    "blind": (NOW, [seen(0, 0.9), Observation(1, requested=4)], 4, "varga.unknown"),
    "requested not known": ({}, [Observation(0, 4, None, backlog=1.0)], None, "varga.unknown"),
    "nothing is consumed": (NOW, [seen(0, 0.9, 6e4), seen(1, 0.9, 7e4, processed_rate=0.0)], 4, "varga.unknown"),
    "without operators the job's CPU": (
        {},
        [sample(t, (0.9, 0.7), backlog=0.0, processed_rate=100.0) for t in (0, 1)],
        4,
        "utilisation.above_target",
    ),
    "operators gone for a moment: not down by CPU": (
        NOW,
        [seen(0, 0.5), sample(1, (0.1,) * 4, backlog=0.0, processed_rate=100.0)],
        4,
        "varga.unknown",
    ),
    "up to the bound": ({"max_workers": 5}, [seen(0, 0.0), seen(1, 0.0)], 5, "bounds.max"),
    "down to the bound": ({**NOW, "min_workers": 2}, [seen(0, 0.99), seen(1, 0.99)], 2, "bounds.min"),
    "from above the bound": ({"max_workers": 3}, [seen(0, 0.5), seen(1, 0.5)], 3, "bounds.max"),
    "a clock that goes back": (NOW, [seen(1000, 0.5), seen(0, 0.3), seen(1, 0.3)], 6, "utilisation.above_target"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    decision = run(VargaV1(**settings), observations)
    code = "utilisation.below_target" if code == "_below" else code
    assert (decision.workers, decision.reason.code) == (workers, code)


def run(policy: Policy, observations: list[Observation]) -> Decision:
    for observation in observations:
        policy.learn(observation)
        decision = policy.decide(observation)
    return decision


def test_a_person_can_read_it() -> None:
    said = run(VargaV1(), [seen(0, 0.45, 60_000), seen(1, 0.45, 68_000)]).reason.sentence
    assert said == ("Utilisation is 55 % (target 50 %) and what arrives is 1.80 of what is consumed (target 1): 4 -> 8")
    said = run(VargaV1(**NOW), [seen(0, 0.9), seen(1, 0.9)]).reason.sentence
    assert said == "Utilisation is 10 % (target 50 %) and the lag is not above 50,000 records: 4 -> 1"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "percent for a share": ({"target_utilisation": 50}, r"target_utilisation must be in \(0, 1\], got 50"),
    "no target": ({"target_lag_change": 0}, r"target_lag_change must be in \(0, 1\], got 0"),
    "negative": ({"lag_threshold": -1}, "lag_threshold must be 0 or more, got -1"),
    "no window": ({"window": 0}, "window must be above 0 seconds, got 0"),
    "whose lag": ({"lag_of": "pod"}, "lag_of must be job or worker, got 'pod'"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        VargaV1(**settings)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return VargaV1(min_workers=2, max_workers=9, lag_threshold=100, scale_down_stabilisation=60)
