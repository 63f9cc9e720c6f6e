"""Taxi rides, the job of Gesscale (sec. V): each ride extended by the nearest of three sights of New York.

Stateless, and as much comes out as goes in. The paper takes the Euclidean distance of the coordinates; here it is the
distance on the globe, in metres.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.jobs import events, geo
from penstock.jobs.base import Generate, Job, Verdict
from penstock.jobs.evidence import Evidence
from penstock.jobs.geo import Point

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LANDMARKS = {
    "Empire State Building": Point(40.7484, -73.9857),
    "Statue of Liberty": Point(40.6892, -74.0445),
    "Metropolitan Museum": Point(40.7794, -73.9632),
}
PLACES = 4_096  # where rides begin and end
ZIPF = 0.6  # some places are busier than others
TAXIS = 4_096
# Where places are: how many of a hundred, around where, and how many degrees away most are.
DISTRICTS = (
    (45, Point(40.758, -73.982), 0.010),  # Midtown
    (20, Point(40.724, -73.998), 0.010),  # Downtown
    (20, Point(40.780, -73.962), 0.012),  # Upper East and West Side
    (8, Point(40.688, -73.982), 0.020),  # Brooklyn
    (4, Point(40.774, -73.873), 0.003),  # LaGuardia
    (3, Point(40.645, -73.784), 0.005),  # JFK
)
RIDE = (
    "ride_id bigint, taxi_id string, driver_id string, event_time bigint, passengers bigint, trip_seconds bigint, "
    "trip_miles double, fare double, pickup_latitude double, pickup_longitude double, dropoff_latitude double, "
    "dropoff_longitude double"
)
KINDS = {"bigint": int, "double": float, "string": str}
FIELDS = {name: KINDS[kind] for name, kind in (column.split() for column in RIDE.split(", "))}
ARROW: dict[type, pa.DataType] = {int: pa.int64(), float: pa.float64(), str: pa.string()}


@dataclass
class Taxi(Job):
    """Find the nearest landmark of each ride's pick-up, and how far it is; nothing is remembered."""

    name: ClassVar[str] = "taxi"
    summary: ClassVar[str] = "each taxi ride extended by the nearest of three landmarks and its distance; stateless"
    paper: ClassVar[str] = "Gesscale (ICCCN 2021), sec. V"
    operators: ClassVar[tuple[str, ...]] = ("read, parse and extend",)
    keys: ClassVar[str] = f"none; {PLACES:,} places by a Zipf law of {ZIPF}"
    state: ClassVar[str] = "none"
    schema: ClassVar[pa.Schema] = events.SCHEMA
    output_mode: ClassVar[str] = "append"
    bulky: ClassVar[bool] = True

    def generator(self, seed: int) -> Generate:
        """Rides between 4,096 places of New York, normally distributed around the middle of six districts (Midtown
        45 %, Downtown 20 %, Upper East and West Side 20 %, Brooklyn 8 %, LaGuardia 4 %, JFK 3 %), drawn by a Zipf law
        of 0.6 for pick-up and evenly for drop-off; of 4,096 taxis, evenly; 1 to 6 passengers, mostly one; a trip's
        length by a gamma law with a mean of 2.8 miles, from which fare and time follow. Passengers and length go with
        the place of the drop-off."""
        random = np.random.default_rng(seed)
        places = _places(random)
        ids = random.integers(0, 2**63, (2, TAXIS)).T.tolist()
        taxis = pa.array([f',"taxi_id":"{t:016x}","driver_id":"{d:016x}","event_time":' for t, d in ids])
        begin = pa.array(
            [f'{{"pickup_latitude":{lat:.6f},"pickup_longitude":{lon:.6f},"ride_id":' for lat, lon in places]
        )
        rest = pa.array(
            [
                f',"dropoff_latitude":{lat:.6f},"dropoff_longitude":{lon:.6f},"passengers":{people},'
                f'"trip_seconds":{int(miles * 330) + 60},"trip_miles":{miles:.2f},"fare":{2.5 + 2.5 * miles:.2f}}}'
                for (lat, lon), miles, people in zip(
                    places,
                    random.gamma(1.4, 2.0, PLACES).tolist(),
                    random.choice([1, 2, 3, 4, 5, 6], PLACES, p=[0.7, 0.14, 0.05, 0.02, 0.06, 0.03]).tolist(),
                    strict=True,
                )
            ]
        )
        draw = events.zipf(random, PLACES, ZIPF)

        def generate(timestamps: events.Ints) -> pa.RecordBatch:
            n = len(timestamps)
            taxi, end = (pool.take(random.integers(0, len(pool), n)) for pool in (taxis, rest))
            rides = pa.array(random.integers(0, 2**62, n))
            times = pa.array(events.event_times(random, timestamps))
            lines = events.lines(begin.take(draw(n)), rides, taxi, times, end)
            return events.records(random, timestamps, lines)

        return generate

    def build(self, records: DataFrame) -> DataFrame:
        """The haversines are compared, as they are cheaper; only the least of them is made a distance."""
        from pyspark.sql import functions as F  # noqa: N812

        parsed = events.parsed(
            records,
            RIDE,
            lambda e: (
                reduce(and_, (e[name].isNotNull() for name in FIELDS))
                & e.pickup_latitude.between(-90, 90)
                & e.pickup_longitude.between(-180, 180)
            ),
        )
        fine = F.col("aside").isNull()
        rides = parsed.select(*(F.when(fine, F.col(f"event.{name}")).alias(name) for name in FIELDS), "aside")
        place = F.col("pickup_latitude"), F.col("pickup_longitude")
        angles = rides.select("*", *(geo.haversine(*place, at).alias(name) for name, at in LANDMARKS.items()))
        near = angles.withColumn("near", F.least(*(F.col(name) for name in LANDMARKS)))
        *first, last = LANDMARKS
        landmark = F.when(~fine, None)
        for name in first:
            landmark = landmark.when(F.col(name) == F.col("near"), name)
        return near.select(
            *FIELDS, landmark.otherwise(last).alias("landmark"), geo.metres(F.col("near")).alias("metres"), "aside"
        )

    def check(self, evidence: Evidence) -> Verdict:
        """Extend every ride again with numpy, and compare batch by batch: all that a ride has exactly, its landmark
        exactly but where two are equally far, its distance within 1e-9 of itself."""
        set_aside = out = rides = 0
        fault = ""
        for batch, rows in evidence.rows():
            expected = _extended([str(line) for part in evidence.records(batch) for line in part["value"].to_pylist()])
            out += rows.num_rows
            set_aside += rows.num_rows - rows["aside"].null_count
            rides += expected["aside"].null_count
            if not fault and (what := _fault(expected, rows)):
                fault = f"batch {batch.number}: {what}"
        sentence = fault or f"all {rides} rides have their own landmark, and their distance within {geo.CLOSE}"
        return Verdict(not fault and out == evidence.records_in, evidence.records_in, out, sentence, set_aside)


def _places(random: np.random.Generator) -> list[tuple[float, float]]:
    shares, middles, widths = zip(*DISTRICTS, strict=True)
    district = random.choice(len(DISTRICTS), PLACES, p=np.array(shares) / 100)
    offsets = random.normal(size=(PLACES, 2)) * np.array(widths)[district, None]
    return [(lat, lon) for lat, lon in (np.array(middles)[district] + offsets).tolist()]


def _extended(lines: list[str]) -> pa.Table:
    """Rides, or lines that are none, with the distance to each landmark."""
    known = [(line, events.read(line, FIELDS)) for line in lines]
    rides: list[dict[str, Any]] = [
        {"aside": None, **ride} if ride and _on_earth(ride) else {"aside": line} for line, ride in known
    ]
    columns: dict[str, Any] = {
        name: pa.array([ride.get(name) for ride in rides], ARROW[kind])
        for name, kind in (FIELDS | {"aside": str}).items()
    }
    north, east = (columns[f"pickup_{which}"].to_numpy(zero_copy_only=False) for which in ("latitude", "longitude"))
    far = {name: pa.array(geo.distances(north, east, at)) for name, at in LANDMARKS.items()}
    return pa.table(columns | far)


def _on_earth(ride: dict[str, Any]) -> bool:
    return bool(abs(ride["pickup_latitude"]) <= 90 and abs(ride["pickup_longitude"]) <= 180)


def _fault(expected: pa.Table, rows: pa.Table) -> str:
    """What is wrong first, in words; nothing if all is right."""
    given = [*FIELDS, "aside"]
    order: list[Any] = [(name, "ascending") for name in given]
    expected, rows = expected.sort_by(order), rows.sort_by(order)
    if not expected.select(given).equals(rows.select(given)):
        logged, found = (Counter(map(str, table.select(given).to_pylist())) for table in (expected, rows))
        wrong = min(row for row in logged.keys() | found.keys() if logged[row] != found[row])
        return f"{wrong} came out {found[wrong]} times, the log has it {logged[wrong]} times"
    far = np.stack([expected[name].to_numpy() for name in LANDMARKS])
    fine = np.array(expected["aside"].is_null())
    names = np.array(rows["landmark"].to_pylist(), object)
    chosen = np.array([list(LANDMARKS).index(name) if name in LANDMARKS else -1 for name in names], int)
    told = rows["metres"].to_numpy()
    nearest = np.min(far, axis=0, where=fine, initial=np.inf)
    own = far[chosen, np.arange(len(chosen))]
    close = geo.CLOSE * nearest
    nothing = (chosen < 0) & np.isnan(told)
    right = np.where(fine, (chosen >= 0) & (abs(own - nearest) <= close) & (abs(told - nearest) <= close), nothing)
    if right.all():
        return ""
    first = int(np.flatnonzero(~right)[0])
    ride = expected["ride_id"][first].as_py()
    return (
        f"{np.sum(~right)} rides are wrong: {ride} has {names[first]} at {told[first]} m, nearest is {nearest[first]} m"
    )
