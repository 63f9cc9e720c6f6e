"""The arithmetic of the Flink Kubernetes operator's autoscaler: what an operator must be able to do, and what it can.

Behaviour follows apache/flink-kubernetes-operator, flink-autoscaler: AutoScalerUtils (the required capacity),
ScalingMetricEvaluator (true rates, target rates through the dataflow, thresholds) and JobVertexScaler (the factor).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil, floor, inf

from penstock.core import Fact, Operator, Reason
from penstock.models.hpa import Moment, since
from penstock.models.operators import reads, selectivity, true_rate
from penstock.models.topology import chained, in_order, upstream


@dataclass(frozen=True, slots=True)
class Load:
    """What reaches an operator.

    rate: records/s to keep up with; lag: records that wait for it.
    true_rate: records/s that it could do if it were always busy; infinite when it has nothing to do.
    """

    name: str
    rate: float
    lag: float
    true_rate: float


@dataclass(frozen=True, slots=True)
class Aims:
    """What to aim at: shares of busy time, and seconds.

    target, boundary: utilisation to scale to, and how far off it may be without a change.
    catch_up: in which lag is to be worked off; 0: lag does not count. restart: without processing at every change.
    down_factor, up_factor: the most to remove or add, as a share of what there is.
    """

    target: float
    boundary: float
    catch_up: float
    restart: float
    down_factor: float
    up_factor: float

    def required(self, load: Load, utilisation: float, *, restart: bool = True) -> float:
        """Records/s of capacity for the load at this utilisation, its lag, and what a restart leaves behind.

        >>> aims = Aims(0.7, 0.3, catch_up=1800, restart=300, down_factor=0.6, up_factor=100_000)
        >>> aims.required(Load("count", rate=700, lag=90_000, true_rate=1000), 0.7)  # 1000 + 50 + 116.7
        1167.0
        """
        if utilisation <= 0:
            return inf
        extra = 0.0
        if self.catch_up > 0:
            extra = (load.lag + (load.rate * self.restart if restart else 0.0)) / self.catch_up
        return float(floor(load.rate / min(utilisation, 1.0) + extra + 0.5))

    def workers(self, load: Load, current: int) -> int:
        """How many bring the operator to its target, within the factors."""
        return max(1, ceil(self._factor(load) * current))

    def expected(self, load: Load) -> float:
        """Records/s that it should be able to do then."""
        return load.true_rate * self._factor(load)

    def outside(self, load: Load, *, behind: bool) -> bool:
        """Whether it is too far off to leave it. While far behind, up to full use is fine and nothing is removed."""
        upper, lower = (1.0, 0.0) if behind else (self.target + self.boundary, self.target - self.boundary)
        too_slow = load.true_rate < self.required(load, upper, restart=False)
        return too_slow or load.true_rate > self.required(load, lower)

    def explain(self, load: Load, current: int) -> Reason:
        workers, required = self.workers(load, current), self.required(load, self.target)
        facts: dict[str, Fact] = {"operator": load.name, "rate": load.rate, "lag": load.lag, "required": required}
        facts |= {"true_rate": None if load.true_rate == inf else load.true_rate, "workers": workers}
        needs = (
            f"{load.name} needs {required:.0f} records/s for {load.rate:.0f} at {self.target:.0%} use"
            f" and {load.lag:.0f} to catch up"
        )
        can = "and has had nothing to do" if load.true_rate == inf else f"and can do {load.true_rate:.0f}"
        code = "above" if workers < current else "below" if workers > current else "at"
        return Reason(f"capacity.{code}_target", f"{needs}, {can}: {current} -> {workers}", facts)

    def _factor(self, load: Load) -> float:
        factor = self.required(load, self.target) / load.true_rate
        return min(max(factor, 1 - self.down_factor), 1 + self.up_factor)


@dataclass(slots=True)
class ScaleDowns:
    """Fewer workers that would have done, over the last `interval` seconds: DelayedScaleDown there."""

    interval: float
    first: float | None = None
    _wishes: tuple[Moment, ...] = ()

    def wish(self, now: float, workers: int) -> None:
        self.first = now if self.first is None else min(self.first, now)  # the clock may have gone back
        self._wishes = (*since(self._wishes, now - self.interval), Moment(now, workers))

    def left(self, now: float) -> float:
        """Seconds until the first wish is old enough."""
        return self.interval - (now - (now if self.first is None else self.first))

    @property
    def most(self) -> int:
        return max(moment.workers for moment in self._wishes)

    def clear(self) -> None:
        self.first, self._wishes = None, ()


Mean = Callable[[str], float | None]


def readings(operators: Iterable[Operator]) -> dict[str, float | None]:
    """What to average over."""
    values: dict[str, float | None] = {}
    for operator in operators:
        values[f"{operator.name} in"] = reads(operator)
        values[f"{operator.name} out"] = operator.rate_out
        values[f"{operator.name} busy"] = operator.busy
    return values


def loads(operators: tuple[Operator, ...], mean: Mean, rate: float, lag: float) -> dict[str, Load | None]:
    """By operator, what reaches it when `rate` and `lag` enter at the sources; None where it cannot be known.

    Sources share both as they share the reading; an operator passes on as many records per record as it does now.
    """
    feeds = upstream(chained(operators))
    sources = [name for name, above in feeds.items() if not above]
    means = {operator.name: _averaged(operator, mean) for operator in operators}
    total = sum(means[name].rate_in or 0.0 for name in sources)
    weights: dict[str, float | None] = {}
    for name in in_order(feeds):
        if name in sources:
            own = means[name].rate_in
            weights[name] = 1.0 / len(sources) if total == 0 else None if own is None else own / total
        else:
            parts = [_passed_on(weights[above], means[above]) for above in feeds[name]]
            weights[name] = None if any(part is None for part in parts) else sum(part or 0.0 for part in parts)
        if rate == 0 and lag == 0:
            weights[name] = 0.0  # whatever it passes on, there is nothing to pass
    found: dict[str, Load | None] = {}
    for name, operator in means.items():
        weight, known = weights.get(name), operator.rate_in is not None and operator.busy is not None
        speed = true_rate(operator) or inf  # without work it may be as fast as one likes
        found[name] = Load(name, rate * weight, lag * weight, speed) if known and weight is not None else None
    return found


def _averaged(operator: Operator, mean: Mean) -> Operator:
    """The operator as a single instance with its means."""
    rate_in, rate_out, busy = (mean(f"{operator.name} {what}") for what in ("in", "out", "busy"))
    return Operator(operator.name, 1, rate_in, rate_out, busy=None if busy is None else min(busy, 1.0))


def _passed_on(weight: float | None, operator: Operator) -> float | None:
    each = selectivity(operator)
    return None if weight is None or each is None else weight * each
