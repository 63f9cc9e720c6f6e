"""DS2's model and manager on the paper's own examples (OSDI 2018), to the integer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.core import Decision, Observation, Operator, Policy, Worker
from penstock.errors import ConfigError
from penstock.policies.ds2 import Ds2
from penstock.testing import PolicyContract, history

WHOLE: dict[str, Any] = {"warm_up": 0, "max_workers": 400}


def flow(at: float, load: float, *true: tuple[float, float], sources: int = 1, **known: Any) -> Observation:
    """Sources -> Op1 -> Op2 -> ..., each with one instance and these true rates in and out, half busy."""
    names = [f"Op{n + 1}" for n in range(len(true))]
    operators = [Operator(f"S{n}", 1, rate_out=100.0, downstream=("Op1",)) for n in range(sources)]
    for n, (rate_in, rate_out) in enumerate(true):
        below = tuple(names[n + 1 : n + 2])
        operators.append(Operator(names[n], 1, rate_in / 2, rate_out / 2, busy=0.5, downstream=below))
    count = len(operators)
    return Observation(at, count, count, input_rate=load, operators=tuple(operators), **known)


# name: observation -> parallelism; the vectors of DS2's published tests
ORACLE: dict[str, tuple[Observation, dict[str, int]]] = {
    "one source: 2 and 8": (flow(0, 100, (50, 400), (100, 200)), {"S0": 1, "Op1": 2, "Op2": 8}),
    "one source: 5 and 36": (flow(0, 200, (40, 700), (99, 1)), {"S0": 1, "Op1": 5, "Op2": 36}),
    "one source: 20 and 70": (flow(0, 200, (10, 700), (201, 1)), {"S0": 1, "Op1": 20, "Op2": 70}),
    "two sources: 4 and 16": (
        flow(0, 200, (50, 400), (100, 200), sources=2),
        {"S0": 1, "S1": 1, "Op1": 4, "Op2": 16},
    ),
    "two sources: 10 and 71": (
        flow(0, 400, (40, 700), (99, 1), sources=2),
        {"S0": 1, "S1": 1, "Op1": 10, "Op2": 71},
    ),
    "two sources: 40 and 140": (
        flow(0, 400, (10, 700), (201, 1), sources=2),
        {"S0": 1, "S1": 1, "Op1": 40, "Op2": 140},
    ),
}


@pytest.mark.parametrize(("observation", "parallelism"), ORACLE.values(), ids=ORACLE)
def test_oracle(observation: Observation, parallelism: dict[str, int]) -> None:
    decision = run(Ds2(**WHOLE), [observation])
    assert (dict(decision.parallelism), decision.reason.code) == (parallelism, "dataflow.below")
    assert decision.workers == sum(parallelism.values())


def heron(at: float, flatmap: int = 1, count: int = 1, **known: Any) -> Observation:
    """Sec. 5.2: 1 M sentences a minute of 20 words; FlatMap splits 100 K, Count counts 1 M a minute and instance."""
    target, sentence, word = 1e6 / 60, 1e5 / 60, 1e6 / 60
    read = min(target, flatmap * sentence, count * word / 20)
    operators = (
        Operator("source", 1, rate_out=read, backpressure=1 - read / target, downstream=("flatmap",)),
        Operator("flatmap", flatmap, read, 20 * read, busy=read / (flatmap * sentence), downstream=("count",)),
        Operator("count", count, 20 * read, busy=20 * read / (count * word)),
    )
    workers = 1 + flatmap + count
    return Observation(at, workers, workers, input_rate=target, processed_rate=read, operators=operators, **known)


HERON: dict[str, Any] = {"interval": 60.0, "warm_up": 0, "max_workers": 64}


def test_heron_word_count_takes_one_step() -> None:
    policy = Ds2(**HERON)
    first = run(policy, [heron(at) for at in range(0, 60, 10)])
    assert dict(first.parallelism) == {"source": 1, "flatmap": 10, "count": 20}
    then = run(policy, [heron(at, 10, 20, last_rescale_at=60.0) for at in range(70, 1000, 10)])
    assert (then.workers, then.reason.code) == (31, "dataflow.fits")


@pytest.mark.parametrize(("flatmap", "count"), [(40, 40), (10, 1), (1, 20), (30, 3)])
def test_heron_word_count_from_anywhere(flatmap: int, count: int) -> None:
    decision = run(Ds2(**{**HERON, "max_workers": 90}), [heron(0, flatmap, count)])
    assert dict(decision.parallelism) == {"source": 1, "flatmap": 10, "count": 20}


def job(
    at: float, load: float = 1000.0, workers: int = 4, each: float = 100.0, real: float | None = None, **known: Any
) -> Observation:
    """Source -> a -> b on a cluster where all operators have as many instances as there are workers. By their true
    rates, a could take `each` and b twice that per instance; what it really reads is `real`."""
    read = min(load, workers * each) if real is None else real
    busy = read / (workers * each)
    operators = (
        Operator("source", workers, read, read, busy / 10, downstream=("a",)),
        Operator("a", workers, read, read, busy, downstream=("b",)),
        Operator("b", workers, read, 0.0, busy / 2),
    )
    fields: dict[str, Any] = {"input_rate": load, "processed_rate": read, "operators": operators} | known
    return Observation(at, workers, fields.pop("requested", workers), **fields)


ONE: dict[str, Any] = {"combine": "highest", "warm_up": 0, "max_workers": 40}
SUM: dict[str, Any] = {**ONE, "combine": "sum"}
SLOW: dict[str, Any] = {"each": 100.0, "real": 800.0, "workers": 10}  # enough by the model, and yet a fifth is missing
CPU = tuple(Worker(f"w{n}", cpu=0.5) for n in range(4))
# name: settings, observations (learned and decided on one by one) -> workers, code of the last decision
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "highest of all operators": (ONE, [job(0)], 10, "dataflow.below"),
    "sum where they share workers": (SUM, [job(0)], 15, "dataflow.below"),
    "sources sized too": ({**SUM, "sources": "sized"}, [job(0)], 16, "dataflow.below"),
    "down": (ONE, [job(0, load=150.0)], 2, "dataflow.above"),
    "fits": (ONE, [job(0, load=390.0)], 4, "dataflow.fits"),
    "the job as one operator, busy by CPU": (
        {"warm_up": 0},
        [job(0, 3000.0, operators=(), per_worker=CPU, processed_rate=1000.0)],
        6,
        "dataflow.below",
    ),
    # policy interval: rates are means over it
    "means over an interval": (ONE, [job(0, 200.0), job(9, 600.0)], 4, "dataflow.fits"),
    "not over more": (ONE, [job(0, 200.0), job(10, 600.0)], 6, "dataflow.below"),
    # warm-up
    "warming up after a rescale": ({**ONE, "warm_up": 3}, [job(39, last_rescale_at=0.0)], 4, "dataflow.warming_up"),
    "warm, as at 40 s in figure 7": ({**ONE, "warm_up": 3}, [job(40, last_rescale_at=0.0)], 10, "dataflow.below"),
    "warming up after a start": ({**ONE, "warm_up": 3}, [job(99, uptime=39.0)], 4, "dataflow.warming_up"),
    "warming up after workers came": (
        {**ONE, "warm_up": 3},
        [job(0, workers=3, requested=4), job(50), job(89)],
        4,
        "dataflow.warming_up",
    ),
    "what was measured while it warmed up is left out": (
        {**ONE, "warm_up": 1},
        [job(9, each=10.0, last_rescale_at=0.0), job(12, last_rescale_at=0.0), job(20, last_rescale_at=0.0)],
        10,
        "dataflow.below",
    ),
    # activation
    "first of three proposals": ({**ONE, "activation": 3}, [job(0)], 4, "dataflow.activating"),
    "the highest of three": (
        {**ONE, "activation": 3},
        [job(0, 600.0), job(10, 900.0), job(20, 700.0)],
        9,
        "dataflow.below",
    ),
    "the median of three": (
        {**ONE, "activation": 3, "activate_by": "median"},
        [job(0, 600.0), job(10, 900.0), job(20, 700.0)],
        7,
        "dataflow.below",
    ),
    "older proposals are forgotten": (
        {**ONE, "activation": 2},
        [job(0, 900.0), job(10, 600.0), job(20, 700.0)],
        7,
        "dataflow.below",
    ),
    "proposals of another configuration too": (
        {**ONE, "activation": 2},
        [job(0, 900.0), job(10, 900.0, workers=5)],
        5,
        "dataflow.activating",
    ),
    # target rate ratio
    "one slow moment is none": (ONE, [job(at, **SLOW) for at in (0, 10)], 10, "dataflow.fits"),
    "slow for long: more by what is missing": (ONE, [job(at, **SLOW) for at in (0, 10, 20)], 13, "dataflow.below"),
    "slow, but within the ratio": (
        {**ONE, "target_ratio": 0.8},
        [job(at, **SLOW) for at in range(0, 90, 10)],
        10,
        "dataflow.fits",
    ),
    # minor changes
    "by one is minor": ({**ONE, "minor_change": 2}, [job(0, 600.0)], 4, "dataflow.minor"),
    "by three is not": ({**ONE, "minor_change": 2}, [job(0, 700.0)], 7, "dataflow.below"),
    # unknown
    "input not known": (ONE, [job(0, input_rate=None)], 4, "dataflow.unknown"),
    "true rates not known": (ONE, [job(0, operators=(Operator("a", 4, rate_in=9.0),))], 4, "dataflow.unknown"),
    "how much each source reads not known": (
        ONE,
        [job(0, operators=(Operator("a", 2, 9.0, 9.0, 0.1), Operator("b", 2, busy=0.1)))],
        4,
        "dataflow.unknown",
    ),
    "cyclic": (
        ONE,
        [
            job(
                0,
                operators=(
                    Operator("s", 1, 1, 1, 1.0, downstream=("a",)),
                    Operator("a", 1, 1, 1, 1.0, downstream=("b",)),
                    Operator("b", 1, 1, 1, 1.0, downstream=("a",)),
                ),
            )
        ],
        4,
        "dataflow.cyclic",
    ),
    "stopped": (ONE, [job(0, real=0.0)], 4, "dataflow.unknown"),
    "blind": (ONE, [job(0), Observation(1, requested=4)], 4, "dataflow.unknown"),
    "requested not known": (ONE, [Observation(0, 4, None, backlog=1.0)], None, "dataflow.unknown"),
    # bounds
    "up to the bound": ({**ONE, "max_workers": 8}, [job(0)], 8, "bounds.max"),
    "down to the bound": ({**ONE, "min_workers": 3}, [job(0, load=150.0)], 3, "bounds.min"),
    "from above the bound, warming up": ({"max_workers": 3}, [job(9, last_rescale_at=0.0)], 3, "bounds.max"),
    "a clock that goes back": (ONE, [job(5000, 100.0), job(0)], 10, "dataflow.below"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    decision = run(Ds2(**settings), observations)
    assert (decision.workers, decision.reason.code) == (workers, code)


def run(policy: Policy, observations: list[Observation]) -> Decision:
    for observation in observations:
        policy.learn(observation)
        decision = policy.decide(observation)
    return decision


def test_operators_apart_share_what_is_allowed() -> None:
    decision = run(Ds2(**{**HERON, "max_workers": 16}), [heron(0)])
    assert (decision.workers, decision.reason.code) == (16, "bounds.max")
    assert dict(decision.parallelism) == {"source": 1, "flatmap": 5, "count": 10}
    too_few = run(Ds2(**{**HERON, "max_workers": 2}), [heron(0)])
    assert (too_few.workers, dict(too_few.parallelism)) == (2, {}), "three operators do not fit in two workers"


def test_a_job_seen_as_one_has_no_operators_to_scale_apart() -> None:
    whole = job(0, 3000.0, operators=(), per_worker=CPU, processed_rate=1000.0)
    assert dict(run(Ds2(warm_up=0), [whole]).parallelism) == {}
    pending = replace(whole, requested=7)
    decision = run(Ds2(warm_up=0), [pending])
    assert (decision.workers, decision.reason.code) == (6, "dataflow.above"), "by what was asked for"


def test_operators_apart_only_one_of_which_is_minor() -> None:
    decision = run(Ds2(**{**HERON, "minor_change": 2}), [heron(0, flatmap=9, count=1)])
    assert dict(decision.parallelism) == {"source": 1, "flatmap": 9, "count": 20}
    moved = run(Ds2(**HERON), [heron(0, flatmap=20, count=10)])
    assert (moved.workers, moved.reason.code) == (31, "dataflow.uneven")


def test_what_no_instrument_sees_is_remembered() -> None:
    """Busy at 0.8 when full: 8 workers are enough by the model, and read 800 of 1000. Then 10, and no way back to 8."""
    policy = Ds2(**ONE)

    def full(at: float, workers: int) -> Observation:
        return job(at, workers=workers, each=125.0, real=min(1000.0, workers * 100.0))

    up = run(policy, [full(at, 8) for at in (0, 10, 20)])
    assert (up.workers, up.reason.code) == (10, "dataflow.below")
    assert "times 1.25 for what no instrument sees" in up.reason.sentence
    then = run(policy, [full(at, 10) for at in range(30, 200, 10)])
    assert (then.workers, then.reason.code) == (10, "dataflow.fits")


def test_a_change_for_the_worse_is_rolled_back_and_not_tried_again() -> None:
    policy = Ds2(**ONE)
    assert run(policy, [job(0)]).workers == 10
    worse = run(policy, [job(10, workers=10, each=60.0, real=300.0)])
    assert (worse.workers, worse.reason.code) == (4, "dataflow.rolled_back")
    assert worse.reason.sentence == (
        "10 workers read only 300 of 1,000 records/s, less than before the last change: back to 4"
    )
    again = run(policy, [job(at) for at in (20, 30)])
    assert (again.workers, again.reason.code) == (4, "dataflow.rejected")
    other_load = run(policy, [job(at, load=1150.0) for at in (40, 50)])
    assert (other_load.workers, other_load.reason.code) == (12, "dataflow.below")
    same_load = run(Ds2(**{**ONE, "degradation": 1.0}), [job(0), job(10, workers=10, each=60.0, real=300.0)])
    assert same_load.reason.code != "dataflow.rolled_back", "1: never"


def test_a_scale_down_that_went_too_far_is_refined_and_not_rolled_back() -> None:
    """Table 4, Q5 from 28: 13, then 16. Instances seem faster while most of them idle."""
    policy = Ds2(**ONE)
    assert run(policy, [job(0, 1600.0, workers=28, each=125.0)]).workers == 13
    then = run(policy, [job(10, 1600.0, workers=13, each=100.0)])
    assert (then.workers, then.reason.code) == (16, "dataflow.below")
    assert run(policy, [job(20, 1600.0, workers=16, each=100.0)]).reason.code == "dataflow.fits"


def test_a_roll_back_brings_every_operator_back() -> None:
    policy = Ds2(**HERON)
    run(policy, [heron(0, flatmap=4, count=6)])
    worse = heron(60, flatmap=10, count=20)
    slow = tuple(
        replace(o, rate_in=o.rate_in and o.rate_in / 9, rate_out=o.rate_out and o.rate_out / 9) for o in worse.operators
    )
    decision = run(policy, [replace(worse, operators=slow, processed_rate=1000.0)])
    assert (decision.workers, decision.reason.code) == (11, "dataflow.rolled_back")
    assert dict(decision.parallelism) == {"source": 1, "flatmap": 4, "count": 6}


def test_scale_ups_that_do_not_help_come_to_an_end() -> None:
    """Sec. 4.2.2: skew, or a straggler. Each step the model asks for more, and nothing is gained."""
    policy = Ds2(**{**ONE, "unhelpful_limit": 2})
    stuck = [job(10.0 * n, workers=workers, each=50.0, real=500.0) for n, workers in enumerate((11, 12, 13))]
    assert run(policy, stuck[:2]).reason.code == "dataflow.below"
    end = run(policy, stuck[2:])
    assert (end.workers, end.reason.code) == (13, "dataflow.futile")
    down = run(policy, [job(40, load=200.0, workers=13)])
    assert (down.workers, down.reason.code) == (2, "dataflow.above"), "down is still possible"
    up = run(policy, [job(50, load=2000.0, workers=13)])
    assert (up.workers, up.reason.code) == (20, "dataflow.below"), "it kept up in between"


def test_a_person_can_read_it() -> None:
    assert run(Ds2(**HERON), [heron(0)]).reason.sentence == (
        "count needs 20.00 (333,333 records/s at 16,667 each), flatmap needs 10.00 (16,667 records/s at 1,667 each):"
        " 3 -> 31"
    )


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "negative warm-up": ({"warm_up": -1}, "warm_up must be 0 intervals or more, got -1"),
    "no activation": ({"activation": 0}, "activation must be at least 1 proposal, got 0"),
    "too much": ({"target_ratio": 1.1}, r"target_ratio must be in \(0, 1\], got 1.1"),
    "negative change": ({"minor_change": -1}, "minor_change must be 0 instances or more, got -1"),
    "percent": ({"degradation": 10}, r"degradation must be in \(0, 1\], got 10"),
    "negative improvement": ({"improvement": -1}, "improvement must be 0 or more, got -1"),
    "no limit": ({"unhelpful_limit": 0}, "unhelpful_limit must be at least 1, got 0"),
    "no such way to combine": ({"combine": "mean"}, "combine must be one of each, highest, sum, got 'mean'"),
    "no such activation": ({"activate_by": "min"}, "activate_by must be one of max, median, got 'min'"),
    "no such sources": ({"sources": "no"}, "sources must be one of kept, sized, got 'no'"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Ds2(**settings)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return Ds2(min_workers=2, max_workers=9)


class TestContractWithOperators(PolicyContract):
    def make(self) -> Policy:
        return Ds2(min_workers=2, max_workers=30, activation=2)

    def history(self) -> list[Observation]:
        def apart(observation: Observation) -> Observation:
            rate, workers = observation.processed_rate, observation.workers or 1
            operators = (
                Operator("source", 1, rate, rate, downstream=("a",)),
                Operator("a", workers - 1, rate, rate, observation.cpu),
            )
            return observation if observation.blind else replace(observation, operators=operators)

        return [apart(o) for o in (*history(4), *history(20, start=1_002_000), *history(4, start=1_004_000))]
