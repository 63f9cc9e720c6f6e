"""Phoebe's Algorithm 1, and what it goes by: the profile, kept up to date with what is measured at run time.

Geldenhuys, Scheinert, Kao, Thamsen: "Phoebe: QoS-Aware Distributed Stream Processing through Anticipating Dynamic
Workloads", ICWS 2022, sec. III-B, III-D and III-E. The smallest scale-out that recovers from a failure in time and
whose latency at the highest of the forecast's bin means is valid; if there is none, the largest.

Deviations: the catch-up is solved for exactly (penstock.models.recovery) where the paper adds up steps of c(n) until
one is below a second. The paper says only that models are updated with metrics of the run; here each calm interval adds
a point to M_L, a job seen at its limit moves T_max of its scale-out half-way there, and a recovery joins those from
which the downtime is fitted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from penstock.core import Decision, Expectation, Fact, Observation, Option, Reason
from penstock.models import forecast
from penstock.models.forecast import Forecast, Outlook, Scored
from penstock.models.forecast.base import INTERVALS_AHEAD
from penstock.models.latency import Capacities, LatencyModel
from penstock.models.outage import Outage, Watch, outage
from penstock.models.profiling import Limit, ObservedRecovery, Point, ProfilingData

BINS = 5
SETTLED = 300.0  # seconds after a (re)start from which on the profile's measurements were taken, so these too
FULL = 5.0  # seconds of input that wait in a job that cannot keep up
ENOUGH = 60  # samples of a job at its limit that make a measurement
SAMPLES = 3600  # between two decisions; more are not kept
POINTS, RECOVERIES = 200, 20  # of the run that are kept; the oldest go
WEIGHT = 0.5  # of what was measured last against all before
LONGEST = 1800.0  # seconds after which a recovery is not waited for any more


@dataclass
class Foresight:
    """A forecast `horizon` seconds ahead, scored all along and not only when somebody decides."""

    forecaster: str = "experts"
    horizon: float = 600.0
    outlook: Outlook | None = field(init=False, default=None)
    _scored: Scored = field(init=False, repr=False)
    _asked_at: float | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self._scored = Scored(forecast.make(self.forecaster, self.horizon / INTERVALS_AHEAD))

    def learn(self, at: float, rate: float | None) -> None:
        self._scored.learn(at, rate)
        step = self.horizon / INTERVALS_AHEAD
        if self._asked_at is None or not 0 <= at - self._asked_at < step:
            self._asked_at = at
            self.outlook = self._scored.outlook()

    def now(self) -> Outlook | None:
        """The outlook from the last sample on."""
        self.outlook = self._scored.outlook()
        return self.outlook


def projected(ahead: Forecast, horizon: float) -> float:
    """T_avg: the highest of the forecast's bin means, sec. III-E and Fig. 5.

    >>> projected(Forecast(at=0.0, step=100.0, path=(1.0, 2.0, 3.0, 4.0, 9.0), by="last"), 500.0)
    9.0
    """
    return float(ahead.means(horizon / BINS, BINS).max())


@dataclass
class Experience:
    """The profile and what was learned since. Give it every sample; `refit` once before each decision.

    profile: of the profiling phase. replay: the checkpoint interval. first_downtime: where the profile has no failures.
    """

    profile: ProfilingData
    replay: float = 10.0
    first_downtime: float = 60.0
    capacities: Capacities = field(init=False)
    latencies: LatencyModel = field(init=False)
    outage: Outage = field(init=False)
    notes: deque[Reason] = field(init=False, default_factory=lambda: deque(maxlen=16))
    _limits: dict[int, float] = field(init=False, repr=False)
    _recoveries: deque[ObservedRecovery] = field(init=False, repr=False)
    _points: deque[Point] = field(init=False, repr=False, default_factory=lambda: deque(maxlen=POINTS))
    _calm: deque[Point] = field(init=False, repr=False, default_factory=lambda: deque(maxlen=SAMPLES))
    _busy: deque[Limit] = field(init=False, repr=False, default_factory=lambda: deque(maxlen=SAMPLES))
    _silent: float = field(init=False, repr=False, default=0.0)
    _well_at: float | None = field(init=False, repr=False, default=None)
    _normal: float | None = field(init=False, repr=False, default=None)
    _watch: Watch | None = field(init=False, repr=False, default=None)
    _watched: list[float] = field(init=False, repr=False, default_factory=list)
    _last: Observation | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self._limits = {limit.workers: limit.rate for limit in self.profile.limits}
        known = self.profile.recoveries
        self._recoveries = deque(known, maxlen=RECOVERIES)
        self._silent = sum(each.silent for each in known) / len(known) if known else 0.0
        self._fit()

    def learn(self, o: Observation) -> None:
        last, self._last = self._last, o
        self._recovery(o, last)
        late = behind(o)
        if late is False and o.processed_rate is not None:
            self._well_at = o.at
        if o.workers is None or o.workers != o.requested or o.input_rate is None or o.processed_rate is None:
            return
        rested = o.uptime is not None and o.uptime >= SETTLED
        rested &= o.last_rescale_at is None or o.at - o.last_rescale_at >= SETTLED
        if not rested or self._watch is not None:
            return
        if late:
            self._busy.append(Limit(o.workers, o.processed_rate))
        if o.latency is not None:
            self._calm.append(Point(o.workers, o.input_rate, o.latency, o.processed_rate))

    def refit(self) -> None:
        """Take in what was measured since the last time, and fit the models anew."""
        busy, calm = list(self._busy), list(self._calm)
        self._busy.clear()
        self._calm.clear()
        workers = calm[-1].workers if calm else 0
        same = [point for point in calm if point.workers == workers]
        if len(same) >= ENOUGH:
            n = len(same)
            rate, latency = sum(p.rate for p in same) / n, sum(p.latency for p in same) / n
            self._points.append(Point(workers, rate, latency, sum(p.throughput for p in same) / n))
            self._normal = latency
        for limited in {limit.workers for limit in busy}:
            rates = [limit.rate for limit in busy if limit.workers == limited]
            if len(rates) >= ENOUGH:
                old, new = self._limits.get(limited, self.capacities.at(limited)), sum(rates) / len(rates)
                self._limits[limited] = old + WEIGHT * (new - old)
                sentence = f"{limited} workers were seen at their limit, {new:,.0f} records/s; {old:,.0f} was expected"
                self.notes.append(Reason("capacity.observed", sentence, {"observed": new, "expected": old}))
        self._fit()

    def _fit(self) -> None:
        self.capacities = Capacities.fit([Limit(workers, rate) for workers, rate in sorted(self._limits.items())])
        self.outage = outage(tuple(self._recoveries), self.capacities.at, self.replay, self.first_downtime)
        points = (*self.profile.points, *self._points)
        self.latencies = LatencyModel.fit(points, self.capacities, known=self.profile.points)

    def _recovery(self, o: Observation, last: Observation | None) -> None:
        """Watch a failure from when the job was last well until its latency is normal again; a rescale ends that."""
        if last is not None and o.requested != last.requested:
            self._watch = None
        elif self._watch is None and self._normal is not None and _failed(o, last):
            # Nobody is told of a failure at once: it began when the backlog did, and as long before as in the profile.
            recent = self._well_at is not None and 0 <= o.at - self._well_at <= SETTLED
            began = self._well_at if recent and self._well_at is not None else o.at
            self._watch, self._watched = Watch(began - self._silent, self._normal), []
        if self._watch is None:
            return
        if o.input_rate is not None:
            self._watched.append(o.input_rate)
        seconds = self._watch.learn(o.at, o.latency)
        if not 0 <= o.at - self._watch.began_at <= LONGEST:
            self._watch = None
        if seconds is None or not self._watched or o.workers is None:
            return
        rate = sum(self._watched) / len(self._watched)
        self._watch = None
        self._recoveries.append(ObservedRecovery(o.workers, rate, seconds, self._silent))
        said = self.outage.recovery(rate, self.capacities.at(o.workers), self.replay)
        expected = "no end was expected" if said is None else f"{said:,.0f} s were expected"
        sentence = f"A failure at {rate:,.0f} records/s was over after {seconds:,.0f} s; {expected}"
        self.notes.append(Reason("recovery.observed", sentence, {"observed": seconds, "expected": said}))


def behind(o: Observation) -> bool | None:
    """Whether more waits than in a job that keeps up; a micro-batch engine always has a batch in flight."""
    if o.backlog is None or o.input_rate is None:
        return None
    allowed = FULL if o.batch is None else max(FULL, 2.5 * o.batch.seconds)
    return o.backlog > allowed * o.input_rate


def _failed(o: Observation, last: Observation | None) -> bool:
    if any(event.code == "worker.lost" for event in o.events):
        return True
    restarted = last is not None and o.uptime is not None and last.uptime is not None and o.uptime < last.uptime
    return restarted and (o.last_rescale_at is None or o.at - o.last_rescale_at >= SETTLED)


@dataclass(frozen=True, slots=True)
class Situation:
    """What the algorithm reckons with.

    current, least, most: workers asked for now, and the bounds.
    rate: T_avg, records/s. capacity: T_max at a scale-out. recovery: R there in seconds, None: never.
    latency, valid: what M_L says at a scale-out and T_avg.
    target: seconds in which a failure must be over. least_step_in: so many workers fewer, or none fewer.
    """

    current: int
    least: int
    most: int
    rate: float
    capacity: Callable[[int], float]
    recovery: Callable[[int], float | None]
    latency: Callable[[int], float]
    valid: Callable[[int], bool]
    target: float = 180.0
    least_step_in: int = 1


def plan(situation: Situation) -> Decision:
    """How many workers, with the walk that led there.

    >>> now = Situation(4, 1, 6, rate=2000, capacity=lambda n: 1000.0 * n, latency=lambda n: 1.0,
    ...     recovery=lambda n: 400.0 / n, valid=lambda n: n > 2)
    >>> decision = plan(now)
    >>> decision.workers, [option.reason.code for option in decision.options]
    (3, ['recovery.above_target', 'recovery.above_target', 'phoebe.in'])
    """
    s = situation
    options: list[Option] = []
    for workers in range(s.least, s.most + 1):
        option = _examine(s, workers)
        options.append(option)
        if option.chosen:
            return _settle(s, workers, option.reason, tuple(options))
    sentence = (
        f"No scale-out recovers from a failure within {s.target:,.0f} s and has normal latency "
        f"at {s.rate:,.0f} records/s: all {s.most} workers"
    )
    return _settle(s, s.most, Reason("phoebe.none_fits", sentence, _facts(s, s.most)), tuple(options))


def _settle(s: Situation, workers: int, reason: Reason, options: tuple[Option, ...]) -> Decision:
    fewer = s.current - workers
    if 0 < fewer < s.least_step_in:
        sentence = f"{workers} would do, but {fewer} fewer are not worth a rescale: at least {s.least_step_in}"
        small = Reason("phoebe.small_step", sentence, {"workers": workers, "least_step_in": s.least_step_in})
        return Decision(s.current, (reason, small), options, _expect(s, s.current))
    if reason.code != "phoebe.none_fits":
        sentence = f"{workers} worker{'s' * (workers != 1)}: {reason.sentence}"
        reason = replace(reason, sentence=sentence)
    return Decision(workers, (reason,), options, _expect(s, workers))


def _examine(s: Situation, workers: int) -> Option:
    """One turn of the algorithm's loop: recovery first, then latency."""
    recovery, facts = s.recovery(workers), _facts(s, workers)
    if recovery is None:
        return Option(workers, False, Reason("recovery.above_target", "would never recover from a failure", facts))
    if recovery > s.target:
        sentence = f"would recover from a failure in {recovery:,.0f} s, not in {s.target:,.0f} s"
        return Option(workers, False, Reason("recovery.above_target", sentence, facts))
    latency = s.latency(workers)
    if not s.valid(workers):
        sentence = f"latency would be {latency:,.1f} s, which is that of a job which cannot keep up"
        return Option(workers, False, Reason("latency.invalid", sentence, facts))
    sentence = (
        f"the fewest that recover from a failure in {recovery:,.0f} s of {s.target:,.0f} s and have normal latency, "
        f"{latency:,.1f} s, at {s.rate:,.0f} records/s"
    )
    code = "phoebe.in" if workers < s.current else "phoebe.out" if workers > s.current else "phoebe.fits"
    return Option(workers, True, Reason(code, sentence, facts))


def _facts(s: Situation, workers: int) -> dict[str, Fact]:
    facts: dict[str, Fact] = {"capacity": s.capacity(workers)}
    facts["recovery"] = s.recovery(workers)
    return facts | {"latency": s.latency(workers)}


def _expect(s: Situation, workers: int) -> Expectation:
    return Expectation(capacity=s.capacity(workers), recovery=s.recovery(workers), peak=s.rate)
