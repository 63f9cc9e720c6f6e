"""How a micro-batch engine goes from batch to batch, and what it does in batches as large as they may be."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.core import Batch

FULL = 0.98  # of a batch's limit: partitions are not equally full
LARGE = 0.5  # of a batch's limit: with such batches in a row, one after the other, a job is at its limit as well
BUSY = 0.9  # of the time from one batch to the next, spent in it: else a trigger was waited for, not work


@dataclass(frozen=True, slots=True)
class Pace:
    """Of a micro-batch engine: seconds from one batch to the next, and the most records of one for each worker.

    records: of the whole batch, where it was as large as it may be and the next followed at once; None: there was
        room or time for more.
    large: it was at least half as large as it may be, and the next followed at once.
    workers: how many did it.
    """

    interval: float
    limit: float
    records: float | None = None
    large: bool = False
    workers: int | None = field(default=None, compare=False)

    @classmethod
    def between(cls, before: Batch | None, now: Batch | None, workers: int | None) -> Pace | None:
        """From two batches in a row; None where they are not, where there is no limit, or where that is not known."""
        if before is None or now is None or now.number != before.number + 1 or not (workers and now.limit):
            return None
        interval = now.ended_at - before.ended_at
        if interval <= 0:
            return None
        size = now.records / now.limit if now.seconds >= BUSY * interval else 0.0
        return cls(interval, now.limit / workers, now.records if size >= FULL else None, size >= LARGE, workers)

    @property
    def full(self) -> float | None:
        """Records/s of each worker in a batch as large as it may be."""
        return self.records / self.interval / self.workers if self.records is not None and self.workers else None
