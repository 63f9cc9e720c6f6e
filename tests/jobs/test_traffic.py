"""Traffic monitoring: its records, its results and its proof, without Spark."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.jobs import events, geo
from penstock.jobs.evidence import Evidence
from penstock.jobs.traffic import CENTRE, FIELDS, RADIUS_M, VEHICLES, Traffic, vehicles

EvidenceOf = Callable[[Sequence[Any]], Evidence]

TIMES = np.arange(20_000, dtype=np.int64) * 100 + 1_794_000_000_000_000
COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(("window_end", "vehicle", "aside", "class", "district"), pa.string()),
    **dict.fromkeys(("window_end", "speed_sum", "count"), pa.int64()),
    "average": pa.float64(),
}
SCHEMA = pa.schema(COLUMNS)
FIRST, OTHER = list(vehicles())[:2]


def event(vehicle: str, at: int, speed: int, north: float = 0.0) -> tuple[int, str]:
    place = {"latitude": CENTRE.latitude + north, "longitude": CENTRE.longitude, "direction": 90}
    return at, json.dumps({"vehicle": vehicle, "speed": speed, **place, "event_time": at})


def row(end: int, vehicle: str, total: int, count: int) -> dict[str, Any]:
    kind, district = vehicles().get(vehicle, (None, None))
    known = {"window_end": end, "vehicle": vehicle, "class": kind, "district": district}
    return {**known, "speed_sum": total, "count": count, "average": total / count}


def aside(end: int, line: str) -> dict[str, Any]:
    return {"window_end": end, "aside": line, "count": 1}


def test_the_same_seed_makes_the_same_records() -> None:
    first, again, other = (Traffic().generator(seed)(TIMES) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first.schema == Traffic.schema
    assert first.column("timestamp").cast(pa.int64()).to_pylist() == TIMES.tolist()


def test_records_are_vehicles_some_busier_some_inside_some_late_some_malformed() -> None:
    read = [events.read(str(line), FIELDS) for line in Traffic().generator(1)(TIMES).column("value").to_pylist()]
    fine = [one for one in read if one is not None]
    assert 0 < len(read) - len(fine) < 0.003 * len(read)
    (_, most), *_ = Counter(one["vehicle"] for one in fine).most_common()
    assert most > 5 * len(fine) / VEHICLES
    north, east = (np.array([one[which] for one in fine]) for which in ("latitude", "longitude"))
    far = geo.distances(north, east, CENTRE)
    assert 0.3 < np.mean(far <= RADIUS_M) < 0.45
    # Nobody is so near the edge that two libraries' sines could disagree.
    assert np.min(abs(far - RADIUS_M)) > 1e-3
    delays = TIMES[-1] // 1000 - np.array([one["event_time"] for one in fine])
    assert 0.0005 < np.mean(delays > 6_000) < 0.005


def test_a_vehicle_is_in_one_place_at_a_time_whatever_the_seed() -> None:
    places: dict[tuple[str, int], set[float]] = {}
    for seed in (1, 2):
        for line in Traffic().generator(seed)(TIMES).column("value").to_pylist():
            if one := events.read(str(line), FIELDS):
                places.setdefault((one["vehicle"], one["event_time"] // 2_000), set()).add(one["latitude"])
    assert all(len(found) == 1 for found in places.values())


LINES = [event(FIRST, 1_000, 30), event(FIRST, 9_999, 35), event(OTHER, 10_000, 50), event(FIRST, 5_000, 99, north=1.0)]
BROKEN = (12_000, '{"vehicle": "x", "speed": -1}')
RIGHT = [row(10_000, FIRST, 65, 2), row(20_000, OTHER, 50, 1), aside(20_000, BROKEN[1])]


@pytest.mark.parametrize(
    ("rows", "equal", "words"),
    [
        pytest.param(RIGHT, True, "all 3 counts per vehicle and window are exactly", id="right"),
        pytest.param([row(10_000, FIRST, 30, 1), *RIGHT], True, "all 3", id="a later row replaces an earlier one"),
        pytest.param([row(10_000, FIRST, 130, 4), *RIGHT[1:]], False, "counted 4 times, the log has 2", id="twice"),
        pytest.param(RIGHT[1:], False, "counted 0 times, the log has 2", id="lost"),
        pytest.param([*RIGHT, row(30_000, FIRST, 1, 1)], False, "counted 1 times, the log has 0", id="made up"),
        pytest.param(RIGHT[:2], False, "counted 0 times, the log has 1", id="a malformed one lost"),
        pytest.param([row(10_000, FIRST, 66, 2), *RIGHT[1:]], False, "and the log makes it (65, 32.5,", id="sum"),
        pytest.param([RIGHT[0] | {"average": 32.0}, *RIGHT[1:]], False, "the log makes it (65, 32.5,", id="average"),
        pytest.param([RIGHT[0] | {"class": "bus"}, *RIGHT[1:]], False, "the log makes it (65, 32.5, 'car'", id="class"),
    ],
)
def test_recount(evidence_of: EvidenceOf, rows: list[dict[str, Any]], equal: bool, words: str) -> None:
    verdict = Traffic().check(evidence_of([([*LINES, BROKEN], 0, pa.Table.from_pylist(rows, SCHEMA))]))
    assert verdict.equal is equal
    assert words in verdict.sentence
    assert (verdict.records_in, verdict.set_aside, verdict.late) == (5, 1, 0)
    assert not equal or verdict.records_out == 5


@pytest.mark.parametrize(
    ("watermark", "late"), [pytest.param(9_999, 0, id="still open"), pytest.param(10_000, 1, id="closed")]
)
def test_a_record_is_late_when_the_batch_before_closed_its_window(
    evidence_of: EvidenceOf, watermark: int, late: int
) -> None:
    first = pa.Table.from_pylist([row(10_000, FIRST, 30, 1)], SCHEMA)
    second = pa.Table.from_pylist([] if late else [row(10_000, FIRST, 65, 2)], SCHEMA)
    verdict = Traffic().check(evidence_of([(LINES[:1], watermark, first), (LINES[1:2], watermark, second)]))
    assert (verdict.equal, verdict.late, verdict.records_out) == (True, late, 2)


def test_a_vehicle_that_the_table_does_not_know_is_counted_all_the_same(evidence_of: EvidenceOf) -> None:
    rows = pa.Table.from_pylist([row(10_000, "stranger", 30, 1)], SCHEMA)
    assert Traffic().check(evidence_of([([event("stranger", 1_000, 30)], 0, rows)])).equal
