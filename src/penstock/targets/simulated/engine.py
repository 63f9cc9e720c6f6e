"""What both engines share: a fluid world in ticks of one second, its fleet of workers, and what befalls them.

Between two events (a worker joins, the job stops, fails, starts again) nothing changes but load and warmth, so a whole
stretch of ticks is computed at once. Nothing depends on when it is looked at: one seed, one run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, exp, log, sqrt

import numpy as np

from penstock.core import Reason, Workload
from penstock.errors import ConfigError
from penstock.targets.simulated.dataflow import Floats, Layout, Plan, complete, layout
from penstock.targets.simulated.history import History, Noise, Span
from penstock.targets.simulated.profile import Profile

_DOWNTIME = 12
_AHEAD = 240


@dataclass(order=True)
class _Due:
    tick: int
    order: int
    what: Callable[[], None] = field(compare=False)
    dropped: bool = field(default=False, compare=False)


@dataclass
class Unit:
    """A worker, or an instance of an operator, in ticks: when it came, since when it counts, when it is warm, ready."""

    started: int
    since: int
    warm: int
    ready: int | None


class Engine(ABC):
    """A job that runs. `advance` lets time pass; `request` and `fail` change its fleet."""

    def __init__(self, profile: Profile, workload: Workload, plan: Plan, seed: int) -> None:
        self.profile, self.seed = profile, seed
        self.plan = complete(profile, plan, None)
        self.wanted = self.plan
        self.rescaled: int | None = None
        self.born = 0
        self.running = True
        self.stalled = False
        self._workload = workload
        self._dues: list[_Due] = []
        self._order = 0
        self._deal = self._draws = 0
        self._ahead = self._kept_at = 0  # ticks computed already, and where that began
        self.layout = layout(profile, self.plan, seed)
        # The job is found warm: what a run measures is not the start of everything at once.
        cold = -ceil(profile.warmup)
        self.units = {name: Unit(0, 0, cold, 0) for name in self.layout.names}
        self.history = History(len(self.layout.names))
        self.noise = Noise(seed, profile.cpu_noise, profile.cpu_correlation)
        self._note()

    def advance(self, tick: int) -> None:
        """Let time pass until `tick`.

        What comes is computed some way ahead, and thrown away from where somebody interferes. How far ahead depends
        on events alone, never on who looks when: so all runs of a seed round alike.
        """
        h = self.history
        self._settle()
        while h.ticks < tick:
            next_due = self._dues[0].tick if self._dues else tick + _AHEAD
            if self._ahead <= h.ticks:
                ticks = min(_AHEAD, next_due - h.ticks)
                h.reserve(ticks)
                self.keep()
                self._kept_at = h.ticks
                self._arrive(ticks)
                self._run(ticks)
                self._ahead = h.ticks + ticks
            h.ticks = min(tick, next_due, self._ahead)
            self._settle()

    def cut(self) -> None:
        """Throw away what was computed beyond now."""
        h, now = self.history, self.history.ticks
        if self._ahead <= now:
            return
        self.back()
        if now > self._kept_at:
            h.ticks = self._kept_at
            h.p50[now : self._ahead] = h.p95[now : self._ahead] = h.p99[now : self._ahead] = np.nan
            self.keep()
            self._run(now - self._kept_at)
            h.ticks = now
        self._ahead = now

    def keep(self) -> None:  # noqa: B027 - an engine whose state is its history has nothing to keep
        """Remember what the history does not."""

    def back(self) -> None:  # noqa: B027
        """Be again as when `keep` was called."""

    @abstractmethod
    def request(self, wanted: Plan) -> None:
        """Ask for another plan; Refused if it cannot be."""

    @abstractmethod
    def _run(self, ticks: int) -> None:
        """Fill the next `ticks` rows of the history; arrivals are there already."""

    @abstractmethod
    def _lose(self) -> None:
        """A worker is gone, from this tick on."""

    def fail(self, tick: int) -> None:
        """A worker will be lost at `tick`. A job that is down just then has none to lose, unless the engine says so."""

        def lose() -> None:
            if self._loses_when_down() or (self.running and not self.stalled):
                self._lose()

        self._at(max(tick, self.history.ticks), lose)

    def _loses_when_down(self) -> bool:
        return False

    def state_gb(self) -> float:
        """How much state the job has."""
        done = float(self.history.position[self.history.ticks])
        return min(self.profile.state_limit, done * self.profile.state_per_record / 1e9)

    def warmth(self, ticks: int) -> Floats:
        """Speed of each unit in each of the next ticks, as a share of its own."""
        profile, first = self.profile, self.history.ticks
        if not profile.warmup or profile.warmup_speed == 1:
            return np.ones((1, 1))
        left = self._chill(first, ticks)
        return 1 - (1 - profile.warmup_speed) * left

    def heat(self, ticks: int) -> Floats:
        """CPU that warming takes on top."""
        if not self.profile.warmup or not self.profile.warmup_cpu:
            return np.zeros((1, 1))
        return self.profile.warmup_cpu * self._chill(self.history.ticks, ticks)

    def _chill(self, first: int, ticks: int) -> Floats:
        warm = np.array([self.units[name].warm for name in self.layout.names], dtype=np.float64)
        if first >= warm.max():
            return np.zeros((1, 1))
        left = (warm[None, :] - np.arange(first, first + ticks)[:, None]) / self.profile.warmup
        return np.clip(left, 0.0, 1.0)

    def spend(self, ticks: int, use: Floats) -> None:
        """CPU of each unit from its utilisation, with idle and warming CPU and noise."""
        profile, h, t = self.profile, self.history, self.history.ticks
        columns = self.layout.columns
        cpu = profile.idle_cpu + (profile.full_cpu - profile.idle_cpu) * use + self.heat(ticks)
        room = np.minimum(1.0, 5 * (1 - use))  # a worker that is always busy does not waver
        cpu = np.clip(cpu + self.noise.rows(t, ticks, columns) * room, 0.0, 1.0)
        h.cpu[t + 1 : t + ticks + 1] = h.cpu[t]
        h.cpu[t + 1 : t + ticks + 1, columns] += np.cumsum(cpu, axis=0)
        h.mean_cpu[t : t + ticks] = cpu.mean(axis=1)

    def rest(self, ticks: int) -> None:
        """Nothing is done and nothing is measured."""
        h, t = self.history, self.history.ticks
        for curve in (h.position, h.worked, h.use, h.full, h.late, h.counted):
            curve[t + 1 : t + ticks + 1] = curve[t]
        h.cpu[t + 1 : t + ticks + 1] = h.cpu[t]
        h.queued[t + 1 : t + ticks + 1] = 0.0

    def tell(self, code: str, sentence: str) -> None:
        self.history.events.append((self.history.ticks, Reason(code, sentence)))

    def draw_downtime(self, mean: float) -> int:
        """Ticks of a stop: lognormal around its mean, and longer with more state."""
        spread = sqrt(log(1 + self.profile.downtime_spread**2))
        normal = np.random.default_rng([self.seed, _DOWNTIME, self._draws]).standard_normal()
        self._draws += 1
        drawn = mean * exp(spread * normal - spread**2 / 2)
        return max(1, ceil(drawn + self.profile.downtime_per_gb * self.state_gb()))

    def _arrive(self, ticks: int) -> None:
        h, t = self.history, self.history.ticks
        instants = np.arange(t, t + ticks) + 0.5
        many = getattr(self._workload, "rates", None)
        if callable(many):
            rates = np.asarray(many(instants), dtype=np.float64)
        else:
            rates = np.array([self._workload.rate(float(instant)) for instant in instants], dtype=np.float64)
        if not np.isfinite(rates).all() or rates.min(initial=0.0) < 0:
            raise ConfigError(f"workload must have rates of 0 records/s or more, got {rates.min()}")
        h.arrived[t + 1 : t + ticks + 1] = h.arrived[t] + np.cumsum(rates)

    def _at(self, tick: int, what: Callable[[], None]) -> _Due:
        if tick < self._ahead:
            self.cut()
        self._order += 1
        due = _Due(tick, self._order, what)
        insort(self._dues, due)
        return due

    def _settle(self) -> None:
        while self._dues and (self._dues[0].dropped or self._dues[0].tick <= self.history.ticks):
            due = self._dues.pop(0)
            if not due.dropped:
                due.what()

    def _deal_out(self, plan: Plan) -> Layout:
        self._deal += 1
        return layout(self.profile, plan, self.seed, self._deal)

    def _note(self) -> None:
        """Write down how the fleet is from this tick on."""
        t = self.history.ticks
        self.history.reserve(0, int(self.layout.columns.max()) + 1)
        units = [self.units[name] for name in self.layout.names]
        span = Span(
            first=t,
            running=self.running,
            requested=self.wanted.workers,
            workers=self.plan.workers,
            layout=self.layout,
            since=tuple(unit.since for unit in units),
            started=tuple(unit.started for unit in units),
            ready=tuple(unit.ready for unit in units),
            born=self.born,
            rescaled=self.rescaled,
        )
        spans = self.history.spans
        if spans and spans[-1].first == t:
            spans[-1] = span
        else:
            spans.append(span)

    def _join_later(self, wanted: Plan) -> None:
        """Live: those that leave are gone at once, those that come are there after their start-up, and cold."""
        names = layout(self.profile, wanted, self.seed).names
        if len(names) < len(self.units):
            self._resize(wanted)
        else:
            self._at(self.history.ticks + ceil(self.profile.startup), lambda: self._joined(wanted))
        self._note()

    def _joined(self, wanted: Plan) -> None:
        if wanted is self.wanted:  # else it was overtaken by another request
            self._resize(wanted)

    def _resize(self, plan: Plan) -> None:
        t, cold = self.history.ticks, ceil(self.profile.warmup)
        self.plan = plan
        self.layout = self._deal_out(plan)
        for name in self.layout.names:
            if name not in self.units:
                self.units[name] = Unit(t, t, t + cold, t + cold)
                self.tell("worker.joined", f"{name} joined")
        self.units = {name: self.units[name] for name in self.layout.names}
        self._note()
