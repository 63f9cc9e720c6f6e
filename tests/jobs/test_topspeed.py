"""Top speed windowing: its records, its step, its results and its proof, without Spark."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.jobs import events, topspeed, topspeed_spark
from penstock.jobs import topspeed_step as step
from penstock.jobs.evidence import Evidence
from penstock.jobs.topspeed import CARS, FIELDS, TopSpeed

EvidenceOf = Callable[[Sequence[Any]], Evidence]
Report = tuple[str, int, int, int]  # car, time, distance, speed

TIMES = np.arange(20_000, dtype=np.int64) * 100 + 1_794_000_000_000_000
AWAY = step.ANEW_MS
COLUMNS: dict[str, pa.DataType] = dict.fromkeys(("car", "at", "distance", "top_speed", "records", "aside"), pa.int64())
SCHEMA = pa.schema(COLUMNS | {"car": pa.string(), "aside": pa.string()})


def test_the_same_seed_makes_the_same_records() -> None:
    first, again, other = (TopSpeed().generator(seed)(TIMES) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first.schema == TopSpeed.schema
    assert first.column("timestamp").cast(pa.int64()).to_pylist() == TIMES.tolist()


def test_records_are_cars_that_drive_as_fast_as_they_say() -> None:
    own: dict[str, list[tuple[int, int]]] = {}
    malformed = late = 0
    for seed in (1, 2):  # a load that is resumed has another seed, and the cars go on
        for at, line in zip(TIMES.tolist(), TopSpeed().generator(seed)(TIMES)["value"].to_pylist(), strict=True):
            if one := events.read(str(line), FIELDS):
                own.setdefault(one["car"], []).append((one["event_time"], one["distance"]))
                late += at // 1000 - one["event_time"] > 10_000
            else:
                malformed += 1
    assert 0 < malformed < 0.003 * 2 * len(TIMES)
    assert 0 < late < 0.003 * 2 * len(TIMES)
    assert len(own) > 0.95 * CARS
    assert max(map(len, own.values())) > 5 * 2 * len(TIMES) / CARS
    for reports in own.values():
        reports.sort()
        for (before, from_), (after, to) in pairwise(reports):
            assert -1 <= to - from_ <= 150 / 3600 * (after - before) + 1


def advanced(*batches: Sequence[Report], forget: int = step.NEVER) -> tuple[list[list[Any]], step.Cars]:
    """The results of each batch, with the state written down and read again in between."""
    cars, found = step.nobody(), []
    for batch in batches:
        car, *numbers = zip(*batch, strict=True) if batch else ((), (), (), ())
        time, distance, speed = (np.array(each, np.int64) for each in numbers)
        cars, results = step.advance(cars, np.array(car, object), time, distance, speed, forget)
        cars = step.unpacked(step.packed(cars))
        found.append(sorted(zip(*(column.tolist() for column in results), strict=True)))
    return found, cars


@pytest.mark.parametrize(
    ("batches", "results"),
    [
        pytest.param([[("a", 1_000, 0, 90)]], [[]], id="the first record only sets the mark"),
        pytest.param([[("a", 1_000, 0, 90), ("a", 2_000, 50, 80)]], [[]], id="50 m are not more than 50 m"),
        pytest.param(
            [[("a", 1_000, 0, 90), ("a", 2_000, 51, 80)]], [[("a", 2_000, 51, 90, 2)]], id="the top speed, not the last"
        ),
        pytest.param(
            [[("a", 2_000, 51, 80), ("a", 1_000, 0, 90)]], [[("a", 2_000, 51, 90, 2)]], id="taken in order of time"
        ),
        pytest.param(
            [[("a", 1_000, 0, 90)], [("a", 2_000, 51, 80)]], [[], [("a", 2_000, 51, 90, 2)]], id="over two batches"
        ),
        pytest.param(
            [[("a", 1_000, 0, 90)], [("b", 2_000, 99, 80)], [("a", 3_000, 60, 70)]],
            [[], [], [("a", 3_000, 60, 90, 2)]],
            id="cars apart",
        ),
        pytest.param(
            [[("a", 1_000, 0, 90)], [("a", 11_000, 60, 80)]], [[], [("a", 11_000, 60, 80, 2)]], id="10 s ago is over"
        ),
        pytest.param(
            [[("a", 1_001, 0, 90)], [("a", 11_000, 60, 80)]], [[], [("a", 11_000, 60, 90, 2)]], id="just within 10 s"
        ),
        pytest.param(
            [[("a", t * 1_000, t * 30, 50 + t) for t in range(8)]],
            [[("a", 2_000, 60, 52, 3), ("a", 4_000, 120, 54, 2), ("a", 6_000, 180, 56, 2)]],
            id="several in a batch",
        ),
        pytest.param(
            [[("a", 20_000, 0, 10)], [("a", 5_000, 60, 99)], [("a", 21_000, 120, 20)]],
            [[], [("a", 5_000, 60, 10, 2)], [("a", 21_000, 120, 20, 1)]],
            id="an old record moves the mark, but its speed is over",
        ),
        pytest.param(
            [[("a", 0, 0, 99)], [("a", AWAY, 60, 10)], [("a", 2 * AWAY + 1, 900, 10), ("a", 2 * AWAY + 2, 951, 9)]],
            [[], [("a", AWAY, 60, 10, 2)], [("a", 2 * AWAY + 2, 951, 10, 2)]],
            id="who was away too long starts anew",
        ),
        pytest.param([[]], [[]], id="nothing"),
    ],
)
def test_step(batches: list[list[Report]], results: list[list[Any]]) -> None:
    assert advanced(*batches)[0] == results


REPORTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 40_000), st.integers(-50, 400), st.integers(0, 20)), max_size=25
)


@given(st.lists(st.tuples(st.integers(0, 700_000), REPORTS), max_size=6))
@settings(max_examples=60, deadline=None)
def test_the_step_is_what_the_recount_does_record_by_record(told: list[tuple[int, list[Report]]]) -> None:
    cars: dict[str, Any] = {}
    expected, batches, clock = [], [], 0
    for wait, reports in told:
        clock += wait
        batches.append([(car, clock + time, distance, speed) for car, time, distance, speed in reports])
        rows = []
        for car, *report in sorted(batches[-1]):
            rows += [row[:5] for row in cars.setdefault(car, topspeed._Car()).report(car, *report)]
        expected.append(sorted(rows))
    found, known = advanced(*batches)
    assert found == expected
    state = {car: rest for car, *rest in zip(*(each.tolist() for each in known[:4]), strict=True)}
    assert state == {car: [own.mark, own.newest, own.records] for car, own in cars.items()}


def test_state_is_bounded() -> None:
    reports = [("a", t, t // 100, t * 7919 % 200) for t in range(0, 100_000, 10)]
    _, cars = advanced(reports, reports)
    assert len(cars.time) < 200  # of 2,000 records in the last 10 s: one per speed, at most
    assert advanced(reports, [("b", 10**6, 0, 1)], forget=10**6)[1].car.tolist() == ["b"]


def test_a_bucket_gives_back_malformed_lines_as_they_came() -> None:
    frame = pd.DataFrame(
        {
            "car": ["a", None, "a"],
            "event_time": [1_000, None, 2_000],
            "distance": [0, None, 60],
            "speed": [9, None, 8],
            "aside": [None, "oops", None],
        }
    )
    out = pa.Table.from_pandas(topspeed_spark.batch(frame), SCHEMA, preserve_index=False)
    assert out.to_pylist() == [row("a", 2_000, 60, 9, 2), aside("oops")]


def held(value: tuple[bytes] | None, watermark: int, *, timed_out: bool = False) -> GroupState:
    """Spark's own, as a worker gets it."""
    known = value is not None
    row_of = Row() if value is None else Row(cars=value[0])
    types = StructType([StructField("cars", BinaryType())])
    return GroupState(row_of, 0, watermark, "EventTimeTimeout", timed_out, True, known, False, False, -1, b"", types)


def test_a_bucket_over_three_batches_and_its_end() -> None:
    columns = ["car", "event_time", "distance", "speed", "aside"]
    told = [("a", 1_000, 0, 90, None)], [("a", 2_000, 60, 80, None)], [("b", 2 * AWAY, 0, 1, None)]
    stored: tuple[bytes] | None = None
    rows, known, ends = [], [], []
    for watermark, batch in zip((0, 1_500, AWAY + 2_001), told, strict=True):
        state = held(stored, watermark)
        for out in topspeed_spark.stream((1,), iter([pd.DataFrame(batch, columns=columns)]), state):
            rows += pa.Table.from_pandas(out, SCHEMA, preserve_index=False).to_pylist()
        stored = state.get
        known.append(step.unpacked(stored[0]).car.tolist())
        ends.append(json.loads(state.json())["timeoutTimestamp"])
    assert rows == [row("a", 2_000, 60, 90, 2)]
    assert known == [["a"], ["a"], ["b"]]
    assert ends == [AWAY + 1_001, AWAY + 2_001, 3 * AWAY + 1]
    over = held(stored, ends[-1] + 1, timed_out=True)
    assert list(topspeed_spark.stream((1,), iter([]), over)) == []
    assert not over.exists


def report(car: str, at: int, distance: int, speed: int) -> tuple[int, str]:
    return at, json.dumps({"car": car, "speed": speed, "distance": distance, "event_time": at})


def row(*values: Any) -> dict[str, Any]:
    return dict(zip(SCHEMA.names, (*values, None), strict=True))


def aside(line: str) -> dict[str, Any]:
    return dict.fromkeys(SCHEMA.names) | {"aside": line}


LINES = [report("a", 1_000, 0, 50), report("b", 1_500, 0, 70), report("a", 3_000, 60, 40), (3_500, "oops")]
MORE = [report("a", 2_000, 40, 99), report("a", 9_000, 120, 30), report("b", 9_500, 20, 10)]
FIRST = [row("a", 3_000, 60, 50, 2), aside("oops")]
SECOND = [row("a", 9_000, 120, 99, 2)]


@pytest.mark.parametrize(
    ("first", "second", "equal", "words"),
    [
        pytest.param(FIRST, SECOND, True, "all 3 results are exactly the log's", id="right"),
        pytest.param(FIRST, [*SECOND, FIRST[0]], False, "came 1 times, the log makes it 0", id="twice, in two batches"),
        pytest.param([*FIRST, FIRST[0]], SECOND, False, "came 2 times, the log makes it 1", id="twice, in one"),
        pytest.param(FIRST, [], False, "batch 1 has 1 wrong results", id="lost"),
        pytest.param(FIRST[:1], SECOND, False, "came 0 times, the log makes it 1", id="a malformed one lost"),
        pytest.param([*FIRST, row("c", 1, 1, 1, 1)], SECOND, False, "batch 0 has 1 wrong", id="made up"),
        pytest.param(FIRST, [row("a", 9_000, 120, 40, 2)], False, "batch 1 has 2 wrong", id="not the top speed"),
        pytest.param(FIRST, [row("a", 9_000, 120, 99, 3)], False, "batch 1 has 2 wrong", id="a record twice"),
    ],
)
def test_recount(evidence_of: EvidenceOf, first: list[Any], second: list[Any], equal: bool, words: str) -> None:
    made = [pa.Table.from_pylist(rows, SCHEMA) for rows in (first, second)]
    verdict = TopSpeed().check(evidence_of([(LINES, 0, made[0]), (MORE, 0, made[1])]))
    assert verdict.equal is equal
    assert words in verdict.sentence
    assert (verdict.records_in, verdict.late) == (7, 0)
    assert verdict.set_aside == sum(each["aside"] is not None for each in first)
    assert not equal or verdict.records_out == 7


@pytest.mark.parametrize(
    ("watermark", "top", "count", "late"),
    [pytest.param(1_999, 99, 2, 0, id="in time"), pytest.param(2_000, 50, 1, 1, id="late")],
)
def test_a_record_up_to_the_watermark_of_the_batch_before_is_late(
    evidence_of: EvidenceOf, watermark: int, top: int, count: int, late: int
) -> None:
    second = pa.Table.from_pylist([row("a", 9_000, 120, top, count)], SCHEMA)
    batches = [(LINES, watermark, pa.Table.from_pylist(FIRST, SCHEMA)), (MORE, watermark, second)]
    verdict = TopSpeed().check(evidence_of(batches))
    assert (verdict.equal, verdict.late, verdict.records_out) == (True, late, 7)


@pytest.mark.parametrize(
    "wrong", [{"speed": -1}, {"speed": 1_001}, {"speed": 50.5}, {"distance": 10**13}, {"event_time": 0}, {"car": None}]
)
def test_what_no_car_would_say_is_set_aside(evidence_of: EvidenceOf, wrong: dict[str, Any]) -> None:
    line = json.dumps({"car": "a", "speed": 1, "distance": 1, "event_time": 5} | wrong)
    verdict = TopSpeed().check(evidence_of([([(5, line)], 0, pa.Table.from_pylist([aside(line)], SCHEMA))]))
    assert (verdict.equal, verdict.set_aside) == (True, 1)


def test_constants_of_job_and_step_are_the_same() -> None:
    assert (step.WINDOW_MS, step.EVERY_M) == (topspeed.WINDOW_S * 1000, topspeed.EVERY_M)
    assert step.ANEW_MS == topspeed.AWAY_S * 1000
    assert Counter(SCHEMA.names) == Counter(field.split()[0] for field in topspeed_spark.RESULTS.split(", "))
