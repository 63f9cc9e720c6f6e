"""The continuous engine: Flink, Heron, Kafka Streams.

All workers read, all are backpressured by the busiest, so the job is one queue: what waits is what has come and is not
done, and it is served at the pace of the bottleneck. Each partition is read in proportion to what arrives in it, so
its backlog is its share of the whole. Within a stretch of ticks the backlog is Lindley's recursion, in closed form.

A rescale by restart stops the job, takes its position back to the last checkpoint, and lets it catch up; what was done
since then is done again and counts as backlog until it is.

A source that makes its own records has no log before it: what it could not send counts as come and gone. It runs ahead
of the job by what the queue of the slowest operator holds, is stopped when that is full, and goes on when it is half
empty, as Heron's watermarks have it.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from penstock.targets.simulated.dataflow import Floats, Plan, complete
from penstock.targets.simulated.engine import Engine, Unit, _Due

_POINTS = (np.arange(21) + 0.5) / 21  # of a tick, at which ages are taken


class Continuous(Engine):
    """A dataflow that runs all the time, or not at all."""

    _stop: _Due | None = None
    _start: _Due | None = None

    def request(self, wanted: Plan) -> None:
        plan = complete(self.profile, wanted, self.wanted)
        if plan == self.wanted:
            return
        out = plan.workers > self.plan.workers
        self.cut()
        self.wanted, self.rescaled = plan, self.history.ticks
        for due in (self._stop, self._start):
            if due is not None:
                due.dropped = True
        if self.profile.rescaling == "live":
            self._join_later(plan)
            return
        wait = ceil(self.profile.startup) if out and self.running else 0
        mean = self.profile.downtime_out if out else self.profile.downtime_in
        if wait:
            self._stop = self._at(self.history.ticks + wait, lambda: self._restart(mean, planned=True))
        else:
            self._restart(mean, planned=True)
        self._note()

    def _lose(self) -> None:
        lost, born = self.layout.names[-1], self.born
        self.stalled = not self.profile.works_until_noticed
        noticed = self.history.ticks + ceil(self.profile.detection)
        self._at(noticed, lambda: self._notice(lost, born))

    def _loses_when_down(self) -> bool:
        return self.profile.works_until_noticed  # heartbeats are lost whatever the job does

    def _notice(self, lost: str, born: int) -> None:
        stands = self.running and self.born == born
        if not stands and not self.profile.works_until_noticed:  # a rescale has restarted the job meanwhile
            return
        for due in (self._stop, self._start):
            if due is not None:
                due.dropped = True
        self.tell("worker.lost", f"{lost} was lost {self.profile.detection:g} s ago")
        if self.profile.rescaling == "restart":
            self._restart(self.profile.downtime_failure, planned=False)
            return
        self.stalled = False
        t, ready = self.history.ticks, ceil(self.profile.startup + self.profile.warmup)
        self.units[lost] = Unit(t + ceil(self.profile.startup), t, t + ready, t + ready)
        self._note()

    def _restart(self, mean: float, *, planned: bool) -> None:
        """Stop now, from the last checkpoint; begin again after a downtime."""
        h, t = self.history, self.history.ticks
        kept = self.profile.feed == "generator" or (planned and self.profile.savepoint and not self.stalled)
        if self.running and not kept:
            since = t - (ceil(self.profile.detection) if self.stalled else 0)
            interval = self.profile.checkpoint_interval
            h.position[t] = h.position[self.born + int((max(since, self.born) - self.born) // interval * interval)]
        self.running = self.stalled = False
        self.plan = self.wanted
        self.layout = self._deal_out(self.plan)
        self.units = {name: self.units.get(name, Unit(t, t, t, None)) for name in self.layout.names}
        self._start = self._at(t + self.draw_downtime(mean), self._begin)
        self._note()

    def _begin(self) -> None:
        t, cold = self.history.ticks, ceil(self.profile.warmup)
        self.running, self.born = True, t
        for name, unit in self.units.items():
            if unit.ready is None or not self.profile.stays_warm:
                unit.warm = t + cold
            if not self.profile.cpu_through_restart:
                unit.since = t
            if unit.ready is None:
                unit.ready = t
                self.tell("worker.joined", f"{name} joined")
        self._note()

    def _run(self, ticks: int) -> None:
        if not self.running or self.stalled:
            self.rest(ticks)
            if self.profile.feed == "generator":
                h, t = self.history, self.history.ticks
                h.position[t + 1 : t + ticks + 1] += h.arrived[t + 1 : t + ticks + 1] - h.arrived[t]
            if self.stalled or self.profile.cpu_through_restart:  # up for those who look, and idle
                self.spend(ticks, np.zeros((ticks, len(self.layout.names))))
            return
        h, t = self.history, self.history.ticks
        limits = self.layout.limits * self.warmth(ticks) * self._vigour()
        most = np.broadcast_to(self.layout.pace(limits), (ticks,))
        arrived = h.arrived[t + 1 : t + ticks + 1]
        held: NDArray[np.bool_] | None = None
        if self.profile.feed == "generator":
            backlog, done, held = self._queue(arrived, most)
            position = np.maximum.accumulate(np.clip(arrived - backlog, h.position[t], arrived))
        else:
            walk = arrived - h.position[t] - np.cumsum(most)
            backlog = walk - np.minimum(np.minimum.accumulate(walk), 0.0)
            position = np.maximum.accumulate(np.clip(arrived - backlog, h.position[t], arrived))
            done = np.diff(position, prepend=h.position[t])
        h.position[t + 1 : t + ticks + 1] = position
        h.worked[t + 1 : t + ticks + 1] = h.worked[t] + np.cumsum(done)
        with np.errstate(divide="ignore", invalid="ignore"):
            use = np.where(most > 0, done / most, 0.0)
        full = use > 0.999 if held is None else held
        # A ceiling that is not reached leaves no mark: an operator is busy with what it does.
        below = np.where(full, use, use * self._below_ceiling(most, limits))
        h.use[t + 1 : t + ticks + 1] = h.use[t] + np.cumsum(below)
        h.full[t + 1 : t + ticks + 1] = h.full[t] + np.cumsum(full)
        # What distance takes away is spent waiting, but what the busiest unit does at its limit is all it can.
        spent = np.minimum(1.0, (done[:, None] + self.layout.toll * use[:, None]) / limits)
        self.spend(ticks, spent + self.profile.ceiling_cpu * full[:, None] * (1 - spent))
        self._age(ticks, done, use, most)

    def _queue(self, arrived: Floats, most: Floats) -> tuple[Floats, Floats, NDArray[np.bool_] | None]:
        """What waits after each tick, what is done in it, and whether the source is stopped, where a queue says so."""
        h, t, room = self.history, self.history.ticks, self.layout.room
        offered = np.diff(arrived, prepend=h.arrived[t])
        waiting = max(0.0, float(h.arrived[t] - h.position[t]))
        if not room:
            done = np.minimum(offered + waiting, most)
            return np.zeros(len(done)), done, None
        stopped = bool(t) and h.full[t] - h.full[t - 1] > 0.5
        left, done, held = np.zeros(len(most)), np.zeros(len(most)), np.zeros(len(most), dtype=np.bool_)
        for i, (wanted, pace) in enumerate(zip(offered.tolist(), most.tolist(), strict=True)):
            stopped = waiting > room / 2 if stopped else waiting >= room
            there = waiting + (0.0 if stopped else wanted)
            done[i], held[i] = min(there, pace), stopped
            left[i] = waiting = there - done[i]
        return left, done, held

    def _below_ceiling(self, most: Floats, limits: Floats) -> Floats:
        """The pace as a share of what it would be without the ceiling."""
        if not self.profile.ceiling:
            return np.ones(1)
        share: Floats = most / np.maximum(limits.min(axis=1) - self.layout.toll, np.maximum(most, 1e-9))
        return share

    def _vigour(self) -> float:
        """Speed left to a job that is behind, as a share; looked up once per stretch of ticks."""
        h, t, profile = self.history, self.history.ticks, self.profile
        if profile.behind_speed == 1 or not t or h.arrived[t] - h.position[t] < 1:
            return 1.0
        behind = t - float(h.when(h.position[t : t + 1], t)[0])
        return 1 - (1 - profile.behind_speed) * behind / (behind + max(profile.behind_after, 1e-9))

    def _age(self, ticks: int, done: Floats, use: Floats, most: Floats) -> None:
        """How old the records done in each tick are: exact from the two curves, at 21 points of the tick; behind a
        source that makes them, as long as what waits takes."""
        h, t, profile = self.history, self.history.ticks, self.profile
        before = h.position[t : t + ticks]
        if profile.feed == "generator":
            waiting = (h.arrived[t : t + ticks] - before) / np.maximum(most, 1e-9)
            ages = np.repeat(waiting[:, None], len(_POINTS), axis=1)
        else:
            which = before[:, None] + done[:, None] * _POINTS
            ages = np.arange(t, t + ticks)[:, None] + _POINTS - h.when(which, t + ticks)
            ages = np.sort(np.maximum(ages, 0.0), axis=1)
        fill: Floats = np.zeros(ticks)
        if profile.fill_records:
            with np.errstate(divide="ignore"):
                fill = np.minimum(profile.fill_timeout, profile.fill_records * self.plan.workers / done)
        turn = profile.partition_wait * max(0.0, profile.partitions / self.plan.workers - 1)
        calm = np.minimum(use, 0.98)  # beyond that the backlog itself says how long records wait
        wait = profile.burst * calm / (1 - calm)
        polled = profile.backlog_wait * max(0.0, profile.partitions / self.plan.workers - 1)
        h.queued[t + 1 : t + ticks + 1] = done * (wait + polled)
        fixed = np.where(done > 0, profile.latency_base + turn + fill + wait, np.nan)
        h.p50[t : t + ticks] = ages[:, 10] + fixed + 0.5 * profile.window
        h.p95[t : t + ticks] = 0.55 * ages[:, 19] + 0.45 * ages[:, 20] + fixed + 0.95 * profile.window
        h.p99[t : t + ticks] = ages[:, 20] + fixed + 0.99 * profile.window
        known = done > 0
        h.late[t + 1 : t + ticks + 1] = h.late[t] + np.cumsum(np.where(known, h.p95[t : t + ticks], 0.0))
        h.counted[t + 1 : t + ticks + 1] = h.counted[t] + np.cumsum(known)
