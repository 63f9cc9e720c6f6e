"""How long a job takes to catch up after a stop, and what its stops turn out to be.

Daedalus (Pfister et al., ICPE 2024) sec. 3.4: to be worked off are the records since the last checkpoint, at worst a
whole interval of them, and those that arrive while processing is down; it is over when the spare capacity over the
forecast has eaten them up. At a constant rate that is Phoebe's closed form, D + (I + D) w / (C - w).

Deviations: the backlog that is there already counts too (the authors' code does so, the paper is silent); a forecast
above capacity lets the work grow; the end is solved for within a step; the load after the forecast is its last value.
The paper says only that watched recoveries correct the anticipated downtime: `Downtimes` says how, and learns that an
engine which rescales live neither stops nor replays. And where rates are means of a minute, a recovery of seconds is
seen for a minute and more: that lag is told from catching up, as it does not grow with the load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from penstock.errors import check

Way = Literal["out", "in", "failure"]
Rates = Sequence[float] | NDArray[np.float64]

HALVINGS = 40  # ten minutes to less than a nanosecond


def way(before: int, after: int) -> Way:
    """How a job comes to have so many workers; with as many as it has, by losing one and getting another."""
    return "failure" if after == before else "out" if after > before else "in"


def recovery_time(
    load: Rates,
    step: float,
    *,
    capacity: float,
    backlog: float = 0.0,
    downtime: float = 0.0,
    replay: float = 0.0,
    recent_rate: float | None = None,
) -> float | None:
    """Seconds from the moment processing stops until it has caught up; None: never.

    load: the rates to come, each for `step` seconds from now; one below 0, as a projected line may have, counts as 0.
    replay: seconds since the last checkpoint, worth `recent_rate` each (the first of `load` where not given).

    >>> recovery_time([1000.0], 60, capacity=1500, downtime=30, replay=10)
    110.0
    """
    rates = np.maximum(np.asarray(load, dtype=np.float64), 0.0)
    if not rates.size or not step > 0:
        raise ValueError(f"load must have at least one rate and a step above 0, got {rates.size} and {step!r}")
    if min(backlog, downtime, replay) < 0:
        raise ValueError(f"backlog, downtime and replay must be 0 or more, got {backlog!r}, {downtime!r}, {replay!r}")
    edges = np.arange(rates.size + 1) * step
    arrived = np.concatenate(([0.0], np.cumsum(rates) * step))
    if not isfinite(arrived[-1]):
        raise ValueError("every rate of load must be finite")

    following = int(np.searchsorted(edges, downtime, side="right"))  # the first edge after the restart
    while_down = float(
        arrived[following - 1] + rates[min(following, rates.size) - 1] * (downtime - edges[following - 1])
    )
    work = backlog + replay * (float(rates[0]) if recent_rate is None else recent_rate) + while_down
    if work <= 0:
        return float(downtime)

    left = work + (arrived[following:] - while_down) - capacity * (edges[following:] - downtime)
    done = np.flatnonzero(left <= 0)
    at_end = int(done[0]) if done.size else left.size  # counts edges after the restart
    start = float(edges[following + at_end - 1]) if at_end else float(downtime)
    still = float(left[at_end - 1]) if at_end else work
    spare = capacity - float(rates[min(following + at_end, rates.size) - 1])
    if not done.size:
        return float(start + still / spare) if spare > 0 else None
    end = float(edges[following + at_end])
    return (
        min(end, float(start + still / spare)) if spare > 0 else end
    )  # the sums may round where there is almost no spare


@dataclass(frozen=True, slots=True)
class Stop:
    """What a rescale or a failure costs: seconds without processing, and seconds of input to process again.

    lag: seconds until it shows that something stopped, and after all was caught up until meters no longer tell of it.
    """

    downtime: float
    replay: float
    lag: float = 0.0


@dataclass(slots=True)
class Downtimes:
    """The stop to expect, by the way it comes about; learned from watched recoveries.

    out, inward, failure: anticipated downtime until one was seen; that of a failure, unless given, is as scaling out.
    replay: the checkpoint interval; at worst all of it is processed again.
    weight: how far one recovery moves what is expected; from the first on, as what it starts from is only a guess.
    longest: no downtime is believed to be longer.

    >>> live = Downtimes()
    >>> for _ in range(5):
    ...     _ = live.observed("out", 0.0, load=[800.0], step=60, capacity=1000)
    >>> live.anticipated("out")
    Stop(downtime=0.9375, replay=0.3125, lag=0.0)
    """

    out: float = 30.0
    inward: float = 15.0
    failure: float | None = None
    replay: float = 10.0
    weight: float = 0.5
    longest: float = 600.0
    _learned: dict[Way, Stop] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        check(self.longest > 0, "longest", "be above 0 seconds", self.longest)
        check(0 < self.weight <= 1, "weight", "be in (0, 1]", self.weight)
        check(self.replay >= 0, "replay", "be 0 or more seconds", self.replay)
        for name in ("out", "inward", "failure"):
            seconds = getattr(self, name)
            rule = f"be in [0, longest ({self.longest:g})]"
            check(seconds is None or 0 <= seconds <= self.longest, name, rule, seconds)

    def anticipated(self, way: Way) -> Stop:
        if way in self._learned:
            return self._learned[way]
        if (
            way == "failure" and self.failure is None
        ):  # no failure was seen: it starts workers anew, as scaling out does
            return self.anticipated("out")
        return Stop({"out": self.out, "in": self.inward, "failure": self.failure or 0.0}[way], self.replay)

    def observed(
        self,
        way: Way,
        recovery_seconds: float,
        *,
        load: Rates,
        step: float,
        capacity: float,
        backlog: float = 0.0,
        recent_rate: float | None = None,
        lag: float = 0.0,
    ) -> Stop | None:
        """Learn from a recovery; the stop that explains it, or None where none does and nothing is learned.

        lag: how much of it was no catching up.
        """
        rates = np.asarray(load, dtype=np.float64)

        def predicted(downtime: float, replay: float) -> float | None:
            return recovery_time(
                rates,
                step,
                capacity=capacity,
                backlog=backlog,
                downtime=downtime,
                replay=replay,
                recent_rate=recent_rate,
            )

        stop = self._explain(recovery_seconds, lag, predicted)
        if stop is None:
            return None
        old, new = self.anticipated(way), self.weight
        self._learned[way] = Stop(
            old.downtime + new * (stop.downtime - old.downtime),
            old.replay + new * (stop.replay - old.replay),
            old.lag + new * (stop.lag - old.lag),
        )
        return stop

    def _explain(self, seconds: float, lag: float, predicted: Callable[[float, float], float | None]) -> Stop | None:
        if not (isfinite(seconds) and seconds >= 0):
            raise ValueError(f"recovery_seconds must be finite and 0 or more, got {seconds!r}")
        if not 0 <= lag <= seconds:
            raise ValueError(f"lag must be 0 or more and at most recovery_seconds ({seconds!r}), got {lag!r}")
        seen = seconds - lag
        if seen == 0:
            return Stop(0.0, 0.0, lag)
        at_once = predicted(0.0, self.replay)
        if at_once is not None and at_once <= seen:
            # No recovery is shorter than its downtime.
            downtime = _solve(lambda d: predicted(d, self.replay), seen, min(self.longest, seen))
            return None if downtime is None else Stop(downtime, self.replay, lag)
        # Even without a stop a full replay would have taken longer: less of it was replayed, on a live engine nothing.
        replay = _solve(lambda r: predicted(0.0, r), seen, self.replay)
        return None if replay is None else Stop(0.0, replay, lag)


def _solve(predicted: Callable[[float], float | None], seen: float, most: float) -> float | None:
    """The least argument in [0, most] at which `predicted`, which never falls, comes to `seen`, else `most`.

    None where the prediction leaps over what was seen to "never": then capacity or load were not what was thought.
    """
    at_least, at_most = predicted(0.0), predicted(most)
    if at_least is None:
        return None
    if at_least >= seen:
        return 0.0
    if at_most is not None and at_most <= seen:
        return most
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        value = predicted(middle)
        if value is None or value >= seen:
            high, at_most = middle, value
        else:
            low = middle
    return None if at_most is None else high
