"""The profiling phase: what each scale-out can do, how late it is, and how it recovers; with what that cost.

Phoebe (ICWS 2022) sec. III-C and IV-B: 8 deployments at scale-outs from 2 to 24, rates from 20 K in steps of 20 K, five
minutes to settle and two to measure at each, until all have shown their limit. How a deployment is judged is in
penstock.models.profiling. Simulated deployments run side by side (`SimulatedRig`); on a real cluster there is one after
the other (penstock.experiment.serial_rig). Failures, from which the paper takes its downtime "based on observations",
are injected afterwards at a few scale-outs, below their limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, isfinite
from statistics import fmean
from typing import Protocol

from penstock.core import Observation
from penstock.errors import Refused, Unavailable, check
from penstock.models.outage import Watch
from penstock.models.phoebe import behind
from penstock.models.profiling import Limit, ObservedRecovery, Point, ProfilingData, judge, rising, scale_outs
from penstock.targets.simulated import Profile, SimulatedClock, SimulatedTarget
from penstock.workloads import Constant

SETTLE, MEASURE = 300.0, 120.0  # seconds, sec. IV-B
PATIENCE = 900.0  # seconds to recover in; what takes longer is no example
UNSEEN = 180.0  # seconds after which a failure that has not shown will not
SHARES = (0.2, 0.4, 0.6)  # of T_max at which failures are injected: with room to recover, and with less


SEEDS = 1_000_003  # between the seeds of two failures; far from those of runs


@dataclass(slots=True)
class Injected(Watch):
    """A failure that was injected, so that its beginning is known."""

    last_well: float | None = None

    def see(self, o: Observation, workers: int, rate: float) -> ObservedRecovery | None:
        """The recovery, once it is known."""
        if not self.hurt and behind(o) is False:
            self.last_well = o.at
        seconds = self.learn(o.at, o.latency)
        if seconds is None:
            # Where a worker is lost and nothing stops, as on Spark with one to spare, nothing has to recover.
            unhurt = not self.hurt and o.at - self.began_at >= UNSEEN
            return ObservedRecovery(workers, rate, 0.0) if unhurt else None
        silent = 0.0 if self.last_well is None else self.last_well - self.began_at
        return ObservedRecovery(workers, rate, seconds, min(max(silent, 0.0), seconds))


class Rig(Protocol):
    """Where deployments are run, side by side or one after the other."""

    @property
    def worker_seconds(self) -> float:
        """What was paid for so far."""
        ...

    def measure(self, rate: float, scale_outs: Sequence[int]) -> tuple[Point, ...]:
        """Each scale-out under this rate, once it has settled."""
        ...

    def recover(self, rate: float, workers: int) -> ObservedRecovery | None:
        """From an injected failure until latency is normal again; 0 s if it did not show, None if that was not seen."""
        ...


def profile(
    rig: Rig,
    scale_outs: Sequence[int],
    rates: Iterable[float],
    *,
    failures: int = 6,
    tell: Callable[[str], None] = lambda _: None,
) -> ProfilingData:
    """Raise the rate until every scale-out has shown its limit, then inject `failures` failures.

    rates: in rising order; scale-outs that the last one does not overwhelm have no limit in the profile.
    """
    check(bool(scale_outs), "scale_outs", "have at least one", scale_outs)
    check(failures >= 0, "failures", "be 0 or more", failures)
    alive = sorted(set(scale_outs))
    points: list[Point] = []
    fine: list[Point] = []
    limits: list[Limit] = []
    for rate in rates:
        measured = rig.measure(rate, alive)
        overwhelmed = judge(measured, fine)
        points += measured
        fine += [point for point in measured if point not in overwhelmed]
        for point in overwhelmed:
            # A job far behind may do less than it did when it just kept up.
            before = [each.throughput for each in fine if each.workers == point.workers]
            limits.append(Limit(point.workers, max(point.throughput, *before, 0.0)))
            tell(f"{point.workers} workers: at their limit with {limits[-1].rate:,.0f} records/s")
            alive.remove(point.workers)
        tell(f"{rate:,.0f} records/s: {len(alive)} of {len(set(scale_outs))} scale-outs keep up")
        if not alive:
            break
    if not limits:
        raise Refused("no scale-out got to its limit: the rates are too low")
    spent = rig.worker_seconds
    recoveries = _recoveries(rig, limits, failures, tell)
    return ProfilingData(
        points=tuple(points),
        limits=tuple(sorted(limits, key=lambda limit: limit.workers)),
        recoveries=recoveries,
        worker_seconds=rig.worker_seconds,
        failure_seconds=rig.worker_seconds - spent,
    )


def _recoveries(
    rig: Rig, limits: Sequence[Limit], failures: int, tell: Callable[[str], None]
) -> tuple[ObservedRecovery, ...]:
    """Evenly over the scale-outs, from the largest down, at each of the shares in turn."""
    ordered = sorted(limits, key=lambda limit: -limit.workers)
    found: list[ObservedRecovery] = []
    for number in range(failures):
        limit = ordered[number * len(ordered) // failures]
        rate = SHARES[number % len(SHARES)] * limit.rate
        seen = rig.recover(rate, limit.workers)
        if seen is None:
            tell(f"{limit.workers} workers at {rate:,.0f} records/s: no recovery was seen")
            continue
        tell(f"{limit.workers} workers at {rate:,.0f} records/s: recovered after {seen.seconds:,.0f} s")
        found.append(seen)
    return tuple(found)


def point_of(workers: int, rate: float, seen: Iterable[Observation]) -> Point:
    """The means of what was measured."""
    known = [(o.latency, o.processed_rate) for o in seen]
    latencies = [latency for latency, _ in known if latency is not None]
    throughputs = [throughput for _, throughput in known if throughput is not None]
    if not latencies or not throughputs:
        raise Unavailable(f"{workers} workers at {rate:,.0f} records/s showed no latency or no throughput")
    return Point(workers, rate, fmean(latencies), fmean(throughputs))


class SimulatedRig:
    """Simulated deployments, side by side on one clock; fresh ones at each rate, so that nothing is left over.

    profile: of the simulated job, or its name. settle, measure: seconds before and of each measurement.
    seed: another seed, another run.
    """

    def __init__(
        self, profile: Profile | str, *, settle: float = SETTLE, measure: float = MEASURE, seed: int = 0
    ) -> None:
        check(settle >= 0, "settle", "be 0 seconds or more", settle)
        check(measure >= 1, "measure", "be at least 1 second", measure)
        self._profile, self._seed = profile, seed
        self._settle, self._measure = settle, measure
        self._clock = SimulatedClock()
        self._worker_seconds = 0.0
        self._failures = 0

    @property
    def worker_seconds(self) -> float:
        return self._worker_seconds

    def measure(self, rate: float, scale_outs: Sequence[int]) -> tuple[Point, ...]:
        length = self._settle + self._measure
        deployments = {workers: self._deploy(rate, workers, length) for workers in scale_outs}
        self._clock.sleep(length)
        now = self._clock.now()
        self._worker_seconds += sum(scale_outs) * length
        return tuple(
            point_of(workers, rate, deployment.between(now - self._measure, now, 1.0))
            for workers, deployment in deployments.items()
        )

    def recover(self, rate: float, workers: int) -> ObservedRecovery | None:
        length = self._settle + self._measure
        self._failures += 1  # every failure is another run, so that stops are drawn anew
        job = self._deploy(rate, workers, length + PATIENCE, self._failures)
        begin = self._clock.now()
        self._clock.sleep(length)
        failed_at = self._clock.now()
        normal = point_of(workers, rate, job.between(failed_at - self._measure, failed_at, 1.0)).latency
        job.fail(failed_at)
        watch, found = Injected(failed_at, normal), None
        while found is None and self._clock.now() < failed_at + PATIENCE:
            now = self._clock.now()
            self._clock.sleep(ceil(watch.hold))
            for seen in job.between(now, self._clock.now(), 1.0):
                found = watch.see(seen, workers, rate) if found is None else found
        self._worker_seconds += workers * (self._clock.now() - begin)
        return found

    def _deploy(self, rate: float, workers: int, seconds: float, another: int = 0) -> SimulatedTarget:
        load = Constant(level=rate, duration=seconds)
        seed = self._seed + SEEDS * another
        return SimulatedTarget(self._profile, load, workers=workers, seed=seed, clock=self._clock)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to profile; by default as in sec. IV-B.

    least, most, count: scale-outs, evenly spaced; the most there are where it is not given.
    first, step: rates in records/s; the first is a step where it is not given.
    settle, measure: seconds before and of each measurement. failures: how many to inject.
    """

    least: int = 2
    most: int | None = None
    count: int = 8
    first: float | None = None
    step: float = 20_000.0
    settle: float = SETTLE
    measure: float = MEASURE
    failures: int = 6

    def __post_init__(self) -> None:
        check(self.least >= 1, "min", "be at least 1 worker", self.least)
        check(self.most is None or self.most >= self.least, "max", f"be at least min ({self.least})", self.most)
        check(self.count >= 1, "count", "be at least 1", self.count)
        for name in ("first", "step"):
            rate = getattr(self, name)
            check(rate is None or (isfinite(rate) and rate > 0), name, "be above 0 records/s", rate)
        check(isfinite(self.settle) and self.settle >= 0, "settle", "be 0 seconds or more", self.settle)
        check(isfinite(self.measure) and self.measure >= 1, "measure", "be at least 1 second", self.measure)
        check(self.failures >= 0, "failures", "be 0 or more", self.failures)

    def run(self, rig: Rig, most: int, tell: Callable[[str], None] = lambda _: None) -> ProfilingData:
        """The profile that a rig makes of it."""
        largest = min(self.most or most, most)
        places = scale_outs(min(self.least, largest), largest, self.count)
        rates = rising(self.step if self.first is None else self.first, self.step)
        return profile(rig, places, rates, failures=self.failures, tell=tell)


@lru_cache(maxsize=64)
def profiled(job: Profile, most: int, seed: int, plan: Plan) -> ProfilingData:
    """The profile of a simulated job, made once."""
    return plan.run(SimulatedRig(job, settle=plan.settle, measure=plan.measure, seed=seed), most)
