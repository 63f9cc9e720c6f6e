"""TWRES, as Phoebe's evaluation has it: the fewest workers whose capacity exceeds the forecast load.

Hu, Kang, Zheng: "Stream data load prediction for resource scaling using online support vector regression", Algorithms
12 (2), 2019, scales Spark Streaming by a load forecast and a performance model. Phoebe (ICWS 2022) sec. IV-C gives it
its own profile, forecast and interval, so that only the rescaling differs; that is what is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from penstock.core import Decision, Expectation, Fact, Observation, Option, Policy, Reason
from penstock.errors import check
from penstock.models.limits import bounded
from penstock.models.phoebe import Foresight
from penstock.models.profiling import ProfilingData, profile_from
from penstock.models.regression import nnls
from penstock.models.sanity import checked


def capacities(profile: ProfilingData, least: int, most: int) -> dict[int, float]:
    """Records/s by scale-out: non-negative least squares of T_max on 1, x, 1/x and 1/x^2.

    >>> from penstock.models.profiling import Limit
    >>> found = capacities(ProfilingData((), tuple(Limit(n, 1000.0 * n + 50) for n in (2, 4, 8))), 3, 4)
    >>> {workers: round(rate) for workers, rate in found.items()}
    {3: 3050, 4: 4050}
    """

    def features(workers: int) -> list[float]:
        return [1.0, float(workers), 1 / workers, 1 / workers**2]

    weights = nnls([features(limit.workers) for limit in profile.limits], [limit.rate for limit in profile.limits])
    return {n: float(np.dot(features(n), weights)) for n in range(least, most + 1)}


@dataclass
class Twres(Policy):
    """The fewest workers that can do what is forecast; one more than now if that should do and latency is too high.

    profile: JSON text of a profiling phase, as `penstock profile` writes it; without one it holds.
    interval: seconds between decisions, which is as far as the load is added up.
    max_latency: seconds of latency above which one worker is added.
    horizon: seconds that the load is forecast for.
    forecaster: experts: many small models, weighed by what they got right; auto-arima: the authors'; linear; last.
    """

    name: ClassVar[str] = "twres"
    paper: ClassVar[str] = "https://doi.org/10.3390/a12020037"
    inputs: ClassVar[tuple[str, ...]] = ("requested", "input_rate", "latency")

    profile: str = field(default="", repr=False)
    interval: float = 600.0
    max_latency: float = 2.0
    horizon: float = 600.0
    forecaster: Literal["experts", "auto-arima", "linear", "last"] = "experts"
    _capacity: dict[int, float] = field(init=False, repr=False, default_factory=dict)
    _ahead: Foresight = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.max_latency > 0, "max_latency", "be above 0 seconds", self.max_latency)
        check(self.horizon > 0, "horizon", "be above 0 seconds", self.horizon)
        self._ahead = Foresight(self.forecaster, self.horizon)
        if self.profile:
            self._capacity = capacities(profile_from(self.profile), self.min_workers, self.max_workers)

    def learn(self, observation: Observation) -> None:
        seen = checked(observation)
        if seen is not None:
            self._ahead.learn(seen.observation.at, seen.observation.input_rate)

    def decide(self, observation: Observation) -> Decision:
        seen = checked(observation)
        o = None if seen is None else seen.observation
        if o is None or o.requested is None:
            unknown = Reason("requested.unknown", "How many workers were asked for is not known: no change")
            return Decision.hold(None, unknown)
        current = o.requested
        if not self._capacity:
            sentence = "There is no profile to go by: no change; `penstock profile` makes one"
            return Decision.hold(current, Reason("profile.missing", sentence))
        if not self.min_workers <= current <= self.max_workers:
            reason = Reason("twres.not_looked_at", f"{current} workers are out of bounds before anything is looked at")
            return bounded(Decision(current, (reason,)), self.min_workers, self.max_workers)
        if o.blind:
            return Decision.hold(current, Reason("metrics.blind", "Nothing is measured now: no change"))
        outlook = self._ahead.now()
        if outlook is None:
            return Decision.hold(current, Reason("load.unknown", "No load was measured lately: no change"))
        expected = outlook.forecast.mean(self.interval) * self.interval
        options = self._walk(expected)
        workers = options[-1].workers
        facts: dict[str, Fact] = {"expected": expected, "capacity": self._capacity[workers] * self.interval}
        facts |= {"latency": o.latency, "by": outlook.by}
        return self._choose(current, workers, options, expected, o.latency, facts)

    def _walk(self, expected: float) -> tuple[Option, ...]:
        """The scale-outs up to the first that can do it, or to the largest."""
        options: list[Option] = []
        for workers, rate in self._capacity.items():
            facts: dict[str, Fact] = {"capacity": rate, "records": rate * self.interval}
            if rate * self.interval > expected:
                options.append(Option(workers, True, Reason("capacity.enough", "the fewest that can do it", facts)))
                break
            sentence = f"not above the {expected:,.0f} records that are expected"
            options.append(Option(workers, False, Reason("capacity.below_load", sentence, facts)))
        return tuple(options)

    def _choose(
        self,
        current: int,
        workers: int,
        options: tuple[Option, ...],
        expected: float,
        latency: float | None,
        facts: dict[str, Fact],
    ) -> Decision:
        def decision(count: int, *reasons: Reason) -> Decision:
            expects = Expectation(capacity=self._capacity[count], peak=expected / self.interval)
            return Decision(count, reasons, options, expects)

        can = f"{workers} worker{'s' * (workers != 1)} can do {self._capacity[workers] * self.interval:,.0f} records"
        if not options[-1].chosen:
            sentence = f"{expected:,.0f} records are expected in {self.interval:,.0f} s, and {can}: all there are"
            return decision(workers, Reason("twres.none_fits", sentence, facts))
        view = f"{can} in {self.interval:,.0f} s, above the {expected:,.0f} expected"
        if workers > current:
            return decision(workers, Reason("twres.out", view, facts))
        code = "twres.fits" if workers == current else "twres.in"
        reason = Reason(code, f"{view}: the fewest", facts)
        if latency is None and workers < current:
            unknown = Reason("latency.unknown", f"{view}, but latency is not known: no worker is removed", facts)
            return decision(current, reason, unknown)
        if latency is not None and latency > self.max_latency:
            sentence = f"{current} should do, but latency is {latency:,.1f} s, above {self.max_latency:g} s: one more"
            return bounded(
                Decision(current + 1, (reason, Reason("latency.above_limit", sentence, facts)), options),
                self.min_workers,
                self.max_workers,
            )
        return decision(workers, reason)
