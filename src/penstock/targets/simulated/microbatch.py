"""The micro-batch engine: Spark Structured Streaming.

A batch takes what waits when it starts, at most its limit, and nothing else until it ends; what comes meanwhile waits
for the next. It lasts as long as its slowest worker plus what the driver needs, and the next one starts at the trigger
or at its end, whichever is later. Position moves at the end of a batch, so every record's latency is its wait for the
batch and the batch itself. Workers come and go while batches run: a batch keeps the fleet it started with.

A lost worker makes the batch late by the time until it is noticed and by its share of the work, done again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from penstock.core import Batch, Workload
from penstock.targets.simulated.dataflow import Floats, Plan, complete
from penstock.targets.simulated.engine import Engine, Unit
from penstock.targets.simulated.profile import Profile

_BATCHES = 13
_OLDEST = np.array([0.5, 0.05, 0.01])  # the oldest records come first: p95 is the age of the one at 5 %


@dataclass(frozen=True, slots=True)
class _Running:
    """A batch under way; times are in ticks, `busy` is the CPU time of each column."""

    number: int
    start: float
    end: float
    upto: float
    records: float
    cold: bool
    limit: int | None
    busy: Floats


class Microbatch(Engine):
    """One batch after another on a fleet that may change between them."""

    _batch: _Running | None = None
    _next: float = 0.0
    _number: int = 0
    _done: float = 0.0
    _normals: list[float]
    _kept: tuple[_Running | None, float, int, float, int] = (None, 0.0, 0, 0.0, 0)

    def __init__(self, profile: Profile, workload: Workload, plan: Plan, seed: int) -> None:
        super().__init__(profile, workload, plan, seed)
        self._normals = []

    def request(self, wanted: Plan) -> None:
        plan = complete(self.profile, wanted, self.wanted)
        if plan == self.wanted:
            return
        self.cut()
        self.wanted, self.rescaled = plan, self.history.ticks
        self._join_later(plan)

    def keep(self) -> None:
        self._kept = (self._batch, self._next, self._number, self._done, len(self.history.batches))

    def back(self) -> None:
        self._batch, self._next, self._number, self._done, batches = self._kept
        del self.history.batches[batches:]

    def _lose(self) -> None:
        profile, t = self.profile, self.history.ticks
        lost = self.layout.names[-1]
        if self._batch is not None and self._batch.end > t:
            again = (t - self._batch.start) / len(self.layout.names)
            late = self._batch.end + profile.detection + max(0.0, again)
            self._batch = replace(self._batch, end=late)
        self.tell("worker.lost", f"{lost} was lost")
        back = t + ceil(profile.detection + profile.startup)
        warm = back + ceil(profile.warmup)
        self.units[lost] = Unit(back, back, warm, warm)
        self._note()

    def _run(self, ticks: int) -> None:
        h, t = self.history, self.history.ticks
        self.rest(ticks)
        end = t + ticks
        busy = np.zeros((ticks, h.cpu.shape[1]))
        arrived = h.arrived[t : end + 1]
        while True:
            if self._batch is None:
                if self._next >= end:
                    break
                start = max(self._next, float(t))
                place = int(start) - t
                part = (start - int(start)) * float(arrived[place + 1] - arrived[place])
                self._begin(start, float(arrived[place]) + part)
                continue
            batch = self._batch
            _occupy(busy, batch, t, end)
            if batch.end > end:
                break
            self._finish(batch, end)
        columns = self.layout.columns
        self.spend(ticks, busy[:, columns])
        share = np.clip(busy[:, columns].max(axis=1), 0.0, 1.0)
        h.use[t + 1 : end + 1] = h.use[t] + np.cumsum(share)
        late = h.arrived[t + 1 : end + 1] - h.position[t + 1 : end + 1]
        whole = self.profile.trigger * 2 * np.maximum(np.diff(arrived), 1.0)
        h.full[t + 1 : end + 1] = h.full[t] + np.cumsum(late > whole)

    def _begin(self, start: float, known: float) -> None:
        profile, h = self.profile, self.history
        units = [self.units[name] for name in self.layout.names]
        records = known - self._done
        limit = profile.batch_limit * len(units) if profile.batch_limit else None
        if limit is not None:
            records = min(records, limit)
        if records < 1:  # an idle trigger runs no batch
            self._next = start + profile.trigger
            return
        chill = np.array([min(1.0, max(0.0, (unit.warm - start) / max(profile.warmup, 1e-9))) for unit in units])
        speed = 1 - (1 - profile.warmup_speed) * chill
        own = np.maximum(self.layout.limits, 1e-9)
        tasks = 1 + profile.batch_tasks / len(units)
        seconds = records / (own * speed) + profile.batch_task * tasks / speed
        self._number += 1
        noise = max(0.5, 1 + profile.batch_noise * self._normal(self._number))
        busy = np.zeros(max(h.cpu.shape[1], len(units)))
        busy[self.layout.columns] = seconds * noise
        self._batch = _Running(
            number=self._number,
            start=start,
            end=start + (profile.batch_fixed + float(seconds.max())) * noise,
            upto=self._done + records,
            records=records,
            cold=bool((chill > 0).any()),
            limit=None if limit is None else round(limit),
            busy=busy,
        )

    def _normal(self, number: int) -> float:
        """A number of its own for each batch, whatever is thrown away and computed again."""
        while number >= len(self._normals):
            generator = np.random.default_rng([self.seed, _BATCHES, len(self._normals)])
            self._normals += generator.standard_normal(1024).tolist()
        return self._normals[number]

    def _finish(self, batch: _Running, end: int) -> None:
        h, profile = self.history, self.profile
        tick = min(end, max(h.ticks + 1, ceil(batch.end)))
        h.position[tick : end + 1] = batch.upto
        h.worked[tick : end + 1] += batch.records
        self._done = batch.upto
        ages = batch.end - h.when(batch.upto - batch.records + batch.records * _OLDEST, end)
        ages = np.maximum(ages, 0.0) + profile.latency_base
        h.p50[tick - 1], h.p95[tick - 1], h.p99[tick - 1] = ages + profile.window * np.array([0.5, 0.95, 0.99])
        h.late[tick : end + 1] += h.p95[tick - 1]
        h.counted[tick : end + 1] += 1
        took = batch.end - batch.start
        h.batches.append(
            Batch(batch.number, batch.end, took, round(batch.records), batch.cold, batch.limit, profile.trigger)
        )
        self._batch = None
        self._next = max(batch.end, batch.start + profile.trigger)


def _occupy(busy: Floats, batch: _Running, first: int, end: int) -> None:
    """Spread the CPU time of a batch evenly over its duration, as far as it lies in these ticks."""
    low, high = max(batch.start, first), min(batch.end, end)
    if high <= low:
        return
    edges = np.arange(first, end)
    overlap = np.clip(np.minimum(high, edges + 1) - np.maximum(low, edges), 0.0, 1.0)
    width = min(busy.shape[1], len(batch.busy))
    busy[:, :width] += overlap[:, None] * (batch.busy[:width] / max(batch.end - batch.start, 1e-9))
