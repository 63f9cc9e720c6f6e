"""DS2: all operators sized in one step from their true rates, and the manager around that model.

Kalavri et al., "Three steps is all you need", OSDI 2018: the model is sec. 3 (penstock.models.dataflow), the manager
sec. 4.2 (penstock.models.ds2), operators that share workers sec. 4.3. Defaults are those of the Flink experiment, sec.
5.3; Heron's (sec. 5.2) are interval 60 and warm_up 0. Ignoring minor changes is off, since sec. 5.3 and table 4 both
change a parallelism by one; the tolerances of roll-back and improvement, which the paper does not number, are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, Literal, get_args

from penstock.core import Decision, Fact, Observation, Operator, Policy, Reason
from penstock.errors import check
from penstock.models.dataflow import Plan, plan, read_rate, source_rates
from penstock.models.ds2 import (
    MOST_OVERHEAD,
    PERSISTENT,
    Combine,
    Configuration,
    Standing,
    Trial,
    activate,
    configure,
    running,
    suffices,
    verdict,
    warming,
    within,
)
from penstock.models.limits import LastChange, bounded
from penstock.models.operators import Measures, shared

Sources = Literal["kept", "sized"]
ActivateBy = Literal["max", "median"]


@dataclass
class Ds2(Policy):
    """As many instances of each operator as its input needs, by the rates it could sustain if it never waited.

    warm_up: intervals after a change of the configuration or a start that are not looked at; the next one is measured
        whole before there is a decision.
    activation: how many consecutive proposals are looked at before a change.
    activate_by: of these, the highest need of each operator counts (max), or the one in the middle (median).
    target_ratio: share of the arriving rate that has to be read; below it, needs are raised by what is missing.
    minor_change: instances by which a count may differ from its need without a change.
    degradation: share of the achieved rate whose loss after a change takes the change back; 1: never.
    improvement: share by which a scale-up has to raise the achieved rate to have helped.
    unhelpful_limit: scale-ups in a row that did not help, after which there are no more until the job keeps up.
    combine: each: every operator apart; highest: one count for all, the highest; sum: operators share the workers.
    sources: kept: sources keep their parallelism, as in the paper; sized: they are sized too, by the arriving rate,
        as they are in any case where they have no workers of their own.
    """

    name: ClassVar[str] = "ds2"
    paper: ClassVar[str] = "https://www.usenix.org/conference/osdi18/presentation/kalavri"
    inputs: ClassVar[tuple[str, ...]] = (
        "requested",
        "input_rate",
        "processed_rate",
        "operators.rate_in",
        "operators.rate_out",
        "operators.busy",
    )

    interval: float = 10.0
    warm_up: int = 3
    activation: int = 1
    activate_by: ActivateBy = "max"
    target_ratio: float = 1.0
    minor_change: int = 0
    degradation: float = 0.1
    improvement: float = 0.05
    unhelpful_limit: int = 3
    combine: Combine = "each"
    sources: Sources = "kept"
    _measures: Measures = field(init=False, repr=False)
    _trial: Trial = field(init=False, repr=False)
    _change: LastChange = field(default_factory=LastChange, init=False, repr=False)
    _requested: int | None = field(default=None, init=False, repr=False)
    _overhead: float = field(default=1.0, init=False, repr=False)
    _shortfalls: int = field(default=0, init=False, repr=False)
    _proposals: tuple[Mapping[str, float], ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.warm_up >= 0, "warm_up", "be 0 intervals or more", self.warm_up)
        check(self.activation >= 1, "activation", "be at least 1 proposal", self.activation)
        check(0 < self.target_ratio <= 1, "target_ratio", "be in (0, 1]", self.target_ratio)
        check(self.minor_change >= 0, "minor_change", "be 0 instances or more", self.minor_change)
        check(0 < self.degradation <= 1, "degradation", "be in (0, 1]", self.degradation)
        check(self.improvement >= 0, "improvement", "be 0 or more", self.improvement)
        check(self.unhelpful_limit >= 1, "unhelpful_limit", "be at least 1", self.unhelpful_limit)
        for name, choices in (("activate_by", ActivateBy), ("combine", Combine), ("sources", Sources)):
            known = get_args(choices)
            check(getattr(self, name) in known, name, f"be one of {', '.join(known)}", getattr(self, name))
        self._measures = Measures(self.interval, parts=self.combine == "sum")
        self._trial = Trial(self.target_ratio, self.degradation, self.improvement)

    def learn(self, observation: Observation) -> None:
        changed_at = self._change.at
        if self._change.learn(observation):
            self._trial.before = self._standing(self._requested)
        if self._change.at != changed_at:  # what was measured before belongs to another configuration
            self._measures.clear()
            self._proposals, self._shortfalls = (), 0
        self._requested = self._requested if observation.requested is None else observation.requested
        if self._age(observation) < self.warm_up * self.interval:
            self._measures.clear()  # what is measured of a cold job is not what it can do
        self._measures.add(observation)

    def decide(self, observation: Observation) -> Decision:
        current = observation.requested
        if current is None or observation.blind:
            return Decision.hold(current, _unknown("Nothing is measured now"))
        cold = warming(self._age(observation), self.warm_up, self.interval)
        if cold is not None:
            return self._hold(current, cold)
        operators, now = self._measures.operators, self._standing(current)
        if now is None:
            return Decision.hold(current, _unknown("What arrives, or what the operators do with it, is not known"))
        rates = source_rates(operators, now.target)
        if rates is None:
            return Decision.hold(current, _unknown("How much each source reads is not known"))
        model = plan(operators, rates, size_sources=self.sources == "sized" or shared(operators))
        if model is None:
            sentence = "The dataflow has a cycle, which this model cannot size: no change"
            return Decision.hold(current, Reason("dataflow.cyclic", sentence))
        if model.unknown:
            return Decision.hold(current, _unknown(f"The true rate of {', '.join(model.unknown)} is not known"))
        enough = suffices(self._configure(operators, model.needs), now.configuration)
        back = self._trial.judge(now, enough)
        if back is not None:
            return self._roll_back(back, now)
        self._raise_overhead(enough, now)
        return self._propose(operators, model, now)

    def _propose(self, operators: Sequence[Operator], model: Plan, now: Standing) -> Decision:
        self._proposals = (*self._proposals, model.needs)[-self.activation :]
        if len(self._proposals) < self.activation:
            sentence = f"{len(self._proposals)} of {self.activation} proposals are in: no change before all are"
            facts: dict[str, Fact] = {"proposals": len(self._proposals), "activation": self.activation}
            return self._hold(now.configuration.workers, Reason("dataflow.activating", sentence, facts))
        wanted = self._configure(operators, activate(self._proposals, self.activate_by))
        reason = verdict(operators, model, wanted, now, overhead=self._overhead, minor=self.minor_change)
        if reason.code in ("dataflow.fits", "dataflow.minor"):
            return self._hold(now.configuration.workers, reason)
        objection = self._trial.objection(wanted, now, self.unhelpful_limit)
        if objection is not None:
            return self._hold(now.configuration.workers, reason, objection)
        decision = Decision(wanted.workers, (reason,), parallelism=wanted.parallelism)
        return within(decision, model.needs, self.min_workers, self.max_workers)

    def _raise_overhead(self, enough: bool, now: Standing) -> None:
        """More is needed than the instruments see (sec. 4.2.1) if by the model there is enough, and yet it is too slow.
        This is remembered, or the next plan would undo it; one slow moment is none, as a failure looks like that too.
        """
        self._shortfalls = self._shortfalls + 1 if enough and not now.keeps_up(self.target_ratio) else 0
        if self._shortfalls >= PERSISTENT and now.achieved > 0:
            self._overhead = min(MOST_OVERHEAD, self._overhead * now.target / now.achieved)
            self._shortfalls = 0

    def _configure(self, operators: Sequence[Operator], needs: Mapping[str, float]) -> Configuration:
        raised = {name: need * self._overhead for name, need in needs.items()}
        return configure(operators, raised, self._combine, minor=self.minor_change)

    @property
    def _combine(self) -> Combine:
        return "highest" if self._measures.whole else self.combine  # of one operator there is nothing to combine

    def _roll_back(self, back: Configuration, now: Standing) -> Decision:
        self._overhead = 1.0  # what it was learned from is being undone
        sentence = (
            f"{now.configuration.workers} workers read only {now.achieved:,.0f} of {now.target:,.0f} records/s, less"
            f" than before the last change: back to {back.workers}"
        )
        reason = Reason("dataflow.rolled_back", sentence, {"achieved": now.achieved, "target": now.target})
        decision = Decision(back.workers, (reason,), parallelism=back.parallelism)
        return within(decision, {}, self.min_workers, self.max_workers)

    def _standing(self, requested: int | None) -> Standing | None:
        operators, target = self._measures.operators, self._measures.input_rate
        achieved = self._measures.processed_rate
        achieved = read_rate(operators) if achieved is None else achieved
        if requested is None or not operators or target is None or achieved is None:
            return None
        return Standing(running(operators, requested, self._combine), achieved, target)

    def _age(self, observation: Observation) -> float:
        """Seconds for which the job has run as it does."""
        known = (self._change.ago(observation), observation.uptime)
        return min((seconds for seconds in known if seconds is not None), default=inf)

    def _hold(self, workers: int, *reasons: Reason) -> Decision:
        return bounded(Decision(workers, reasons), self.min_workers, self.max_workers)


def _unknown(what: str) -> Reason:
    return Reason("dataflow.unknown", f"{what}: no change")
