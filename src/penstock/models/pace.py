"""How a micro-batch engine goes from batch to batch, and what it does in batches as large as they may be."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.core import Batch

FULL = 0.98  # of a batch's limit: partitions are not equally full
LARGE = 0.5  # of a batch's limit: with such batches in a row, one after the other, a job is at its limit as well
TELLING = 0.2  # of a batch's limit: of smaller batches CPU says the less about records, the smaller they are
LEAST_TELLING = 0.05  # where there is nothing better, that is what there is
BUSY = 0.9  # of the time from one batch to the next, spent in it: else a trigger was waited for, not work


@dataclass(frozen=True, slots=True)
class Pace:
    """Of a micro-batch engine: seconds from one batch to the next, and the most records of one for each worker.

    records: of the whole batch, where it was as large as it may be and the next followed at once; None: there was
        room or time for more.
    large: it was at least half as large as it may be, and the next followed at once.
    workers: how many did it.
    trigger: seconds from the start of one batch to that of the next, at least; None: none to wait for, or not known.
    """

    interval: float
    limit: float
    records: float | None = None
    large: bool = False
    workers: int | None = field(default=None, compare=False)
    trigger: float | None = None

    @classmethod
    def between(cls, before: Batch | None, now: Batch | None, workers: int | None) -> Pace | None:
        """From two batches in a row; None where they are not, where there is no limit, or where that is not known."""
        if before is None or now is None or now.number != before.number + 1 or not (workers and now.limit):
            return None
        interval = now.ended_at - before.ended_at
        if interval <= 0:
            return None
        size = now.records / now.limit if now.seconds >= BUSY * interval else 0.0
        records = now.records if size >= FULL else None
        return cls(interval, now.limit / workers, records, size >= LARGE, workers, now.trigger)

    @property
    def full(self) -> float | None:
        """Records/s of each worker in a batch as large as it may be."""
        return self.records / self.interval / self.workers if self.records is not None and self.workers else None

    @property
    def most(self) -> float | None:
        """Records/s that each worker gets at most, however fast it is: a full batch at every trigger.

        >>> Pace(interval=3.0, limit=60_000.0, trigger=3.0).most
        20000.0
        """
        return self.limit / self.trigger if self.trigger else None


def telling(batch: Batch | None) -> float:
    """How much CPU says about the cost of records while such batches run: all where there are none, or no limit.

    On a slow machine small batches follow each other without a pause, and take three quarters of the CPU with next to
    nothing in them. Lines through such samples had a half to three quarters of the capacity missing; from a fifth of
    the limit on they were right to 15 %.

    >>> telling(Batch(1, ended_at=10.0, seconds=2.0, records=10_000, limit=100_000))
    0.125
    """
    if batch is None or not batch.limit:
        return 1.0
    return min(max((batch.records / batch.limit / TELLING) ** 3, LEAST_TELLING), 1.0)
