"""The six Nexmark queries' own proofs, without Spark: small logs whose right results are written out by hand."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import jobs
from penstock.jobs import events
from penstock.jobs.evidence import Batch, Evidence
from penstock.sources.log import EmbeddedLog

Rows = list[tuple[Any, ...]]
CUT, EMPTY = '{"event_type":2,"auc', "{}"


def person(number: int, at: int, name: str = "Ann", state: str = "OR") -> tuple[int, str]:
    return line(event_type=0, id=number, name=name, city="Bend", state=state, dateTime=at)


def auction(number: int, seller: int, at: int, category: int = 10) -> tuple[int, str]:
    return line(event_type=1, id=number, dateTime=at, seller=seller, category=category)


def bid(auction: int, at: int, bidder: int = 1, price: int = 1000) -> tuple[int, str]:
    return line(event_type=2, auction=auction, bidder=bidder, price=price, dateTime=at, extra="x")


def line(**fields: Any) -> tuple[int, str]:
    """With its arrival, which matters only where a line is malformed."""
    return 0, json.dumps(fields, separators=(",", ":"))


@dataclass(frozen=True)
class Case:
    """Batches as lines with their arrivals in milliseconds, each with its watermark; and what comes out of each."""

    batches: list[tuple[list[tuple[int, str]], int]]
    right: list[Rows]
    columns: str
    set_aside: int = 1
    late: int = 0


CASES = {
    "nexmark-q1": Case(
        [([bid(1, 5_000), person(1, 5_000), (0, CUT)], 0), ([auction(1, 1, 5_000), bid(3, 6_000, price=250)], 0)],
        [[(1, 1, 908.0, 5_000, "x", None), (None, None, None, None, None, CUT)], [(3, 1, 227.0, 6_000, "x", None)]],
        "auction bidder price dateTime extra aside",
    ),
    "nexmark-q2": Case(
        [([bid(246, 5_000), bid(7, 5_000), (0, CUT)], 0), ([auction(123, 1, 5_000), bid(123, 5_000, price=5)], 0)],
        [[(246, 1000, None), (None, None, CUT)], [(123, 5, None)]],
        "auction price aside",
    ),
    "nexmark-q3": Case(
        [
            (
                [
                    auction(7, 1, 10_000),  # waits for its seller
                    person(2, 10_000),
                    person(3, 10_000, state="WA"),
                    auction(8, 3, 10_000),
                    auction(9, 2, 10_000, category=11),
                    (10_000, EMPTY),
                    bid(7, 10_000),
                ],
                0,
            ),
            ([person(1, 12_000, state="ID"), auction(10, 2, 70_000), auction(11, 2, 70_001)], 30_000),
            ([person(4, 30_000), person(5, 30_000, state="WA"), auction(12, 1, 30_001)], 30_000),
        ],
        [
            [(None, None, None, None, None, EMPTY)],
            [(1, "Ann", "Bend", "ID", 7, None), (2, "Ann", "Bend", "OR", 10, None)],
            [(1, "Ann", "Bend", "ID", 12, None)],
        ],
        "person name city state auction aside",
        late=1,
    ),
    "nexmark-q5": Case(
        [
            ([bid(1, 11_000)] * 2 + [bid(2, 11_000)] * 2 + [bid(3, 11_000), (11_500, CUT)], 0),
            ([bid(3, 13_000)], 12_000),
            ([bid(2, 11_000), bid(9, 1_000)], 20_000),  # the first is late for one of its windows, the other for all
        ],
        [
            [],
            [(12_000, 1, 2, None), (12_000, 2, 2, None)],
            [*((end, 2, 3, None) for end in (14_000, 16_000, 18_000, 20_000)), (20_000, None, 1, CUT)],
        ],
        "window_end auction count aside",
        late=1,
    ),
    "nexmark-q8": Case(
        [
            (
                [
                    person(1, 11_000),
                    auction(1, 1, 12_000),
                    auction(2, 1, 21_000),
                    auction(3, 2, 13_000),
                    person(3, 14_000, "Cy"),
                    (11_500, EMPTY),
                    (11_600, EMPTY),
                ],
                0,
            ),
            ([person(2, 15_000, "Bo")], 20_000),
            ([auction(4, 3, 19_999)], 30_000),
        ],
        [[], [(20_000, 1, "Ann", 1, None), (20_000, 2, "Bo", 1, None), (20_000, None, None, 2, EMPTY)], []],
        "window_end person name count aside",
        set_aside=2,
        late=1,
    ),
    "nexmark-q11": Case(
        [
            ([bid(1, 1_000), bid(1, 11_000), bid(1, 5_000, bidder=2), (2_000, CUT)], 0),
            ([bid(1, 14_000, bidder=2)], 15_000),
            ([bid(1, 5_000, bidder=3), bid(1, 6_000)], 24_000),  # of 5 s and 6 s, only the first is late
            ([bid(1, 14_500)], 50_000),  # near a session that is out already: another one
        ],
        [
            [],
            [(2_000, 12_000, None, 1, CUT)],
            [(1_000, 21_000, 1, 3, None), (5_000, 24_000, 2, 2, None)],
            [(14_500, 24_500, 1, 1, None)],
        ],
        "begin end bidder count aside",
        late=1,
    ),
}


def evidence(directory: Path, case: Case, results: list[Rows]) -> Evidence:
    log = EmbeddedLog.create(directory / "log", events.SCHEMA, 1)
    batches: list[Batch] = []
    with log.writer() as writer:
        for number, (records, watermark) in enumerate(case.batches):
            times = pa.array([at * 1000 for at, _ in records], events.SCHEMA.field(0).type)
            part = [times, pa.array([text for _, text in records])]
            writer.append(0, pa.RecordBatch.from_arrays(part, schema=events.SCHEMA))
            start, late = (batches[-1].end, batches[-1].watermark) if batches else ({0: 0}, 0)
            batches.append(Batch(number, start, {0: start[0] + len(records)}, watermark, late))
    names = case.columns.split()
    tables = [pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}) for rows in results]
    return Evidence(log, batches, tables.__getitem__)


def changed(case: Case, how: str) -> list[Rows]:
    """The results as they should be, or with one fault."""
    rows = [list(each) for each in case.right]
    first = next(number for number, each in enumerate(rows) if each)
    row = rows[first][0]
    if how == "twice":
        rows[first].append(row)
    elif how == "again":
        rows[-1].append(row)
    elif how == "lost":
        rows[first].remove(row)
    elif how == "made up":
        rows[-1].append((*row[:-1], "a line that is not in the log"))
    elif how == "too early":
        rows[first].remove(row)
        rows[first - 1].insert(0, row)  # the last batch's, where the first one has it
    return rows


@pytest.mark.parametrize("query", CASES)
@pytest.mark.parametrize(
    ("how", "out"),
    [("right", 0), ("twice", 1), ("again", 1), ("lost", -1), ("made up", 1), ("too early", 0)],
)
def test_recount(tmp_path: Path, query: str, how: str, out: int) -> None:
    case = CASES[query]
    verdict = jobs.make(query).check(evidence(tmp_path, case, changed(case, how)))
    assert verdict.equal is (how == "right")
    assert ("are exactly the log's" if how == "right" else "instead of") in verdict.sentence
    assert (verdict.set_aside, verdict.late) == (case.set_aside, case.late)
    assert verdict.records_in == sum(len(records) for records, _ in case.batches)
    assert sign(verdict.records_out - verdict.records_in) == out


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def test_the_first_fault_is_named(tmp_path: Path) -> None:
    case = CASES["nexmark-q2"]
    verdict = jobs.make("nexmark-q2").check(evidence(tmp_path, case, changed(case, "twice")))
    assert verdict.sentence == (
        "1 rows are missing or too many, of 3: batch 0 has (246, 1000, None) 2 times instead of 1"
    )
