"""Daedalus: learn what each worker can do, forecast the load, predict recovery; few, right, long-lived rescales.

Pfister, Scheinert, Geldenhuys, Kao, ICPE 2024. What is learned is in penstock.models.knowledge, Algorithm 1 in
penstock.models.daedalus; here are its constants, and what keeps it from deciding.

Beyond the paper: the current backlog counts in a recovery; nothing is scaled down on measurements in doubt; a scale-in
must be worth it; a scale-out looks beyond the forecast; with `confidence`, plans are made on an upper bound of the
load instead of the forecast itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from penstock.core import Decision, Expectation, Fact, Observation, Policy, Reason
from penstock.errors import check
from penstock.models import forecast
from penstock.models.anomaly import Detector, Recoveries
from penstock.models.capacity import Capacity
from penstock.models.daedalus import Rules, Situation, Waste, foreseen, plan, spare, walk
from penstock.models.forecast import Outlook, Scored
from penstock.models.knowledge import Knowledge
from penstock.models.recovery import Downtimes, way
from penstock.models.sanity import checked

DAY = 86400.0
COMPILED = 60.0  # seconds that a JVM on a part of a core takes to compile what it runs, however short an experiment is
COMPARED = 60.0  # seconds over which workers are compared, at least: one that has a slow batch is no skew
MOST_WORTH = 100 * DAY
RANGES = {
    "interval": (1.0, 3600.0),
    "long_lived": (0.0, DAY),
    "grace": (0.0, DAY),
    "recovery_target": (1.0, DAY),
    "horizon": (1.0, DAY),
    "foresight": (0.0, DAY),
    "warm_up": (0.0, DAY),
    "half_life": (60.0, 30 * DAY),
    "skew_half_life": (60.0, 30 * DAY),
    "checkpoint_interval": (0.0, 3600.0),
    "downtime_out": (0.0, 600.0),
    "downtime_in": (0.0, 600.0),
}


@dataclass
class Daedalus(Policy):
    """The fewest workers that can do the work, recover in time and stay right until the forecast ends.

    interval: seconds between loops.
    long_lived: seconds after a rescale in which only need, not thrift, makes another.
    grace: seconds after a rescale without any other.
    worth: worker-seconds that a scale-in must save, by what spare workers have cost since the last rescale, and would
        cost within the horizon. Three go at once, one after half an hour; 0: all at once, as in the paper.
    confirmations: loops in a row that must foresee a need before workers are added for it, unless those that run would
        not do until the next loop; 1: at once, as in the paper.
    foresight: seconds beyond the horizon that its trend is followed, once workers have to be added, and the slope of
        the load until its end; 0: neither, as the paper.
    recovery_target: seconds in which the job must have caught up after a rescale or failure.
    horizon: seconds that the load is forecast for, in the plan; up to 15 intervals.
    forecaster: experts: many small models, weighed by what they got right; auto-arima: the paper's; linear; last.
    max_wape: error of the last forecast from which on a straight line replaces it.
    poor_loops: so many poor forecasts in a row have the forecaster trained anew.
    confidence: plan on the load that is not exceeded with this probability; 0: on the forecast itself, as the paper.
    checkpoint_interval: seconds of work that a restart repeats at worst.
    downtime_out, downtime_in: seconds without processing to expect of a rescale, until it was seen how long it takes.
    warm_up: seconds after the job's start in which nothing is learned about capacity, and 60 s of it after a worker's.
    half_life: seconds after which an observation of capacity counts half.
    skew_half_life: seconds after which the skew observed at another scale-out, and the CPU at which workers can do no
        more, count half.
    time_scale: how many times shorter loops, waits, horizon, foresight, worth and memory are; downtimes and
        recovery_target stay, and 60 s of warm_up.
    """

    name: ClassVar[str] = "daedalus"
    paper: ClassVar[str] = "https://doi.org/10.1145/3629526.3645042"
    inputs: ClassVar[tuple[str, ...]] = (
        "requested",
        "input_rate",
        "processed_rate",
        "backlog",
        "per_worker.cpu",
        "per_worker.rate",
    )

    interval: float = 60.0
    long_lived: float = 600.0
    grace: float = 180.0
    worth: float = 2700.0
    confirmations: int = 3
    foresight: float = 450.0
    recovery_target: float = 600.0
    horizon: float = 900.0
    forecaster: Literal["experts", "auto-arima", "linear", "last"] = "experts"
    max_wape: float = 0.25
    poor_loops: int = 15
    confidence: float = 0.0
    checkpoint_interval: float = 10.0
    downtime_out: float = 30.0
    downtime_in: float = 15.0
    warm_up: float = 120.0
    half_life: float = 1800.0
    skew_half_life: float = 21600.0
    time_scale: float = 1.0
    _known: Knowledge = field(init=False, repr=False)
    _waste: Waste = field(init=False, repr=False, default_factory=Waste)
    _foreseen: int = field(init=False, repr=False, default=0)  # loops in a row that wanted workers for what is to come

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            check(least <= value <= most, name, f"be from {least:g} to {most:g} seconds", value)
        check(0 <= self.worth <= MOST_WORTH, "worth", f"be from 0 to {MOST_WORTH:g} worker-seconds", self.worth)
        check(0.1 <= self.time_scale <= 60, "time_scale", "be from 0.1 to 60", self.time_scale)
        check(0 < self.max_wape <= 10, "max_wape", "be above 0 and at most 10", self.max_wape)
        check(1 <= self.confirmations <= 100, "confirmations", "be from 1 to 100", self.confirmations)
        check(1 <= self.poor_loops <= 1000, "poor_loops", "be from 1 to 1000", self.poor_loops)
        fits = self.confidence == 0 or 0.5 <= self.confidence <= 0.99
        check(fits, "confidence", "be 0, or from 0.5 to 0.99", self.confidence)
        period, cold = self.period, min(self.warm_up, COMPILED)
        self._known = Knowledge(
            capacity=Capacity(
                self._scaled(self.half_life),
                max(2 * period, COMPARED),
                self._scaled(self.skew_half_life),
                latest=2 * period,
            ),
            forecast=Scored(
                forecast.make(self.forecaster, period), self.max_wape, self.poor_loops, level=self.confidence or 0.9
            ),
            downtimes=Downtimes(self.downtime_out, self.downtime_in, replay=self.checkpoint_interval),
            recoveries=Recoveries(Detector(half_life=60 * period), onset=period, calm=period / 4, longest=30 * period),
            warm_up=max(self._scaled(self.warm_up), cold),
            cold=cold,
        )

    @property
    def period(self) -> float:
        return self._scaled(self.interval)

    def _scaled(self, seconds: float) -> float:
        return seconds / self.time_scale

    def learn(self, observation: Observation) -> None:
        self._known.learn(observation)

    def decide(self, observation: Observation) -> Decision:
        """Algorithm 1 on what was learned, or hold and say what is missing."""
        notes, doubts = tuple(self._known.loop.notes), self._known.trust.doubts()
        outlook = self._known.forecast.outlook()
        decision = self._decide(observation, outlook)
        self._known.renew()
        bounds = decision.reason.code == "daedalus.bounds"  # which are the user's word, and need no measurement
        if doubts and not bounds and decision.workers is not None and decision.workers < (observation.requested or 0):
            sentence = f"{decision.workers} would do, if that could be believed: not down on measurements in doubt"
            decision = decision.but(observation.requested, Reason("daedalus.doubt", sentence))
        return replace(decision, reasons=(*notes, *doubts, *decision.reasons))

    def _decide(self, observation: Observation, outlook: Outlook | None) -> Decision:
        seen = checked(observation)
        o = None if seen is None else seen.observation
        if o is None or o.requested is None:
            unknown = Reason("requested.unknown", "How many workers were asked for is not known: no change")
            return Decision.hold(None, unknown)
        current, load = o.requested, self._known.loop.load
        if not self.min_workers <= current <= self.max_workers:
            within = min(max(current, self.min_workers), self.max_workers)
            sentence = f"{current} workers are not between {self.min_workers} and {self.max_workers}"
            return Decision(within, (Reason("daedalus.bounds", sentence, {"workers": current}),))
        if o.blind:
            return Decision.hold(current, Reason("metrics.blind", "Nothing is measured now: no change"))
        if load is None or outlook is None:
            return Decision.hold(current, Reason("load.unknown", "No load was measured since the last loop: no change"))
        if not self._known.acquainted or self._known.capacity.at(current) is None:
            return Decision.hold(
                current, Reason("capacity.unknown", "What a worker can do is not known yet: no change")
            )
        since = None if o.last_rescale_at is None else max(0.0, o.at - o.last_rescale_at)
        self._known.predict(outlook, current, range(self.min_workers, self.max_workers + 1))
        if since is not None and since < self._scaled(self.grace):
            sentence = f"The last rescale was {since:.0f} s ago: none before {self._scaled(self.grace):g} s have passed"
            return Decision.hold(current, Reason("daedalus.grace", sentence, {"since": since}))
        situation = Situation(
            current=current,
            least=self.min_workers,
            most=self.max_workers,
            load=load,
            backlog=self._known.loop.waiting or 0.0,  # going down on an unknown one is for the doubts to prevent
            since_rescale=since,
            capacity=self._capacity,
            recovery=lambda n: self._known.recovery(outlook, n, way(current, n)),
            failure=lambda n: self._known.recovery(outlook, n, "failure"),
            peak=lambda seconds: self._peak(outlook, seconds),
            trend=self._trend(outlook),
            next_loop=self.period,
            horizon=self._scaled(self.horizon),
        )
        rules = Rules(self._scaled(self.long_lived), self.recovery_target, self._scaled(self.worth), self.confirmations)
        walked = walk(situation, rules)
        wasted = self._waste.add(current, spare(situation, walked), self.period)
        self._foreseen = self._foreseen + 1 if foreseen(situation, walked) else 0
        decision = plan(replace(situation, wasted=wasted, foreseen=self._foreseen), rules, walked)
        return replace(
            decision, reasons=(self._view(load, outlook, current), *decision.reasons), expects=self._expects(decision)
        )

    def _trend(self, outlook: Outlook) -> float:
        """Where the load is on its way to: some time after the forecast, or straight on until its end, if that is more.

        A forecaster lets slopes die out, and so takes a steep rise for the beginning of its end.
        """
        if not self.foresight:
            return 0.0
        horizon = self._scaled(self.horizon)
        return max(
            outlook.forecast.over(horizon).trend(self._scaled(self.foresight)), outlook.onward.over(horizon).path[-1]
        )

    def _capacity(self, workers: int) -> float:
        estimate = self._known.capacity.at(workers)
        return 0.0 if estimate is None else estimate.sure

    def _expects(self, decision: Decision) -> Expectation | None:
        """What is held to account is the likeliest capacity, not the part of it that plans rely on."""
        known = None if decision.workers is None else self._known.capacity.at(decision.workers)
        return decision.expects and replace(decision.expects, capacity=None if known is None else known.capacity)

    def _peak(self, outlook: Outlook, seconds: float) -> float:
        """The highest load until then: as forecast, or what it will not exceed with the confidence asked for."""
        expected = outlook.forecast.max(max(seconds, outlook.forecast.step))
        if not self.confidence:
            return expected
        # The bands are for the next loop and for the whole horizon; in between, in between.
        share = min(max((seconds - self.period) / max(outlook.forecast.horizon - self.period, 1e-9), 0.0), 1.0)
        return max(expected, outlook.upper_next + (outlook.upper_horizon - outlook.upper_next) * share)

    def _view(self, load: float, outlook: Outlook, current: int) -> Reason:
        peak = self._peak(outlook, self._scaled(self.horizon))
        facts: dict[str, Fact] = {"load": load, "peak": peak, "by": outlook.by, "wape": outlook.wape}
        how = f"{outlook.by}, instead of {self.forecaster}" if outlook.fell_back else outlook.by
        error = "" if outlook.wape is None else f", {outlook.wape:.0%} off last time"
        sentence = f"{load:,.0f} records/s arrive; at most {peak:,.0f} are expected (by {how}{error})"
        estimate = self._known.capacity.at(current)
        if estimate is not None and estimate.held:
            facts["held_to"] = estimate.capacity
            sentence += f"; by how large a batch may be, not by CPU, {estimate.capacity:,.0f} is the most now"
        return Reason("daedalus.view", sentence, facts | {"matured_wape": outlook.matured_wape})
