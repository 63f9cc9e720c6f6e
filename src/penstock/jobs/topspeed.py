"""Top Speed Windowing, Flink's example as in Phoebe (sec. IV): each car's top speed of the last 10 s, every 50 m.

Flink's global window with a time evictor and a delta trigger: a car's first record sets a mark; the first one more than
50 m on makes a result, which is the highest speed of the 10 s up to the car's newest record, and sets the mark anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.jobs import events
from penstock.jobs.base import Generate, Job, Verdict
from penstock.jobs.evidence import Batch, Evidence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CARS = 2_000
ZIPF = 0.5  # some cars report more often than others
WINDOW_S = 10
EVERY_M = 50
AWAY_S = 600  # a car that was away for longer starts anew
BUCKETS = 64  # groups of cars: one call of Python for each, in every batch
ROUND_S = 1_024  # after so many seconds a car's speeds begin again
ZERO_S = 1_767_225_600  # when every car stood at 0 m: 2026-01-01
FIELDS = {"car": str, "speed": int, "distance": int, "event_time": int}
MOST_SPEED, MOST_DISTANCE = 1_000, 10**12  # beyond these a record is malformed: no car drives that

Row = tuple[str | None, int | None, int | None, int | None, int | None, str | None]


@dataclass
class TopSpeed(Job):
    """Follow every car's last 10 s in state; cars are kept in buckets, so that Python handles many in one call."""

    name: ClassVar[str] = "topspeed"
    summary: ClassVar[str] = "top speed of each car's last 10 s, every 50 m it drives; Top Speed Windowing"
    paper: ClassVar[str] = "Phoebe (ICWS 2022), sec. IV; Apache Flink's TopSpeedWindowing"
    operators: ClassVar[tuple[str, ...]] = ("read and parse", "follow the cars")
    keys: ClassVar[str] = f"{CARS:,} cars by a Zipf law of {ZIPF}, in {BUCKETS} buckets"
    state: ClassVar[str] = f"per car its mark and the fastest records of {WINDOW_S} s; gone {AWAY_S} s after its last"
    schema: ClassVar[pa.Schema] = events.SCHEMA
    output_mode: ClassVar[str] = "append"

    def generator(self, seed: int) -> Generate:
        """Cars by a Zipf law. Every car goes through the same 1,024 s of speeds (a bounded random walk, 0 to 150 km/h),
        each beginning elsewhere; its distance is what these speeds amount to. They depend on the time alone, not on
        the seed, so that a load that is resumed finds each car where it should be. Reported speeds are up to 3 km/h
        off."""
        random = np.random.default_rng(seed)
        speeds, driven = _round()
        begin = np.arange(CARS) * 7 % ROUND_S
        draw, order = events.zipf(random, CARS, ZIPF), random.permutation(CARS)
        head = pa.array(
            [f'{{"car":"B-{chr(65 + n % 26)}{chr(65 + n // 26 % 26)} {n:04}","speed":' for n in range(CARS)]
        )
        texts = pa.array([f'{speed},"distance":' for speed in range(200)])

        def generate(timestamps: events.Ints) -> pa.RecordBatch:
            n = len(timestamps)
            cars, times = order[draw(n)], events.event_times(random, timestamps)
            seconds, ms = np.divmod(times, 1000)
            rounds, second = np.divmod(seconds - ZERO_S + begin[cars], ROUND_S)
            speed = speeds[second]
            # km/h times ms; 3,600 of these are a metre.
            distance = ((rounds * driven[-1] + driven[second]) * 1000 + speed * ms) // 3600
            told = np.maximum(speed + random.integers(-3, 4, n), 0)
            lines = events.lines(
                head.take(cars),
                texts.take(told),
                pa.array(distance),
                ',"event_time":',
                pa.array(times),
                "}",
            )
            return events.records(random, timestamps, lines)

        return generate

    def build(self, records: DataFrame) -> DataFrame:
        """The malformed go along in the buckets, each in that of its line, and come out as they are."""
        from pyspark import cloudpickle
        from pyspark.sql import functions as F  # noqa: N812

        from penstock.jobs import topspeed_spark, topspeed_step

        for module in (topspeed_spark, topspeed_step):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        parsed = events.parsed(
            records,
            "car string, speed bigint, distance bigint, event_time bigint",
            lambda e: (
                e.car.isNotNull()
                & e.speed.between(0, MOST_SPEED)
                & e.distance.between(-MOST_DISTANCE, MOST_DISTANCE)
                & (e.event_time > 0)
            ),
        )
        timed = events.event_time(parsed.select("timestamp", "aside", "event.*"), "event_time")
        bucket = F.pmod(F.xxhash64(F.coalesce("aside", "car")), F.lit(BUCKETS)).cast("int")
        buckets = timed.select(bucket.alias("bucket"), "at", "car", "speed", "distance", "event_time", "aside")
        grouped = buckets.groupBy("bucket")
        if not records.isStreaming:
            return grouped.applyInPandas(topspeed_spark.batch, topspeed_spark.RESULTS)
        return grouped.applyInPandasWithState(
            topspeed_spark.stream, topspeed_spark.RESULTS, topspeed_spark.STATE, "append", "EventTimeTimeout"
        )

    def check(self, evidence: Evidence) -> Verdict:
        """Follow every car again, record by record in plain Python, and demand each batch's rows exactly."""
        cars: defaultdict[str, _Car] = defaultdict(_Car)
        late = set_aside = out = results = 0
        fault = ""
        for batch, rows in evidence.rows():
            own, malformed, missed = _read(evidence, batch)
            late += missed
            expected: Counter[Row] = Counter((None, None, None, None, None, line) for line in malformed)
            for car, reports in own.items():
                for time, distance, speed in sorted(reports):
                    expected.update(cars[car].report(car, time, distance, speed))
            found: Counter[Row] = Counter(zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True))
            results += len(expected)
            set_aside += sum(times for row, times in found.items() if row[-1] is not None)
            out += sum(times * (row[4] or 0) for row, times in found.items())
            wrong = sorted((row for row in expected.keys() | found.keys() if expected[row] != found[row]), key=str)
            if wrong and not fault:
                row = wrong[0]
                fault = (
                    f"batch {batch.number} has {len(wrong)} wrong results: {row} came {found[row]} times, "
                    f"the log makes it {expected[row]}"
                )
        out += late + set_aside + sum(car.records + car.given_up for car in cars.values())
        sentence = fault or f"all {results} results are exactly the log's"
        return Verdict(not fault and out == evidence.records_in, evidence.records_in, out, sentence, set_aside, late)


def _round() -> tuple[events.Ints, events.Ints]:
    """The speed of each second of a round, in km/h, and what was driven before it, in km/h times seconds."""
    random = np.random.default_rng(0)
    speeds, speed = [], 50
    for change in random.integers(-8, 9, ROUND_S).tolist():
        speed = min(max(speed + change, 0), 150)
        speeds.append(speed)
    return np.array(speeds), np.cumsum([0, *speeds])


@dataclass(slots=True)
class _Car:
    """One car, for the recount: everything it reported in the last 10 s."""

    mark: int = 0
    newest: int | None = None
    records: int = 0
    given_up: int = 0  # records without a result when it started anew
    held: list[tuple[int, int]] = field(default_factory=list)

    def report(self, car: str, time: int, distance: int, speed: int) -> Iterator[Row]:
        if self.newest is None or time - self.newest > AWAY_S * 1000:
            self.given_up += self.records
            self.mark, self.newest, self.records, self.held = distance, time, 0, []
        self.newest = max(self.newest, time)
        self.records += 1
        self.held.append((time, speed))
        if distance - self.mark > EVERY_M:
            self.held = [(at, v) for at, v in self.held if at > self.newest - WINDOW_S * 1000]
            yield car, time, distance, max(v for _, v in self.held), self.records, None
            self.mark, self.records = distance, 0


def _read(evidence: Evidence, batch: Batch) -> tuple[dict[str, list[tuple[int, int, int]]], list[str], int]:
    """A batch's reports per car, its malformed lines, and how many records came too late."""
    own: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    malformed: list[str] = []
    late = 0
    for part in evidence.records(batch):
        arrivals: list[Any] = part.column("timestamp").cast(pa.int64()).to_pylist()
        lines: list[Any] = part.column("value").to_pylist()
        for arrival, line in zip(arrivals, lines, strict=True):
            event = events.read(line, FIELDS)
            if event is not None and not (
                0 <= event["speed"] <= MOST_SPEED
                and abs(event["distance"]) <= MOST_DISTANCE
                and event["event_time"] > 0
            ):
                event = None
            at = arrival if event is None else event["event_time"] * 1000
            if at <= batch.late * 1000:
                late += 1
            elif event is None:
                malformed.append(line)
            else:
                own[event["car"]].append((event["event_time"], event["distance"], event["speed"]))
    return own, malformed, late
