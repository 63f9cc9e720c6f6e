"""The K of MAPE-K: what Daedalus knows of a job, learned sample by sample, and what it makes of it.

Joins the models of capacity, forecast, recovery and anomaly, as in Daedalus, sec. 3.6 and Figure 1. Deviations from the
paper: nothing is believed that cannot be (penstock.models.sanity); and what waits on a micro-batch engine is not a
backlog before it waits for longer than a batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.core import Fact, Observation, Reason
from penstock.models.anomaly import Recoveries, Recovery
from penstock.models.capacity import Capacity, warm
from penstock.models.forecast import Outlook, Scored
from penstock.models.pace import Pace
from penstock.models.recovery import Downtimes, Way, recovery_time, way
from penstock.models.sanity import Trust, checked

FULL = 5.0  # seconds of work that wait on an engine without batches when it is busy with nothing else
MOST_SAMPLES = 3600  # of one loop; more are not waited for


@dataclass(slots=True)
class Loop:
    """What was seen since the last decision."""

    loads: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    backlogs: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    batches: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    notes: deque[Reason] = field(default_factory=lambda: deque(maxlen=16))

    @property
    def load(self) -> float | None:
        """The mean rate of arrivals."""
        return sum(self.loads) / len(self.loads) if self.loads else None

    @property
    def waiting(self) -> float | None:
        """Records that wait for longer than they must.

        A micro-batch engine always has those of a batch in flight. The least backlog that was seen, less what arrived
        during the shortest batch, is what it did not get to.
        """
        if not self.backlogs:
            return None
        if not self.batches:
            return self.backlogs[-1]
        return max(0.0, min(self.backlogs) - (self.load or 0.0) * min(self.batches))


@dataclass(slots=True)
class Knowledge:
    """Everything learned about a job.

    warm_up: seconds after the job's start in which nothing is learned about capacity.
    cold: seconds after a worker's start in which nothing is learned from it.
    predicted: seconds that recovery at each scale-out will likeliest take, as last reckoned, with so much `waiting`.
    acquainted: enough was seen of the workers, once, to plan on what they can do.
    """

    capacity: Capacity
    forecast: Scored
    downtimes: Downtimes
    recoveries: Recoveries
    warm_up: float = 120.0
    cold: float = 0.0
    loop: Loop = field(default_factory=Loop)
    trust: Trust = field(default_factory=Trust)
    predicted: dict[int, float | None] = field(default_factory=dict)
    waiting: float = 0.0
    acquainted: bool = False
    _arrivals: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    _last: Observation | None = None

    def learn(self, observation: Observation) -> None:
        """What this sample says of load and capacity, and of the recovery that may be going on."""
        seen = checked(observation)
        if seen is None:
            return
        self.trust.learn(seen)
        o, last = seen.observation, self._last
        self._last = o
        self.forecast.learn(o.at, o.input_rate)
        if o.input_rate is not None:
            self.loop.loads.append(o.input_rate)
            self._arrivals.append((o.at, o.input_rate))
        if o.backlog is not None:
            self.loop.backlogs.append(o.backlog)
        if o.batch is not None:
            self.loop.batches.append(o.batch.seconds)
        self._learn_capacity(o, last)
        self._watch(o, last)

    def renew(self) -> None:
        """Begin the next loop."""
        self.loop = Loop()
        self.trust.renew()

    def predict(self, outlook: Outlook, current: int, scale_outs: Iterable[int]) -> None:
        """What is held to account later: with the likeliest capacity, where plans rely on what is sure of it."""
        self.waiting = self.loop.waiting or 0.0
        self.predicted = {n: self.recovery(outlook, n, way(current, n), sure=False) for n in scale_outs}

    def recovery(self, outlook: Outlook, workers: int, how: Way, *, sure: bool = True) -> float | None:
        """Predicted seconds to recover at a scale-out from a rescale to it, or from a failure there; None: never."""
        stop, estimate = self.downtimes.anticipated(how), self.capacity.at(workers)
        capacity = 0.0 if estimate is None else estimate.sure if sure else estimate.capacity
        catching_up = recovery_time(
            outlook.forecast.path,
            outlook.forecast.step,
            capacity=capacity,
            backlog=self.loop.waiting or 0.0,
            downtime=stop.downtime,
            replay=stop.replay,
            recent_rate=self.loop.load,
        )
        return None if catching_up is None else stop.lag + catching_up

    def _learn_capacity(self, o: Observation, last: Observation | None) -> None:
        if o.uptime is not None and o.uptime < self.warm_up:
            return
        if o.batch is not None:  # rates are known at the ends of batches; in between there is nothing new
            known = last is not None and last.batch is not None and last.batch.number == o.batch.number
            if known:
                return
        ready = warm(o.per_worker, o.at, self.cold)
        # In a batch that waits for cold workers the warm ones show what they cost, but not what all could do. One that
        # all took part in, some of them still young, is what they do, whatever each of them costs later on.
        together = o.workers == o.requested and not (o.batch is not None and o.batch.cold)
        whole = together and len(ready) == o.workers
        took_part = together and len(warm(o.per_worker, o.at)) == o.workers
        pace = Pace.between(None if last is None else last.batch, o.batch, o.workers) if took_part else None
        self.capacity.learn(o.at, ready, whole=whole, full=whole and _full(o), pace=pace, batch=o.batch)
        self.acquainted = self.acquainted or self.capacity.acquainted

    def _watch(self, o: Observation, last: Observation | None) -> None:
        """When a rescale or failure began to hurt, when it was over, and what to expect of the next."""
        before = None if last is None else last.requested
        if before is not None and o.requested is not None and o.requested != before:
            at = o.at if o.last_rescale_at is None else min(o.at, o.last_rescale_at)
            self.recoveries.begin(
                at, way(before, o.requested), before, o.requested, self.predicted.get(o.requested), self.waiting
            )
        elif o.requested is not None and any(event.code == "worker.lost" for event in o.events):
            self.recoveries.begin(
                o.at, "failure", o.requested, o.requested, self.predicted.get(o.requested), self.waiting
            )
        for ended in self.recoveries.learn(o.at, o.input_rate, o.processed_rate, o.backlog):
            self._account(ended)

    def _since(self, at: float) -> list[float]:
        """What arrived from then on, in twelve parts: the load that the recovery really had to work against."""
        rates = [rate for seen_at, rate in self._arrivals if seen_at >= at]
        size = max(1, len(rates) // 12)
        return [sum(part) / len(part) for i in range(0, len(rates), size) if (part := rates[i : i + size])]

    def _account(self, ended: Recovery) -> None:
        if ended.observed is None or ended.after is None:
            return
        loads, estimate = self._since(ended.began_at), self.capacity.at(ended.after)
        if loads and estimate is not None:
            step = max(ended.observed, 1.0) / len(loads)
            self.downtimes.observed(
                ended.way,
                ended.observed,
                load=loads,
                step=step,
                capacity=estimate.capacity,
                backlog=ended.waiting,
                lag=ended.lag,
            )
        stop = self.downtimes.anticipated(ended.way)
        said = "not predicted" if ended.predicted is None else f"predicted {ended.predicted:,.0f} s"
        what = "failure" if ended.way == "failure" else f"rescale from {ended.before} to {ended.after}"
        lag = f", and {stop.lag:,.0f} s until meters show it and forget it" if stop.lag >= 1 else ""
        sentence = (
            f"The {what} was over after {ended.observed:,.0f} s, {said}; next time {stop.downtime:,.1f} s down{lag}"
        )
        facts: dict[str, Fact] = {
            "way": ended.way,
            "observed": ended.observed,
            "predicted": ended.predicted,
            "downtime": stop.downtime,
            "lag": stop.lag,
        }
        self.loop.notes.append(Reason("recovery.observed", sentence, facts))


def _full(o: Observation) -> bool:
    """Whether the job had more to do than it could: several seconds of its work wait, or another batch's worth.

    Where it is known how large a batch may be, that says more (`Pace`): after one slow batch little is done and much
    waits, and nobody is at his limit.
    """
    if o.backlog is None or o.processed_rate is None or (o.batch is not None and o.batch.limit is not None):
        return False
    seconds = FULL if o.batch is None else 2.5 * o.batch.seconds
    return o.backlog > seconds * o.processed_rate > 0
