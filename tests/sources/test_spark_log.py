"""The embedded log as a real Spark source."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import ConfigError
from penstock.sources.log import EmbeddedLog
from penstock.sources.offsets import lag, parse
from penstock.sources.splits import publish

pytestmark = pytest.mark.spark

FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.int64()),
    pa.field("at", pa.timestamp("us", tz="UTC")),
    pa.field("coarse", pa.timestamp("ms")),  # not a type of Spark's: it must be converted
    pa.field("word", pa.string()),
]
SCHEMA = pa.schema(FIELDS)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def append(log: EmbeddedLog, first: int, segments: int, size: int) -> None:
    """Consecutive ids, over the partitions in turn but unevenly: partition 0 gets most."""
    with log.writer(durable=False) as writer:
        for i in range(segments):
            ids = range(first + i * size, first + (i + 1) * size)
            columns = [pa.array(ids, field.type) for field in FIELDS[:3]]
            words = pa.array([f"w{n}" for n in ids])
            writer.append(i % 3 if i % 2 else 0, pa.record_batch([*columns, words], schema=SCHEMA))


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    made = EmbeddedLog.create(tmp_path / "log", SCHEMA, partitions=3)
    append(made, 0, segments=20, size=50)
    return made


class Sink:
    """Collects the ids of each batch and the number of its tasks."""

    def __init__(self, after: Callable[[int], None] = lambda _: None) -> None:
        self.batches: dict[int, list[int]] = {}
        self.tasks: dict[int, list[int]] = {}
        self._after = after

    def __call__(self, frame: DataFrame, number: int) -> None:
        parts = frame.select("id").rdd.mapPartitions(lambda rows: [[row.id for row in rows]]).collect()
        self.batches[number] = [i for part in parts for i in part]
        self.tasks[number] = [len(part) for part in parts]
        self._after(number)

    @property
    def ids(self) -> list[int]:
        return sorted(i for batch in self.batches.values() for i in batch)


def drain(frame: DataFrame, sink: Sink, checkpoint: Path) -> StreamingQuery:
    query = (
        frame.writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_a_recount_has_each_record_once(spark: SparkSession, log: EmbeddedLog) -> None:
    frame = log.batch(spark, splits=7)
    assert frame.rdd.getNumPartitions() == 7
    rows = frame.orderBy("id").collect()
    assert [row.id for row in rows] == list(range(1000))
    assert [row.word for row in rows] == [f"w{i}" for i in range(1000)]
    assert frame.selectExpr("max(unix_micros(at))", "max(coarse)").first()[0] == 999  # type: ignore[index]


def test_an_empty_log_is_an_empty_frame(spark: SparkSession, tmp_path: Path) -> None:
    assert EmbeddedLog.create(tmp_path / "empty", SCHEMA).batch(spark).count() == 0


def test_without_limits_one_batch_takes_all_in_equal_shares(
    spark: SparkSession, log: EmbeddedLog, tmp_path: Path
) -> None:
    sink = Sink()
    drain(log.stream(spark, splits=6), sink, tmp_path / "checkpoint")
    assert sink.ids == list(range(1000))
    assert sorted(sink.tasks[0]) == [166, 166, 167, 167, 167, 167]
    assert len(sink.tasks) == 1


def test_limits_bound_a_batch_and_splits_follow_the_file(spark: SparkSession, log: EmbeddedLog, tmp_path: Path) -> None:
    workers = tmp_path / "workers"
    publish(workers, 2)
    sink = Sink(after=lambda number: publish(workers, 4 - number))
    query = drain(log.stream(spark, splits=workers, max_records_per_split=100), sink, tmp_path / "checkpoint")
    assert sink.ids == list(range(1000))
    assert list(sink.tasks.values()) == [[100] * 2, [100] * 4, [100] * 3, [50, 50]]
    source = query.recentProgress[0].sources[0]
    assert lag(parse(source.endOffset), parse(source.latestOffset)) == 800
    assert all(offset > 0 for offset in parse(source.endOffset).values()), "no partition starves"


def test_a_restart_goes_on_from_the_checkpoint(spark: SparkSession, log: EmbeddedLog, tmp_path: Path) -> None:
    def fail(number: int) -> None:
        if number == 1:
            raise RuntimeError("the second batch fails after it was read")

    first, second = Sink(after=fail), Sink()
    with pytest.raises(StreamingQueryException, match="the second batch fails"):
        drain(log.stream(spark, splits=2, max_records_per_split=150), first, tmp_path / "checkpoint")
    append(log, 1000, segments=5, size=50)
    drain(log.stream(spark, splits=3, max_records_per_split=150), second, tmp_path / "checkpoint")
    assert min(second.batches) == 1
    assert second.batches[1] != []
    assert sorted(second.batches[1]) == sorted(first.batches[1]), "a batch that failed is read again, the same"
    assert sorted(first.batches[0] + second.ids) == list(range(1250))


def test_a_running_query_follows_the_log(spark: SparkSession, log: EmbeddedLog, tmp_path: Path) -> None:
    sink = Sink()
    query = (
        log.stream(spark, splits=2)
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        append(log, 1000, segments=4, size=25)
        query.processAllAvailable()
        progress = query.lastProgress
        assert progress is not None
        assert log.lag(parse(progress.sources[0].endOffset)) == 0
        log.retain(max_bytes=0, keep_from=parse(progress.sources[0].endOffset))
        append(log, 1100, segments=1, size=25)
        query.processAllAvailable()
    finally:
        query.stop()
    assert sink.ids == list(range(1125))


def test_latest_starts_at_the_end(spark: SparkSession, log: EmbeddedLog, tmp_path: Path) -> None:
    log.stream(spark, splits=1)  # registers the source
    frame = spark.readStream.format("penstock-log").options(path=str(log.path), startingOffsets="latest").load()
    sink = Sink()
    drain(frame, sink, tmp_path / "checkpoint")
    append(log, 1000, segments=1, size=50)
    drain(frame, sink, tmp_path / "checkpoint")
    assert sink.ids == list(range(1000, 1050))


def test_damage_fails_the_query_by_name(spark: SparkSession, log: EmbeddedLog, tmp_path: Path) -> None:
    victim = max((log.path / "0").iterdir())
    os.truncate(victim, 100)
    with pytest.raises(StreamingQueryException, match=f"{victim.name} is truncated"):
        drain(log.stream(spark, splits=2), Sink(), tmp_path / "checkpoint")


def test_what_was_retained_away_before_it_was_read_fails_the_query(
    spark: SparkSession, log: EmbeddedLog, tmp_path: Path
) -> None:
    drain(log.stream(spark, splits=1), Sink(), tmp_path / "checkpoint")
    append(log, 1000, segments=20, size=50)
    log.retain(max_bytes=0)
    with pytest.raises(StreamingQueryException, match="has been retained away"):
        drain(log.stream(spark, splits=1), Sink(), tmp_path / "checkpoint")


def test_wrong_options_are_refused(spark: SparkSession, log: EmbeddedLog) -> None:
    with pytest.raises(ConfigError, match="splits must be at least 1"):
        log.stream(spark, splits=0)
    with pytest.raises(ConfigError, match="maxRecordsPerSplit must be a number above 0, got '0'"):
        log.stream(spark, splits=1, max_records_per_split=0)
    with pytest.raises(AnalysisException, match="startingOffsets must be earliest or latest"):
        spark.readStream.format("penstock-log").options(path=str(log.path), startingOffsets="oldest").load()
