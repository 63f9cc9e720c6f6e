"""What each setting of a job's query is worth: one changed at a time, against how Penstock has it.

    python benchmarks/tuning.py [--only PART …] [--records 2000000] [--rounds 2] [--json]

On local[2], at saturation, in turns, the best of `rounds`:
store: where state is kept. partitions: of state. batch: records in one. arrow: records handed to Python at once.
api: Top Speed Windowing in buckets of cars or car by car, and over Spark's newer API for state (needs protobuf).
progress: what writing down a batch costs, and whether Spark would let it happen on the side.
trigger: a steady load instead; CPU seconds per million records, and the p95 latency.
On a real cluster of four bounded workers: locality: how long state tasks wait for the executor they know.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from saturated import CORES, load, session, streamed, tell

from penstock import jobs
from penstock.core import Observation
from penstock.experiment import capacity, spec
from penstock.experiment.feed import Feed, Task
from penstock.experiment.pipeline import Pipeline
from penstock.experiment.query import JobQuery
from penstock.jobs import topspeed, topspeed_spark
from penstock.sources.log import EmbeddedLog
from penstock.targets.spark.cluster import CHECKPOINTS
from penstock.targets.spark.progress import EVENT_TIME, METRIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 500_000
STATE = "spark.sql.streaming.stateStore."
PARTITIONS = "spark.sql.shuffle.partitions"
ARROW = "spark.sql.execution.arrow.maxRecordsPerBatch"
IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
OURS = {**CHECKPOINTS, PARTITIONS: str(CORES), ARROW: "10000"}
TICKS = os.sysconf("SC_CLK_TCK")
STEADY = 20_000.0  # records/s, well below what two cores can do
TRIGGERS = (3.0, 0.0, 1.0, 10.0)
STEADY_S, WARM_S = 30.0, 15.0
WAITS = ("0s", "3s")
CLUSTER = """
job = "wordcount"
max_workers = 4
[workload]
kind = "constant"
level = 0
[policy]
name = "static"
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a setting; the first of a part is Penstock's."""

    part: str
    job: str
    value: str
    settings: dict[str, str]
    batch: int = BATCH
    buckets: int = topspeed.BUCKETS
    newer: bool = False


def choices() -> list[Choice]:
    """All that is compared at saturation."""

    def store(job: str, value: str, **settings: str) -> Choice:
        return Choice("store", job, value, {STATE + key.replace("_", "."): v for key, v in settings.items()}, 100_000)

    without = {"rocksdb_changelogCheckpointing_enabled": "false"}
    found = []
    for job in ("nexmark-q5", "nexmark-q11"):
        found += [
            store(job, "RocksDB with changelogs"),
            store(job, "RocksDB, whole files", **without),
            store(job, "RocksDB with changelogs, rows counted", rocksdb_trackTotalNumberOfRows="true"),
            store(job, "Spark's default: in the heap", providerClass=IN_MEMORY),
        ]
    for count in (CORES, 4 * CORES, 16 * CORES, 200):
        found.append(Choice("partitions", "nexmark-q5", str(count), {PARTITIONS: str(count)}))
    for job in ("wordcount", "nexmark-q1"):
        found += [Choice("batch", job, f"{size:,}", {}, size) for size in (BATCH, 20_000, 100_000)]
    for size in (10_000, 1_000, 100_000):
        found.append(Choice("arrow", "topspeed", f"{size:,}", {ARROW: str(size)}))
    found.append(Choice("api", "topspeed", "64 buckets, applyInPandasWithState", {}))
    found.append(Choice("api", "topspeed", "car by car, applyInPandasWithState", {}, buckets=10**6))
    if importlib.util.find_spec("google") is None:
        tell("transformWithStateInPandas needs protobuf, which is not there: left out")
    else:
        found.append(Choice("api", "topspeed", "64 buckets, transformWithStateInPandas", {}, newer=True))
        found.append(Choice("api", "topspeed", "car by car, transformWithStateInPandas", {}, buckets=10**6, newer=True))
    return found


@dataclass(frozen=True, slots=True)
class Row:
    """One value of a setting, and what it was worth; of_ours: the rate against that of Penstock's own value."""

    part: str
    job: str
    value: str
    rate: float
    of_ours: float
    spread: float
    seconds: float
    state_ms: float
    notes_ms: float


def at_saturation(spark: SparkSession, chosen: list[Choice], records: int, rounds: int) -> list[Row]:
    rows = []
    for part, name in dict.fromkeys((choice.part, choice.job) for choice in chosen):
        rivals = [choice for choice in chosen if (choice.part, choice.job) == (part, name)]
        job = jobs.make(name)
        with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
            made = load(job, records, Path(folder) / "log")
            found: dict[str, list[Any]] = {choice.value: [] for choice in rivals}
            for turn in range(rounds):
                for number, choice in enumerate(rivals):
                    directory = Path(folder) / f"{turn}-{number}"
                    with buckets(choice.buckets), over(choice.newer):
                        did = streamed(spark, job, made.log, directory, choice.batch, {**OURS, **choice.settings})
                    found[choice.value].append(did)
                    tell(f"{part}, {name}, {choice.value}: {did.rate:,.0f} records/s")
        own = max(did.rate for did in found[rivals[0].value])
        for value, turns in found.items():
            best = max(turns, key=lambda did: did.rate)
            spread = 1 - min(did.rate for did in turns) / best.rate
            parts = (best.seconds, best.state_ms, best.notes_ms)
            rows.append(Row(part, name, value, best.rate, best.rate / own, spread, *parts))
    return rows


@contextmanager
def buckets(count: int) -> Iterator[None]:
    """Cars in so many buckets: with many more than there are cars, each has its own."""
    usual, topspeed.BUCKETS = topspeed.BUCKETS, count
    try:
        yield
    finally:
        topspeed.BUCKETS = usual


@contextmanager
def over(newer: bool) -> Iterator[None]:
    """Top Speed Windowing's step called by the newer API, with the same state; no timer, as nothing here times out."""
    if not newer:
        yield
        return
    from pyspark.sql import GroupedData
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class Follow(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.cars = handle.getValueState("cars", topspeed_spark.STATE)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
            yield from topspeed_spark.stream(key, rows, _AsGroup(self.cars, timerValues))  # type: ignore[arg-type]

        def close(self) -> None:
            pass

    def instead(grouped: GroupedData, *_: Any) -> Any:
        return grouped.transformWithStateInPandas(Follow(), topspeed_spark.RESULTS, "append", "eventTime")

    usual, GroupedData.applyInPandasWithState = GroupedData.applyInPandasWithState, instead  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        GroupedData.applyInPandasWithState = usual  # type: ignore[method-assign]


class _AsGroup:
    """A value in the newer API's state with the older one's face."""

    hasTimedOut = False  # noqa: N815 - Spark's name

    def __init__(self, value: Any, timers: Any) -> None:
        self._value, self._timers = value, timers

    @property
    def getOption(self) -> Any:  # noqa: N802
        return self._value.get() if self._value.exists() else None

    def getCurrentWatermarkMs(self) -> int:  # noqa: N802
        return int(self._timers.getCurrentWatermarkInMs())

    def update(self, value: Any) -> None:
        self._value.update(value)

    def setTimeoutTimestamp(self, _: int) -> None:  # noqa: N802
        pass


def on_the_side(spark: SparkSession) -> str:
    """What Spark says to a query of ours with asynchronous progress tracking."""
    job = jobs.make("nexmark-q1")
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
        log = EmbeddedLog.create(Path(folder) / "log", job.schema, CORES)
        frame = job.build(log.stream(spark, splits=CORES, max_records_per_split=None))
        writer = frame.writeStream.option("checkpointLocation", str(Path(folder) / "checkpoint"))
        try:
            query = writer.foreachBatch(lambda *_: None).option("asyncProgressTrackingEnabled", "true").start()
            query.processAllAvailable()
            query.stop()
        except Exception as refusal:  # whatever it is, it is the answer
            return str(refusal).strip().splitlines()[0]
    return "accepted"


@dataclass(frozen=True, slots=True)
class Steady:
    """A trigger under a steady load: CPU seconds per million records, p95 latency in seconds (median over batches)."""

    trigger: float
    rate: float
    cpu_per_million: float
    latency: float


def triggers(spark: SparkSession) -> list[Steady]:
    job, found = jobs.make("ysb"), []
    for key, value in OURS.items():
        spark.conf.set(key, value)
    for trigger in TRIGGERS:
        with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
            log = EmbeddedLog.create(Path(folder) / "log", job.schema, CORES)
            query = JobQuery(job, log, Path(folder), kind="none").start(
                spark, job.name, trigger=trigger, splits=CORES, max_records_per_split=None
            )
            workload = {"kind": "constant", "level": STEADY, "duration": 600}
            with Feed(Task(str(log.path), job.name, workload, str(Path(folder) / "progress.json"))):
                time.sleep(WARM_S)
                began, cpu, records = time.time(), _cpu(), sum(log.end_offsets().values())
                time.sleep(STEADY_S)
                cpu, records = _cpu() - cpu, sum(log.end_offsets().values()) - records
                batches = [p for p in query.recentProgress if p["numInputRows"] and _ended(p) > began]
            query.stop()
        ages = [_ended(p) - p["observedMetrics"][METRIC][EVENT_TIME] for p in batches]
        rate = records / STEADY_S
        found.append(Steady(trigger, rate, cpu / records * 1e6, median(ages)))
        tell(f"trigger {trigger:g} s: {found[-1].cpu_per_million:.1f} CPU s, {found[-1].latency:.1f} s")
    return found


def _ended(progress: Any) -> float:
    began = time.mktime(time.strptime(progress["timestamp"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    return float(began + float(progress["timestamp"][19:23]) + progress["durationMs"]["triggerExecution"] / 1000)


def _cpu() -> float:
    """CPU seconds of all processes below this one that are Spark's: its JVM and Python workers, not the feed."""
    parents, used = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text().rsplit(")", 1)[1].split()
            feed = b"penstock.experiment.feed" in (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid] = int(text[1])
        used[pid] = 0.0 if feed else (int(text[11]) + int(text[12]) + int(text[13]) + int(text[14])) / TICKS

    def ours(pid: int) -> bool:
        while pid in parents:
            if parents[pid] == os.getpid():
                return True
            pid = parents[pid]
        return False

    return sum(seconds for pid, seconds in used.items() if ours(pid))


@dataclass(frozen=True, slots=True)
class Waited:
    """A locality wait on four workers: records/s, and what the idlest of them did of its fair share."""

    wait: str
    rate: float
    spread: float
    idlest: float


def localities(rounds: int) -> list[Waited]:
    from pyspark import SparkContext

    found: dict[str, list[Waited]] = {wait: [] for wait in WAITS}
    with (
        tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder,
        Pipeline(spec.parse(CLUSTER, "locality"), Path(folder), workers=1, tell=tell) as pipeline,
    ):
        pipeline.warm_up()
        for _ in range(rounds):
            for wait in WAITS:
                # Read by Spark's scheduler for every stage, from here.
                SparkContext.getOrCreate()._jsc.sc().conf().set("spark.locality.wait", wait)
                capacity.measure(pipeline, 1, batches=1, seconds=1)  # so that three are new each time
                shares: list[float] = []
                did = capacity.measure(pipeline, 4, on_sample=_noting(shares))
                found[wait].append(Waited(wait, did.rate, did.spread, fmean(shares)))
                tell(f"locality wait {wait}: {did.rate:,.0f} records/s, the idlest {fmean(shares):.0%} of its share")
    return [max(turns, key=lambda did: did.rate) for turns in found.values()]


def _noting(shares: list[float]) -> Callable[[Observation, int], None]:
    def note(seen: Observation, counted: int) -> None:
        rates: list[float] = [worker.rate for worker in seen.per_worker if worker.rate is not None]
        if counted and len(rates) == seen.workers and max(rates) > 0:
            shares.append(min(rates) / fmean(rates))

    return note


PARTS = ("store", "partitions", "batch", "arrow", "api", "progress", "trigger", "locality")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be repeated")
    parser.add_argument("--records", type=int, default=2_000_000, help="of each job's load")
    parser.add_argument("--rounds", type=int, default=2, help="times that each is measured")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.records < 4 * BATCH or arguments.records % BATCH:
        parser.error(f"--records must be a multiple of {BATCH}, and at least {4 * BATCH}")
    parts = arguments.only or PARTS
    spark = session()
    rows = at_saturation(spark, [c for c in choices() if c.part in parts], arguments.records, arguments.rounds)
    refusal = on_the_side(spark) if "progress" in parts else None
    steady = triggers(spark) if "trigger" in parts else []
    spark.stop()
    waited = localities(arguments.rounds) if "locality" in parts else []
    if arguments.json:
        saturated, paced, placed = ([asdict(row) for row in each] for each in (rows, steady, waited))
        print(json.dumps({"saturated": saturated, "progress": refusal, "trigger": paced, "locality": placed}))
        return
    if rows:
        heads = f"{'records/s':>10} {'of ours':>8} {'spread':>7} {'batch s':>8} {'state ms':>9}"
        print(f"{'':<64} {heads}")
    for row in rows:
        print(
            f"{row.part:<10} {row.job:<12} {row.value:<40} {row.rate:>10,.0f} {row.of_ours:>8.2f} {row.spread:>7.0%} "
            f"{row.seconds:>8.2f} {row.state_ms:>9.0f}"
        )
    if refusal is not None:
        print(f"asynchronous progress tracking: {refusal}")
    for one in steady:
        print(
            f"trigger {one.trigger:>4g} s at {one.rate:,.0f} records/s: {one.cpu_per_million:.1f} CPU s per million, "
            f"p95 latency {one.latency:.1f} s"
        )
    for each in waited:
        print(f"locality wait {each.wait}: {each.rate:,.0f} records/s, the idlest {each.idlest:.0%} of its share")


if __name__ == "__main__":
    main()
