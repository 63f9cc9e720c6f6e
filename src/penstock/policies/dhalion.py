"""Dhalion as published for Heron: symptoms, diagnoses, resolutions, one operator at a time, and a blacklist.

Floratou et al., "Dhalion: self-regulating stream processing in Heron", VLDB 2017 (penstock.models.dhalion). The symptom
is backpressure with its root, or none with empty queues; the diagnosis under- or over-provisioning; the resolution more
instances by suspended over normal time, or fewer by a share. An action that did not help is not taken again.

Deviations: slow instances and data skew, which Dhalion tells apart by the instances of one operator, are not seen here
and not diagnosed. What the descriptions at hand do not number (thresholds, settling, when an action counts as failed)
is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

from penstock.core import Decision, Fact, Observation, Operator, Policy, Reason
from penstock.errors import check
from penstock.models.dhalion import (
    Action,
    Blacklist,
    Bottleneck,
    Way,
    as_source,
    bottlenecks,
    helped,
    scaled_down,
    scaled_up,
    spare,
)
from penstock.models.limits import LastChange, bounded
from penstock.models.operators import Measures

Combine = Literal["each", "highest"]


@dataclass
class Dhalion(Policy):
    """More instances of the operator that holds the others back; fewer of one before which nothing waits.

    backpressure_threshold: share of time held back that counts as a symptom.
    queue_threshold: records waiting per instance that count as next to none.
    scale_down_share: share of an operator's instances to remove; 0: never, as in Heron's public code.
    settle: seconds after a change of the configuration without a diagnosis.
    blacklist_share: share of its uses that an action may fail before it is not taken again.
    forgive_after: seconds after which a blacklisted action may be tried again; unset: never, as published.
    improvement: share by which an operator has to handle more for its scale-up to have helped, while it still lacks.
    combine: each: operators are scaled apart; highest: one count for all, as the diagnosed operator needs it.
    """

    name: ClassVar[str] = "dhalion"
    paper: ClassVar[str] = "https://www.vldb.org/pvldb/vol10/p1825-floratou.pdf"
    inputs: ClassVar[tuple[str, ...]] = ("requested", "operators.backpressure", "operators.queue", "operators.busy")

    interval: float = 300.0
    backpressure_threshold: float = 0.05
    queue_threshold: float = 10.0
    scale_down_share: float = 0.2
    settle: float = 60.0
    blacklist_share: float = 0.5
    forgive_after: float | None = None
    improvement: float = 0.02
    combine: Combine = "each"
    _measures: Measures = field(init=False, repr=False)
    _blacklist: Blacklist = field(init=False, repr=False)
    _change: LastChange = field(default_factory=LastChange, init=False, repr=False)
    _proposed: Action | None = field(default=None, init=False, repr=False)
    _taken: Action | None = field(default=None, init=False, repr=False)
    _requested: int | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(
            0 < self.backpressure_threshold < 1, "backpressure_threshold", "be in (0, 1)", self.backpressure_threshold
        )
        check(0 <= self.scale_down_share < 1, "scale_down_share", "be in [0, 1)", self.scale_down_share)
        check(0 < self.blacklist_share <= 1, "blacklist_share", "be in (0, 1]", self.blacklist_share)
        for name in ("queue_threshold", "settle", "improvement"):
            check(getattr(self, name) >= 0, name, "be 0 or more", getattr(self, name))
        forgiven = self.forgive_after is None or self.forgive_after > 0
        check(forgiven, "forgive_after", "be above 0 seconds, or unset", self.forgive_after)
        check(self.combine in get_args(Combine), "combine", "be each or highest", self.combine)
        self._measures, self._blacklist = Measures(self.interval), Blacklist(self.blacklist_share, self.forgive_after)

    def learn(self, observation: Observation) -> None:
        before, changed_at = self._requested, self._change.at
        if self._change.learn(observation) and before is not None and observation.requested is not None:
            # Only what was really done is an action, and only if it is what was proposed.
            way: Way = "up" if observation.requested > before else "down"
            self._taken = self._proposed if self._proposed is not None and self._proposed.way == way else None
            self._proposed = None
        if self._change.at != changed_at:
            self._measures.clear()
        self._requested = before if observation.requested is None else observation.requested
        self._measures.add(observation)

    def decide(self, observation: Observation) -> Decision:
        current = observation.requested
        if current is None or observation.blind:
            return Decision.hold(current, _unknown("Nothing is measured now"))
        ago = self._change.ago(observation)
        if ago is not None and ago < self.settle:
            sentence = f"The configuration is {ago:.0f} s old: no diagnosis before {self.settle:g} s"
            return self._hold(current, Reason("dhalion.settling", sentence, {"passed": ago, "settle": self.settle}))
        operators = self._measures.operators
        if self._measures.whole and operators:
            operators = as_source(operators[0], self._measures.input_rate, self._measures.processed_rate)
        roots = bottlenecks(operators, self.backpressure_threshold)
        if roots is None:
            return Decision.hold(current, _unknown("Which operator is held back is not known"))
        taken, self._taken = self._taken, None
        if taken is not None:
            self._blacklist.note(taken, helped(taken, operators, roots, self.improvement), observation.at)
        held_back = any((o.backpressure or 0.0) > self.backpressure_threshold for o in operators)
        return (
            self._up(operators, roots, observation.at, current)
            if held_back
            else self._down(operators, observation.at, current)
        )

    def _up(self, operators: Sequence[Operator], roots: Sequence[Bottleneck], now: float, current: int) -> Decision:
        for root in roots:
            name, before = root.operator.name, root.operator.parallelism
            if self._blacklist.has(name, "up", now):
                continue
            after = scaled_up(before, root.suspended)
            sentence = (
                f"{name} holds back what is before it {100 * root.suspended:.0f} % of the time: {before} x"
                f" (1 + {100 * root.suspended:.0f}/{100 - 100 * root.suspended:.0f}) -> {after}"
            )
            reason = Reason("dhalion.under_provisioned", sentence, {"operator": name, "suspended": root.suspended})
            return self._resolved(operators, root.operator, after, current, reason)
        names = ", ".join(root.operator.name for root in roots)
        sentence = (
            f"More of {names} did not help before: it is not tried again"
            if names
            else ("There is backpressure, but no operator that starts it: no change")
        )
        return self._hold(current, Reason("dhalion.blacklisted" if names else "dhalion.no_root", sentence))

    def _down(self, operators: Sequence[Operator], now: float, current: int) -> Decision:
        idle = spare(operators, self.queue_threshold) if self.scale_down_share else ()
        for operator in idle:
            if self._blacklist.has(operator.name, "down", now):
                continue
            after = scaled_down(operator.parallelism, self.scale_down_share)
            sentence = (
                f"Nothing is held back and nothing waits before {operator.name}: {operator.parallelism} -> {after}"
            )
            facts: dict[str, Fact] = {"operator": operator.name, "queue": operator.queue, "busy": operator.busy}
            reason = Reason("dhalion.over_provisioned", sentence, facts)
            return self._resolved(operators, operator, after, current, reason)
        if idle:
            sentence = f"Fewer of {', '.join(o.name for o in idle)} led to backpressure before: not tried again"
            return self._hold(current, Reason("dhalion.blacklisted", sentence))
        return self._hold(current, Reason("dhalion.fits", f"No backpressure, and no operator to spare: {current} stay"))

    def _resolved(
        self, operators: Sequence[Operator], operator: Operator, after: int, current: int, reason: Reason
    ) -> Decision:
        self._proposed = Action(operator.name, "up" if after > operator.parallelism else "down", operator.rate_in)
        if self._measures.whole or self.combine == "highest":
            return bounded(Decision(after, (reason,)), self.min_workers, self.max_workers)
        total = sum(o.parallelism for o in operators) - operator.parallelism
        decision = bounded(Decision(total + after, (reason,)), self.min_workers, self.max_workers)
        allowed = (decision.workers or 0) - total
        if allowed < 1 or (allowed - operator.parallelism) * (after - operator.parallelism) <= 0:
            return self._hold(current, *decision.reasons)
        parallelism = {o.name: o.parallelism for o in operators} | {operator.name: allowed}
        return replace(decision, parallelism=parallelism)

    def _hold(self, workers: int, *reasons: Reason) -> Decision:
        return bounded(Decision(workers, reasons), self.min_workers, self.max_workers)


def _unknown(what: str) -> Reason:
    return Reason("dhalion.unknown", f"{what}: no change")
