"""Recounts of the Nexmark queries, in plain Python: what each line says, and what has to come out of each batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.jobs.base import Verdict
from penstock.jobs.recount import arrived

Row = tuple[Any, ...]
Fields = Mapping[str, type]

TYPES = (0, 1, 2)  # person, auction, bid
LONG = 2**63
YEAR_10000 = 253_402_300_800_000


def read(line: str, wanted: Mapping[int, Fields]) -> dict[str, Any] | bool | None:
    """An event with the fields that its type must have; None if it is of a type not wanted, False if malformed.

    >>> read('{"event_type":0,"id":7,"dateTime":1}', {0: {"id": int}})
    {'event_type': 0, 'id': 7, 'dateTime': 1}
    >>> read('{"event_type":2,"auction":1}', {0: {"id": int}}), read('{"event_type":2,"auc', {0: {"id": int}})
    (None, False)
    """
    if line.endswith("}") and any(line.startswith(f'{{"event_type":{t},') for t in TYPES if t not in wanted):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return False
    kind = event.get("event_type") if isinstance(event, dict) else None
    fields = wanted.get(int(kind)) if kind is not None and _is(kind, int) else None
    if fields is None or not (_is(event.get("dateTime"), int) and 0 < event["dateTime"] < YEAR_10000):
        return False
    return event if all(_is(event.get(name), kind) for name, kind in fields.items()) else False


def _is(value: Any, kind: type) -> bool:
    if type(value) is not kind:
        return False
    return not isinstance(value, int) or -LONG <= value < LONG


@dataclass(slots=True)
class Recount:
    """Where every record went, and the rows that had to come out against those that did, batch by batch.

    what: a row stands for.
    weight: how many records a row stands for.
    """

    what: str
    weight: Callable[[Row], int] = lambda _: 1
    records: int = 0
    rows: int = 0
    wrong: int = 0
    surplus: int = 0
    fault: str | None = None
    set_aside: int = 0
    late: int = 0

    def events(
        self, parts: Iterable[pa.RecordBatch], wanted: Mapping[int, Fields]
    ) -> Iterator[tuple[int, dict[str, Any] | None, str]]:
        """Time, event (None: malformed) and line of each record, but of those not wanted; a malformed one's time is
        that of its arrival."""
        for part in parts:
            self.records += part.num_rows
            for arrival, line in arrived(part):
                event = read(line, wanted)
                if isinstance(event, dict):
                    yield event["dateTime"], event, line
                elif event is False:
                    yield arrival, None, line

    def compare(self, number: int, expected: Counter[Row], table: pa.Table) -> None:
        """Every row that there should be, as often as it should, and no other."""
        found: Counter[Row] = Counter(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
        self.rows += expected.total()
        missing, extra = expected - found, found - expected
        for rows, way in ((missing, -1), (extra, 1)):
            self.wrong += rows.total()
            self.surplus += way * sum(self.weight(row) * times for row, times in rows.items())
        if self.fault is None and (missing or extra):
            row = min(missing | extra, key=str)
            self.fault = f"batch {number} has {row} {found[row]} times instead of {expected[row]}"

    def verdict(self, records_in: int) -> Verdict:
        out = self.records + self.surplus
        if self.fault is not None:
            sentence = f"{self.wrong} rows are missing or too many, of {self.rows}: {self.fault}"
        elif self.records != records_in:
            sentence = f"the batches have {self.records} records, the log {records_in}"
        else:
            sentence = f"all {self.rows} rows, one per {self.what} or malformed line, are exactly the log's"
        equal = self.fault is None and self.records == records_in
        return Verdict(equal, records_in, out, sentence, self.set_aside, self.late)
