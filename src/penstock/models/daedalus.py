"""Algorithm 1 of Daedalus: the fewest workers that can do the work, catch up in time, and stay right for a while.

Pfister, Scheinert, Geldenhuys, Kao: "Daedalus: Self-Adaptive Horizontal Autoscaling for Resource Efficiency of
Distributed Stream Processing Systems", ICPE 2024, sec. 3.2. What is known comes in as a `Situation`, the walk over the
scale-outs goes out as a `Decision`, with an `Option` for every one that was examined. The grace period, which the paper
puts outside of the algorithm, is the policy's.

Deviations:

- A smaller scale-out must also recover from a failure in time, not only from the rescale to it. As the anticipated
  downtimes differ, it would otherwise be left again as soon as it is the current one.
- A scale-in must be worth it (`Rules.worth`): what spare workers have cost since the last rescale, and would cost
  within the horizon, is weighed against a price, as in the ski-rental problem (rent until it has cost as much as
  buying). While a load falls, one rescale by three workers takes the place of three by one; where one spare worker is
  all there is, it stays for a while and then goes.
- Workers that the load is on its way to need (`Situation.trend`), soon after the forecast ends or by then if it rises
  more steeply than forecast, are added along with those that are needed within it: a rise that outlasts or outruns the
  forecast otherwise makes a row of rescales by one.
- Workers for what is only foreseen, while those that run do all there is until the next loop, are added once several
  loops in a row foresaw it (`Rules.confirmations`): one forecast in a row of others may be wrong, and a rescale that
  follows it makes another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.core import Decision, Expectation, Fact, Option, Reason


@dataclass(frozen=True, slots=True)
class Situation:
    """What the algorithm reckons with.

    current: workers asked for now; least, most: the bounds.
    load: mean arrivals since the last loop, records/s.
    backlog: records not yet processed.
    since_rescale: seconds since the last rescale; None: there was none.
    capacity: records/s at a scale-out.
    recovery: predicted seconds to recover from a rescale to a scale-out, or a failure at the current one; None: never.
    failure: predicted seconds to recover from a failure at a scale-out.
    peak: the highest load forecast from now until so many seconds ahead; what lies beyond the horizon is not forecast.
    trend: the load that it is on its way to, at the forecast's end or some time after it.
    next_loop, horizon: seconds until the next decision, and as far as the forecast goes.
    wasted: worker-seconds that spare workers have cost since the last rescale.
    foreseen: loops in a row, this one too, that wanted workers for what is to come only.
    """

    current: int
    least: int
    most: int
    load: float
    backlog: float
    since_rescale: float | None
    capacity: Callable[[int], float]
    recovery: Callable[[int], float | None]
    failure: Callable[[int], float | None]
    peak: Callable[[float], float]
    trend: float = 0.0
    next_loop: float = 60.0
    horizon: float = 900.0
    wasted: float = 0.0
    foreseen: int = 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The two constants of the algorithm, in seconds: how long a rescale should live, how fast one must recover.

    worth: worker-seconds that a scale-in must be worth.
    confirmations: loops in a row that must foresee a need before workers are added for it, unless it is due.
    """

    long_lived: float = 600.0
    recovery_target: float = 600.0
    worth: float = 0.0
    confirmations: int = 1


@dataclass(slots=True)
class Waste:
    """What spare workers have cost since the last rescale, or since there was none to spare.

    >>> waste = Waste()
    >>> waste.add(workers=4, spare=1, seconds=60), waste.add(4, 2, 60), waste.add(4, 0, 60)
    (60.0, 180.0, 0.0)
    """

    workers: int | None = None
    total: float = 0.0

    def add(self, workers: int, spare: int, seconds: float) -> float:
        """So many of these workers were spare, for so long; worker-seconds together."""
        if workers != self.workers or spare <= 0:
            self.workers, self.total = workers, 0.0
        self.total += max(spare, 0) * seconds
        return self.total


def plan(situation: Situation, rules: Rules, walked: Decision | None = None) -> Decision:
    """How many workers, with the walk that led there; `walked`: where that was made already.

    >>> now = Situation(current=4, least=1, most=6, load=2500, backlog=100, since_rescale=None,
    ...     capacity=lambda n: 1000.0 * n, recovery=lambda n: 60.0, failure=lambda n: 60.0, peak=lambda seconds: 2600)
    >>> decision = plan(now, Rules())
    >>> decision.workers, [option.reason.code for option in decision.options]
    (3, ['capacity.below_load', 'capacity.below_load', 'daedalus.in'])
    """
    s, current = situation, situation.current
    if s.since_rescale is not None and s.since_rescale < rules.long_lived:
        capacity, soon = s.capacity(current), s.peak(s.next_loop)
        if capacity > s.load and capacity > soon:
            facts: dict[str, Fact] = {"capacity": capacity, "load": s.load, "peak_next": soon, "since": s.since_rescale}
            sentence = (
                f"The last rescale was {s.since_rescale:.0f} s ago and {_workers(current)} can do {capacity:,.0f} "
                f"records/s: enough for the {s.load:,.0f} of now and the {soon:,.0f} expected until the next loop"
            )
            return Decision(
                current, (Reason("daedalus.long_lived", sentence, facts),), expects=_expect(s, current, capacity)
            )
    decision = walked or walk(s, rules)
    if foreseen(s, decision) and s.foreseen < rules.confirmations:
        return _unconfirmed(s, rules, decision)
    spared = spare(s, decision)
    worth = s.wasted + spared * s.horizon
    return _put_off(s, rules, decision, worth) if spared and worth < rules.worth else decision


def spare(situation: Situation, decision: Decision) -> int:
    """How many workers fewer would do."""
    return 0 if decision.workers is None else max(situation.current - decision.workers, 0)


def foreseen(situation: Situation, decision: Decision) -> bool:
    """Whether more workers are wanted for what is to come only: nothing waits that those that run could not do now.

    Until the next loop, that is; what is in flight is no backlog.
    """
    s, capacity = situation, situation.capacity(situation.current)
    more = decision.workers is not None and decision.workers > s.current
    return more and capacity > max(s.load, s.peak(s.next_loop)) and capacity >= s.backlog


def walk(situation: Situation, rules: Rules) -> Decision:
    """The algorithm's loop: the fewest workers that are right, whatever the last rescale and what another is worth."""
    s = situation
    options: list[Option] = []
    for workers in range(s.least, s.most + 1):
        option = _examine(s, rules, workers)
        options.append(option)
        if option.chosen:
            capacity, verdict = s.capacity(workers), option.reason
            sentence = f"{_workers(workers)} can do {capacity:,.0f} records/s: {verdict.sentence}"
            reason = Reason(verdict.code, sentence, verdict.facts)
            return Decision(workers, (reason,), tuple(options), _expect(s, workers, capacity))
    sentence = (
        f"No scale-out fits {s.load:,.0f} records/s now and up to {s.peak(s.horizon):,.0f} ahead: "
        f"all {s.most} workers, which can do {s.capacity(s.most):,.0f}"
    )
    reason = Reason("daedalus.none_fits", sentence, {"load": s.load, "capacity": s.capacity(s.most)})
    return Decision(s.most, (reason,), tuple(options), _expect(s, s.most, s.capacity(s.most)))


def _examine(s: Situation, rules: Rules, workers: int) -> Option:
    """One turn of the algorithm's loop, in its order."""
    capacity = s.capacity(workers)
    facts: dict[str, Fact] = {"capacity": capacity}

    def option(code: str, sentence: str, chosen: bool = False) -> Option:
        return Option(workers, chosen, Reason(code, sentence, facts))

    if capacity <= s.load:
        return option("capacity.below_load", f"not above the {s.load:,.0f} that arrive")
    facts["recovery"] = recovery = s.recovery(workers)
    if recovery is None:
        return option("recovery.above_target", "would never recover")
    if recovery > rules.recovery_target:
        sentence = f"would recover in {recovery:,.0f} s, not in {rules.recovery_target:,.0f} s"
        return option("recovery.above_target", sentence)
    facts["peak"] = meanwhile = s.peak(min(recovery, s.horizon))
    if capacity < meanwhile:
        return option("capacity.below_recovery_peak", f"below the {meanwhile:,.0f} expected while recovering")
    if workers == s.current:
        sentence = f"enough for {s.load:,.0f} now and {meanwhile:,.0f} in a recovery of {recovery:,.0f} s, so they stay"
        return option("daedalus.fits", sentence, chosen=True)
    if workers < s.current and not _in_time(s.failure(workers), rules):
        return option("recovery.above_target", f"a failure there would not be over in {rules.recovery_target:,.0f} s")
    if workers < s.current and capacity < s.backlog:
        facts["backlog"] = s.backlog
        return option("backlog.above_capacity", f"a backlog of {s.backlog:,.0f} is still to be worked off")
    facts["peak"] = ahead = s.peak(s.horizon)
    expected = f"the {ahead:,.0f} expected within {s.horizon:,.0f} s"
    if capacity <= ahead:
        return option("capacity.below_peak", f"not above {expected}")
    if workers < s.current:
        return option("daedalus.in", f"the fewest for {expected}", chosen=True)
    if s.trend <= ahead:
        return option("daedalus.out", f"the fewest for {expected}", chosen=True)
    facts["trend"] = s.trend
    if capacity > s.trend or workers == s.most:
        return option("daedalus.out", f"for {expected}, and the {s.trend:,.0f} that it is on its way to", chosen=True)
    return option("capacity.below_trend", f"above {expected}, but not the {s.trend:,.0f} that it is on its way to")


def _put_off(s: Situation, rules: Rules, decision: Decision, worth: float) -> Decision:
    """Stay, as too little would be saved so far."""
    fewer = decision.options[-1]
    facts: dict[str, Fact] = {"workers": fewer.workers, "wasted": s.wasted, "worth": worth, "price": rules.worth}
    sentence = (
        f"{_workers(fewer.workers)} would do, which is worth {worth:,.0f} worker-seconds so far "
        f"({s.wasted:,.0f} wasted, the rest within {s.horizon:,.0f} s): no rescale below {rules.worth:,.0f}"
    )
    reason = Reason("daedalus.put_off", sentence, facts)
    options = (*decision.options[:-1], Option(fewer.workers, False, Reason(reason.code, "not yet worth it", facts)))
    return Decision(s.current, (reason,), options, _expect(s, s.current, s.capacity(s.current)))


def _unconfirmed(s: Situation, rules: Rules, decision: Decision) -> Decision:
    """Stay, as a forecast that is followed at once is followed in its errors, too."""
    more = decision.workers or s.most
    facts: dict[str, Fact] = {"workers": more, "foreseen": s.foreseen, "confirmations": rules.confirmations}
    sentence = (
        f"{_workers(more)} may be needed, by {s.foreseen} of the {rules.confirmations} loops in a row that it takes; "
        f"until the next one {_workers(s.current)} will do"
    )
    reason = Reason("daedalus.unconfirmed", sentence, facts)
    options = decision.options
    if options and options[-1].chosen:
        options = (*options[:-1], Option(more, False, Reason(reason.code, "not yet sure", facts)))
    return Decision(s.current, (reason,), options, _expect(s, s.current, s.capacity(s.current)))


def _in_time(recovery: float | None, rules: Rules) -> bool:
    return recovery is not None and recovery <= rules.recovery_target


def _expect(s: Situation, workers: int, capacity: float) -> Expectation:
    return Expectation(capacity=capacity, recovery=s.recovery(workers), peak=s.peak(s.horizon))


def _workers(count: int) -> str:
    return f"{count} worker{'s' * (count != 1)}"
