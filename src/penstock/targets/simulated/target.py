"""A simulated job as a target: the same loop, policies and guards as on a real one, in no time."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isfinite

import numpy as np

from penstock.core import Decision, Observation, Workload
from penstock.errors import Refused, check
from penstock.targets.simulated.clock import SimulatedClock
from penstock.targets.simulated.continuous import Continuous
from penstock.targets.simulated.dataflow import Floats, Plan
from penstock.targets.simulated.engine import Engine
from penstock.targets.simulated.history import Span
from penstock.targets.simulated.metrics import Meter
from penstock.targets.simulated.microbatch import Microbatch
from penstock.targets.simulated.profile import Profile, load


@dataclass(frozen=True)
class Series:
    """What truly happened in each second, without windows and delays; NaN where there is nothing to measure.

    at: the end of each second. input_rate, processed_rate: records/s; a replay counts again as processed.
    backlog: records. p50, p95, p99: seconds. cpu: mean over workers. workers: how many are paid for; none while a
        restart has stopped them all. up: whether the job ran.
    """

    at: Floats
    input_rate: Floats
    processed_rate: Floats
    backlog: Floats
    p50: Floats
    p95: Floats
    p99: Floats
    cpu: Floats
    workers: Floats
    up: np.ndarray[tuple[int], np.dtype[np.bool_]]


class SimulatedTarget:
    """A job of a profile under a load.

    profile: a Profile, the name of one, or the path of its TOML file.
    workload: the load; its t is 0 at the start.
    workers: how many run at first; with operators that scale apart, one instance each unless parallelism says more.
    seed: another seed, another run: keys, speeds, downtimes, noise.
    backlog: records that wait at the start already; they count as having come just then.
    clock: the time that the job lives in; unset: one of its own.
    """

    def __init__(
        self,
        profile: Profile | str,
        workload: Workload,
        *,
        workers: int = 1,
        parallelism: dict[str, int] | None = None,
        seed: int = 0,
        backlog: float = 0.0,
        clock: SimulatedClock | None = None,
    ) -> None:
        check(isfinite(backlog) and backlog >= 0, "backlog", "be 0 records or more", backlog)
        self.profile = load(profile) if isinstance(profile, str) else profile
        self.clock = clock or SimulatedClock()
        self._start = self.clock.now()
        if self.profile.scaling == "operators" and parallelism is None:
            workers = max(workers, len(self.profile.operators))
        plan = Plan(workers, parallelism or {})
        kind = Microbatch if self.profile.engine == "microbatch" else Continuous
        self._engine: Engine = kind(self.profile, workload, plan, seed)
        self._engine.history.arrived[0] = backlog
        self._meter = Meter(self._engine, self._start)

    def observe(self) -> Observation:
        """What the metrics show now."""
        tick = self._catch_up()
        return next(self._meter.observations(tick, tick))

    def rescale(self, workers: int) -> None:
        """Ask for so many workers."""
        if workers < 1:
            raise Refused(f"workers must be at least 1, got {workers}")
        self._catch_up()
        self._engine.request(Plan(workers))

    def reconfigure(self, decision: Decision) -> None:
        """Ask for what a decision says: instances per operator or nodes where it names them, else workers."""
        if decision.workers is None and not decision.parallelism and not decision.nodes:
            return
        self._catch_up()
        self._engine.request(Plan(decision.workers or 0, dict(decision.parallelism), decision.nodes))

    def fail(self, at: float) -> None:
        """A worker will be lost at this time of the clock."""
        check(isfinite(at) and at >= self.clock.now(), "at", "not be in the past", at)
        self._catch_up()
        self._engine.fail(ceil(at - self._start))

    def between(self, after: float, until: float, every: float) -> list[Observation]:
        """What was seen every so many seconds after one instant and until another; the clock must be there already."""
        step = max(1, round(every))
        first, last = floor(after - self._start) + step, floor(until - self._start)
        self._engine.advance(last)
        return list(self._meter.observations(first, last, step))

    @property
    def requested(self) -> int:
        """How many workers were last asked for."""
        return self._engine.wanted.workers

    @property
    def capacity(self) -> float:
        """Records/s that the job could do now if it were up and warm: what no observer knows."""
        return self._engine.layout.capacity

    def backlog_by_partition(self) -> Floats:
        """Records that wait in each partition; all are read in proportion to what arrives in them."""
        tick = self._catch_up()
        h = self._engine.history
        return np.full(self.profile.partitions, (h.arrived[tick] - h.position[tick]) / self.profile.partitions)

    def series(self) -> Series:
        """All that happened so far."""
        tick = self._catch_up()
        h = self._engine.history
        firsts = [span.first for span in h.spans]
        lengths = np.diff([*firsts, max(tick, firsts[-1])])
        return Series(
            at=self._start + np.arange(1.0, tick + 1),
            input_rate=np.diff(h.arrived[: tick + 1]),
            processed_rate=np.diff(h.worked[: tick + 1]),
            backlog=h.arrived[1 : tick + 1] - h.position[1 : tick + 1],
            p50=h.p50[:tick].copy(),
            p95=h.p95[:tick].copy(),
            p99=h.p99[:tick].copy(),
            cpu=h.mean_cpu[:tick].copy(),
            workers=np.repeat([self._paid(span) for span in h.spans], lengths),
            up=np.repeat([span.running for span in h.spans], lengths),
        )

    def _paid(self, span: Span) -> float:
        return float(span.workers) if span.running or self.profile.cpu_through_restart else 0.0

    def _catch_up(self) -> int:
        tick = max(0, floor(self.clock.now() - self._start + 1e-9))
        self._engine.advance(tick)
        return tick
