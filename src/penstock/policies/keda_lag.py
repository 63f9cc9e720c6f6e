"""KEDA's Kafka scaler: so many records of lag per worker, through Kubernetes' HorizontalPodAutoscaler.

KEDA hands the lag to an HPA as an external metric with an average value as its target; the arithmetic is that of
kubernetes/kubernetes, replica_calculator.go, GetExternalPerPodMetricReplicas, and tolerance, stabilisation and pace are
those of the `hpa` policy. Never more workers than partitions, unless idle ones are allowed, as there.

Deviations: KEDA scales to and from zero by its activation threshold and cooldown period. Penstock never goes to zero,
so an inactive job goes to `min_workers`. KEDA divides whole numbers when it compares with the partitions, which lets
one worker too many through; here it does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, isfinite
from typing import ClassVar

from penstock.core import Decision, Fact, Observation, Reason
from penstock.errors import check
from penstock.models.hpa import Tolerance
from penstock.models.limits import bounded
from penstock.policies.hpa import Hpa


@dataclass
class KedaLag(Hpa):
    """As many workers as bring the records that wait to so many each.

    lag_threshold: records of lag per worker to aim at. KEDA's 10 is for messages that each take a while.
    activation_lag: records of lag up to which the job is inactive.
    cooldown: seconds that it has to be inactive to go to `min_workers`.
    partitions: how many the source has; more workers would be idle. Unset: not known, no limit.
    allow_idle_workers: more workers than partitions are fine.
    tolerance_up, tolerance_down: how far above or below its target, as a ratio, the lag may be without a change.
    """

    name: ClassVar[str] = "keda-lag"
    paper: ClassVar[str] = "https://keda.sh/docs/latest/scalers/apache-kafka/"
    inputs: ClassVar[tuple[str, ...]] = ("requested", "backlog")

    target_cpu: float = field(default=0.8, init=False, repr=False)  # an HPA's, and not looked at here
    lag_threshold: float = 10_000.0
    activation_lag: float = 0.0
    cooldown: float = 300.0
    partitions: int | None = None
    allow_idle_workers: bool = False
    _active_at: float | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.lag_threshold > 0, "lag_threshold", "be above 0 records", self.lag_threshold)
        check(self.activation_lag >= 0, "activation_lag", "be 0 records or more", self.activation_lag)
        check(self.cooldown >= 0, "cooldown", "be 0 seconds or more", self.cooldown)
        check(self.partitions is None or self.partitions >= 1, "partitions", "be at least 1", self.partitions)

    def learn(self, observation: Observation) -> None:
        super().learn(observation)
        lag, now = _lag(observation), observation.at
        if lag is None or lag > self.activation_lag or self._active_at is None:
            self._active_at = now  # what is not known may be lag
        self._active_at = min(self._active_at, now)  # the clock may have gone back

    def decide(self, observation: Observation) -> Decision:
        current, lag = observation.requested, _lag(observation)
        if current is None or lag is None:
            return Decision.hold(current, Reason("lag.unknown", "The lag is not known: no change"))
        now = observation.at
        self._behaviour.begin(current, now)
        if not self.min_workers <= current <= self.max_workers:
            reason = Reason("lag.not_looked_at", f"{current} workers are out of bounds before any lag is looked at")
            return bounded(Decision(current, (reason,)), self.min_workers, self.max_workers)
        if lag <= self.activation_lag and self._active_at is not None and now - self._active_at >= self.cooldown:
            return self._inactive(current, lag)
        decision = self._propose(current, lag)
        return self._limit(self._stabilise(decision, current, now), current, now)

    def _propose(self, current: int, lag: float) -> Decision:
        target = self.lag_threshold
        counted, limited = lag, ""
        if self.partitions is not None and not self.allow_idle_workers and lag > self.partitions * target:
            counted, limited = self.partitions * target, f", counted as {self.partitions} partitions' worth"
        ratio = counted / (target * current)
        facts: dict[str, Fact] = {"lag": lag, "counted": counted, "lag_threshold": target, "ratio": ratio}
        seen = f"{lag:.0f} records of lag{limited} are {counted / current:.0f} for each of {current}"
        if Tolerance(self.tolerance_up, self.tolerance_down).holds(ratio):
            return Decision.hold(current, Reason("lag.in_tolerance", f"{seen}, near {target:.0f}: no change", facts))
        workers = ceil(counted / target)
        sentence = f"{seen}, {{}} the {target:.0f} to aim at: {counted:.0f}/{target:.0f} -> {workers}"
        if ratio > 1:
            return Decision(workers, (Reason("lag.above_target", sentence.format("above"), facts),))
        return Decision(workers, (Reason("lag.below_target", sentence.format("below"), facts),))

    def _inactive(self, current: int, lag: float) -> Decision:
        least = self.min_workers
        facts: dict[str, Fact] = {"lag": lag, "activation_lag": self.activation_lag, "cooldown": self.cooldown}
        sentence = (
            f"No more than {self.activation_lag:.0f} records of lag for {self.cooldown:g} s: {least} of {current}"
        )
        return Decision(least, (Reason("lag.inactive", sentence, facts),))


def _lag(observation: Observation) -> float | None:
    """Records that wait; what cannot be is not known, and never a lag of 0."""
    lag = observation.backlog
    return lag if lag is not None and isfinite(lag) and lag >= 0 else None
