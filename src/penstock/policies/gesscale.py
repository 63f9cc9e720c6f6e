"""Gesscale: a performance model, fitted only when an operator is at its limit, says how many workers can go, and where.

Arkian et al., "Model-based Stream Processing Auto-scaling in Geo-Distributed Environments", ICCCN 2021. The model is
in penstock.models.scaling_law, the root of backpressure in models.backpressure, the nodes in models.placement.

Deviations: the job has one worker count, so it is scaled up for any operator's sake, and down as far as every measured
operator allows. Algorithm 4 is read as in penstock.models.gesscale, which has the way down. After every restart a job
works off what has waited, and shows backpressure while it does: by algorithm 1 alone each rescale would bring the next
one, and the paper has twelve in two days. So what is only catching up is left to it, unless told otherwise. Told to
stay idle, it leaves a job alone to which nothing comes, as the authors' script does; by algorithm 2 it would shrink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.core import Decision, Expectation, Fact, Observation, Option, Policy, Reason
from penstock.errors import check
from penstock.models.backpressure import Flow, flows, readings
from penstock.models.gesscale import Prospect, walk
from penstock.models.limits import Steadiness, bounded
from penstock.models.placement import ByLatency, Choice, place, resized, shrinking, spread
from penstock.models.scaling_law import Measurement, ScalingLaw, fit
from penstock.models.window import SlidingMeans

KEPT = 12  # measurements per operator; the newest, since a job changes
NEARLY = 0.9  # decisions come on a grid and samples a little late: nearly a minute is a minute


@dataclass
class Gesscale(Policy):
    """One worker more for the root of backpressure, as many fewer as a fitted model allows; nodes by latency.

    threshold: share of the predicted throughput that must be spare before workers are removed.
    backpressure: share of time from which on backpressure is high.
    confirmation: seconds after which a root of backpressure must still be one.
    window: seconds that rates and backpressure are averaged over.
    late: seconds of input that have to wait in the log for it to count as backpressured.
    warm_up: seconds after a rescale or (re)start that are not looked at.
    catching_up: scale up as well while the job reads more than comes, and is only working off what has waited.
    stay_idle: leave the workers as they are while nothing comes and nothing is read.
    """

    name: ClassVar[str] = "gesscale"
    paper: ClassVar[str] = "https://inria.hal.science/hal-03206689"
    inputs: ClassVar[tuple[str, ...]] = (
        "requested",
        "input_rate",
        "processed_rate",
        "backlog",
        "operators.rate_in",
        "operators.backpressure",
        "nodes",
    )

    interval: float = 60.0
    threshold: float = 0.3
    backpressure: float = 0.5
    confirmation: float = 60.0
    window: float = 60.0
    late: float = 10.0
    warm_up: float = 120.0
    catching_up: bool = False
    stay_idle: bool = False
    _means: SlidingMeans = field(init=False, repr=False)
    _steadiness: Steadiness = field(default_factory=Steadiness, init=False, repr=False)
    _suspected: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _measured: dict[str, tuple[Measurement, ...]] = field(default_factory=dict, init=False, repr=False)
    _laws: dict[str, ScalingLaw] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(0 <= self.threshold < 1, "threshold", "be in [0, 1)", self.threshold)
        check(0 < self.backpressure < 1, "backpressure", "be in (0, 1)", self.backpressure)
        check(self.window > 0, "window", "be above 0 seconds", self.window)
        for name in ("confirmation", "late", "warm_up"):
            check(getattr(self, name) >= 0, name, "be 0 seconds or more", getattr(self, name))
        self._means = SlidingMeans(self.window)

    def learn(self, observation: Observation) -> None:
        if self._steadiness.disturbed(observation):
            self._means.clear()
            self._suspected = {}
        if self._steadiness.counts(observation, self.warm_up):
            self._means.add(observation.at, dict(readings(observation, self.late)))

    def decide(self, observation: Observation) -> Decision:
        current, now = observation.requested, observation.at
        if current is None or observation.blind:
            return Decision.hold(current, Reason("gesscale.unknown", "Nothing is known of the job's flow: no change"))
        if self.stay_idle and self._idle(observation):
            return Decision.hold(current, Reason("gesscale.idle", f"Nothing comes or is read: {current} stay"))
        found = flows(observation, self._means)
        limited = [flow for flow in found if flow.is_root(self.backpressure)]
        roots = [flow for flow in limited if self.catching_up or not flow.catching_up]
        self._suspected = {flow.name: min(now, self._suspected.get(flow.name, now)) for flow in roots}
        patience = NEARLY * self.confirmation
        confirmed = [flow for flow in roots if now - self._suspected[flow.name] >= patience]
        if not found:
            sentence = f"Neither backpressure nor backlog was seen in the last {self.window:g} s: no change"
            decision = Decision.hold(current, Reason("gesscale.unknown", sentence))
        elif confirmed:
            decision = self._up(observation, current, confirmed)
        elif roots:
            decision = Decision.hold(current, self._unconfirmed(roots[0]))
        elif limited:
            decision = Decision.hold(current, _working_off(limited[0], current))
        else:
            decision = self._down(observation, current, found)
        return place(bounded(decision, self.min_workers, self.max_workers), observation, self._choice())

    def _idle(self, observation: Observation) -> bool:
        """Less than a record was read or came within the window."""
        rates = (observation.input_rate, observation.processed_rate)
        return all(rate is not None and rate * self.window < 1 for rate in rates)

    def _up(self, observation: Observation, current: int, roots: list[Flow]) -> Decision:
        """Algorithms 1 and 3; the only time at which an operator's throughput is its maximum, so it is measured."""
        delay = spread(resized(observation.nodes, current, self._choice()))
        for flow in roots:
            seen = Measurement(current, delay, flow.throughput)
            kept = [m for m in self._measured.get(flow.name, ()) if (m.workers, m.delay) != (seen.workers, seen.delay)]
            self._measured[flow.name] = (*kept, seen)[-KEPT:]
            law = self._fit(self._measured[flow.name])
            if law is not None:
                self._laws[flow.name] = law
        flow = max(roots, key=lambda f: f.above)
        sentence = (
            f"{flow.name} is the root of backpressure ({flow.above:.0%} above it, {flow.itself:.0%} itself) at its"
            f" limit of {flow.throughput:.0f} records/s: one more worker, {current + 1}"
        )
        facts: dict[str, Fact] = {"operator": flow.name, "above": flow.above, "itself": flow.itself}
        facts |= {"throughput": flow.throughput, "measurements": len(self._measured[flow.name])}
        return Decision(current + 1, (Reason("backpressure.root", sentence, facts),))

    def _unconfirmed(self, flow: Flow) -> Reason:
        sentence = (
            f"{flow.name} looks like the root of backpressure ({flow.above:.0%} above it, {flow.itself:.0%} itself):"
            f" confirmed if it still is after {self.confirmation:g} s"
        )
        return Reason("backpressure.unconfirmed", sentence, {"operator": flow.name, "above": flow.above})

    def _down(self, observation: Observation, current: int, found: list[Flow]) -> Decision:
        """Algorithms 2 and 4."""
        known = [flow for flow in found if flow.name in self._laws]
        silent = {o.name for o in observation.operators if o.name in self._laws} - {flow.name for flow in known}
        if silent:
            sentence = f"Nothing is known of {', '.join(sorted(silent))}, which has been at its limit: {current} stay"
            return Decision.hold(current, Reason("gesscale.unknown", sentence))
        if not known:
            sentence = f"No operator has been at its limit yet, so none is modelled: {current} stay"
            return Decision.hold(current, Reason("gesscale.unmeasured", sentence))
        if not self._means.covers(observation.at):
            sentence = f"The job has not run undisturbed for {self.window:g} s: {current} stay"
            return Decision.hold(current, Reason("gesscale.unsettled", sentence, {"window": self.window}))
        delays = shrinking(observation.nodes, current, self._choice())
        seen = walk(current, self.min_workers, self.threshold, lambda n: self._prospect(n, next(delays), known))
        last = [prospect for prospect in seen if prospect.fits or prospect.workers == current][-1]
        first, final = seen[0].reason(self.threshold), seen[-1].reason(self.threshold)
        options = tuple(Option(p.workers, p is last, p.reason(self.threshold)) for p in seen)
        if last.workers == current:
            return Decision(current, (first,) if seen[-1] is seen[0] else (first, final), options)
        sentence = (
            f"{last.workers} of {current} workers still do {last.capacity:.0f} records/s in {last.flow.name},"
            f" where {last.flow.demand:.0f} come"
        )
        fits = Reason("capacity.still_fits", sentence, {"workers": last.workers, "capacity": last.capacity})
        return Decision(last.workers, (first, fits), options, Expectation(capacity=last.job_capacity))

    def _prospect(self, workers: int, delay: float, known: list[Flow]) -> Prospect:
        prospects = [Prospect(workers, flow, self._laws[flow.name].throughput(workers, delay)) for flow in known]
        return min(prospects, key=lambda p: p.capacity / max(p.flow.demand, 1e-9))

    def _fit(self, measurements: Sequence[Measurement]) -> ScalingLaw | None:
        return fit(measurements)

    def _choice(self) -> Choice:
        return ByLatency()


def _working_off(flow: Flow, current: int) -> Reason:
    sentence = f"{flow.name} is at its limit of {flow.throughput:.0f} records/s, but catching up: {current} stay"
    return Reason("backpressure.catching_up", sentence, {"operator": flow.name, "throughput": flow.throughput})
