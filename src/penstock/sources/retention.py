"""Which segments may go: whole ones, the oldest first, never one that is still needed."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.sources.segments import Segment


@dataclass(frozen=True, slots=True, order=True)
class Stored:
    """A segment on disk, ordered by age."""

    written_at: float
    path: Path
    size: int
    end: int


def stored(directory: Path, segments: list[Segment]) -> list[Stored]:
    """The segments of a partition as they lie on disk, oldest first."""
    found: list[Stored] = []
    for segment in segments:
        path = directory / segment.name
        try:
            state = path.stat()
        except FileNotFoundError:
            continue  # somebody else retains too
        # A clock set back must not make a later segment look older, or the oldest would not go first.
        written_at = max(state.st_mtime, found[-1].written_at if found else state.st_mtime)
        found.append(Stored(written_at, path, state.st_size, segment.end))
    return found


def expired(
    partitions: Mapping[int, list[Stored]],
    *,
    max_bytes: int | None,
    max_age: float | None,
    keep_from: Mapping[int, int] | None,
    now: float,
) -> Iterator[Stored]:
    """What may be deleted, in the order in which to delete it.

    The newest segment of a partition always stays: its name is what remembers the offsets. With `keep_from`, all at or
    beyond it stays, and a partition that it does not name stays whole.
    """
    total = sum(one.size for held in partitions.values() for one in held)
    free = [
        [one for one in held[:-1] if keep_from is None or one.end <= keep_from.get(partition, 0)]
        for partition, held in partitions.items()
    ]
    for one in heapq.merge(*free):
        too_old = max_age is not None and now - one.written_at > max_age
        too_much = max_bytes is not None and total > max_bytes
        if not (too_old or too_much):
            return
        total -= one.size
        yield one
