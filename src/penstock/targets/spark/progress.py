"""What a streaming query says of its batches, as values; and rates out of counters. Pure.

Throughput is the advance of the committed offsets over time, and backlog the distance to the newest ones. The row
counts that Spark reports are not used where offsets count records: they count a retried task's rows twice, and
`inputRowsPerSecond` is consumption, not arrival.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

METRIC = "penstock"  # the name of the observation that `penstock.spark.observe_latency` adds to a query
EVENT_TIME = "event_time_p05"


@dataclass(frozen=True, slots=True)
class Progress:
    """One finished batch. `end` and `latest` are total offsets, None where offsets do not count records."""

    number: int
    started_at: float
    seconds: float
    records: int
    end: int | None
    latest: int | None
    latency: float | None

    @property
    def ended_at(self) -> float:
        return self.started_at + self.seconds


def parse(text: str) -> Progress:
    """A batch from the JSON of a `StreamingQueryProgress`."""
    raw: dict[str, Any] = json.loads(text)
    started_at = datetime.fromisoformat(raw["timestamp"]).timestamp()
    seconds = raw["durationMs"].get("triggerExecution", raw.get("batchDuration", 0)) / 1000
    starts, ends, latests = ([_total(s.get(key)) for s in raw["sources"]] for key in _OFFSETS)
    end = _sum(ends)
    start = _sum([0 if s.get("startOffset") is None else n for s, n in zip(raw["sources"], starts, strict=True)])
    event_time = raw.get("observedMetrics", {}).get(METRIC, {}).get(EVENT_TIME)
    return Progress(
        number=raw["batchId"],
        started_at=started_at,
        seconds=seconds,
        records=raw["numInputRows"] if end is None or start is None else end - start,
        end=end,
        latest=_sum(latests),
        latency=None if event_time is None else max(0.0, started_at + seconds - float(event_time)),
    )


_OFFSETS = ("startOffset", "endOffset", "latestOffset")


def _sum(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None


def _total(offset: Any) -> int | None:
    """The sum over partitions of offsets that count records: {"0": 12} of the log, {"topic": {"0": 12}} of Kafka."""
    if isinstance(offset, str):  # some sources hand their JSON through as text
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    if not isinstance(offset, dict) or not offset:
        return None
    if all(key.isdigit() and isinstance(value, int) for key, value in offset.items()):
        return sum(offset.values())
    return _sum([_total(value) for value in offset.values()])


@dataclass(slots=True)
class Counter:
    """A growing total, seen now and then; its rate over a sliding window.

    >>> counter = Counter(window=10)
    >>> for at, total in [(0, 0), (5, 100), (10, 300), (20, 500)]:
    ...     counter.saw(at, total)
    >>> counter.rate()
    20.0
    >>> counter.rate(since=12, until=16), counter.rate(since=5, until=10)
    (20.0, None)
    """

    window: float
    _seen: deque[tuple[float, float]] = field(default_factory=deque)

    def saw(self, at: float, total: float) -> None:
        if self._seen and total < self._seen[-1][1]:
            self._seen.clear()  # it began anew: a rate across the break would be negative
        self._seen.append((at, total))
        # One point at or beyond the window's edge stays, so that the rate always spans the whole window.
        while len(self._seen) > 2 and self._seen[1][0] <= at - self.window:
            self._seen.popleft()

    @property
    def span(self) -> tuple[float, float] | None:
        """From when to when the rate is; None until it was seen at two times."""
        if len(self._seen) < 2 or self._seen[-1][0] <= self._seen[0][0]:
            return None
        return self._seen[0][0], self._seen[-1][0]

    def rate(self, since: float | None = None, until: float | None = None) -> float | None:
        """Growth per second, over the window or between two times that lie in what was seen; None if they do not."""
        span = self.span
        if span is None:
            return None
        first, last = span if since is None or until is None else (since, until)
        if first < span[0] or last > span[1] or first >= last:
            return None
        return (self._total(last) - self._total(first)) / (last - first)

    def _total(self, at: float) -> float:
        """The total at a time within the span; between two looks it grew evenly, as far as anybody knows."""
        for (before, low), (after, high) in pairwise(self._seen):
            if at <= after:
                return low if after == before else low + (high - low) * max(0.0, at - before) / (after - before)
        return self._seen[-1][1]
