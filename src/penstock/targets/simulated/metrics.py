"""What an observer sees: the curves through the windows, delays and restarts of a scrape.

After a restart CPU is the mean of what there is, while rates count from zero and still divide by the whole window
(`counters_restart`): that is what Prometheus makes of Flink's counters, and what the recorded runs show. While the job
is down nothing of it is measured: only the source's own rate is known.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil, isnan
from typing import Any

import numpy as np

from penstock.core import Batch, Node, Observation, Operator, Reason, Worker
from penstock.targets.simulated.dataflow import Floats, Layout, nodes, ratios, upstream
from penstock.targets.simulated.engine import Engine
from penstock.targets.simulated.history import Span
from penstock.targets.simulated.profile import Stage


class Meter:
    """Reads an engine's history as its metrics would show it."""

    def __init__(self, engine: Engine, start: float) -> None:
        self._engine, self._start = engine, start
        profile = engine.profile
        self._delay = ceil(profile.metric_delay)
        self._cpu, self._rate = ceil(profile.cpu_window), ceil(profile.rate_window)
        self._latency, self._backlog = ceil(profile.latency_window), ceil(profile.backlog_window)
        self._ratios = ratios(profile)
        self._nodes: dict[tuple[str, ...], tuple[Node, ...]] = {}
        self._told = 0

    def observations(self, first: int, last: int, step: int = 1) -> Iterator[Observation]:
        """What is seen after each of these ticks; events are told once."""
        tick = first
        while tick <= last:
            place = self._engine.history.span_at(tick)
            spans = self._engine.history.spans
            until = last if place + 1 == len(spans) else min(last, spans[place + 1].first - 1)
            count = (until - tick) // step + 1
            yield from self._within(spans[place], range(tick, tick + count * step, step))
            tick += count * step

    def _within(self, span: Span, ticks: range) -> Iterator[Observation]:
        h = self._engine.history
        at = np.array(ticks)
        seen = np.maximum(at - self._delay, 0)
        begin = np.maximum(seen - self._rate, 0)
        known = seen > begin
        came = np.where(known, (h.arrived[seen] - h.arrived[begin]) / np.maximum(seen - begin, 1), np.nan).tolist()
        if not span.running:
            yield from self._blind(span, ticks, came, self._cpus(span, seen))
            return
        low = np.minimum(np.maximum(begin, span.born), seen)
        length = np.maximum(seen - low, 1)
        whole = (
            length if not self._engine.profile.counters_restart or span.born == 0 else np.full_like(length, self._rate)
        )
        there = (seen > low).tolist()
        rates = ((h.worked[seen] - h.worked[low]) / whole).tolist()
        if self._engine.profile.engine == "microbatch":
            rates = self._by_batches(seen)[2].tolist()
        uses = ((h.use[seen] - h.use[low]) / length).tolist()
        fulls = ((h.full[seen] - h.full[low]) / length).tolist()
        cpus = self._cpus(span, seen)
        latencies = self._latencies(span, seen)
        fleet, dataflow, places = self._fleet(span, ticks), self._dataflow(span.layout), self._places(span.layout.nodes)
        for i, tick in enumerate(ticks):
            rate = _known(rates[i]) if there[i] else None
            yield Observation(
                at=self._start + tick,
                workers=span.workers,
                requested=span.requested,
                uptime=float(tick - span.born),
                last_rescale_at=None if span.rescaled is None else self._start + span.rescaled,
                input_rate=_known(came[i]),
                processed_rate=rate,
                backlog=self._waiting(int(seen[i])) if there[i] else None,
                latency=_known(latencies[i]),
                per_worker=fleet(tick, cpus[i], rate),
                operators=dataflow(rate, uses[i], fulls[i], int(seen[i])),
                nodes=places,
                batch=self._last_batch(tick),
                events=self._events(tick),
            )

    def _blind(self, span: Span, ticks: range, came: list[float], cpus: list[list[float]]) -> Iterator[Observation]:
        fleet = self._fleet(span, ticks)
        silent = [float("nan")] * len(span.layout.names)
        for i, tick in enumerate(ticks):
            yield Observation(
                at=self._start + tick,
                workers=span.workers,
                requested=span.requested,
                last_rescale_at=None if span.rescaled is None else self._start + span.rescaled,
                input_rate=_known(came[i]),
                per_worker=fleet(tick, cpus[i] if self._engine.profile.cpu_through_restart else silent, None),
                nodes=self._places(span.layout.nodes),
                events=self._events(tick),
            )

    def _cpus(self, span: Span, seen: np.ndarray[tuple[int], np.dtype[np.int_]]) -> list[list[float]]:
        h, columns = self._engine.history, span.layout.columns
        high, first = seen[:, None], np.maximum(seen - self._cpu, 0)[:, None]
        if self._engine.profile.engine == "microbatch":
            begin, end, rates = self._by_batches(seen)
            told = (~np.isnan(rates) & (seen - end <= self._cpu))[:, None]
            high, first = np.where(told, end[:, None], high), np.where(told, begin[:, None], first)
        low = np.minimum(np.maximum(first, np.array(span.since)[None, :]), high)
        mean = (h.cpu[high, columns] - h.cpu[low, columns]) / np.maximum(high - low, 1)
        found: list[list[float]] = np.where(high > low, mean, np.nan).tolist()
        return found

    def _by_batches(
        self, seen: np.ndarray[tuple[int], np.dtype[np.int_]]
    ) -> tuple[np.ndarray[Any, np.dtype[np.int_]], np.ndarray[Any, np.dtype[np.int_]], Floats]:
        """From which tick to which the last batches lasted that fill the window, and records/s over them; NaN if none.

        Offsets move at the end of a batch, so that is where the window ends and begins, as on the Spark target: one
        that begins anywhere would hold now three batches, now four.
        """
        batches = self._engine.history.batches
        last = bisect_right(batches, float(seen[0]), key=_ended)
        edge = batches[last - 1].ended_at - self._rate if last else 0.0
        first = max(0, bisect_right(batches, edge, key=_ended) - 1)
        kept = batches[first : bisect_right(batches, float(seen[-1]), key=_ended)]
        if not kept:
            return seen, seen, np.full(len(seen), np.nan)
        ends = np.array([batch.ended_at for batch in kept])
        done = np.cumsum([batch.records for batch in kept])
        high = np.searchsorted(ends, seen, side="right") - 1
        known = np.maximum(high, 0)
        low = np.maximum(np.searchsorted(ends, ends[known] - self._rate, side="right") - 1, 0)
        seconds = np.where((high >= 0) & (ends[known] > ends[low]), ends[known] - ends[low], np.nan)
        rates = (done[known] - done[low]) / seconds
        begin, end = (np.minimum(np.ceil(ends[place]).astype(np.int_), seen) for place in (low, known))
        idle = seen - ends[known] > self._rate  # nothing came, so nothing was done: known, not missing
        waits = self._engine.history.arrived[seen] - self._engine.history.position[seen] >= 1
        return begin, end, np.where(idle & ~waits & (high >= 0), 0.0, rates)

    def _latencies(self, span: Span, seen: np.ndarray[tuple[int], np.dtype[np.int_]]) -> list[float]:
        h = self._engine.history
        low = np.minimum(np.maximum(seen - self._latency, span.born), seen)
        count = h.counted[seen] - h.counted[low]
        found: list[float] = np.where(count > 0, (h.late[seen] - h.late[low]) / np.maximum(count, 1), np.nan).tolist()
        if self._engine.profile.engine == "microbatch":  # the last batch's stays until the next one is done
            return [
                self._last_latency(int(tick)) if isnan(value) else value
                for tick, value in zip(seen, found, strict=True)
            ]
        return found

    def _last_latency(self, tick: int) -> float:
        p95 = self._engine.history.p95[max(0, tick - 600) : tick]
        known = p95[~np.isnan(p95)]
        return float(known[-1]) if len(known) else float("nan")

    def _waiting(self, tick: int) -> float:
        h, floor = self._engine.history, self._engine.profile.backlog_floor
        if self._backlog == 1:
            return float(h.arrived[tick] - h.position[tick] + h.queued[tick]) + floor
        seen = slice(max(0, tick - self._backlog + 1), tick + 1)
        return float((h.arrived[seen] - h.position[seen] + h.queued[seen]).max()) + floor

    def _fleet(self, span: Span, ticks: range) -> Callable[[int, list[float], float | None], tuple[Worker, ...]]:
        """What makes the workers of one tick; most of it is the same for all ticks of a span."""
        start, first = self._start, ticks[0]
        loads: list[float] = span.layout.load.tolist()
        units = list(zip(span.layout.names, loads, span.started, span.ready, strict=True))
        settled = all(began <= first and (ready is None or ready <= first) for _, _, began, ready in units)
        known = [(n, load, start + began, None if ready is None else start + ready) for n, load, began, ready in units]

        def at(tick: int, cpus: list[float], rate: float | None) -> tuple[Worker, ...]:
            row = known
            if not settled:
                there = [i for i, unit in enumerate(units) if unit[2] <= tick]
                row = [(*known[i][:3], self._ready(units[i][3], tick)) for i in there]
                cpus = [cpus[i] for i in there]
            # NaN differs from itself: a test that costs no call, a million times a run.
            return tuple(
                [
                    Worker(name, cpu if cpu == cpu else None, None if rate is None else rate * load, began, ready)
                    for (name, load, began, ready), cpu in zip(row, cpus, strict=True)
                ]
            )

        return at

    def _ready(self, ready: int | None, tick: int) -> float | None:
        return None if ready is None or ready > tick else self._start + ready

    def _dataflow(self, layout: Layout) -> Callable[[float | None, float, float, int], tuple[Operator, ...]]:
        """What makes the operators of one tick."""
        h, profile = self._engine.history, self._engine.profile
        queued = profile.feed == "generator" and layout.room > 0
        slowest = min(layout.operator_limits, key=lambda name: layout.operator_limits[name])
        behind = upstream(profile, slowest)
        rows: list[tuple[Stage, int, float, float, bool, float]] = []
        for stage in profile.operators:
            relative = layout.operator_limits[slowest] / layout.operator_limits[stage.name]
            part = stage.cost if profile.engine == "microbatch" else relative
            count = layout.parallelism[stage.name]
            busy = profile.busy_ceiling * part * layout.balance[stage.name] * count**-profile.busy_decline
            waiting = stage.buffer * count if stage.name == slowest else 0.0
            rows.append((stage, count, self._ratios[stage.name], busy, stage.name in behind, waiting))

        def at(rate: float | None, use: float, full: float, tick: int) -> tuple[Operator, ...]:
            if rate is None:
                return tuple(Operator(stage.name, count, downstream=stage.downstream) for stage, count, *_ in rows)
            found = []
            filled = float(h.arrived[tick] - h.position[tick]) / layout.room if queued else full
            used = use**profile.busy_power
            for stage, count, ratio, share, held, waiting in rows:
                came, busy = rate * ratio, min(1.0, used * share)
                # A queue that is full stops the sources, and those between work off what they have meanwhile; without
                # queues an operator that is held back cannot be busy.
                held_back = full if queued else full * profile.backpressure_share * (1 - busy)
                pressure = held_back if held else 0.0
                out, idle = came * stage.selectivity, max(0.0, 1 - busy - pressure)
                name, queue = stage.name, filled * waiting
                found.append(Operator(name, count, came, out, busy, pressure, idle, queue, stage.downstream))
            return tuple(found)

        return at

    def _places(self, used: tuple[str, ...]) -> tuple[Node, ...]:
        if used not in self._nodes:
            self._nodes[used] = nodes(self._engine.profile, used, self._engine.seed)
        return self._nodes[used]

    def _last_batch(self, tick: int) -> Batch | None:
        batches = self._engine.history.batches
        place = bisect_right(batches, float(tick), key=_ended) if batches else 0
        if not place:
            return None
        last = batches[place - 1]
        return replace(last, ended_at=self._start + last.ended_at)

    def _events(self, tick: int) -> tuple[Reason, ...]:
        events = self._engine.history.events
        if self._told >= len(events):
            return ()
        until = bisect_left(events, tick + 1, key=lambda event: event[0])
        told = tuple(reason for _, reason in events[self._told : until])
        self._told = max(self._told, until)
        return told


def _ended(batch: Batch) -> float:
    return batch.ended_at


def _known(value: float) -> float | None:
    return None if isnan(value) else value
