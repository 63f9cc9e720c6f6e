"""How many records per second a scale-out can process, learned from CPU and throughput while the job runs.

Daedalus, sec. 3.1: CPU is linear in throughput, so a regression per worker tells what it would do at its highest CPU;
under skew only the busiest worker gets there, and the others stop where they are in proportion to it. The capacity of
what runs is the sum, that of a scale-out seen before is what was observed there, that of any other is the average
worker times its number.

Deviations from the paper, each because it was measured to matter:

- The line is fitted as CPU = idle + cost x rate, and then solved for the rate. The noise is in the CPU, and regressing
  on a noisy quantity flattens the slope the more the fewer points there are (regression dilution).
- A fit from few or bunched points leans on what is known without it: throughput / CPU, less the idle CPU that all
  workers together show. How much depends on the noise left over; without noise it is least squares exactly.
- Old samples fade, and at once when a worker's CPU per record has changed: a JVM gets several times cheaper while it
  compiles. Of a scale-out that has not run for a while its skew is kept, how much of what its workers could do they
  did: that lasts as long as keys hash alike. The cost of a record, which may change, is always today's.
- A micro-batch engine that falls behind makes larger batches, and fewer. What a batch costs besides its records, which
  at an even pace looks like idle CPU, then counts less (penstock.models.overhead). Capacity is what can be done like
  that. How long batches take tells it as well (penstock.models.batch_time); the two err apart, so both count.
  While batches are as large as they may be, what they do is no estimate but a measurement, and comes first. A full
  batch at every trigger is the most there is, whatever CPU is left.
- What is said of a scale-out before a rescale is compared with what is found there, and what can be relied on is less
  by as much as such words were off. A job that splits unevenly at some scale-outs gets more reserve than one that
  scales as foreseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, pow, sqrt
from typing import Literal

from penstock.core import Batch, Worker
from penstock.models.batch_time import BatchTime
from penstock.models.estimate import Current, Estimate, Seen
from penstock.models.line import FEWEST, Line, fit
from penstock.models.overhead import Overhead
from penstock.models.pace import Pace, telling
from penstock.models.streak import Streak
from penstock.models.welford import Moments, Paired

PLENTY = 20  # samples that have to do, where load and CPU stay as low as they are
DIRECT = 2.0  # batches whose durations say as much about larger ones as CPU does
TELLING = 0.7  # of CPU: from there on throughput / CPU is a fair estimate (Daedalus, sec. 3.1.2 and Fig. 5a), …
DIFFERENT = 0.2  # … and so is a line through rates that differ by so much, as a share
MEASURED = 1.5  # full batches, faded with age, that are a measurement: two in a row, also where one outlasts a loop
SETTLED = 2.0  # samples of another scale-out before its own figure replaces the average of the one before
FEW = 5.0  # samples with which a scale-out seen before counts as much as the average
LIKE = 8.0  # samples of a worker until which most of what is thought of it is what is known of all others
OWN_SPREAD = 0.1  # how much cost per record differs between like workers, as a share: slow nodes exist
POOL_SPREAD = 0.5  # how far off throughput / CPU may be: all of the idle CPU of a lightly loaded job
USUAL_MISS = 0.05  # as a share: how far off predictions are until some were seen; on Spark 0.7 to 7 % were measured
LESSON = 0.25  # how far one prediction that was off moves what is expected of the next
MOST_MISS = 0.15  # as a share: the most reserve, however wrong the predictions were
PUNCTUAL = 0.5  # of a batch's limit: what plans count on. Full batches do more, and all records wait longer for them
ELSEWHERE = 0.25  # what batches of another number of workers count for
LOWEST_CEILING = 0.6  # below that, something other than CPU holds the job up, and CPU says nothing about capacity


@dataclass(slots=True)
class Capacity:
    """Learns from samples of workers; `at(n)` is its word.

    half_life: seconds after which a sample counts half.
    memory: seconds over which the workers' shares of the work are averaged.
    skew_half_life: seconds after which what was seen of the skew at another scale-out, and of the CPU at which workers
        can do no more, counts half; unset: half_life.
    latest: seconds over which what full batches did is averaged; unset: memory.

    >>> model = Capacity()
    >>> for second in range(60):
    ...     load = 500 + 5 * second
    ...     model.learn(second, [Worker(name, cpu=0.1 + load / 1250, rate=load) for name in ("a", "b")])
    >>> round(model.at(2).capacity), round(model.at(3).capacity), model.at(3).source
    (2250, 3375, 'average')
    """

    half_life: float = 1800.0
    memory: float = 120.0
    skew_half_life: float | None = None
    latest: float | None = None
    _pairs: dict[str, Paired] = field(default_factory=dict)
    _cpu: dict[str, Moments] = field(default_factory=dict)
    _members: frozenset[str] = frozenset()
    _at: float | None = None
    _seen: dict[int, Seen] = field(default_factory=dict)
    _current: Current | None = None
    _said: float | None = None  # of the scale-out that runs, before it ran; None once it was held to that
    _miss: float = USUAL_MISS  # how far off, as a share, what was said of other scale-outs turned out to be
    _full: Moments = field(default_factory=Moments)
    _whole_at: float | None = None  # when all were seen, if nothing was made of it yet
    _part: frozenset[str] = frozenset()  # those that were seen since, where they were not all
    _streaks: dict[str, Streak] = field(default_factory=dict)
    _interval: Moments = field(default_factory=Moments)
    _overhead: Overhead = field(default_factory=Overhead)
    _batches: BatchTime = field(default_factory=BatchTime)
    _limit: float | None = None  # records of one batch for each worker
    _most: float | None = None  # records/s of each, with a full batch at every trigger
    _done: Moments = field(default_factory=Moments)  # records/s of each, in batches as large as may be …
    _done_by: int | None = None  # … of so many workers
    _in_a_row: int = 0  # large batches

    def learn(
        self,
        at: float,
        workers: Sequence[Worker],
        whole: bool = True,
        full: bool = False,
        pace: Pace | None = None,
        batch: Batch | None = None,
    ) -> None:
        """Take in one sample of warm workers, those that report both CPU and rate.

        whole: these are all that run, so that what they do together is what this scale-out can do.
        full: they have more to do than they can, so that the busiest is at its highest CPU.
        pace: of a micro-batch engine, where all that run take part, also those that are too young to learn from.
        batch: the one that the sample is of.
        """
        weight = telling(batch)
        pairs = [(w.name, w.cpu, w.rate) for w in workers if w.cpu is not None and w.rate is not None]
        if not pairs:
            return
        passed = max(0.0, at - self._at) if self._at is not None else 0.0
        self._at = at
        share = _faded(passed, self.half_life)
        for line in self._pairs.values():
            line.fade(share)
        of_shares = _faded(passed, self.memory)
        for cpu_share in self._cpu.values():
            cpu_share.fade(of_shares)
        self._done.fade(_faded(passed, self.latest or self.memory))
        # Where CPU ends is the engine's, as skew is the keys': neither changes with what a record costs today.
        lasting = self.skew_half_life or self.half_life
        for moments, left in ((self._full, _faded(passed, lasting)), (self._interval, share)):
            if moments.weight > 0:
                moments.fade(left)
        self._overhead.fade(share)
        self._batches.fade(share)
        if pace is not None:
            self._interval.add(pace.interval, weight)
            self._limit, self._most = pace.limit, pace.most
            if whole:
                mean_cpu, mean_rate = (sum(values) / len(pairs) for values in list(zip(*pairs, strict=True))[1:])
                self._overhead.add(mean_cpu, mean_rate, pace.interval)
        self._measure(pace, batch, whole)
        for name, cpu, rate in pairs:
            self._follow(name, cpu, rate)
            self._pairs.setdefault(name, Paired()).add(cpu, rate, weight)
        if full or self._in_a_row > 1:
            self._full.add(max(cpu for _, cpu, _ in pairs))
        if not whole or len(pairs) < len(workers):
            self._part = frozenset(name for name, _, _ in pairs)
            return
        members = frozenset(name for name, _, _ in pairs)
        if members != self._members:  # another split of the work: shares are found anew, costs stay
            self._reckon()
            self._members = members
            self._cpu.clear()
            for name in [name for name in self._pairs if name not in members and name != _LEFT]:
                self._retire(name)
        for name, cpu, _ in pairs:
            self._cpu.setdefault(name, Moments()).add(cpu, weight)
        self._whole_at = at

    def at(self, workers: int) -> Estimate | None:
        """What `workers` can process; None before anything is known."""
        found = self._by_work(workers)
        return found if found is None or self._most is None else found.held_to(self._most * workers)

    def _by_work(self, workers: int) -> Estimate | None:
        """What they could with batches as large and as frequent as they like."""
        self._reckon()
        if self._current is None or self._at is None:
            return None
        now = self._current
        measured = self._measured
        gain = self._by_both(now, now.gain, 1.0) if measured is None else measured * now.workers / now.capacity
        punctual = min(1.0, self._by_both(now, now.punctual, PUNCTUAL) / gain)
        if workers == now.workers:
            return Estimate(workers, now.capacity * gain, "current", now.capacity * gain * punctual)
        source: Literal["seen", "average"] = "seen" if workers in self._seen else "average"
        capacity = self._elsewhere(now, self._at, workers) * gain
        if measured is not None:  # a smaller skew elsewhere is an estimate, too
            capacity = min(capacity, measured * workers)
        return Estimate(workers, capacity, source, capacity * punctual * (1 - min(self._miss, MOST_MISS)))

    def _by_both(self, now: Current, by_cpu: float, part: float) -> float:
        """How many times as much as at the pace of now they do in batches of that part of the limit.

        CPU says one thing, how long batches take another. The latter is nearer to what is asked, but few say little.
        """
        seconds = None if self._limit is None else self._batches.at(part * self._limit)
        if self._limit is None or not seconds:
            return by_cpu
        by_time = part * self._limit / seconds * now.workers / now.capacity
        return by_cpu + self._batches.weight / (self._batches.weight + DIRECT) * (by_time - by_cpu)

    @property
    def _measured(self) -> float | None:
        """What each does in full batches, if there were some lately."""
        return self._done.mean if self._done.weight >= MEASURED else None

    def _measure(self, pace: Pace | None, batch: Batch | None, whole: bool) -> None:
        """How long batches take, and what each worker does in full ones; another number of workers begins anew.

        While some are too young for that, full batches still tell at which CPU the others can do no more.
        """
        self._in_a_row = self._in_a_row + 1 if pace is not None and (pace.large or pace.full is not None) else 0
        if pace is None:
            return
        if pace.workers != self._done_by:
            self._done, self._done_by, self._in_a_row = Moments(), pace.workers, min(self._in_a_row, 1)
            self._batches.fade(ELSEWHERE)
        if whole and pace.full is not None:
            self._done.add(pace.full)
        if whole and batch is not None and pace.workers is not None:
            self._batches.learn(batch, pace.workers)

    def _elsewhere(self, now: Current, at: float, workers: int) -> float:
        """What is expected of a scale-out that does not run."""
        average = now.capacity / now.workers * workers
        seen = self._seen.get(workers)
        if seen is None:
            return average
        faded = pow(0.5, max(0.0, at - seen.at) / (self.skew_half_life or self.half_life))
        trust = faded * seen.samples / (seen.samples + FEW)
        return trust * seen.evenness * now.even / now.workers * workers + (1 - trust) * average

    @property
    def ceiling(self) -> float:
        """The CPU at which the busiest worker can do no more.

        An engine that stops between batches never gets to 100 %; it is known once the job had more to do than it could.
        """
        seen = self._full.mean if self._full.weight >= SETTLED else None
        return 1.0 if seen is None else min(max(seen, LOWEST_CEILING), 1.0)

    @property
    def acquainted(self) -> bool:
        """Enough was seen of every worker to plan on what it can do.

        At a low and even load all CPU looks like the cost of records, also what would be spent without any, and a job
        looks capable of little more than it does. What it costs then shows once the load moves, or after a while.
        """
        samples = min((self._pairs[name].weight for name in self._members), default=0.0)
        total = self._total()
        if samples <= FEWEST - 1 or not total.y_mean or total.x_mean is None:
            return False
        moved = sqrt(total.y_variance or 0.0) >= DIFFERENT * total.y_mean
        return moved or total.x_mean >= TELLING or samples > PLENTY - 1

    def line(self, name: str) -> Line | None:
        """The line of one worker, as it stands."""
        pooled = self._pooled()
        return None if pooled is None else self._line(name, pooled)

    def _line(self, name: str, pooled: Line) -> Line | None:
        pairs = self._pairs.get(name)
        if pairs is None or not pairs.y_mean or pairs.x_mean is None:
            return None
        own = fit(pairs, max(pairs.x_mean - pooled.idle, 0.0) / pairs.y_mean, OWN_SPREAD)
        return own and own.towards(pooled, exp(-pairs.weight / LIKE))

    def _reckon(self) -> None:
        """Make of what was learned what the running scale-out can do; only when somebody asks, or it ends."""
        if self._whole_at is None:
            self._reckon_part()
            return
        found = self._sum(sorted(self._members))
        samples = min((share.weight for share in self._cpu.values()), default=0.0)
        if found is not None and samples >= (SETTLED if self._current else 1):
            if self._current is not None and self._current.workers != found.workers:
                self._said = self._elsewhere(self._current, self._whole_at, found.workers)
            if self._said is not None and samples >= FEWEST:  # of fewer, the difference is mostly noise
                self._miss += LESSON * (min(abs(self._said / found.capacity - 1), 1.0) - self._miss)
                self._said = None
            self._current = found
            self._seen[found.workers] = Seen(self._whole_at, found.evenness, samples)
        self._whole_at, self._part = None, frozenset()

    def _reckon_part(self) -> None:
        """While workers come and go, those that are warm tell what one of them can do."""
        names, self._part = sorted(self._part), frozenset()
        lines = self._lines([name for name in names if self._pairs[name].weight > SETTLED])
        alone = sum(line.rate(self.ceiling) for line in lines.values())  # if each were the busiest
        if alone > 0 and self._current is not None:
            count = self._current.workers
            even = alone / len(lines) * count
            self._current = Current(count, self._current.evenness * even, even, *self._gains(lines.values(), alone))

    def _lines(self, names: Sequence[str]) -> dict[str, Line]:
        pooled = self._pooled()
        found = {} if pooled is None else {name: self._line(name, pooled) for name in names}
        return {name: line for name, line in found.items() if line is not None}

    def _gains(self, lines: Iterable[Line], even: float) -> tuple[float, float]:
        """How many times as much as `even`, which is at the pace of now, these do in full, and in punctual batches."""
        pace, pooled = self._pace(), self._pooled()
        if pace is None or pooled is None:
            return 1.0, 1.0
        share = self._overhead.of_batches(pooled.idle, pace.interval)
        punctual = replace(pace, limit=PUNCTUAL * pace.limit)
        full, half = (sum(line.full(self.ceiling, p, share) for line in lines) / even for p in (pace, punctual))
        return full, half

    def _sum(self, members: Sequence[str]) -> Current | None:
        lines = self._lines(members)
        work = self._work(lines)
        most = max(work.values(), default=0.0)
        if most <= 0:
            return None
        # The busiest reaches the ceiling; the others get there as far as their share of the work goes.
        rates = [line.rate(line.idle + (self.ceiling - line.idle) * work[name] / most) for name, line in lines.items()]
        even, scale = sum(line.rate(self.ceiling) for line in lines.values()), len(members) / len(lines)
        if min(sum(rates), even) <= 0:
            return None
        return Current(len(members), sum(rates) * scale, even * scale, *self._gains(lines.values(), even))

    def _work(self, lines: Mapping[str, Line]) -> dict[str, float]:
        """CPU that each spends on records. Of few samples, most of the difference is chance: one slow batch of one."""
        work = {name: max((self._cpu[name].mean or 0.0) - line.idle, 0.0) for name, line in lines.items()}
        usual = sum(work.values()) / max(len(work), 1)
        believed = {name: 1 - exp(-self._cpu[name].weight / LIKE) for name in work}
        return {name: usual + (own - usual) * believed[name] for name, own in work.items()}

    def _pace(self) -> Pace | None:
        interval = self._interval.mean
        return None if interval is None or self._limit is None else Pace(interval, self._limit)

    def _follow(self, name: str, cpu: float, rate: float) -> None:
        """Several samples in a row off the worker's line on one side: it has changed, and what was counts half."""
        pairs = self._pairs.get(name)
        if pairs is None or pairs.weight < FEWEST or not pairs.x_mean or not pairs.y_mean:
            return
        line = fit(pairs, pairs.x_mean / pairs.y_mean, POOL_SPREAD)
        expected = None if line is None else line.idle + line.cost * rate
        if self._streaks.setdefault(name, Streak()).goes_on(cpu, expected):
            pairs.fade(0.5)

    def _total(self) -> Paired:
        """All workers together, those that left as well: what one has not seen yet, another has."""
        total = Paired()
        for pairs in self._pairs.values():
            total.merge(pairs)
        return total

    def _pooled(self) -> Line | None:
        total = self._total()
        cpu, rate = total.x_mean, total.y_mean
        return fit(total, cpu / rate, POOL_SPREAD) if cpu and rate else None

    def _retire(self, name: str) -> None:
        """Keep what a worker that left showed about the job; its name may never come back."""
        self._pairs.setdefault(_LEFT, Paired()).merge(self._pairs.pop(name))
        self._streaks.pop(name, None)


_LEFT = ""  # the name under which workers that left live on


def _faded(passed: float, half_life: float) -> float:
    return max(pow(0.5, passed / half_life), 1e-12)


def warm(workers: Iterable[Worker], now: float, age: float = 0.0) -> list[Worker]:
    """Those that do useful work at full speed, `age` seconds old at least; without start and readiness, taken for one.

    Ready is not warm: what a worker still compiles looks like skew, as it is busier than the others with the same work.
    """
    return [w for w in workers if _ready(w, now) and (w.started_at is None or now - w.started_at >= age)]


def _ready(worker: Worker, now: float) -> bool:
    at = worker.ready_at
    return worker.started_at is None if at is None else at <= now
