"""Write records at the rate a workload asks for, and say so when that does not work out.

How many records are due is the integral of the workload's rate, taken on a fixed grid: it depends on the time alone,
not on when the writer woke up, so nothing drifts. A record's event time is the moment it was due, also when it is
written late: a struggling writer shows as latency, it does not hide it (no coordinated omission).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.core import Clock, Workload
from penstock.errors import Full, check
from penstock.sources import SourceWriter

Generate = Callable[[npt.NDArray[np.int64]], pa.RecordBatch]

CELLS = 8  # of the grid in one tick
CHUNK = 50_000  # records in one append at most, so that a writer that catches up still listens


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the writer is; `written + behind == asked`, always.

    t: seconds on the workload's clock.
    written, asked: records since the start.
    behind: records due and not yet written; worst: the most there ever were.
    trouble: why nothing could be written just now.
    """

    t: float
    written: int
    asked: int
    behind: int
    worst: int
    trouble: str | None = None


class Due:
    """How many records a workload wants by a time, and when each of them was due.

    >>> class Steady:
    ...     def rate(self, t: float) -> float:
    ...         return 100.0
    >>> due = Due(Steady(), start=0.0, cell=0.1)
    >>> due.by(0.25), [round(float(t), 3) for t in due.times(23, 25)]
    (25, [0.235, 0.245])
    """

    def __init__(self, workload: Workload, start: float, cell: float) -> None:
        self._workload = workload
        self._start = start
        self._cell = cell
        self._first = 0  # cell at which the kept part begins: what is written is forgotten
        self._sums = [0.0]

    def by(self, t: float) -> int:
        """Records due from the start until `t`."""
        at = max(t - self._start, 0.0) / self._cell
        while self._first + len(self._sums) - 1 < max(at, 1):
            middle = self._start + (self._first + len(self._sums) - 0.5) * self._cell
            rate = self._workload.rate(middle)
            check(math.isfinite(rate) and rate >= 0, f"rate({middle:g})", "be a number of at least 0", rate)
            self._sums.append(self._sums[-1] + rate * self._cell)
        cell = min(math.floor(at), self._first + len(self._sums) - 2) - self._first
        exact = self._sums[cell] + (at - self._first - cell) * (self._sums[cell + 1] - self._sums[cell])
        return math.floor(exact + 1e-6)  # a whole number of records must not be missed by a rounding error

    def times(self, first: int, last: int) -> npt.NDArray[np.float64]:
        """When the records from `first` up to `last` were due; earlier ones will not be asked for again."""
        wanted = np.arange(first, last) + 0.5
        cells: npt.NDArray[np.float64] = np.interp(wanted, self._sums, self._first + np.arange(len(self._sums)))
        done = min(int(np.searchsorted(self._sums, last, side="right")) - 1, len(self._sums) - 2)
        self._sums = self._sums[done:]
        self._first += done
        return self._start + cells * self._cell


class RateWriter:
    """Produces `workload.rate(t)` records per second into a source.

    writer: of the source; partitions: how many the source has.
    workload: the load to produce.
    generate: makes one record for each event time, given in microseconds since the epoch.
    clock: real or simulated.
    tick: seconds between writes. Ticks take turns over the partitions: one segment each, not one per partition.
    """

    def __init__(
        self,
        writer: SourceWriter,
        partitions: int,
        workload: Workload,
        generate: Generate,
        clock: Clock,
        tick: float = 0.2,
    ) -> None:
        check(partitions >= 1, "partitions", "be at least 1", partitions)
        check(tick > 0, "tick", "be above 0 seconds", tick)
        self._writer = writer
        self._partitions = partitions
        self._workload = workload
        self._generate = generate
        self._clock = clock
        self._tick = tick

    def run(
        self,
        until: float | None = None,
        stop: Callable[[], bool] = lambda: False,
        start_t: float = 0.0,
        report: Callable[[Progress], None] = lambda _: None,
        epoch: float | None = None,
    ) -> Progress:
        """Write what is due every tick; returns where it got to.

        until: when to end, in seconds of the workload, once all that is due by then is written; None: at `stop()`.
        start_t: where in the workload to start.
        report: told of every write, and of every tick without one.
        epoch: event time of the start in seconds, if that is not what the clock shows.
        """
        began = self._clock.now()
        due = Due(self._workload, start_t, self._tick / CELLS)
        event_time = (began if epoch is None else epoch) - start_t
        waiting: pa.RecordBatch | None = None  # what is due is made once, however often it must be tried
        written = goal = worst = turn = ticks = 0

        def t() -> float:
            passed = start_t + self._clock.now() - began
            return passed if until is None else min(passed, until)

        while True:
            if written == goal:
                goal = due.by(t())
            trouble = None
            if written < goal:
                if waiting is None:
                    waiting = self._make(due.times(written, min(goal, written + CHUNK)) + event_time)
                try:
                    self._writer.append(turn, waiting)
                except Full as full:
                    trouble = str(full)
                else:
                    written, turn, waiting = written + waiting.num_rows, (turn + 1) % self._partitions, None
            at = t()  # after the write: what came due while it lasted is late
            asked = due.by(at)
            worst = max(worst, asked - written)
            progress = Progress(at, written, asked, asked - written, worst, trouble)
            report(progress)
            if stop() or (at == until and written == asked):
                return progress
            if written == goal or trouble is not None:
                ticks = self._wait(began, ticks, hurry=trouble is None)

    def _wait(self, began: float, ticks: int, hurry: bool) -> int:
        """Sleep until the next tick, or go on at once if it has passed already; which tick it is then."""
        elapsed = self._clock.now() - began
        passed = math.floor(elapsed / self._tick)
        if hurry and passed > ticks:
            return passed
        ticks = max(ticks, passed) + 1
        self._clock.sleep(max(ticks * self._tick - elapsed, 0.0))
        return ticks

    def _make(self, times: npt.NDArray[np.float64]) -> pa.RecordBatch:
        batch = self._generate(np.round(times * 1e6).astype(np.int64))
        check(batch.num_rows == len(times), "generate", f"make {len(times)} records", batch.num_rows)
        return batch
