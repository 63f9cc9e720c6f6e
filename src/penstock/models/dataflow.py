"""DS2's performance model of a dataflow: how many instances each operator needs, in one pass.

Kalavri et al., "Three steps is all you need", OSDI 2018, sec. 3.2, Eq. 1-8. An instance that is busy for a share of
the time, and handles some records in it, could handle that many more if it were always busy: its true rate. What
arrives at an operator is what its upstream would put out if it kept up, so that need carries downstream unrounded and
is rounded up only at the end. Output goes whole to every downstream operator. Sources keep their parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from penstock.core import Operator
from penstock.models.operators import reads, selectivity, true_rate
from penstock.models.topology import in_order, sources, upstream

ROUNDING = 1e-9  # relative: 1e6 / 60 sentences/s at 1e5 / 60 each are 10 instances, not 10.000000000000002


@dataclass(frozen=True, slots=True)
class Plan:
    """What a dataflow needs.

    needs: instances per operator, unrounded; a source that keeps its parallelism is not in it.
    demands: records/s that would arrive at each operator if all before it kept up.
    unknown: operators whose true rates are needed and not known.
    """

    needs: Mapping[str, float]
    demands: Mapping[str, float]
    unknown: tuple[str, ...] = ()


def source_rates(operators: Sequence[Operator], input_rate: float) -> dict[str, float] | None:
    """The input divided among the sources, in proportion to what each reads now; None if that is not known.

    A target knows how much arrives, not for which source. While one source is held back more than another its share
    is too small, and the next decision, with less of that, corrects it.
    """
    feeding = sources(operators)
    if len(feeding) == 1:
        return {feeding[0].name: input_rate}
    rates = {source.name: reads(source) for source in feeding}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    total = sum(known.values())
    if not feeding or len(known) < len(rates) or (total <= 0 < input_rate):
        return None
    return {name: input_rate * rate / total if total > 0 else 0.0 for name, rate in known.items()}


def read_rate(operators: Sequence[Operator]) -> float | None:
    """Records/s that the sources read, or emit where they only do that."""
    known = [rate for source in sources(operators) if (rate := reads(source)) is not None]
    return sum(known) if known and len(known) == len(sources(operators)) else None


def plan(operators: Sequence[Operator], rates: Mapping[str, float], *, size_sources: bool = False) -> Plan | None:
    """Eq. 7 and 8 for every operator, from the records/s that arrive at each source; None if there is a cycle.

    With `size_sources` a source is an operator too, fed by the queue before it (Koper, sec. 3.5.2). An operator that
    is source and sink at once is always sized: there would be nothing else.

    >>> flow = [Operator("S", 1, rate_out=10, downstream=("o1",)),
    ...         Operator("o1", 1, rate_in=10, rate_out=100, busy=1.0, downstream=("o2",)),
    ...         Operator("o2", 1, rate_in=100, busy=0.5)]
    >>> plan(flow, {"S": 40}).needs  # figure 2 of the paper
    {'o1': 4.0, 'o2': 2.0}
    """
    ordered = topological(operators)
    if ordered is None:
        return None
    first = {source.name for source in sources(operators)}
    demands = {operator.name: rates.get(operator.name, 0.0) for operator in ordered}
    needs: dict[str, float] = {}
    unknown: list[str] = []
    for operator in ordered:
        demand, is_source = demands[operator.name], operator.name in first
        below = [name for name in operator.downstream if name in demands]
        if not is_source or size_sources or not below:
            each = true_rate(operator)
            if demand > 0 and each is None:
                unknown.append(operator.name)
            needs[operator.name] = demand / each if each else 0.0
        ratio = selectivity(operator)
        if ratio is None and is_source:
            ratio = 1.0  # a source that only emits has no input to compare with
        if below and ratio is None and demand > 0 and operator.name not in unknown:
            unknown.append(operator.name)
        for name in below:
            demands[name] += demand * (ratio or 0.0)
    return Plan(needs, demands, tuple(unknown))


def topological(operators: Sequence[Operator]) -> tuple[Operator, ...] | None:
    """Sources first, each after all that feed it; None if there is a cycle."""
    by_name = {operator.name: operator for operator in operators}
    names = in_order(upstream(operators))
    return tuple(by_name[name] for name in names) if len(names) == len(by_name) else None


def instances(need: float) -> int:
    """A need as whole instances, at least one.

    >>> instances(0.0), instances(4.2), instances((1e6 / 60) / (1e5 / 60))
    (1, 5, 10)
    """
    return max(1, ceil(need * (1 - ROUNDING)))


def fit(parallelism: Mapping[str, int], needs: Mapping[str, float], total: int) -> dict[str, int]:
    """The parallelism, brought to `total` instances so that the busiest operator is as little short as possible.

    Only operators with a need are changed and each keeps one instance, so the sum may stay above `total`.

    >>> fit({"S": 1, "a": 10, "b": 20}, {"a": 10, "b": 20}, total=16)
    {'S': 1, 'a': 5, 'b': 10}
    """
    fitted = dict(parallelism)
    excess = sum(fitted.values()) - total
    while excess > 0:
        spare = [name for name in needs if fitted[name] > 1]
        if not spare:
            break
        fitted[min(spare, key=lambda name: needs[name] / (fitted[name] - 1))] -= 1
        excess -= 1
    while excess < 0 and needs:
        fitted[max(needs, key=lambda name: needs[name] / fitted[name])] += 1
        excess += 1
    return fitted


def explain(operators: Sequence[Operator], model: Plan, most: int = 3) -> str:
    """The neediest operators in words, with the numbers of Eq. 7."""
    each = {operator.name: true_rate(operator) for operator in operators}
    neediest = sorted(model.needs, key=lambda name: -model.needs[name])
    said = [
        f"{name} needs {model.needs[name]:.2f}"
        + ("" if (rate := each[name]) is None else f" ({model.demands[name]:,.0f} records/s at {rate:,.0f} each)")
        for name in neediest[:most]
    ]
    rest = len(neediest) - len(said)
    return ", ".join(said) + (f" and {rest} more operator{'s' * (rest > 1)} less" if rest else "")
