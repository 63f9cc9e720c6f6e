"""Which segments a partition has, from their names alone, cheap enough to ask every few milliseconds."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

from penstock.errors import Damaged, SourceError, check
from penstock.sources.segments import Piece, Segment

SETTLED = 1_000_000_000  # ns after which a directory's mtime is trusted: the kernel stamps it in coarse steps


class Listing:
    """The segments of one partition's directory, sorted and without gaps."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.partition = int(directory.name)
        self._names: frozenset[str] = frozenset()
        self._segments: list[Segment] = []
        self._unchanged: int | None = None

    def segments(self) -> list[Segment]:
        """All there are now; raises Damaged if one is missing in the middle.

        A directory that changes while it is listed may show a segment and not the one before it. That one was there
        first, so the next listing must show it: only a gap that stays is damage.
        """
        changed = self.directory.stat().st_mtime_ns
        if changed == self._unchanged:
            return self._segments
        settled = time.time_ns() - changed > SETTLED
        gap = self._list()
        while gap:
            before, gap = gap, self._list()
            if gap == before:
                raise Damaged(f"{self.directory} {gap}")
        self._unchanged = changed if settled else None
        return self._segments

    def covering(self, start: int, end: int) -> list[Piece]:
        """The pieces that make up the offsets from `start` up to `end`."""
        segments = self.segments()
        begin, limit = bounds(segments)
        check(0 <= start <= end <= limit, "range", f"lie within 0 to {limit} of {self.directory}", (start, end))
        if start < begin and start < end:
            kept = f"{self.directory} begins at offset {begin}"
            raise SourceError(f"{kept}: {start} to {min(begin, end)} has been retained away and cannot be read")
        pieces = []
        first = bisect_right(segments, start, key=lambda segment: segment.end)
        for segment in segments[first:] if start < end else ():
            if segment.base >= end:
                break
            pieces.append(Piece(self.partition, segment, max(start, segment.base), min(end, segment.end)))
        return pieces

    def _list(self) -> str | None:
        """List again, reusing what is known; says what is wrong with the result, or None."""
        names = frozenset(os.listdir(self.directory))  # noqa: PTH208 - a Path per segment would cost more than the rest
        segments = self._segments
        if gone := self._names - names:
            segments = [segment for segment in segments if segment.name not in gone]
        if fresh := names - self._names:
            found = [segment for name in fresh if (segment := Segment.parse(name))]
            segments = sorted([*segments, *found], key=lambda segment: segment.base)
        self._names, self._segments = names, segments
        for one, two in pairwise(segments):
            if two.base != one.end:
                fault = "lacks the segments between" if two.base > one.end else "has the same offsets in both"
                return f"{fault} {one.name} and {two.name}"
        return None


def bounds(segments: list[Segment]) -> tuple[int, int]:
    """Begin and end of a sorted list of segments; a partition that never held any begins and ends at 0."""
    return (segments[0].base, segments[-1].end) if segments else (0, 0)
