"""Writing at a rate: steady, without drift, and honest when it cannot keep up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from penstock.core import Workload
from penstock.errors import ConfigError, Full
from penstock.sources.log import EmbeddedLog
from penstock.sources.rate import Due, Progress, RateWriter


@dataclass
class FakeClock:
    """Time passes only when somebody sleeps, or when a test says so."""

    at: float = 1_000_000.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


class RealClock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Load:
    shape: Callable[[float], float]

    def rate(self, t: float) -> float:
        return self.shape(t)


SINE = Load(lambda t: 1000 + 700 * math.sin(2 * math.pi * t / 60))
STEP = Load(lambda t: 400.0 if t % 30 < 15 else 2500.0)
ODD = Load(lambda t: 333.3)
PAUSES = Load(lambda t: 0.0 if t % 20 < 10 else 50.0)
LOADS = {"sine": SINE, "step": STEP, "odd": ODD, "pauses": PAUSES}


@dataclass
class Memory:
    """A writer that remembers; `cost` seconds pass with each append, and it can be full."""

    clock: FakeClock
    cost: float = 0.0
    full_from: float = math.inf
    full_until: float = -math.inf
    appended: list[tuple[float, int, npt.NDArray[np.int64]]] = field(default_factory=list)

    def append(self, partition: int, batch: pa.RecordBatch) -> None:
        if self.full_from <= self.clock.now() < self.full_until:
            raise Full("no room")
        self.clock.at += self.cost
        self.appended.append((self.clock.now(), partition, batch.column("at").to_numpy()))


@dataclass
class Generator:
    """Records with event times and consecutive ids, so that a loss or a repetition shows."""

    made: int = 0

    def __call__(self, times: npt.NDArray[np.int64]) -> pa.RecordBatch:
        ids = np.arange(self.made, self.made + len(times))
        self.made += len(times)
        return pa.record_batch({"at": times, "id": ids})


def run(load: Workload, seconds: float, memory: Memory, start_t: float = 0.0) -> list[Progress]:
    seen: list[Progress] = []
    RateWriter(memory, 4, load, Generator(), memory.clock).run(seconds, start_t=start_t, report=seen.append)
    assert all(p.written + p.behind == p.asked for p in seen)
    assert seen[-1].behind == 0
    return seen


def integral(load: Workload, start: float, end: float) -> float:
    grid = np.linspace(start, end, 20_001)
    middles = (grid[1:] + grid[:-1]) / 2
    return sum(load.rate(float(t)) for t in middles) * (end - start) / 20_000


@pytest.mark.parametrize("name", LOADS)
def test_steady_within_one_per_cent_over_any_ten_seconds(name: str) -> None:
    memory = Memory(FakeClock())
    run(LOADS[name], 60.0, memory)
    began = 1_000_000.0
    written_at = np.repeat([at - began for at, _, _ in memory.appended], [len(t) for _, _, t in memory.appended])
    due_at = np.concatenate([times for _, _, times in memory.appended]) / 1e6 - began
    for start in np.arange(0.0, 50.0, 0.2):  # as written: over whole ticks, as that is what a writer can decide
        asked = integral(LOADS[name], float(start), float(start) + 10)
        written = np.count_nonzero((written_at > start + 1e-3) & (written_at <= start + 10 + 1e-3))
        assert abs(written - asked) <= 0.01 * asked + 1
    for start in np.arange(0.0, 50.0, 0.37):  # as stamped: over any window at all
        asked = integral(LOADS[name], float(start), float(start) + 10)
        stamped = np.count_nonzero((due_at > start) & (due_at <= start + 10))
        assert abs(stamped - asked) <= 0.01 * asked + 1


def test_it_does_not_drift_in_an_hour_of_an_odd_rate() -> None:
    seen = run(ODD, 3600.0, Memory(FakeClock()))
    assert seen[-1].written == math.floor(333.3 * 3600 + 1e-6)
    assert seen[-1].worst == 0


def test_event_times_are_in_order_and_no_later_than_the_write() -> None:
    memory = Memory(FakeClock())
    run(PAUSES, 45.0, memory)
    times = np.concatenate([times for _, _, times in memory.appended])
    assert (np.diff(times) >= 0).all()
    assert all(batch[-1] <= at * 1e6 for at, _, batch in memory.appended)


def test_ticks_take_turns_over_the_partitions() -> None:
    memory = Memory(FakeClock())
    run(ODD, 8.0, memory)
    assert [partition for _, partition, _ in memory.appended] == [0, 1, 2, 3] * 10


def test_it_can_start_in_the_middle_of_a_load() -> None:
    assert run(STEP, 20.0, Memory(FakeClock()), start_t=10.0)[-1].written == 5 * 400 + 5 * 2500


def test_a_slow_writer_says_how_far_it_fell_behind_and_loses_nothing() -> None:
    memory = Memory(FakeClock(), cost=3.0)
    stop_at = memory.clock.at + 30
    seen: list[Progress] = []
    RateWriter(memory, 4, ODD, Generator(), memory.clock).run(
        stop=lambda: memory.clock.at >= stop_at, report=seen.append
    )
    assert all(p.behind >= 300 for p in seen[1:]), "three seconds of records come due during each write"
    assert seen[-1].written + seen[-1].behind == seen[-1].asked
    assert seen[-1].worst == max(p.behind for p in seen)
    late, _, times = memory.appended[-1]
    assert late - times[0] / 1e6 > 3, "a late record carries the time it was due, not the time it was written"


def test_it_catches_up_in_bounded_chunks() -> None:
    memory = Memory(FakeClock(), full_from=1_000_001.0, full_until=1_000_100.0)
    seen = run(Load(lambda t: 20_000.0 if t < 30 else 0.0), 120.0, memory)
    assert max(len(times) for _, _, times in memory.appended) <= 50_000
    assert seen[-1].written == 600_000


def test_a_full_disk_is_reported_every_tick_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    memory = Memory(FakeClock(), full_from=1_000_002.0, full_until=1_000_005.0)
    seen = run(ODD, 10.0, memory)
    troubled = [p for p in seen if p.trouble]
    assert len(troubled) >= 14
    assert troubled[0].trouble == "no room"
    assert troubled[-1].behind > troubled[0].behind
    assert seen[-1].worst == max(p.behind for p in seen) >= 900
    assert sum(len(times) for _, _, times in memory.appended) == seen[-1].written == 3333


@pytest.mark.parametrize("rate", [-1.0, math.nan, math.inf])
def test_an_impossible_rate_is_refused(rate: float) -> None:
    with pytest.raises(ConfigError, match=r"rate\(0\.0125\) must be a number of at least 0"):
        run(Load(lambda t: rate), 1.0, Memory(FakeClock()))


def test_a_generator_that_makes_too_few_is_refused() -> None:
    clock = FakeClock()
    few = RateWriter(Memory(clock), 1, ODD, lambda times: Generator()(times[:1]), clock)
    with pytest.raises(ConfigError, match="generate must make 66 records, got 1"):
        few.run(1.0)


def test_what_is_due_does_not_depend_on_when_one_asks() -> None:
    often, seldom = Due(SINE, 0.0, 0.025), Due(SINE, 0.0, 0.025)
    assert [often.by(t) for t in np.arange(0, 50, 0.013)][-1] == seldom.by(float(np.arange(0, 50, 0.013)[-1]))


def test_into_a_real_log_by_a_real_clock(tmp_path: Path) -> None:
    log = EmbeddedLog.create(tmp_path / "log", pa.schema({"at": pa.int64(), "id": pa.int64()}), partitions=3)
    seen: list[Progress] = []
    with log.writer() as writer:
        last = RateWriter(writer, 3, Load(lambda t: 5000.0), Generator(), RealClock(), tick=0.1).run(
            1.5, report=seen.append
        )
    assert all(p.written + p.behind == p.asked for p in seen)
    assert last.written == last.asked == 7500 == sum(log.end_offsets().values())
    ids = np.concatenate(
        [b.column("id").to_numpy() for p, end in log.end_offsets().items() for b in log.read(p, 0, end)]
    )
    assert sorted(ids.tolist()) == list(range(7500))
    assert min(log.end_offsets().values()) > 0
