"""Kubernetes' HorizontalPodAutoscaler, autoscaling/v2, on CPU utilisation.

Its defaults are those of kube-controller-manager. A pod is a worker; the arithmetic is in penstock.models.hpa.

Deviation: Kubernetes skips the CPU of a starting pod by its start time, readiness and metric window. Here a worker says
whether it is cold (`ready_at`), and its CPU sample has no window, so the controller's cpu-initialization-period and
initial-readiness-delay have nothing left to decide: cold is unready, whatever its age.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from penstock.core import Decision, Fact, Observation, Policy, Reason, Worker
from penstock.errors import check
from penstock.models.hpa import ALLOWANCE, Behaviour, Pace, Proposal, Reading, Tolerance, Verdict, propose
from penstock.models.limits import bounded, too_few, too_many

Select = Literal["max", "min", "disabled"]


@dataclass
class Hpa(Policy):
    """As many workers as bring their mean CPU to its target.

    target_cpu: CPU use to aim at, as a share of what a worker requests; whole percents.
    cpu_request: CPU that a worker requests, as a share of what it may use at most; 1: all of it.
    tolerance_up, tolerance_down: how far above or below its target, as a ratio, CPU may be without a change.
    scale_up_pods, scale_down_pods: the most workers to add or remove per period; 0: no such rule.
    scale_up_percent, scale_down_percent: the most percent of workers to add or remove per period; 0: no such rule.
    scale_up_period, scale_down_period: seconds that the two rules above look back.
    scale_up_select, scale_down_select: max: the laxer of the two rules counts; min: the stricter; disabled: never.
    scale_up_stabilisation: seconds over which the lowest recommendation counts on the way up.
    scale_down_stabilisation: seconds over which the highest recommendation counts on the way down.
    """

    name: ClassVar[str] = "hpa"
    paper: ClassVar[str] = "https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/"
    inputs: ClassVar[tuple[str, ...]] = ("requested", "per_worker.cpu", "per_worker.ready_at")

    target_cpu: float = 0.8
    cpu_request: float = 1.0
    tolerance_up: float = 0.1
    tolerance_down: float = 0.1
    scale_up_pods: int = 4
    scale_up_percent: int = 100
    scale_up_period: float = 15.0
    scale_up_select: Select = "max"
    scale_up_stabilisation: float = 0.0
    scale_down_pods: int = 0
    scale_down_percent: int = 100
    scale_down_period: float = 15.0
    scale_down_select: Select = "max"
    scale_down_stabilisation: float = 300.0
    _behaviour: Behaviour = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(0.005 < self.target_cpu <= 1, "target_cpu", "be in [0.01, 1]", self.target_cpu)
        check(0.01 <= self.cpu_request <= 1, "cpu_request", "be in [0.01, 1]", self.cpu_request)
        for way in ("up", "down"):
            scale = f"scale_{way}"
            for name in (f"tolerance_{way}", f"{scale}_pods", f"{scale}_percent", f"{scale}_stabilisation"):
                check(getattr(self, name) >= 0, name, "be 0 or more", getattr(self, name))
            pace = self._pace(way)
            check(pace.period > 0, f"{scale}_period", "be above 0 seconds", pace.period)
            check(pace.select in get_args(Select), f"{scale}_select", "be max, min or disabled", pace.select)
            ruled = pace.select == "disabled" or pace.pods > 0 or pace.percent > 0
            check(ruled, f"{scale}_percent", f"be above 0 when {scale}_pods is 0", pace.percent)
        windows = self.scale_up_stabilisation, self.scale_down_stabilisation
        self._behaviour = Behaviour(*windows, self._pace("up"), self._pace("down"))

    def learn(self, observation: Observation) -> None:
        self._behaviour.learn(observation)

    def decide(self, observation: Observation) -> Decision:
        current = observation.requested
        if current is None:
            return Decision.hold(None, Reason("cpu.unknown", "How many workers were asked for is not known: no change"))
        self._behaviour.begin(current, observation.at)
        if current > self.max_workers:
            return Decision(self.max_workers, (too_many(current, self.max_workers),))
        if current < self.min_workers:
            return Decision(self.min_workers, (too_few(current, self.min_workers),))
        target, reading = round(self.target_cpu * 100), _reading(observation, current, self.cpu_request)
        proposal = propose(current, reading, target, Tolerance(self.tolerance_up, self.tolerance_down))
        if proposal is None:
            sentence = (
                f"No ready worker reports its CPU ({reading.missing} silent, {reading.unready} not ready): no change"
            )
            return Decision.hold(
                current, Reason("cpu.unknown", sentence, {"missing": reading.missing, "unready": reading.unready})
            )
        decision = Decision(proposal.workers, (_explain(proposal, reading, target, current),))
        return self._limit(self._stabilise(decision, current, observation.at), current, observation.at)

    def _stabilise(self, decision: Decision, current: int, now: float) -> Decision:
        desired = decision.workers or 0
        workers = self._behaviour.stabilised(current, desired, now)
        if workers == desired:
            return decision
        way, best, window = (
            ("up", "lowest", self.scale_up_stabilisation)
            if desired >= current
            else ("down", "highest", self.scale_down_stabilisation)
        )
        sentence = f"{workers}, the {best} recommendation of the last {window:g} s, comes before {desired}"
        facts: dict[str, Fact] = {"desired": desired, "stabilised": workers, "window": window}
        return decision.but(workers, Reason(f"hpa.stabilised_{way}", sentence, facts))

    def _limit(self, decision: Decision, current: int, now: float) -> Decision:
        desired = decision.workers or 0
        if desired > current:
            limit = self._behaviour.ceiling(current, now)
            if desired > limit < self.max_workers:
                return decision.but(limit, _paced("up", desired, limit, self._behaviour.up))
        if desired < current:
            limit = self._behaviour.floor(current, now)
            if desired < limit > self.min_workers:
                return decision.but(limit, _paced("down", desired, limit, self._behaviour.down))
        return bounded(decision, self.min_workers, self.max_workers)

    def _pace(self, way: str) -> Pace:
        return Pace(*(getattr(self, f"scale_{way}_{rule}") for rule in ("pods", "percent", "period", "select")))


def _reading(observation: Observation, current: int, request: float) -> Reading:
    # Kubernetes counts use against the request, observations against the limit: a worker that may use twice what it
    # requests is seen at up to 200 %.
    # Workers that were asked for and are not there yet are Kubernetes' pending pods: unready.
    pending = max(0, current - len(observation.per_worker))
    silent = [w for w in observation.per_worker if w.cpu is None]
    reporting = [w for w in observation.per_worker if w.cpu is not None]
    ready = tuple(round((w.cpu or 0) / request * ALLOWANCE) for w in reporting if not _cold(w, observation.at))
    return Reading(ready, unready=pending + len(reporting) - len(ready), missing=len(silent))


def _cold(worker: Worker, now: float) -> bool:
    # A target that tells neither time does not know; its workers count as ready, or nothing would ever scale.
    if worker.ready_at is None:
        return worker.started_at is not None
    return worker.ready_at > now


def _explain(proposal: Proposal, reading: Reading, target: int, current: int) -> Reason:
    used, adjusted, counted = proposal.utilisation, proposal.adjusted, proposal.counted
    seen = f"CPU {used} % of {len(reading.ready)} ready worker{'s' * (len(reading.ready) != 1)}"
    unsure = f"; with {reading.unready} not ready and {reading.missing} silent it counts as {adjusted} % of {counted}"
    unsure = unsure if counted > len(reading.ready) or reading.missing else ""
    code, rest = {
        Verdict.ABOVE: ("cpu.above_target", f" is above its target of {target} %{unsure}"),
        Verdict.BELOW: ("cpu.below_target", f" is below its target of {target} %{unsure}"),
        Verdict.IN_TOLERANCE: ("cpu.in_tolerance", f" is near its target of {target} %: {current} stay"),
        Verdict.UNSURE_IN_TOLERANCE: ("hpa.unsure_in_tolerance", f"{unsure}, near its target of {target} %: no change"),
        Verdict.UNSURE_REVERSES: ("hpa.unsure_reverses", f"{unsure}, beyond its target of {target} %: no change"),
        Verdict.COUNT_REVERSES: ("hpa.count_reverses", f"{unsure}, which would turn the direction: no change"),
    }[proposal.verdict]
    if proposal.verdict in (Verdict.ABOVE, Verdict.BELOW):
        rest += f": {counted} x {adjusted}/{target} -> {proposal.workers}"
    facts: dict[str, Fact] = {"cpu_percent": used, "target_percent": target, "ready": len(reading.ready)}
    facts |= {"unready": reading.unready, "missing": reading.missing, "adjusted_percent": adjusted, "counted": counted}
    return Reason(code, seen + rest, facts)


def _paced(way: str, desired: int, limit: int, pace: Pace) -> Reason:
    facts: dict[str, Fact] = {"desired": desired, "limit": limit, "period": pace.period}
    if pace.select == "disabled":
        return Reason(f"hpa.scale_{way}_disabled", f"Scaling {way} is disabled: {limit} instead of {desired}", facts)
    sentence = f"{limit} instead of {desired}: that is as far {way} as one may go in {pace.period:g} s"
    return Reason(f"hpa.scale_{way}_limited", sentence, facts)
