"""Traffic monitoring, the job of Daedalus (sec. 4.1.3): the speed of vehicles around a point, in windows of 10 s.

JSON events of vehicles; those within a radius only; averaged per vehicle and window of event time; then enriched with
what a static table knows of the vehicle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.jobs import events, geo
from penstock.jobs.base import Generate, Job, Verdict
from penstock.jobs.evidence import Batch, Evidence
from penstock.jobs.geo import Point
from penstock.jobs.recount import Key, Windows, arrived

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VEHICLES = 2_000
ZIPF = 0.5  # some vehicles report more often than others
CENTRE = Point(52.5163, 13.3777)  # Berlin, Brandenburg Gate
RADIUS_M = 3_000.0
WINDOW_S = 10
ROUTE = 4_096  # places along a closed route that all vehicles drive
STEP_S = 2  # from one to the next
FIELDS = {"vehicle": str, "latitude": float, "longitude": float, "speed": int, "event_time": int}
MOST_SPEED = 1_000
CLASSES = ("car", "car", "car", "car", "car", "van", "van", "lorry", "bus", "motorcycle")


def vehicles() -> dict[str, tuple[str, str]]:
    """Class and district of each vehicle: the table that the job joins with."""
    return {f"vehicle-{n:05}": (CLASSES[n % 10], f"district-{n * 7 % 12 + 1:02}") for n in range(VEHICLES)}


@dataclass
class Traffic(Job):
    """Average vehicles' speeds within a radius per window of event time; sums and counts are whole, so it is exact."""

    name: ClassVar[str] = "traffic"
    summary: ClassVar[str] = "average speed per vehicle within 3 km of a point, in windows of 10 s of event time"
    paper: ClassVar[str] = "Daedalus (ICPE 2024), sec. 4.1.3"
    operators: ClassVar[tuple[str, ...]] = ("read, parse and filter", "average and join")
    keys: ClassVar[str] = f"{VEHICLES:,} vehicles by a Zipf law of {ZIPF}"
    state: ClassVar[str] = "a sum and a count per vehicle and open window"
    schema: ClassVar[pa.Schema] = events.SCHEMA

    def generator(self, seed: int) -> Generate:
        """Vehicles by a Zipf law. All drive the same closed route of 4,096 places, 2 s from one to the next, each
        beginning elsewhere; it winds between 0.5 and 7.5 km from the centre, and about two fifths of it are within the
        radius. Speeds are of the place, 10 to 110 km/h and slower near the centre, up to 5 km/h off. Where a vehicle is
        depends on the time alone, not on the seed."""
        random = np.random.default_rng(seed)
        latitudes, longitudes, headings = _route()
        pace = (10 + np.clip(geo.distances(latitudes, longitudes, CENTRE) / 75, 0, 95)).astype(np.int64)
        begin = np.arange(VEHICLES) * 613 % ROUTE
        draw, order = events.zipf(random, VEHICLES, ZIPF), random.permutation(VEHICLES)
        head = pa.array([f'{{"vehicle":"{vehicle}","speed":' for vehicle in vehicles()])
        speeds = pa.array([str(speed) for speed in range(128)])
        places = pa.array(
            [
                f',"latitude":{lat:.5f},"longitude":{lon:.5f},"direction":{heading},"event_time":'
                for lat, lon, heading in zip(latitudes.tolist(), longitudes.tolist(), headings.tolist(), strict=True)
            ]
        )

        def generate(timestamps: events.Ints) -> pa.RecordBatch:
            n = len(timestamps)
            who, times = order[draw(n)], events.event_times(random, timestamps)
            place = (times // (STEP_S * 1000) + begin[who]) % ROUTE
            speed = np.maximum(pace[place] + random.integers(-5, 6, n), 0)
            pick = [pool.take(index) for pool, index in ((head, who), (speeds, speed), (places, place))]
            return events.records(random, timestamps, events.lines(*pick, pa.array(times), "}"))

        return generate

    def build(self, records: DataFrame) -> DataFrame:
        """The table is joined after the average: to a row per vehicle and window, not to every event."""
        from pyspark.sql import functions as F  # noqa: N812

        parsed = events.parsed(
            records,
            "vehicle string, latitude double, longitude double, speed bigint, event_time bigint",
            lambda e: (
                e.vehicle.isNotNull()
                & e.latitude.between(-90, 90)
                & e.longitude.between(-180, 180)
                & e.speed.between(0, MOST_SPEED)
                & (e.event_time > 0)
            ),
        )
        far = geo.metres(geo.haversine(F.col("event.latitude"), F.col("event.longitude"), CENTRE))
        fine = F.col("aside").isNull()
        near = parsed.where(~fine | (far <= RADIUS_M)).select(
            "timestamp",
            "aside",
            F.when(fine, F.col("event.vehicle")).alias("vehicle"),
            F.when(fine, F.col("event.speed")).alias("speed"),
            "event.event_time",
        )
        table = records.sparkSession.createDataFrame(
            [(vehicle, *known) for vehicle, known in vehicles().items()],
            "vehicle string, class string, district string",
        )
        sums = (
            events.event_time(near, "event_time")
            .groupBy(F.window("at", f"{WINDOW_S} seconds"), "vehicle", "aside")
            .agg(F.sum("speed").alias("speed_sum"), F.count("*").alias("count"))
        )
        return sums.join(F.broadcast(table), "vehicle", "left").select(
            F.unix_millis("window.end").alias("window_end"),
            "vehicle",
            "aside",
            "class",
            "district",
            "speed_sum",
            "count",
            (F.col("speed_sum") / F.col("count")).alias("average"),
        )

    def check(self, evidence: Evidence) -> Verdict:
        """Add up every event again, in plain Python, but those that came too late for their window."""
        windows, sums = Windows(WINDOW_S * 1000), Counter[Key]()
        found: dict[Key, int] = {}
        told: dict[Key, tuple[Any, ...]] = {}
        for batch, rows in evidence.rows():
            _add_up(windows, sums, batch, evidence)
            # A later batch's row replaces the earlier one.
            for row in rows.to_pylist():
                key = row["window_end"], row["vehicle"], row["aside"]
                found[key] = row["count"]
                told[key] = row["speed_sum"], row["average"], row["class"], row["district"]
        verdict = windows.compare(found, evidence.records_in, "vehicle and window")
        if not verdict.equal:
            return verdict
        table = vehicles()
        for key, count in windows.expected.items():
            right = (None, None) if key[2] is not None else (sums[key], sums[key] / count)
            wanted = (*right, *table.get(key[1], (None, None)))
            if told[key] != wanted:
                sentence = f"the count is right, but {key} has {told[key]}, and the log makes it {wanted}"
                return Verdict(
                    False, verdict.records_in, verdict.records_out, sentence, verdict.set_aside, verdict.late
                )
        return verdict


def _add_up(windows: Windows, sums: Counter[Key], batch: Batch, evidence: Evidence) -> None:
    """A batch's events; the distances of all its places are measured in one go."""
    for part in evidence.records(batch):
        lines = list(arrived(part))
        known = [event if (event := events.read(line, FIELDS)) and _plausible(event) else None for _, line in lines]
        places = np.array([(e["latitude"], e["longitude"]) if e else (0.0, 0.0) for e in known]).reshape(-1, 2)
        inside = geo.distances(places[:, 0], places[:, 1], CENTRE) <= RADIUS_M
        for (arrival, line), event, near in zip(lines, known, inside.tolist(), strict=True):
            if event is None:
                windows.set_aside += windows.count(arrival, None, batch.late, aside=line)
            elif not near:
                windows.skipped += 1
            elif windows.count(event["event_time"], event["vehicle"], batch.late):
                end = (event["event_time"] // windows.size + 1) * windows.size
                sums[end, event["vehicle"], None] += event["speed"]


def _plausible(event: dict[str, Any]) -> bool:
    return bool(
        abs(event["latitude"]) <= 90
        and abs(event["longitude"]) <= 180
        and 0 <= event["speed"] <= MOST_SPEED
        and event["event_time"] > 0
    )


def _route() -> tuple[geo.Floats, geo.Floats, events.Ints]:
    """Latitudes and longitudes of the places, and the direction in degrees in which the next one is."""
    turn = np.linspace(0, 2 * np.pi, ROUTE, endpoint=False)
    far = (4_000 + 2_600 * np.sin(5 * turn) + 900 * np.sin(17 * turn + 1)) / geo.RADIUS_M
    latitudes = CENTRE.latitude + np.rad2deg(far * np.cos(turn))
    longitudes = CENTRE.longitude + np.rad2deg(far * np.sin(turn) / np.cos(np.deg2rad(CENTRE.latitude)))
    north, east = np.roll(latitudes, -1) - latitudes, np.roll(longitudes, -1) - longitudes
    headings = np.rad2deg(np.arctan2(east * np.cos(np.deg2rad(CENTRE.latitude)), north)) % 360
    return latitudes, longitudes, headings.astype(np.int64)
