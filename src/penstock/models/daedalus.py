"""Algorithm 1 of Daedalus: the fewest workers that can do the work, catch up in time, and stay right for a while.

Pfister, Scheinert, Geldenhuys, Kao: "Daedalus: Self-Adaptive Horizontal Autoscaling for Resource Efficiency of
Distributed Stream Processing Systems", ICPE 2024, sec. 3.2. What is known comes in as a `Situation`, the walk over the
scale-outs goes out as a `Decision`, with an `Option` for every one that was examined. The grace period, which the paper
puts outside of the algorithm, is the policy's.

Deviation: a smaller scale-out must also recover from a failure in time, not only from the rescale to it. As the
anticipated downtimes differ, it would otherwise be left again as soon as it is the current one.
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
    next_loop, horizon: seconds until the next decision, and as far as the forecast goes.
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
    next_loop: float = 60.0
    horizon: float = 900.0


@dataclass(frozen=True, slots=True)
class Rules:
    """The two constants of the algorithm, in seconds: how long a rescale should live, how fast one must recover."""

    long_lived: float = 600.0
    recovery_target: float = 600.0


def plan(situation: Situation, rules: Rules) -> Decision:
    """How many workers, with the walk that led there.

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
    if capacity > ahead:
        sentence = f"the fewest for the {ahead:,.0f} expected within {s.horizon:,.0f} s"
        return option("daedalus.in" if workers < s.current else "daedalus.out", sentence, chosen=True)
    return option("capacity.below_peak", f"not above the {ahead:,.0f} expected within {s.horizon:,.0f} s")


def _in_time(recovery: float | None, rules: Rules) -> bool:
    return recovery is not None and recovery <= rules.recovery_target


def _expect(s: Situation, workers: int, capacity: float) -> Expectation:
    return Expectation(capacity=capacity, recovery=s.recovery(workers), peak=s.peak(s.horizon))


def _workers(count: int) -> str:
    return f"{count} worker{'s' * (count != 1)}"
