"""The autoscaler of the Flink Kubernetes operator: true rates of operators against a utilisation target.

Behaviour and defaults follow apache/flink-kubernetes-operator, flink-autoscaler; the arithmetic is in
penstock.models.catch_up. Each operator gets the workers that bring it to its target, and the job the highest of them: a
reactive cluster, where every operator has as many instances as there are workers.

Deviations: busy time is the mean over an operator's instances, not that of the busiest; worker counts are not aligned
to key groups or partitions; the rate seen while catching up does not correct the one reckoned from busy time. Where no
operators are seen (Spark), or they share the workers, the job is one operator, and its workers' CPU its busy time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isfinite
from typing import ClassVar, Literal, get_args

from penstock.core import Decision, Expectation, Fact, Observation, Operator, Option, Policy, Reason
from penstock.errors import check
from penstock.models.catch_up import Aims, Load, ScaleDowns, loads, readings
from penstock.models.limits import Steadiness, bounded
from penstock.models.operators import job, shared
from penstock.models.window import SlidingMeans

Layout = Literal["apart", "shared"]


@dataclass
class FlinkOperator(Policy):
    """As many workers as keep every operator near its target utilisation, with room to catch up after the restart.

    utilisation_target: share of time that an operator should be busy.
    utilisation_boundary: how far off that share it may be without a change.
    catch_up_duration: seconds in which the backlog is to be worked off after a change; 0: backlog does not count.
    restart_time: seconds without processing to expect of a change.
    metrics_window: seconds that metrics are averaged over; after a change they have to fill anew.
    stabilisation: seconds after a (re)start or change whose metrics do not count, and without another change.
    scale_down_interval: seconds that fewer workers must have been enough; the most of them are then taken.
    scale_up_grace: seconds after scaling up without scaling down; older operators had 3600 and no scale_down_interval.
    max_scale_up_factor, max_scale_down_factor: the most to add or remove at once, as a share of the workers.
    backlog_threshold: seconds of backlog from which on the job is catching up, and nothing is removed.
    effectiveness: share of the expected gain in rate that scaling up has to bring not to be called ineffective.
    block_ineffective: no further scaling up after one that was ineffective.
    layout: apart: every operator has an instance on every worker; shared: they take turns on it, so the job is one.
    """

    name: ClassVar[str] = "flink-operator"
    paper: ClassVar[str] = (
        "https://nightlies.apache.org/flink/flink-kubernetes-operator-docs-stable/docs/custom-resource/autoscaler/"
    )
    inputs: ClassVar[tuple[str, ...]] = (
        "requested",
        "input_rate",
        "processed_rate",
        "backlog",
        "operators.rate_in",
        "operators.rate_out",
        "operators.busy",
        "per_worker.cpu",
    )

    interval: float = 60.0
    utilisation_target: float = 0.7
    utilisation_boundary: float = 0.3
    catch_up_duration: float = 1800.0
    restart_time: float = 300.0
    metrics_window: float = 900.0
    stabilisation: float = 300.0
    scale_down_interval: float = 3600.0
    scale_up_grace: float = 0.0
    max_scale_up_factor: float = 100_000.0
    max_scale_down_factor: float = 0.6
    backlog_threshold: float = 300.0
    effectiveness: float = 0.1
    block_ineffective: bool = False
    layout: Layout = "apart"
    _aims: Aims = field(init=False, repr=False)
    _means: SlidingMeans = field(init=False, repr=False)
    _steadiness: Steadiness = field(default_factory=Steadiness, init=False, repr=False)
    _hoped: dict[str, tuple[float, float]] = field(default_factory=dict, init=False, repr=False)
    _climbed: dict[str, tuple[float, float]] = field(default_factory=dict, init=False, repr=False)
    _climbed_at: float | None = field(default=None, init=False, repr=False)
    _downs: ScaleDowns = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(0 < self.utilisation_target <= 1, "utilisation_target", "be in (0, 1]", self.utilisation_target)
        check(0 < self.max_scale_down_factor <= 1, "max_scale_down_factor", "be in (0, 1]", self.max_scale_down_factor)
        check(self.max_scale_up_factor > 0, "max_scale_up_factor", "be above 0", self.max_scale_up_factor)
        check(self.metrics_window > 0, "metrics_window", "be above 0 seconds", self.metrics_window)
        check(self.layout in get_args(Layout), "layout", "be apart or shared", self.layout)
        for name in ("utilisation_boundary", "catch_up_duration", "restart_time", "stabilisation", "effectiveness"):
            check(getattr(self, name) >= 0, name, "be 0 or more", getattr(self, name))
        for name in ("scale_down_interval", "scale_up_grace", "backlog_threshold"):
            check(getattr(self, name) >= 0, name, "be 0 seconds or more", getattr(self, name))
        factors = self.max_scale_down_factor, self.max_scale_up_factor
        target, boundary = self.utilisation_target, self.utilisation_boundary
        self._aims = Aims(target, boundary, self.catch_up_duration, self.restart_time, *factors)
        self._means = SlidingMeans(self.metrics_window)
        self._downs = ScaleDowns(self.scale_down_interval)

    def learn(self, observation: Observation) -> None:
        before, now, at = self._steadiness.requested, observation.requested, observation.at
        if self._steadiness.disturbed(observation):
            self._means.clear()
            self._downs.clear()
            if before is not None and now is not None and now != before:
                self._climbed, self._hoped = (self._hoped if now > before else {}), {}
                self._climbed_at = at if now > before else self._climbed_at
        began = self._steadiness.since
        if began is not None and at - began >= self.stabilisation and self._steadiness.counts(observation):
            rates = {"input": observation.input_rate, "processed": observation.processed_rate}
            self._means.add(at, rates | readings(self._operators(observation)))

    def decide(self, observation: Observation) -> Decision:
        current = observation.requested
        if current is None or observation.blind:
            return Decision.hold(current, Reason("flink.unknown", "Nothing is known of the job's rates: no change"))
        waiting = self._waiting(observation.at)
        decision = Decision.hold(current, waiting) if waiting else self._evaluate(observation, current)
        return bounded(decision, self.min_workers, self.max_workers)

    def _operators(self, observation: Observation) -> tuple[Operator, ...]:
        busy = any(operator.busy is not None for operator in observation.operators)
        if busy and self.layout == "apart" and not shared(observation.operators):
            return observation.operators
        whole = job(observation, observation.requested or 1)
        used = sum(operator.busy or 0.0 for operator in observation.operators)
        return (replace(whole, busy=min(1.0, used)) if busy else whole,)

    def _waiting(self, now: float) -> Reason | None:
        began = self._steadiness.since
        if began is not None and now - began < self.stabilisation:
            left = self.stabilisation - (now - began)
            return Reason("flink.stabilising", f"The job settles for another {left:.0f} s", {"seconds": left})
        if not self._means.covers(now):
            left = self.metrics_window - (now - (now if self._means.since is None else self._means.since))
            sentence = f"The metrics cover the last {self.metrics_window:g} s in {left:.0f} s: no change before"
            return Reason("flink.window_not_full", sentence, {"seconds": left})
        return None

    def _evaluate(self, observation: Observation, current: int) -> Decision:
        now, lag = observation.at, observation.backlog
        rate, done = self._means.mean("input", now), self._means.mean("processed", now)
        if rate is None:
            return Decision.hold(current, Reason("flink.unknown", "The rate of the input is not known: no change"))
        found = loads(self._operators(observation), lambda name: self._means.mean(name, now), rate, lag or 0.0)
        known = [load for load in found.values() if load is not None]
        if not known:
            sentence = "No operator's rate and busy time are both known: no change"
            return Decision.hold(current, Reason("flink.unknown", sentence))
        wishes = {load.name: self._aims.workers(load, current) for load in known}
        highest = max(known, key=lambda load: wishes[load.name])
        wish = wishes[highest.name]
        options = [Option(wishes[o.name], o is highest, self._aims.explain(o, current)) for o in known]
        capacity = min(
            (o.true_rate * rate / o.rate * wish / current for o in known if o.rate > 0 and isfinite(o.true_rate)),
            default=None,
        )
        decision = Decision(wish, (self._aims.explain(highest, current),), tuple(options), Expectation(capacity))
        behind = bool(done) and (lag or 0.0) / (done or 1.0) > self.backlog_threshold
        if wish < current and len(known) == len(found) and lag is not None:
            return self._downwards(decision, current, now, self._aims.outside(highest, behind=behind))
        self._downs.clear()
        if wish < current:
            sentence = f"Not all operators and the backlog are known, so nothing is removed: {current} stay"
            return decision.but(current, Reason("flink.unknown", sentence))
        rising = [load for load in known if wishes[load.name] > current]
        if rising and not any(self._aims.outside(load, behind=behind) for load in rising):
            return decision.but(current, self._in_bounds(current))
        return self._upwards(decision, current, rising)

    def _upwards(self, decision: Decision, current: int, rising: list[Load]) -> Decision:
        for load in rising:
            before, hoped = self._climbed.get(load.name, (0.0, 0.0))
            gain, wanted = load.true_rate - before, hoped - before
            if wanted > 0 and gain / wanted < self.effectiveness:
                sentence = f"Scaling up was to bring {load.name} {wanted:.0f} records/s more and brought {gain:.0f}"
                facts: dict[str, Fact] = {"operator": load.name, "wanted": wanted, "gained": gain}
                if self.block_ineffective:
                    return decision.but(current, Reason("flink.ineffective", f"{sentence}: no more of it", facts))
                told = Reason("flink.last_was_ineffective", sentence, facts)
                decision = replace(decision, reasons=(told, *decision.reasons))
        self._hoped = {load.name: (load.true_rate, self._aims.expected(load)) for load in rising}
        return decision

    def _downwards(self, decision: Decision, current: int, now: float, outside: bool) -> Decision:
        wish = decision.workers or 1
        self._downs.wish(now, wish)
        left, most = self._downs.left(now), self._downs.most
        if self._climbed_at is not None and 0 <= now - self._climbed_at < self.scale_up_grace:
            sentence = f"It was scaled up less than {self.scale_up_grace:g} s ago: {current} stay"
            return decision.but(current, Reason("flink.scale_up_grace", sentence))
        if left > 0:
            sentence = f"Fewer workers have to be enough for another {left:.0f} s: {current} stay"
            return decision.but(current, Reason("flink.scale_down_delayed", sentence, {"seconds": left}))
        if not outside:
            return decision.but(current, self._in_bounds(current))
        if most == wish:
            return decision
        sentence = f"{most}, the most of the last {self.scale_down_interval:g} s, comes before {wish}"
        return decision.but(most, Reason("flink.scale_down_most", sentence, {"desired": wish, "most": most}))

    def _in_bounds(self, current: int) -> Reason:
        target, boundary = self.utilisation_target, self.utilisation_boundary
        sentence = f"That is within {boundary:.0%} of the target use of {target:.0%}: {current} stay"
        return Reason("flink.within_bounds", sentence, {"target": target, "boundary": boundary})
