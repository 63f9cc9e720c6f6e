"""All that happened, per second: the curves from which metrics, latencies and results are read.

Row t of a cumulative curve is its value after t ticks, so a mean over a window is one subtraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from penstock.core import Batch, Reason
from penstock.targets.simulated.dataflow import Floats, Layout

_NOISE = 11
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of ticks in which nothing about the fleet changed.

    first: the tick it begins after.
    running: whether the job is up; a job that lost a worker unnoticed still is.
    since: the tick from which each unit's metrics count.
    born: the tick at which the job last (re)started.
    """

    first: int
    running: bool
    requested: int
    workers: int
    layout: Layout
    since: tuple[int, ...]
    started: tuple[int, ...]
    ready: tuple[int | None, ...]
    born: int
    rescaled: int | None


class History:
    """Curves that grow as time goes on.

    arrived, position, worked: cumulative records that came, are done for good, and were worked on, replays included.
    use, full: cumulative utilisation of the bottleneck, and ticks in which it was the limit.
    late, counted: cumulative p95 latency and how many ticks have one.
    cpu: cumulative CPU per column.
    queued: records that wait in bursts, though the job keeps up.
    p50, p95, p99: latency of the records done in each tick; NaN where there are none.
    """

    def __init__(self, columns: int) -> None:
        self.ticks = 0
        self.spans: list[Span] = []
        self.events: list[tuple[int, Reason]] = []
        self.batches: list[Batch] = []
        rows = _CHUNK
        self.arrived, self.position, self.worked, self.use, self.full, self.late, self.counted = np.zeros((7, rows))
        self.queued: Floats = np.zeros(rows)
        self.p50, self.p95, self.p99, self.mean_cpu = np.full((4, rows), np.nan)
        self.cpu: Floats = np.zeros((rows, columns))

    def reserve(self, ticks: int, columns: int = 0) -> None:
        """Room for so many more ticks, and for so many columns."""
        rows = len(self.arrived)
        if self.ticks + ticks + 1 > rows:
            more = max(rows, self.ticks + ticks + 1 - rows)
            for name in ("arrived", "position", "worked", "use", "full", "late", "counted", "queued"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(more)]))
            for name in ("p50", "p95", "p99", "mean_cpu"):
                setattr(self, name, np.concatenate([getattr(self, name), np.full(more, np.nan)]))
            self.cpu = np.concatenate([self.cpu, np.zeros((more, self.cpu.shape[1]))])
        missing = columns - self.cpu.shape[1]
        if missing > 0:
            self.cpu = np.concatenate([self.cpu, np.zeros((len(self.cpu), missing))], axis=1)

    def span_at(self, tick: int) -> int:
        """The index of the span that an observer after `tick` ticks sees."""
        low, high = 0, len(self.spans)
        while low < high:
            middle = (low + high) // 2
            if self.spans[middle].first <= tick:
                low = middle + 1
            else:
                high = middle
        return max(0, low - 1)

    def when(self, records: Floats, until: int) -> Floats:
        """The instants, in ticks, at which these records of the log arrived; all came before `until`."""
        end = until + 1
        low = int(np.searchsorted(self.arrived[:end], float(records.min()), side="right")) - 1
        low = min(max(0, low), end - 2)
        known = self.arrived[low:end]
        return np.interp(records, known, np.arange(low, end, dtype=np.float64))


class Noise:
    """CPU noise of each column at each tick: normal, correlated in time, independent of what anybody decides."""

    def __init__(self, seed: int, deviation: float, correlation: float) -> None:
        self._seed, self._deviation = seed, deviation
        length = 1 if correlation == 0 else min(_CHUNK, ceil(log(1e-3) / log(correlation)))
        fading = correlation ** np.arange(length)  # an autoregression, cut where a thousandth is left
        self._kernel: Floats = fading / np.sqrt((fading**2).sum())
        self._known: Floats = np.zeros((0, 0))
        self._generators: list[np.random.Generator] = []
        self._tails: list[Floats] = []

    def rows(self, first: int, ticks: int, columns: NDArray[np.intp]) -> Floats:
        if not self._deviation:
            return np.zeros((ticks, len(columns)))
        width = int(columns.max()) + 1
        if width > len(self._tails):
            self._widen(width)
        while first + ticks > len(self._known):
            grown = [self._chunk(column) for column in range(len(self._tails))]
            self._known = np.concatenate([self._known, np.array(grown).T])
        return self._known[first : first + ticks, columns]

    def _widen(self, width: int) -> None:
        begin, chunks = len(self._tails), len(self._known) // _CHUNK
        for column in range(begin, width):
            generator = np.random.default_rng([self._seed, _NOISE, column])
            self._generators.append(generator)
            self._tails.append(generator.standard_normal(len(self._kernel) - 1))
        fresh = [np.concatenate([np.zeros(0), *(self._chunk(c) for _ in range(chunks))]) for c in range(begin, width)]
        self._known = np.concatenate([self._known, np.array(fresh).T], axis=1)

    def _chunk(self, column: int) -> Floats:
        drawn = np.concatenate([self._tails[column], self._generators[column].standard_normal(_CHUNK)])
        self._tails[column] = drawn[_CHUNK:]
        return self._deviation * np.convolve(drawn, self._kernel, mode="valid")
