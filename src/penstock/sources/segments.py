"""One segment: an Arrow IPC file that is written once, named after what it holds, and checked when read.

The name is `<base offset, 20 digits>-<records>-<crc32 of the file>.arrow`. So a listing of names gives the offsets
without opening a file, names sort as offsets do, and damage shows.
"""

from __future__ import annotations

import errno
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.errors import Damaged, Full, SourceError

NAME = re.compile(r"(\d{20})-(\d+)-([0-9a-f]{8})\.arrow")
TEMPORARY = ".tmp"
CHUNK = 1 << 16  # records in one Arrow batch: a reader holds this much, not a whole segment
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
MAGIC = b"ARROW1"


@dataclass(frozen=True, slots=True)
class Segment:
    """What a segment's name says.

    >>> Segment.parse(Segment(120, 40, 0xC0FFEE).name)
    Segment(base=120, count=40, crc=12648430)
    """

    base: int
    count: int
    crc: int

    @property
    def end(self) -> int:
        return self.base + self.count

    @property
    def name(self) -> str:
        return f"{self.base:020d}-{self.count}-{self.crc:08x}.arrow"

    @classmethod
    def parse(cls, name: str) -> Segment | None:
        """None for what is no segment: a temporary file, a stranger's file."""
        match = NAME.fullmatch(name)
        return cls(int(match[1]), int(match[2]), int(match[3], 16)) if match else None


@dataclass(frozen=True, slots=True)
class Piece:
    """The offsets from `start` up to `end` of one partition, all in one segment."""

    partition: int
    segment: Segment
    start: int
    end: int


def write(directory: Path, base: int, batch: pa.RecordBatch, durable: bool) -> Segment:
    """Make `batch` a segment that is there wholly or not at all; raises Full when there is no room."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as file:
        for at in range(0, batch.num_rows, CHUNK):
            file.write_batch(batch.slice(at, CHUNK))
    body = sink.getvalue()
    segment = Segment(base, batch.num_rows, zlib.crc32(body))
    temporary = directory / (segment.name + TEMPORARY)
    try:
        with temporary.open("wb") as out:
            out.write(body)
            out.flush()
            if durable:
                os.fsync(out.fileno())
        temporary.rename(directory / segment.name)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno in NO_ROOM:
            raise Full(f"no room for {body.size} bytes in {directory}: {error.strerror}") from error
        raise
    return segment


def sync(directory: Path) -> None:
    """Make the directory's names durable: a rename is not until its directory is synced."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(root: str | Path, piece: Piece) -> Iterator[pa.RecordBatch]:
    """The records of `piece`, without copying, after checking the whole segment."""
    at = piece.segment.base
    for batch in checked(f"{root}/{piece.partition}/{piece.segment.name}", piece.segment):
        low, high = max(piece.start - at, 0), min(piece.end - at, batch.num_rows)
        if low < high:
            yield batch.slice(low, high - low)
        at += batch.num_rows


def checked(path: str, segment: Segment) -> list[pa.RecordBatch]:
    """The segment's batches, mapped from disk; raises Damaged, naming the file and what is wrong with it."""
    try:
        with pa.memory_map(path) as mapped:
            body = mapped.read_buffer()
    except FileNotFoundError:
        raise SourceError(f"{path} is gone: retained away or removed by hand") from None
    if body.size < len(MAGIC) or body.slice(body.size - len(MAGIC)).to_pybytes() != MAGIC:
        raise Damaged(f"{path} is truncated: its {body.size} bytes do not end as an Arrow file does")
    crc = zlib.crc32(body)
    if crc != segment.crc:
        raise Damaged(f"{path} has changed since it was written: its checksum is {crc:08x}")
    try:
        file = pa.ipc.open_file(body)
        batches = [file.get_batch(i) for i in range(file.num_record_batches)]
    except pa.ArrowInvalid as error:
        raise Damaged(f"{path} is not an Arrow file: {error}") from error
    count = sum(batch.num_rows for batch in batches)
    if count != segment.count:
        raise Damaged(f"{path} holds {count} records, its name says {segment.count}")
    return batches
