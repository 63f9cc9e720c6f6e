"""DS2's model on its published examples: the paper's figures, and the vectors of its authors' tests."""

from __future__ import annotations

import pytest

from penstock.core import Operator
from penstock.models.dataflow import explain, fit, instances, plan, read_rate, source_rates, topological
from penstock.models.ds2 import Configuration, Standing, Trial, activate, configure
from penstock.models.operators import selectivity, true_rate


def chain(count: int, one: tuple[float, float], two: float, busy: float = 1.0) -> list[Operator]:
    """Sources -> Op1 -> Op2, each with one instance and these true rates, however busy it is."""
    return [
        *(Operator(f"S{n}", 1, rate_out=100.0, downstream=("Op1",)) for n in range(count)),
        Operator("Op1", 1, one[0] * busy, one[1] * busy, busy=busy, downstream=("Op2",)),
        Operator("Op2", 1, rate_in=two * busy, rate_out=200.0 * busy, busy=busy),
    ]


# name: sources, output of each, true rates of Op1 (in, out), true rate of Op2 -> instances of Op1 and Op2
ORACLE: dict[str, tuple[int, float, tuple[float, float], float, int, int]] = {
    "one source: 2 and 8": (1, 100, (50, 400), 100, 2, 8),
    "one source: 5 and 36": (1, 200, (40, 700), 99, 5, 36),
    "one source: 20 and 70": (1, 200, (10, 700), 201, 20, 70),
    "two sources: 4 and 16": (2, 100, (50, 400), 100, 4, 16),
    "two sources: 10 and 71": (2, 200, (40, 700), 99, 10, 71),
    "two sources: 40 and 140": (2, 200, (10, 700), 201, 40, 140),
}


@pytest.mark.parametrize("busy", [1.0, 0.37])
@pytest.mark.parametrize(("count", "out", "one", "two", "op1", "op2"), ORACLE.values(), ids=ORACLE)
def test_oracle(count: int, out: float, one: tuple[float, float], two: float, op1: int, op2: int, busy: float) -> None:
    operators = chain(count, one, two, busy)
    rates = source_rates(operators, count * out)
    assert rates is not None
    model = plan(operators, rates)
    assert model is not None
    assert model.unknown == ()
    assert {name: instances(need) for name, need in model.needs.items()} == {"Op1": op1, "Op2": op2}


def test_heron_word_count_in_one_step() -> None:
    """Sec. 5.2: 1 M sentences a minute of 20 words; FlatMap splits 100 K, Count counts 1 M a minute and instance."""
    minute = 60.0
    operators = [
        Operator("source", 1, rate_out=1e5 / minute, backpressure=0.9, downstream=("flatmap",)),
        Operator("flatmap", 1, 5e4 / minute, 1e6 / minute, busy=0.5, downstream=("count",)),
        Operator("count", 1, 1e6 / minute, busy=1.0),
    ]
    model = plan(operators, {"source": 1e6 / minute})
    assert model is not None
    assert {name: instances(need) for name, need in model.needs.items()} == {"flatmap": 10, "count": 20}


def test_need_carries_downstream_unrounded() -> None:
    # Op1 needs 2.5: if 3 full instances counted, Op2 would need 3
    operators = [
        Operator("S", 1, rate_out=250, downstream=("Op1",)),
        Operator("Op1", 1, rate_in=100, rate_out=100, busy=1.0, downstream=("Op2",)),
        Operator("Op2", 1, rate_in=125, busy=1.0),
    ]
    model = plan(operators, {"S": 250})
    assert model is not None
    assert model.needs == {"Op1": 2.5, "Op2": 2.0}


def test_output_goes_whole_to_every_downstream_and_joins_add_up() -> None:
    operators = [
        Operator("join", 2, rate_in=80, rate_out=0, busy=0.5),
        Operator("left", 1, rate_in=40, rate_out=40, busy=1.0, downstream=("join",)),
        Operator("right", 1, rate_in=40, rate_out=20, busy=0.5, downstream=("join",)),
        Operator("S", 1, rate_out=40, downstream=("left", "right")),
    ]
    model = plan(operators, {"S": 80})
    assert model is not None
    assert model.demands == {"S": 80, "left": 80, "right": 80, "join": 120}
    assert model.needs == {"left": 2.0, "right": 1.0, "join": 1.5}


FLOW = [
    Operator("S", 3, rate_in=100, rate_out=300, busy=0.5, downstream=("map", "unreported")),
    Operator("map", 2, rate_in=300, rate_out=0, busy=0.5),
]


def test_sources_keep_their_parallelism_unless_they_are_sized() -> None:
    kept, sized = plan(FLOW, {"S": 200}), plan(FLOW, {"S": 200}, size_sources=True)
    assert kept is not None
    assert sized is not None
    assert kept.needs == {"map": 2.0}
    assert sized.needs == {"S": pytest.approx(3.0), "map": 2.0}
    assert kept.demands["map"] == 600, "what a source makes of a record counts"


def test_source_and_sink_at_once_is_sized() -> None:
    model = plan([Operator("job", 4, rate_in=1000, rate_out=1000, busy=0.5)], {"job": 3000})
    assert model is not None
    assert model.needs == {"job": 6.0}


# name: the operator after the source, what arrives -> unknown, needs
UNKNOWN: dict[str, tuple[Operator, float, tuple[str, ...]]] = {
    "busy not known": (Operator("o", 1, rate_in=10, rate_out=10, downstream=("end",)), 10, ("o",)),
    "no input to measure by": (Operator("o", 1, 0.0, 0.0, busy=0.0, downstream=("end",)), 10, ("o",)),
    "output not known": (Operator("o", 1, rate_in=10, busy=0.5, downstream=("end",)), 10, ("o",)),
    "nothing arrives: nothing is needed": (Operator("o", 1, 0.0, 0.0, busy=0.0, downstream=("end",)), 0, ()),
}


@pytest.mark.parametrize(("operator", "rate", "unknown"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_is_named(operator: Operator, rate: float, unknown: tuple[str, ...]) -> None:
    end = Operator("end", 1, rate_in=10, busy=0.1)
    model = plan([Operator("S", 1, rate_out=10, downstream=("o",)), operator, end], {"S": rate})
    assert model is not None
    assert model.unknown == unknown


def test_a_cycle_has_no_plan() -> None:
    loop = [
        Operator("S", 1, rate_out=1, downstream=("a",)),
        Operator("a", 1, 1, 1, 1.0, downstream=("b",)),
        Operator("b", 1, 1, 1, 1.0, downstream=("a",)),
    ]
    assert topological(loop) is None
    assert plan(loop, {"S": 1}) is None


def test_input_is_divided_by_what_each_source_reads() -> None:
    two = [Operator("a", 1, rate_in=30, downstream=("c",)), Operator("b", 1, rate_out=10, downstream=("c",))]
    join = Operator("c", 1, rate_in=40, busy=1.0)
    assert source_rates([*two, join], 80) == {"a": 60.0, "b": 20.0}
    assert read_rate([*two, join]) == 40
    assert source_rates([*two, Operator("d", 1)], 80) is None, "a source that tells nothing"
    assert read_rate([*two, Operator("d", 1)]) is None
    stalled = [Operator("a", 1, rate_in=0), Operator("b", 1, rate_in=0)]
    assert source_rates(stalled, 80) is None
    assert source_rates(stalled, 0) == {"a": 0.0, "b": 0.0}
    assert source_rates([], 80) is None


def test_rates_that_are_not_defined() -> None:
    assert true_rate(Operator("o", 1, rate_in=10, busy=0.0)) is None, "Eq. 1 is undefined without useful time"
    assert true_rate(Operator("o", 0, rate_in=10, busy=0.5)) is None
    assert selectivity(Operator("o", 1, rate_in=0, rate_out=0)) is None


def test_fit_shares_out_what_there_is() -> None:
    assert fit({"a": 10, "b": 20}, {"a": 9.5, "b": 20}, 33) == {"a": 11, "b": 22}
    assert fit({"S": 1, "a": 10, "b": 20}, {"a": 10, "b": 20}, 31) == {"S": 1, "a": 10, "b": 20}
    assert fit({"S": 2, "a": 3, "b": 1}, {"a": 3, "b": 0.1}, 2) == {"S": 2, "a": 1, "b": 1}, "one instance each stays"


def test_explained_with_the_numbers() -> None:
    operators = chain(1, (50, 400), 100)
    model = plan(operators, {"S0": 100})
    assert model is not None
    assert explain(operators, model) == (
        "Op2 needs 8.00 (800 records/s at 100 each), Op1 needs 2.00 (100 records/s at 50 each)"
    )
    assert explain(operators, model, most=1).endswith(" and 1 more operator less")


def test_sharing_workers_rounds_once() -> None:
    assert configure([], {"a": 0.2, "b": 0.3, "c": 2.4}, "sum").workers == 3
    assert configure([], {"a": 0.2, "b": 0.3, "c": 2.4}, "highest").workers == 3
    apart = [Operator("a", 1), Operator("b", 1), Operator("c", 1)]
    assert configure(apart, {"a": 0.2, "b": 0.3, "c": 2.4}, "each") == Configuration(5, {"a": 1, "b": 1, "c": 3})


def test_activation() -> None:
    proposals = [{"a": 2.0, "b": 5.0}, {"a": 9.0, "b": 1.0}, {"a": 3.0, "b": 2.0}]
    assert activate(proposals, "max") == {"a": 9.0, "b": 5.0}
    assert activate(proposals, "median") == {"a": 3.0, "b": 2.0}


def standing(workers: int, achieved: float, target: float) -> Standing:
    return Standing(Configuration(workers, {}), achieved, target)


# name: before, now, enough by the model -> back to, unhelpful
CHANGES: dict[str, tuple[Standing, Standing, bool, int | None, int]] = {
    "more is read": (standing(2, 1000, 2000), standing(4, 1900, 2000), False, None, 0),
    "less is read though it arrives": (standing(2, 1000, 2000), standing(4, 800, 2000), False, 2, 0),
    "less is read since less arrives": (standing(2, 1000, 2000), standing(4, 700, 700), False, None, 0),
    "less within the tolerance, up": (standing(2, 1000, 2000), standing(4, 920, 2000), False, None, 1),
    "too few after a scale-down, and the model sees it": (
        standing(28, 1000, 1000),
        standing(13, 800, 1000),
        False,
        None,
        0,
    ),
    "too few after a scale-down, and it does not": (standing(4, 1000, 1000), standing(2, 600, 1000), True, 4, 0),
    "catching up before, level now": (standing(2, 1500, 1000), standing(4, 1000, 1000), False, None, 0),
    "nothing changed": (standing(4, 1000, 2000), standing(4, 500, 2000), False, None, 0),
    "little more": (standing(2, 1000, 2000), standing(4, 1040, 2000), False, None, 1),
    "little more, but enough": (standing(2, 1000, 1030), standing(4, 1030, 1030), False, None, 0),
}


@pytest.mark.parametrize(("before", "now", "enough", "back", "unhelpful"), CHANGES.values(), ids=CHANGES)
def test_judging_a_change(before: Standing, now: Standing, enough: bool, back: int | None, unhelpful: int) -> None:
    trial = Trial(ratio=1.0, degradation=0.1, improvement=0.05, before=before)
    judged = trial.judge(now, enough)
    assert (None if judged is None else judged.workers) == back
    assert trial.unhelpful == unhelpful
    assert trial.judge(now, enough) is None, "once"
