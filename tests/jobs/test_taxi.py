"""Taxi: its records, its results and its proof, without Spark."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.jobs import events
from penstock.jobs.evidence import Evidence
from penstock.jobs.taxi import ARROW, FIELDS, LANDMARKS, Taxi

EvidenceOf = Callable[[Sequence[Any]], Evidence]

TIMES = np.arange(20_000, dtype=np.int64) * 100 + 1_794_000_000_000_000
COLUMNS: dict[str, pa.DataType] = {name: ARROW[kind] for name, kind in FIELDS.items()}
SCHEMA = pa.schema(COLUMNS | {"landmark": pa.string(), "metres": pa.float64(), "aside": pa.string()})
RIDE: dict[str, Any] = {
    "ride_id": 1,
    "taxi_id": "t",
    "driver_id": "d",
    "event_time": 1_794_000_000_000,
    "passengers": 1,
    "trip_seconds": 300,
    "trip_miles": 1.5,
    "fare": 6.25,
    "pickup_latitude": 40.7484,
    "pickup_longitude": -73.9857,
    "dropoff_latitude": 40.7,
    "dropoff_longitude": -74,  # a number may come without a fraction
}
# As far north of the landmark as half a kilometre is: 500 m / 6,371 km, in degrees.
NORTH = RIDE | {"ride_id": 2, "pickup_latitude": 40.7484 + float(np.rad2deg(500 / 6_371_000))}
NOWHERE = json.dumps(RIDE | {"pickup_latitude": 91.0})
EMPIRE, LIBERTY, _ = LANDMARKS


def row(ride: dict[str, Any], landmark: str, metres: float) -> dict[str, Any]:
    return {**ride, "landmark": landmark, "metres": metres, "aside": None}


AT, OFF, BAD = row(RIDE, EMPIRE, 0.0), row(NORTH, EMPIRE, 500.0 + 1e-8), {"aside": NOWHERE}


def test_the_same_seed_makes_the_same_records() -> None:
    first, again, other = (Taxi().generator(seed)(TIMES) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first.schema == Taxi.schema
    assert first.column("timestamp").cast(pa.int64()).to_pylist() == TIMES.tolist()


def test_records_are_rides_between_busy_places_and_some_are_malformed() -> None:
    rides = [events.read(str(line), FIELDS) for line in Taxi().generator(1)(TIMES).column("value").to_pylist()]
    fine = [ride for ride in rides if ride is not None]
    assert 0 < len(rides) - len(fine) < 0.003 * len(rides)
    assert all(set(ride) == set(FIELDS) for ride in fine)
    (_, most), *_ = Counter(ride["pickup_latitude"] for ride in fine).most_common()
    assert most > 10 * len(fine) / 4_096
    assert all(40.4 < ride["pickup_latitude"] < 41 and -74.3 < ride["pickup_longitude"] < -73.6 for ride in fine)


@pytest.mark.parametrize(
    ("rows", "equal", "words"),
    [
        pytest.param([AT, OFF, BAD], True, "all 2 rides", id="right"),
        pytest.param([BAD, OFF, AT], True, "all 2 rides", id="in another order"),
        pytest.param([AT, AT, OFF, BAD], False, "came out 2 times, the log has it 1 times", id="twice"),
        pytest.param([AT, OFF], False, "came out 0 times, the log has it 1 times", id="lost"),
        pytest.param([AT, OFF, BAD, {"aside": "x"}], False, "came out 1 times, the log has it 0 times", id="made up"),
        pytest.param([AT, {**OFF, "fare": 6.26}, BAD], False, "came out", id="another fare"),
        pytest.param([AT, {**OFF, "landmark": LIBERTY}, BAD], False, "2 has Statue of Liberty", id="not the nearest"),
        pytest.param([AT, {**OFF, "landmark": None}, BAD], False, "2 has None", id="no landmark"),
        pytest.param(
            [AT, {**OFF, "metres": 500.001}, BAD],
            False,
            "2 has Empire State Building at 500.001 m",
            id="another distance",
        ),
        pytest.param([AT, {**OFF, "metres": None}, BAD], False, "2 has Empire", id="no distance"),
        pytest.param([AT, OFF, {**BAD, "landmark": EMPIRE}], False, "1 rides are wrong", id="a landmark of nothing"),
    ],
)
def test_recount(evidence_of: EvidenceOf, rows: list[dict[str, Any]], equal: bool, words: str) -> None:
    lines = [(5, json.dumps(RIDE)), (6, NOWHERE), (7, json.dumps(NORTH))]
    verdict = Taxi().check(evidence_of([(lines, 0, pa.Table.from_pylist(rows, SCHEMA))]))
    assert verdict.equal is equal
    assert words in verdict.sentence
    assert (verdict.records_in, verdict.records_out, verdict.late) == (3, len(rows), 0)
    assert verdict.set_aside == sum(each["aside"] is not None for each in rows)


def test_a_ride_in_another_batch_is_a_fault_of_both(evidence_of: EvidenceOf) -> None:
    none, both = pa.Table.from_pylist([], SCHEMA), pa.Table.from_pylist([AT, OFF], SCHEMA)
    verdict = Taxi().check(evidence_of([([(5, json.dumps(RIDE))], 0, none), ([(6, json.dumps(NORTH))], 0, both)]))
    assert verdict.equal is False
    assert verdict.sentence.startswith("batch 0: ")


def test_a_batch_without_records(evidence_of: EvidenceOf) -> None:
    none, one = pa.Table.from_pylist([], SCHEMA), pa.Table.from_pylist([AT], SCHEMA)
    assert Taxi().check(evidence_of([([(5, json.dumps(RIDE))], 0, one), ([], 0, none)])).equal


@pytest.mark.parametrize("landmark", ["here", "there"])
def test_either_landmark_is_right_where_both_are_as_near(
    evidence_of: EvidenceOf, landmark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = LANDMARKS[EMPIRE]
    monkeypatch.setattr("penstock.jobs.taxi.LANDMARKS", {"here": place, "there": place})
    rows = pa.Table.from_pylist([row(RIDE, landmark, 0.0)], SCHEMA)
    assert Taxi().check(evidence_of([([(5, json.dumps(RIDE))], 0, rows)])).equal
