"""What DS2's scaling manager reckons with around the model (OSDI 2018, sec. 4.2 and 4.3): needs as a configuration,
which of several proposals counts, and whether the last change was for the better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from penstock.core import Decision, Fact, Operator, Reason
from penstock.models.dataflow import Plan, explain, fit, instances
from penstock.models.limits import bounded

NOISE = 0.02  # two windows of rates never agree exactly; a shortfall below this share is no shortfall
PERSISTENT = 3  # decisions in a row after which a shortfall is no accident
MOST_OVERHEAD = 2.0  # what no instrument sees may double the need; more than that is not overhead but a broken job
SAME_LOAD = 0.1  # what was worse at one load is tried again once the load differs by more than this share

Combine = Literal["each", "highest", "sum"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """How many workers, and how many instances of each operator where operators are scaled apart."""

    workers: int
    parallelism: Mapping[str, int]

    def same_as(self, other: Configuration) -> bool:
        """Apart, the instances decide: a worker that is missing does not make it another configuration."""
        if self.parallelism or other.parallelism:
            return self.parallelism == other.parallelism
        return self.workers == other.workers


@dataclass(frozen=True, slots=True)
class Standing:
    """How the job does under one configuration: records/s that it reads, and that arrive."""

    configuration: Configuration
    achieved: float
    target: float

    def keeps_up(self, ratio: float) -> bool:
        return self.achieved >= ratio * self.target * (1 - NOISE)


def running(operators: Sequence[Operator], requested: int, combine: Combine) -> Configuration:
    """What runs, in the terms in which it is scaled."""
    apart = combine == "each"
    return Configuration(requested, {o.name: o.parallelism for o in operators} if apart else {})


def configure(
    operators: Sequence[Operator], needs: Mapping[str, float], combine: Combine, *, minor: int = 0
) -> Configuration:
    """Needs as whole instances. Apart, an operator whose change is minor stays, and sources keep theirs; where
    operators share workers their unrounded needs add up, and are rounded up once.

    >>> flow = [Operator("s", 1, downstream=("a",)), Operator("a", 4, downstream=("b",)), Operator("b", 4)]
    >>> configure(flow, {"a": 4.2, "b": 8.1}, "each", minor=1).parallelism
    {'s': 1, 'a': 4, 'b': 9}
    >>> configure(flow, {"a": 4.2, "b": 8.1}, "highest").workers
    9
    >>> configure(flow, {"a": 4.2, "b": 8.1}, "sum").workers
    13
    """
    if combine == "sum":
        return Configuration(instances(sum(needs.values())), {})
    whole = {name: instances(need) for name, need in needs.items()}
    if combine == "highest":
        return Configuration(max(whole.values()), {})
    chosen = {}
    for operator in operators:
        new = whole.get(operator.name, operator.parallelism)
        chosen[operator.name] = new if abs(new - operator.parallelism) > minor else operator.parallelism
    return Configuration(sum(chosen.values()), chosen)


def within(decision: Decision, needs: Mapping[str, float], least: int, most: int) -> Decision:
    """The decision within its bounds, with the instances of the operators shared out anew if they are scaled apart."""
    limited = bounded(decision, least, most)
    if not decision.parallelism or limited.workers == decision.workers or limited.workers is None:
        return limited
    fitted = fit(decision.parallelism, needs, limited.workers)
    return replace(limited, parallelism=fitted if sum(fitted.values()) == limited.workers else {})


def warming(passed: float, warm_up: int, interval: float) -> Reason | None:
    """Why there is no decision yet: intervals are left out after a change, and the next one is measured whole. In sec.
    5.3, with three of 10 s, the first decision is at 40 s.

    >>> warming(39.0, 3, 10.0).code, warming(40.0, 3, 10.0), warming(0.0, 0, 10.0)
    ('dataflow.warming_up', None, None)
    """
    rest = (warm_up + 1) * interval if warm_up else 0.0
    if passed >= rest:
        return None
    due = f"{rest:g} s, {warm_up} intervals and one to measure"
    sentence = f"The configuration is {passed:.0f} s old: no decision before {due}"
    return Reason("dataflow.warming_up", sentence, {"passed": passed, "warm_up": rest})


def suffices(wanted: Configuration, now: Configuration) -> bool:
    """No more of anything is wanted than there is."""
    if not wanted.parallelism:
        return wanted.workers <= now.workers
    return all(count <= now.parallelism.get(name, 0) for name, count in wanted.parallelism.items())


def activate(proposals: Sequence[Mapping[str, float]], by: Literal["max", "median"]) -> dict[str, float]:
    """One need per operator of several consecutive proposals.

    >>> activate([{"a": 2.0}, {"a": 9.0}, {"a": 3.0}], "median")
    {'a': 3.0}
    """
    choose = max if by == "max" else median
    return {name: choose([proposal.get(name, need) for proposal in proposals]) for name, need in proposals[-1].items()}


def verdict(
    operators: Sequence[Operator], model: Plan, wanted: Configuration, now: Standing, *, overhead: float, minor: int
) -> Reason:
    """The plan in words: whether what runs fits it, and what would."""
    before, after = now.configuration.workers, wanted.workers
    if wanted.same_as(now.configuration):
        code, rest = "dataflow.fits", f"{before} stay"
    elif not wanted.parallelism and abs(after - before) <= minor:
        code, rest = "dataflow.minor", f"{after} instead of {before} is a minor change, none is made"
    else:
        way = "above" if after < before else "below" if after > before else "uneven"
        code, rest = f"dataflow.{way}", f"{before} -> {after}"
    more = f"; times {overhead:.2f} for what no instrument sees" if overhead > 1 else ""
    facts: dict[str, Fact] = {f"need_{name}": need for name, need in model.needs.items()}
    facts |= {"input_rate": now.target, "processed_rate": now.achieved, "overhead": overhead}
    return Reason(code, f"{explain(operators, model)}{more}: {rest}", facts)


@dataclass(slots=True)
class Trial:
    """Watches changes: what was worse is taken back and not tried again, what does not help is counted.

    ratio: share of the target that counts as keeping up.
    degradation: share of the achieved rate whose loss takes a change back.
    improvement: share by which a scale-up has to raise the achieved rate to have helped.
    """

    ratio: float
    degradation: float
    improvement: float
    before: Standing | None = None  # the last change, until it is judged
    rejected: Standing | None = None
    unhelpful: int = 0

    def judge(self, now: Standing, enough: bool) -> Configuration | None:
        """Look at the last change, once: the configuration to go back to if the job does worse, although the load is
        there. A load that fell is no degradation; nor is a scale-down that went too far, if the model sees that there
        is not `enough` now and asks for more by itself, as from 28 to 13 to 16 in table 4 of the paper."""
        before, self.before = self.before, None
        if now.keeps_up(self.ratio):
            self.unhelpful = 0
        if before is None or before.configuration.same_as(now.configuration):
            return None
        grown = now.configuration.workers > before.configuration.workers
        worse = now.achieved < min(before.achieved, now.target) * (1 - self.degradation)
        if worse and (grown or enough):
            self.rejected = now
            return before.configuration
        little = now.achieved <= before.achieved * (1 + self.improvement)
        if grown and little and not now.keeps_up(self.ratio):
            self.unhelpful += 1
        return None

    def objection(self, wanted: Configuration, now: Standing, limit: int) -> Reason | None:
        """Why the change should not be made, by what earlier ones did."""
        count = wanted.workers
        if self.unhelpful >= limit and count > now.configuration.workers:
            sentence = f"The last {self.unhelpful} scale-ups did not help: no more until the job keeps up"
            return Reason("dataflow.futile", sentence, {"unhelpful": self.unhelpful})
        if self.rejected is not None and abs(now.target - self.rejected.target) > SAME_LOAD * self.rejected.target:
            self.rejected = None  # another load: it may be right now
        if self.rejected is not None and wanted.same_as(self.rejected.configuration):
            sentence = f"{count} workers did worse at this load when they were tried: no change"
            return Reason("dataflow.rejected", sentence, {"rejected": count})
        return None
