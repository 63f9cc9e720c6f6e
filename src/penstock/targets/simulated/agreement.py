"""Is it like the real thing? Recorded load and worker counts in, and what comes out beside what was measured.

`fit` calibrates physical quantities on some runs, `feed` lets the simulator live through others, and `compare` and
`agree` say how far apart they are. Only what the experiment was given goes in: load, worker counts, the instants of
injected failures, and what waited when the recording began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from penstock.errors import ConfigError, check
from penstock.targets.simulated.dataflow import Floats
from penstock.targets.simulated.profile import Profile
from penstock.targets.simulated.target import SimulatedTarget

SATURATED = 10.0  # seconds of latency that only a job at its limit has for long
SETTLED = 150.0  # seconds after which a change of workers, and the windows over it, are past
LEAST_LATENCY = 0.01  # seconds below which latencies are alike: nothing waits


@dataclass(frozen=True)
class Run:
    """A recorded run: equally spaced rows; NaN where nothing was measured.

    every: seconds from row to row.
    load, throughput: records/s. backlog: records. latency: seconds. cpu: 0..1.
    failures: seconds after the start at which a worker was lost.
    """

    name: str
    every: float
    load: Floats
    workers: Floats
    throughput: Floats
    backlog: Floats
    latency: Floats
    cpu: Floats
    failures: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check(self.every >= 1, "every", "be at least 1 second, which is the tick", self.every)
        check(len(self.load) >= 2, "load", "have at least two rows", len(self.load))
        for name in ("workers", "throughput", "backlog", "latency", "cpu"):
            rows = len(getattr(self, name))
            check(rows == len(self.load), name, f"have as many rows as the load ({len(self.load)})", rows)

    def changed(self) -> list[int]:
        """The rows that show another number of workers than the row before."""
        known = whole(self.workers)
        return [int(row) + 1 for row in np.flatnonzero(np.diff(known))]

    def settled(self) -> NDArray[np.bool_]:
        """The rows that no change of workers, start or failure is near."""
        calm = np.ones(len(self.load), dtype=bool)
        rows = round(SETTLED / self.every)
        for row in [0, *self.changed(), *(int(at / self.every) for at in self.failures)]:
            calm[max(0, row - 1) : row + rows] = False
        return calm


@dataclass(frozen=True)
class Fed:
    """What the simulator measured at each row of a recorded run."""

    throughput: Floats
    backlog: Floats
    latency: Floats
    cpu: Floats


@dataclass(frozen=True)
class Points:
    """A simulated run beside the recorded one, row by row; empty where nothing was recorded.

    throughput, cpu: the absolute error as a share of what was recorded.
    backlog, latency: whether both are within a factor of ten.
    """

    throughput: Floats
    cpu: Floats
    backlog: NDArray[np.bool_]
    latency: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far simulated runs are from recorded ones; None where nothing was recorded.

    throughput, cpu: median over rows of the absolute error as a share of what was recorded.
    backlog, latency: share of rows within a factor of ten.
    """

    throughput: float | None
    cpu: float | None
    backlog: float | None
    latency: float | None


class _Recorded:
    """A recorded rate, straight from row to row. A metric that is a mean of a window is half a window late."""

    def __init__(self, rates: Floats, every: float, late: float) -> None:
        known = np.isfinite(rates)
        self._times = np.arange(len(rates))[known] * every - late
        self._rates = np.maximum(rates[known], 0.0)

    def rate(self, t: float) -> float:
        return float(np.interp(t, self._times, self._rates))

    def rates(self, ts: Floats) -> Floats:
        return np.interp(ts, self._times, self._rates)


def feed(profile: Profile, run: Run, seed: int = 0) -> Fed:
    """Throughput, backlog, latency and CPU, as metrics show them, under a recorded load and recorded worker counts.

    A recorded count shows workers that are there, so the start-up of the profile does not apply. What waited when the
    recording began is where the simulation begins, too.
    """
    load, workers, every = run.load.copy(), whole(run.workers), run.every
    full = min(ceil(profile.rate_window / every), len(load) - 1)
    load[:full] = np.nan  # a mean over a window that is not full yet counts from zero: it says too little
    check(bool(np.isfinite(load).any()), "load", "have a known value", "none")
    late = profile.rate_window / 2 + profile.metric_delay
    first = run.backlog[: full + 1]
    waits = float(np.nanmax(first)) - profile.backlog_floor if np.isfinite(first).any() else 0.0
    target = SimulatedTarget(
        replace(profile, startup=0.0, max_workers=max(profile.max_workers, int(workers.max()))),
        _Recorded(load, every, late),
        workers=int(workers[0]),
        seed=seed,
        backlog=max(0.0, waits),
    )
    for at in run.failures:
        target.fail(at)
    found = np.full((4, len(load)), np.nan)
    half = every // 2
    for row in range(len(load)):
        if row:
            target.clock.sleep(every - half)
            if workers[row] != workers[row - 1]:
                target.rescale(int(workers[row]))  # between the two rows, at a time that nobody recorded
            target.clock.sleep(half)
        seen = target.observe()
        values = (seen.processed_rate, seen.backlog, seen.latency, seen.cpu)
        found[:, row] = [np.nan if value is None else value for value in values]
        if seen.uptime is None:  # down: nothing comes out, and the log fills
            found[0, row] = 0.0
            found[1, row] = float(target.backlog_by_partition().sum()) + profile.backlog_floor
    return Fed(*found)


def compare(run: Run, fed: Fed) -> Points:
    """A simulated run beside the recorded one, row by row."""
    few = max(1.0, float(np.nanmean(run.load)) * LEAST_LATENCY)
    return Points(
        _error(run.throughput, fed.throughput),
        _error(run.cpu, fed.cpu),
        _alike(run.backlog, fed.backlog, few),
        _alike(run.latency, fed.latency, LEAST_LATENCY),
    )


def agree(*points: Points) -> Agreement:
    """How far they are apart, over all rows of one run or several."""

    def over(name: str, what: Callable[[Floats], np.float64]) -> float | None:
        rows = np.concatenate([np.zeros(0), *(getattr(each, name) for each in points)])
        return float(what(rows)) if len(rows) else None

    return Agreement(
        over("throughput", np.median), over("cpu", np.median), over("backlog", np.mean), over("latency", np.mean)
    )


def fit(profile: Profile, runs: Sequence[Run], rounds: int = 3) -> Profile:
    """The profile with capacity, CPU, downtimes and warm-up as these runs show them.

    A first guess comes from the rows themselves: capacity from those in which the job is behind, CPU from a straight
    line over utilisation, downtimes from what a stop left unread. From there, and from the profile as it is, each
    quantity is moved up and down as long as that brings the simulated runs nearer to the recorded ones. The better of
    the two goes on, in steps that halve with each round.
    """
    guessed = _fit_downtime(_fit_cpu(_fit_capacity(profile, runs), runs), runs)
    first = [_nearer(start, runs, 1.0) for start in dict.fromkeys((profile, guessed))]
    best, _ = min(first, key=lambda pair: pair[1])
    for finer in range(1, rounds):
        best, _ = _nearer(best, runs, 1 / 2**finer)
    return best


def _nearer(best: Profile, runs: Sequence[Run], scale: float) -> tuple[Profile, float]:
    """One quantity after the other moved by steps of this scale, and how far from the runs that leaves it."""
    least = _loss(best, runs)
    for name, step in _STEPS.items():
        for sign in (1, -1):
            while (tried := _moved(best, name, sign * step * scale)) is not None:
                loss = _loss(tried, runs)
                if loss >= least - 1e-6:
                    break
                best, least = tried, loss
    return best, least


# How far to move at first: as a share of the quantity, or, for those of 0..1, outright.
_STEPS = {
    "capacity": 0.1,
    "exponent": 0.06,
    "ceiling": 0.2,
    "idle_cpu": 0.04,
    "full_cpu": 0.08,
    "downtime_out": 0.4,
    "downtime_in": 0.4,
    "downtime_failure": 0.2,
    "warmup": 0.5,
    "warmup_speed": 0.2,
    "warmup_cpu": 0.2,
    "behind_speed": 0.2,
    "burst": 0.5,
    "backlog_floor": 0.5,
    "batch_fixed": 0.3,
    "batch_task": 0.3,
}
_SHARES = ("exponent", "idle_cpu", "full_cpu", "warmup_speed", "warmup_cpu", "behind_speed")


def _moved(profile: Profile, name: str, step: float) -> Profile | None:
    """The profile with one quantity moved; None where it has nothing to move or may go no further."""
    value = getattr(profile, name)
    if not value and name not in _SHARES:
        return None
    try:
        return replace(profile, **{name: value + step if name in _SHARES else value * (1 + step)})
    except ConfigError:
        return None


def _loss(profile: Profile, runs: Sequence[Run]) -> float:
    total = 0.0
    for run in runs:
        found = agree(compare(run, feed(profile, run)))
        total += (found.throughput or 0.0) / 0.1 + (found.cpu or 0.0) / 0.15
        total += sum((1 - share) / 0.1 for share in (found.backlog, found.latency) if share is not None)
    return total / len(runs)


def _fit_capacity(profile: Profile, runs: Sequence[Run]) -> Profile:
    workers, rates = [], []
    for run in runs:
        behind = run.settled() & (run.latency > SATURATED) & (run.throughput > 0) & (run.workers >= 1)
        workers += run.workers[behind].tolist()
        rates += run.throughput[behind].tolist()
    if len(rates) < 20:
        return profile
    n, rate = np.array(workers), np.array(rates)
    free = rate < 0.8 * (profile.ceiling or np.inf)  # beyond that it is not the workers that are the limit
    if free.sum() < 20:
        return profile
    return replace(profile, capacity=float(np.median(rate[free] / n[free] ** profile.exponent)))


def _fit_cpu(profile: Profile, runs: Sequence[Run]) -> Profile:
    uses, cpus = [], []
    for run in runs:
        known = run.settled() & np.isfinite(run.cpu) & np.isfinite(run.throughput) & (run.workers >= 1)
        use = run.throughput[known] / (profile.capacity * run.workers[known] ** profile.exponent)
        uses += np.minimum(use, 1.0).tolist()
        cpus += run.cpu[known].tolist()
    if len(cpus) < 20:
        return profile
    slope, idle = np.polyfit(uses, cpus, 1)
    idle = float(np.clip(idle, 0.0, 0.9))
    return replace(profile, idle_cpu=idle, full_cpu=float(np.clip(idle + slope, idle + 0.01, 1.0)))


def _fit_downtime(profile: Profile, runs: Sequence[Run]) -> Profile:
    if profile.rescaling == "live":  # nothing stops
        return profile
    out: list[float] = []
    back: list[float] = []
    failed: list[float] = []
    for run in runs:
        counts = whole(run.workers)
        for row in run.changed():
            after = run.backlog[row : row + round(60 / run.every)]
            if row < 2 or not run.latency[row - 2] <= 1 or np.isnan(after).all():
                continue
            seconds = (float(np.nanmax(after)) - float(run.backlog[row - 2])) / max(1.0, float(run.load[row]))
            if not np.isfinite(seconds):
                continue
            (out if counts[row] > counts[row - 1] else back).append(seconds)
        failed += [unread(run, at) for at in run.failures]
    replayed = 0.0 if profile.savepoint else profile.checkpoint_interval / 2
    changed = {}
    if len(out) >= 5:
        changed["downtime_out"] = max(1.0, float(np.median(out)) - replayed)
    if len(back) >= 5:
        changed["downtime_in"] = max(1.0, float(np.median(back)) - replayed)
    if len(failed) >= 4:
        changed["downtime_failure"] = max(1.0, float(np.median(failed)) - profile.detection)
    return replace(profile, **changed)  # type: ignore[arg-type]


def unread(run: Run, at: float) -> float:
    """Seconds of load that a failure at `at` left unread until the job began to catch up."""
    first = int(at / run.every)
    load, rate = (
        run.load[first : first + round(300 / run.every)],
        run.throughput[first : first + round(300 / run.every)],
    )
    short = np.nan_to_num(load - rate)
    ends = np.flatnonzero(short[5:] < 0)
    until = int(ends[0]) + 5 if len(ends) else len(short)
    return float(short[:until].sum() * run.every / max(1.0, float(np.nanmean(load))))


def whole(workers: Floats) -> Floats:
    """Worker counts without gaps and without the zeros of a cluster that was not looked at in time."""
    known = workers.copy()
    known[~(known >= 1)] = np.nan
    check(bool(np.isfinite(known).any()), "workers", "have a count of 1 or more", "none")
    last = known[np.isfinite(known)][0]
    for row in range(len(known)):
        last = known[row] = known[row] if np.isfinite(known[row]) else last
    return known


def _error(recorded: Floats, simulated: Floats) -> Floats:
    if not np.isfinite(recorded).any():
        return np.zeros(0)
    known = np.isfinite(recorded) & np.isfinite(simulated)
    least = 0.05 * float(np.nanmedian(recorded))  # a share of next to nothing says nothing
    found: Floats = np.abs(simulated[known] - recorded[known]) / np.maximum(recorded[known], max(least, 1e-12))
    return found


def _alike(recorded: Floats, simulated: Floats, least: float) -> NDArray[np.bool_]:
    if not np.isfinite(recorded).any():
        return np.zeros(0, dtype=bool)
    known = np.isfinite(recorded) & np.isfinite(simulated)
    ratio = np.maximum(simulated[known], least) / np.maximum(recorded[known], least)
    alike: NDArray[np.bool_] = np.abs(np.log10(ratio)) <= 1
    return alike
