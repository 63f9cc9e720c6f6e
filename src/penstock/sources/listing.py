"""Which segments a partition has, from their names alone, cheap enough to ask every few milliseconds."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from threading import Lock

from penstock.errors import Damaged, SourceError, check
from penstock.sources.segments import Piece, Segment

# A change within the same step of the kernel's clock as the last one leaves a directory's mtime as it is. So an mtime
# is trusted once it is older than a step, in nanoseconds: some file systems count whole seconds.
FINE, COARSE = 100_000_000, 2_000_000_000


class Listing:
    """The segments of one partition's directory, sorted and without gaps."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.partition = int(directory.name)
        self._names: frozenset[str] = frozenset()
        self._segments: list[Segment] = []
        self._fault: str | None = None
        self._unchanged: int | None = None
        self._lock = Lock()  # one log may serve a loop and a dashboard in two threads

    def segments(self) -> list[Segment]:
        """All there are now; raises Damaged if one is missing in the middle.

        A directory that changes while it is listed may show a segment and not the one before it. That one was there
        first, so the next listing must show it: only a gap that stays is damage.
        """
        with self._lock:
            try:
                changed = self.directory.stat().st_mtime_ns
            except FileNotFoundError:
                raise Damaged(f"{self.directory} is missing, with all of its segments") from None
            if changed == self._unchanged:
                return self._segments
            settled = time.time_ns() - changed > (FINE if changed % 1_000_000_000 else COARSE)
            fault = self._list()
            while fault:
                before, fault = fault, self._list()
                if fault == before:
                    raise Damaged(f"{self.directory} {fault}")
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
        first = bisect_right(segments, start, key=attrgetter("end"))
        for segment in segments[first:] if start < end else ():
            if segment.base >= end:
                break
            pieces.append(Piece(self.partition, segment, max(start, segment.base), min(end, segment.end)))
        return pieces

    def _list(self) -> str | None:
        """List again, looking closer only at what changed; says what is wrong with the result, or None."""
        names = os.listdir(self.directory)  # noqa: PTH208 - a Path per segment would cost more than all the rest
        known = self._names
        fresh = [name for name in names if name not in known]
        lost = len(names) - len(fresh) < len(known)
        if not fresh and not lost:
            return self._fault
        kept = self._segments
        if lost:
            present = frozenset(names)
            kept = [segment for segment in kept if segment.name in present]
        found = [segment for name in fresh if (segment := Segment.parse(name))]
        segments = sorted([*kept, *found], key=attrgetter("base"))
        self._names, self._segments = frozenset(names), segments
        self._fault = fault(segments)
        return self._fault


def fault(segments: list[Segment]) -> str | None:
    """The first place where offsets are missing or there twice."""
    for one, two in pairwise(segments):
        if two.base != one.end:
            what = "lacks the segments between" if two.base > one.end else "has the same offsets in both"
            return f"{what} {one.name} and {two.name}"
    return None


def bounds(segments: list[Segment]) -> tuple[int, int]:
    """Begin and end of a sorted list of segments; a partition that never held any begins and ends at 0."""
    return (segments[0].base, segments[-1].end) if segments else (0, 0)
