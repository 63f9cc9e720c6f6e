"""Recounts of windowed jobs, in plain Python: which records counted, in which window, and what that makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.jobs.base import Verdict
from penstock.jobs.evidence import Batch

Key = tuple[int, Any, str | None]  # end of the window in milliseconds, key, malformed line


def arrived(part: pa.RecordBatch) -> Iterator[tuple[int, str]]:
    """Milliseconds of arrival, and line, of each record."""
    times: list[Any] = part.column("timestamp").cast(pa.int64()).to_pylist()
    values: list[Any] = part.column("value").to_pylist()
    return zip((at // 1000 for at in times), values, strict=True)


@dataclass(slots=True)
class Windows:
    """Counts per key and tumbling window of `size` milliseconds.

    A record that lands in a window which was closed with the batch before comes too late, and counts nowhere.

    >>> w = Windows(10_000)
    >>> w.count(12_345, "a", late=0), w.count(9_999, "a", late=10_000), w.expected
    (True, False, Counter({(20000, 'a', None): 1}))
    """

    size: int
    expected: Counter[Key] = field(default_factory=Counter)
    late: int = 0
    set_aside: int = 0
    skipped: int = 0

    def count(self, at: int, key: Any, late: int, aside: str | None = None) -> bool:
        """Count a record of that time; whether it was in time."""
        end = at // self.size * self.size + self.size
        if end <= late:
            self.late += 1
            return False
        self.expected[end, key, aside] += 1
        return True

    def take_in(
        self,
        batch: Batch,
        records: Iterable[pa.RecordBatch],
        counted: Callable[[str], tuple[int, Any] | bool | None],
    ) -> None:
        """Count a batch. `counted`: time and key of a line; None: it does not count; False: it is malformed."""
        for part in records:
            for arrival, line in arrived(part):
                known = counted(line)
                if known is None:
                    self.skipped += 1
                elif isinstance(known, tuple):
                    self.count(*known, late=batch.late)
                elif self.count(arrival, None, batch.late, aside=line):
                    self.set_aside += 1

    def compare(self, found: Mapping[Key, int], records_in: int, what: str) -> Verdict:
        """Every count there should be, and no other."""
        wrong = [key for key in self.expected.keys() | found.keys() if self.expected[key] != found.get(key, 0)]
        out = sum(found.values()) + self.skipped + self.late
        if wrong:
            first = min(wrong, key=str)
            sentence = (
                f"{len(wrong)} of {len(self.expected)} counts are wrong: {first} was counted "
                f"{found.get(first, 0)} times, the log has {self.expected[first]}"
            )
            return Verdict(False, records_in, out, sentence, self.set_aside, self.late)
        sentence = f"all {len(self.expected)} counts per {what} are exactly the log's"
        return Verdict(out == records_in, records_in, out, sentence, self.set_aside, self.late)
