"""How well anybody could have done: the workers an all-knowing autoscaler would have had.

`ideal` rescales at once and for free, and follows the load: the reference of SPEC's elasticity measures (Herbst et al.,
"Elasticity in Cloud Computing", ICAC 2013; Gesscale, fig. 6). `oracle` knows the whole load and pays for its rescales:
the least worker-seconds for which no record waits longer than a target.

The oracle's job is a fluid. A(t) records have arrived by t, in a straight line within a tick. A decision may be taken
every so many ticks. A rescale at s brings back the records that arrived within the last `replay` seconds (those since
the last checkpoint, as in Daedalus sec. 3.4), stops all processing for its downtime, and then n workers process
capacity(n) records/s as long as any wait. No other decision is taken while it is down. The new workers are paid from s
on. First in, first out: a record that arrived at t - L has left by t exactly if the backlog B(t) is at most
A(t) - A(t - L), so "no record waits longer than L" is a bound on B, known beforehand.

Between two decisions, then, B becomes max(floor, B + change) where that is within its bounds at all times, which is
B <= most; the three numbers follow from load, workers and downtime alone (`_Passage`). More backlog never leads to
less, so of two plans with the same workers now, the one with both less cost and less backlog is the better one whatever
comes. All others are kept (Pareto fronts, one per number of workers), and nothing is rounded: the result is exact for
this model. Costs are whole worker-ticks, which keeps the fronts short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import ConfigError, check

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Capacity = Callable[[int], float] | Sequence[float]
SLACK = 1e-9  # how much of a bound rounding may exceed


@dataclass(frozen=True, slots=True)
class Plan:
    """The workers of each tick, what they cost, how often they change, and the backlog at each tick's end."""

    workers: Ints
    backlog: Floats
    worker_seconds: float
    rescales: int


def ideal(load: ArrayLike, capacity: Capacity, *, max_workers: int | None = None, min_workers: int = 1) -> Ints:
    """The fewest workers whose capacity covers the load, tick by tick; `max_workers` where none does.

    `capacity` has records/s by number of workers, as a function or as a list for 1, 2, … workers.

    >>> ideal([0, 900, 1000, 1001, 5000], lambda n: 1000.0 * n, max_workers=3).tolist()
    [1, 1, 1, 2, 3]
    """
    if max_workers is None:
        check(not callable(capacity), "max_workers", "be given with a function of capacity", max_workers)
        max_workers = len(capacity)  # type: ignore[arg-type]
    rates = _load(load)
    capacities = _capacities(capacity, min_workers, max_workers)
    reached = np.searchsorted(np.maximum.accumulate(capacities), rates, side="left")
    return np.asarray(np.minimum(reached, len(capacities) - 1) + min_workers, dtype=np.int64)


def oracle(
    load: ArrayLike,
    capacity: Capacity,
    *,
    tick: float,
    max_workers: int,
    latency_target: float,
    downtime_out: float,
    downtime_in: float,
    min_workers: int = 1,
    replay: float = 0.0,
    start: int | None = None,
    every: int = 1,
) -> Plan:
    """The plan of least worker-seconds, and among these of fewest rescales, that keeps the latency target.

    Before its first tick the load is taken to be what it is in it, and nothing waits. `start` is the number of workers
    then; left out, any number is there at no cost. Raises ConfigError if no plan keeps the target.

    What waits within the target at the end may stay. Buffering can cost less than the `ideal`, which never does it:
    here three minutes of 1 worker and one of 2, instead of 2 all the time.

    >>> oracle([150] * 4, lambda n: 100.0 * n, tick=60, max_workers=2, latency_target=60, downtime_out=0,
    ...        downtime_in=0).workers.tolist()
    [1, 1, 1, 2]

    load: records/s of each tick.
    capacity: records/s by number of workers, as a function or as a list for 1, 2, … workers.
    tick: seconds.
    latency_target: seconds that a record may wait.
    downtime_out, downtime_in: seconds without processing after a rescale to more and to fewer workers.
    replay: seconds of arrivals that a rescale brings back.
    every: ticks between decisions.
    """
    rates = _load(load)
    check(len(rates) > 0, "load", "have at least one tick", 0)
    check(isfinite(tick) and tick > 0, "tick", "be above 0 seconds", tick)
    check(every >= 1, "every", "be at least 1 tick", every)
    for name, value in (
        ("latency_target", latency_target),
        ("downtime_out", downtime_out),
        ("downtime_in", downtime_in),
        ("replay", replay),
    ):
        check(isfinite(value) and value >= 0, name, "be 0 seconds or more", value)
    capacities = _capacities(capacity, min_workers, max_workers)
    if start is not None:
        check(min_workers <= start <= max_workers, "start", f"be within {min_workers}..{max_workers}", start)
    arrivals = _Arrivals(rates, tick, max(latency_target, replay))
    search = _Search(
        arrivals=arrivals,
        capacities=capacities,
        fewest=min_workers,
        every=every,
        target=latency_target,
        replay=replay,
        downtimes={"stay": 0.0, "out": downtime_out, "in": downtime_in},
    )
    counts = search.run(None if start is None else start - min_workers)
    return search.plan(counts, start)


class _Arrivals:
    """Records that have arrived by any time; before the start at the first rate."""

    def __init__(self, rates: Floats, tick: float, before: float) -> None:
        self.rates, self.tick, self.ticks = rates, tick, len(rates)
        ends = np.arange(len(rates) + 1) * tick
        self._times = np.concatenate(([-before - tick], ends))
        self._totals = np.concatenate(([-(before + tick) * rates[0]], [0.0], np.cumsum(rates) * tick))

    def by(self, times: Floats | float) -> Floats:
        return np.asarray(np.interp(times, self._times, self._totals))


@dataclass(frozen=True, slots=True)
class _Passage:
    """From one decision to another, for each number of workers: B becomes max(floor, B + change) if B <= most."""

    change: Floats
    floor: Floats
    most: Floats


@dataclass(frozen=True, slots=True)
class _Front:
    """Plans that end with the same workers, none better than another: cost rises, backlog falls.

    `plans` are their numbers in the search's log.
    """

    cost: Ints
    backlog: Floats
    plans: Ints


_NONE = _Front(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))


def _best(*fronts: _Front) -> _Front:
    """What of several fronts is not beaten by anything in them."""
    some = [front for front in fronts if front.cost.size]
    if len(some) < 2:
        return some[0] if some else _NONE
    cost = np.concatenate([front.cost for front in some])
    backlog = np.concatenate([front.backlog for front in some])
    plans = np.concatenate([front.plans for front in some])
    order = np.lexsort((backlog, cost))
    sorted_backlog = backlog[order]
    lowest = np.minimum.accumulate(sorted_backlog)
    kept = order[np.concatenate(([True], sorted_backlog[1:] < lowest[:-1]))]
    return _Front(cost[kept], backlog[kept], plans[kept])


@dataclass(slots=True, kw_only=True)
class _Search:
    arrivals: _Arrivals
    capacities: Floats
    fewest: int
    every: int
    target: float
    replay: float
    downtimes: dict[str, float]

    def run(self, start: int | None) -> Ints:
        """The cheapest way through all decisions, as an index of workers per tick."""
        ticks, many = self.arrivals.ticks, len(self.capacities)
        last = ceil(ticks / self.every)  # decisions are numbered 0..last - 1; `last` is the end
        weight = last + 1  # cost counts worker-ticks, then rescales, of which there are fewer than this
        log = _Log()
        fronts: list[list[list[_Front]]] = [[[] for _ in range(many)] for _ in range(last + 1)]
        for index in range(many) if start is None else [start]:
            fronts[0][index].append(log.first(index))
        for decision in range(last):
            now = [_best(*fronts[decision][index]) for index in range(many)]
            fronts[decision] = []
            below, above = _running(now), _running(now[::-1])[::-1]
            for kind, sources in (("stay", now), ("out", below), ("in", above)):
                until = min(last, decision + self._decisions(kind))
                passage = self._passage(decision, until, kind)
                length = min(ticks, until * self.every) - decision * self.every
                for index, source in enumerate(sources):
                    fit = int(np.searchsorted(-source.backlog, -passage.most[index], side="left"))
                    if fit == source.cost.size:
                        continue
                    paid = (self.fewest + index) * length * weight + (kind != "stay")
                    backlog = np.maximum(passage.floor[index], source.backlog[fit:] + passage.change[index])
                    reached = log.add(source.cost[fit:] + paid, backlog, source.plans[fit:], index, decision)
                    fronts[until][index].append(reached)
            if not any(front for row in fronts[decision + 1 :] for front in row):
                raise self._impossible(decision)
        end = _best(*(front for row in fronts[last] for front in row))
        return log.workers(int(end.plans[0]), self.every, ticks)

    def _decisions(self, kind: str) -> int:
        """After how many decisions the next one may be taken."""
        return max(1, ceil(self.downtimes[kind] / (self.every * self.arrivals.tick) - SLACK))

    def _passage(self, decision: int, until: int, kind: str) -> _Passage:
        """How backlog changes from one decision to another, with the downtime of `kind` at its beginning.

        With X(t), what is added to the backlog by t if there is always some, B(t) = max(B + X(t), X(t) - min X) where
        the minimum is over the times of processing up to t. All lines are straight between the points looked at: the
        ends of ticks, those times at which the bound bends, and the end of the downtime.
        """
        arrivals, tick = self.arrivals, self.arrivals.tick
        begin, end = decision * self.every * tick, min(until * self.every, arrivals.ticks) * tick
        up = min(begin + self.downtimes[kind], end)
        ends = np.arange(decision * self.every, round(end / tick) + 1) * tick
        bends = ends + self.target % tick
        points = np.unique(np.concatenate((ends, bends[bends < end], [up])))
        arrived = arrivals.by(points)
        bound = arrived - arrivals.by(points - self.target)
        again = float(arrivals.by(begin) - arrivals.by(begin - self.replay)) if kind != "stay" else 0.0
        added = again + arrived - arrived[0] - np.outer(self.capacities, np.maximum(points - up, 0.0))
        least = np.minimum.accumulate(np.where(points >= up, added, np.inf), axis=1)
        emptied = added - least
        slack = SLACK * max(1.0, float(bound.max()))
        possible = (emptied <= bound + slack).all(axis=1)
        most = np.where(possible, (bound - added).min(axis=1) + slack, -1.0)
        return _Passage(change=added[:, -1], floor=np.maximum(emptied[:, -1], 0.0), most=most)

    def _impossible(self, decision: int) -> ConfigError:
        begin = decision * self.every
        highest = float(self.arrivals.rates[begin : begin + self.every].max())
        most, capable = self.fewest + len(self.capacities) - 1, float(self.capacities.max())
        return ConfigError(
            f"latency_target must be one that some plan keeps: with at most {most} workers ({capable:g} records/s) and "
            f"these downtimes none gets past {begin * self.arrivals.tick:g} s (load {highest:g} records/s), "
            f"got {self.target!r}"
        )

    def plan(self, indices: Ints, start: int | None) -> Plan:
        """The plan of these workers, with its backlog followed once more, tick by tick."""
        workers = indices + self.fewest
        changes = np.diff(workers, prepend=workers[0] if start is None else start)
        cost = float(workers.sum() * self.arrivals.tick)
        return Plan(workers, self._backlog(indices, changes), cost, int(np.count_nonzero(changes)))

    def _backlog(self, indices: Ints, changes: Ints) -> Floats:
        """The backlog at the end of each tick."""
        arrivals, tick = self.arrivals, self.arrivals.tick
        waiting, up = 0.0, 0.0
        followed = np.empty(arrivals.ticks)
        for at, change in enumerate(changes):
            begin, rate = at * tick, float(arrivals.rates[at])
            if change:
                waiting += float(arrivals.by(begin) - arrivals.by(begin - self.replay))
                up = begin + self.downtimes["out" if change > 0 else "in"]
            down = min(max(up - begin, 0.0), tick)
            waiting = max(0.0, waiting + rate * tick - float(self.capacities[indices[at]]) * (tick - down))
            followed[at] = waiting
        return followed


class _Log:
    """Where every plan came from, so that the best one can be told from its end."""

    def __init__(self) -> None:
        self._parents: list[Ints] = []
        self._steps: list[tuple[int, int, int]] = []  # first number, index of workers, decision
        self._next = 0

    def first(self, index: int) -> _Front:
        return self.add(np.zeros(1, np.int64), np.zeros(1), np.full(1, -1, np.int64), index, -1)

    def add(self, cost: Ints, backlog: Floats, parents: Ints, index: int, decision: int) -> _Front:
        numbers = np.arange(self._next, self._next + len(parents))
        self._parents.append(parents)
        self._steps.append((self._next, index, decision))
        self._next += len(parents)
        return _Front(cost, backlog, numbers)

    def workers(self, number: int, every: int, ticks: int) -> Ints:
        """The index of workers of each tick on the way to plan `number`."""
        firsts = np.array([first for first, _, _ in self._steps])
        counts, until = np.empty(ticks, np.int64), ticks
        while number >= 0:
            step = int(np.searchsorted(firsts, number, side="right")) - 1
            first, index, decision = self._steps[step]
            counts[max(decision, 0) * every : until] = index
            until = max(decision, 0) * every
            number = int(self._parents[step][number - first])
        return counts


def _running(fronts: Sequence[_Front]) -> list[_Front]:
    """For each front, the best of all before it."""
    before = [_NONE]
    for front in fronts[:-1]:
        before.append(_best(before[-1], front))
    return before


def _load(load: ArrayLike) -> Floats:
    rates = np.asarray(load, dtype=np.float64)
    known = rates.ndim == 1 and bool(np.isfinite(rates).all()) and bool((rates >= 0).all())
    check(known, "load", "be a list of records/s, 0 or more each", load)
    return rates


def _capacities(capacity: Capacity, fewest: int, most: int) -> Floats:
    """Records/s of `fewest`..`most` workers."""
    check(fewest >= 1, "min_workers", "be at least 1", fewest)
    check(most >= fewest, "max_workers", f"be at least min_workers ({fewest})", most)
    if not callable(capacity):
        check(len(capacity) >= most, "capacity", f"be known for up to max_workers ({most})", len(capacity))
    numbers = [float(capacity(n) if callable(capacity) else capacity[n - 1]) for n in range(fewest, most + 1)]
    for workers, value in enumerate(numbers, fewest):
        check(isfinite(value) and value >= 0, f"capacity of {workers} workers", "be 0 records/s or more", value)
    return np.array(numbers)
