"""Arithmetic of offsets: how much is left, how far a batch goes, and how it is cut into equal parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

Offsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Range:
    """The offsets from `start` up to `end` of one partition."""

    partition: int
    start: int
    end: int


def lag(committed: Offsets, end: Offsets) -> int:
    """Records between the two; a partition that `committed` does not name counts from 0.

    >>> lag({0: 90, 1: 40}, {0: 100, 1: 40})
    10
    """
    return sum(last - committed.get(partition, 0) for partition, last in end.items())


def parse(offsets: str | Mapping[str, int]) -> dict[int, int]:
    """Offsets as Spark's progress reports them: JSON has no integer keys.

    >>> parse('{"0": 12, "1": 7}')
    {0: 12, 1: 7}
    """
    stored: Mapping[str, int] = json.loads(offsets) if isinstance(offsets, str) else offsets
    return {int(partition): offset for partition, offset in stored.items()}


def render(offsets: Offsets) -> dict[str, int]:
    """The inverse of `parse`."""
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def advance(start: Offsets, end: Offsets, limit: int | None) -> dict[int, int]:
    """How far a batch of at most `limit` records goes from `start` towards `end`.

    Every partition that lags gets one record, so none starves; the rest is dealt in proportion to the lag, so that all
    partitions move through event time together and a watermark does not run ahead of some of them. If there is not
    even one record for each, they take turns.

    >>> advance({0: 0, 1: 0}, {0: 300, 1: 100}, 40)
    {0: 29, 1: 11}
    """
    lags = {partition: last - start[partition] for partition, last in end.items() if last > start[partition]}
    if limit is None or sum(lags.values()) <= limit:
        return dict(end)
    ring = sorted(lags)
    turn = sum(start.values()) % len(ring)
    reached = dict(start)
    for partition in (ring[turn:] + ring[:turn])[:limit]:
        reached[partition] += 1
    spare = max(limit - len(ring), 0)
    total = sum(lags.values()) - len(ring)
    passed = 0
    for partition in ring if spare else ():  # rounding the running sum, not each share, makes them add up to the limit
        before, passed = passed, passed + lags[partition] - 1
        reached[partition] += passed * spare // total - before * spare // total
    return reached


def cut(start: Offsets, end: Offsets, splits: int) -> list[list[Range]]:
    """The records from `start` to `end` as `splits` parts of equal size (or one less); no part is empty.

    Parts ignore the borders of partitions: eight workers share the work of three partitions evenly.

    >>> cut({0: 0, 1: 0}, {0: 3, 1: 1}, 2)
    [[Range(partition=0, start=0, end=2)], [Range(partition=0, start=2, end=3), Range(partition=1, start=0, end=1)]]
    """
    total = lag(start, end)
    parts = min(splits, total)
    sizes = [(i + 1) * total // parts - i * total // parts for i in range(parts)]
    left = [Range(partition, start[partition], end[partition]) for partition in sorted(end, reverse=True)]
    cuts: list[list[Range]] = []
    for size in sizes:
        part: list[Range] = []
        while size:
            whole = left.pop()
            middle = min(whole.start + size, whole.end)
            if middle > whole.start:
                part.append(Range(whole.partition, whole.start, middle))
                size -= middle - whole.start
            if middle < whole.end:
                left.append(Range(whole.partition, middle, whole.end))
        cuts.append(part)
    return cuts
