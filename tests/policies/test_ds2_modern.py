"""DS2-modern with the thesis's settings (Koper 2022, sec. 3.5 and 4.6)."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import Decision, Observation, Operator, Policy
from penstock.errors import ConfigError
from penstock.policies.ds2_modern import Ds2Modern
from penstock.testing import PolicyContract, history, sample


def seen(
    at: float = 0.0, load: float | None = 1000.0, workers: int = 4, busy: float | None = 0.5, **known: Any
) -> Observation:
    """A source that could read 500 and a join that could take 200 records/s and worker, half busy: 2 workers short."""
    operators = (
        Operator("source", workers, 250.0 * workers, 250.0 * workers, busy=busy, downstream=("join",)),
        Operator("join", workers, rate_in=100.0 * workers, rate_out=1.0, busy=busy),
    )
    fields: dict[str, Any] = {"input_rate": load, "processed_rate": 1000.0, "operators": operators} | known
    return Observation(at, workers, fields.pop("requested", workers), **fields)


def shared(at: float, share: float) -> Observation:
    """Records reach the join only in part, as they are filtered."""
    operators = (
        Operator("source", 2, 1000.0, 1000.0 * share, busy=0.4, downstream=("join",)),
        Operator("join", 2, 1000.0 * share, 1.0, busy=0.4),
    )
    return Observation(at, 2, 2, input_rate=1000.0, operators=operators)


EXACT: dict[str, Any] = {"over_provisioning": 0.0}
CYCLE = (
    Operator("s", 1, 1, 1, 1.0, downstream=("a",)),
    Operator("a", 1, 1, 1, 1.0, downstream=("b",)),
    Operator("b", 1, 1, 1, 1.0, downstream=("a",)),
)
# name: settings, observations (learned and decided on one by one) -> workers, code of the last decision
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "the neediest operator: 1000 at 200 each": (EXACT, [seen()], 5, "dataflow.below"),
    "and 33 % more": ({}, [seen()], 7, "dataflow.below"),
    "and 66 % more": ({"over_provisioning": 0.66}, [seen()], 9, "dataflow.below"),
    "sources are sized too": (EXACT, [shared(0, 0.5)], 1, "dataflow.above"),
    "busy at 0.8 when full: too few (sec. 5.12)": (
        EXACT,
        [seen(operators=(Operator("map", 4, rate_in=800.0, busy=0.8),))],
        4,
        "dataflow.fits",
    ),
    "busy at 1.0 when full: enough": (
        EXACT,
        [seen(operators=(Operator("map", 4, rate_in=800.0, busy=1.0),))],
        5,
        "dataflow.below",
    ),
    "down": (EXACT, [seen(load=100.0)], 1, "dataflow.above"),
    "fits": (EXACT, [seen(load=800.0)], 4, "dataflow.fits"),
    "means over a minute": (EXACT, [seen(0, load=600.0), seen(59, load=1000.0)], 4, "dataflow.fits"),
    "not over more": (EXACT, [seen(0, load=600.0), seen(60, load=1000.0)], 5, "dataflow.below"),
    "in cooldown": (EXACT, [seen(239, last_rescale_at=0.0)], 4, "cooldown.resting"),
    "after cooldown": (EXACT, [seen(240, last_rescale_at=0.0)], 5, "dataflow.below"),
    "cooldown from when workers came": (EXACT, [seen(0, workers=3), seen(10), seen(249)], 4, "cooldown.resting"),
    "scales down while there is lag (fig. 5.12)": (EXACT, [seen(load=100.0, latency=60.0)], 1, "dataflow.above"),
    "the job as one operator, busy by CPU": (
        EXACT,
        [sample(0, (0.5,) * 4, input_rate=3000.0, processed_rate=1000.0)],
        6,
        "dataflow.below",
    ),
    "input not known": (EXACT, [seen(load=None)], 4, "dataflow.unknown"),
    "busy not known": (EXACT, [seen(busy=None)], 4, "dataflow.unknown"),
    "nothing flows": (EXACT, [seen(operators=(Operator("map", 4, 0.0, 0.0, 0.0),))], 4, "dataflow.unknown"),
    "nothing runs": (EXACT, [Observation(0, 0, 4, input_rate=5.0)], 4, "dataflow.unknown"),
    "cyclic": (EXACT, [seen(operators=CYCLE)], 4, "dataflow.cyclic"),
    "blind": (EXACT, [seen(load=100.0), Observation(1, requested=4)], 4, "dataflow.unknown"),
    "requested not known": (EXACT, [Observation(0, 4, None, backlog=1.0)], None, "dataflow.unknown"),
    "up to the bound": ({}, [seen(load=4000.0)], 16, "bounds.max"),
    "down to the bound": ({**EXACT, "min_workers": 3}, [seen(load=100.0)], 3, "bounds.min"),
    "from above the bound, resting": ({"max_workers": 3}, [seen(9, last_rescale_at=0.0)], 3, "bounds.max"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    decision = run(Ds2Modern(**settings), observations)
    assert (decision.workers, decision.reason.code) == (workers, code)
    assert not decision.parallelism, "one count for all"


def run(policy: Policy, observations: list[Observation]) -> Decision:
    for observation in observations:
        policy.learn(observation)
        decision = policy.decide(observation)
    return decision


def test_a_person_can_read_it() -> None:
    assert run(Ds2Modern(), [seen()]).reason.sentence == (
        "join needs 5.00 (1,000 records/s at 200 each), source needs 2.00 (1,000 records/s at 500 each)"
        " and 33 % more: 4 -> 7"
    )


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "negative share": ({"over_provisioning": -0.1}, "over_provisioning must be 0 or more, got -0.1"),
    "negative rest": ({"cooldown": -1}, "cooldown must be 0 seconds or more, got -1"),
    "no window": ({"window": 0}, "window must be above 0 seconds, got 0"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Ds2Modern(**settings)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return Ds2Modern(min_workers=2, max_workers=9, cooldown=30)


class TestContractWithOperators(TestContract):
    def history(self) -> list[Observation]:
        from dataclasses import replace

        def flow(observation: Observation) -> tuple[Operator, ...]:
            rate, count, cpu = observation.processed_rate, observation.workers or 1, observation.cpu
            return (
                Operator("source", count, rate, rate, None if cpu is None else cpu / 2, downstream=("map",)),
                Operator("map", count, rate, rate, cpu),
            )

        seen = [*history(2, start=1_000_000), *history(9, start=1_002_000)]
        return [o if o.blind else replace(o, operators=flow(o)) for o in seen]
