"""What a recount goes by: the log, the results, and which records and watermark each batch had.

Spark writes down what a batch will read, and the watermark it will go by, before it runs it; a batch that is repeated
after a failure reads the same. The sink notes that for every batch (`Batches`), so that a recount knows exactly which
records came too late, however the batches fell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from penstock.sources import offsets
from penstock.sources.log import EmbeddedLog


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch read.

    start, end: offsets of the log.
    watermark: milliseconds of event time up to which windows are closed at its end; 0 before there is one.
    late: milliseconds of event time up to which its records come too late: the watermark of the batch before.
    """

    number: int
    start: Mapping[int, int]
    end: Mapping[int, int]
    watermark: int
    late: int


class Batches:
    """The notes on a query's batches, one small file each, kept as long as the results."""

    def __init__(self, directory: Path, checkpoint: Path) -> None:
        self.directory = directory
        self._checkpoint = checkpoint
        directory.mkdir(parents=True, exist_ok=True)

    def note(self, number: int) -> None:
        """Keep what Spark planned for a batch, once its results are out; Spark itself keeps only the last hundred."""
        _, meta, *sources = (self._checkpoint / "offsets" / str(number)).read_text().splitlines()
        planned = {"end": offsets.parse(json.loads(sources[-1])), "watermark": json.loads(meta)["batchWatermarkMs"]}
        fresh = self.directory / f"{number:09}.tmp"
        fresh.write_text(json.dumps(planned))
        fresh.rename(self.directory / f"{number:09}.json")

    def read(self, begin: Mapping[int, int]) -> list[Batch]:
        """All batches in order; the first one began at the offsets `begin`."""
        found: list[Batch] = []
        for path in sorted(self.directory.glob("*.json")):
            planned = json.loads(path.read_text())
            start, late = (found[-1].end, found[-1].watermark) if found else (dict(begin), 0)
            found.append(Batch(int(path.stem), start, offsets.parse(planned["end"]), planned["watermark"], late))
        return found


@dataclass(frozen=True)
class Evidence:
    """A query's log, the batches whose results are out, and the results of each."""

    log: EmbeddedLog
    batches: Sequence[Batch]
    results: Callable[[int], pa.Table]

    @property
    def until(self) -> Mapping[int, int]:
        """Where the results end in the log."""
        return self.batches[-1].end

    @cached_property
    def records_in(self) -> int:
        return sum(self.until[p] - begin for p, begin in self.batches[0].start.items())

    def records(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        """What a batch read."""
        for partition, end in batch.end.items():
            yield from self.log.read(partition, batch.start[partition], end)

    def rows(self) -> Iterator[tuple[Batch, pa.Table]]:
        """The results, batch by batch; not all at once, as they may be as many as the records."""
        for batch in self.batches:
            yield batch, self.results(batch.number)
