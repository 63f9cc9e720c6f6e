"""The Spark reader without Spark: its code reaches a Python that has no Penstock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from penstock.errors import ConfigError, Damaged
from penstock.sources.log import EmbeddedLog
from penstock.sources.spark_log import LogSource, StreamReader

BARE = """
import pickle, sys
sys.modules["penstock"] = None  # importing it now fails
with open(sys.argv[1], "rb") as file:
    reader, splits = pickle.load(file)
print(sum(sum(batch.column("id").to_pylist()) for split in splits for batch in reader.read(split)))
"""


def reader(log: EmbeddedLog, **options: str) -> StreamReader:
    source = LogSource({"path": str(log.path), **options})
    made = source.streamReader(source.schema())
    assert isinstance(made, StreamReader)
    return made


def test_a_task_needs_no_penstock(filled: EmbeddedLog, tmp_path: Path) -> None:
    splits = reader(filled).partitions({"0": 5, "1": 0}, {"0": 50, "1": 0})
    task = tmp_path / "task"
    task.write_bytes(cloudpickle.dumps((reader(filled), splits)))  # type: ignore[no-untyped-call]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(task)], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.stdout.strip(), done.stderr) == (str(sum(range(5, 50))), "")


def test_spark_may_lift_the_limit(filled: EmbeddedLog) -> None:
    limited = reader(filled, splits="3", maxRecordsPerSplit="4")
    start = limited.initialOffset()
    assert limited.getDefaultReadLimit() == ReadMaxRows(12)
    assert limited.latestOffset(start, ReadMaxRows(12)) == {"0": 12, "1": 0}
    assert limited.latestOffset(start, ReadAllAvailable()) == {"0": 50, "1": 0}
    assert limited.reportLatestOffset() == {"0": 50, "1": 0}


def test_nothing_new_is_no_batch(filled: EmbeddedLog) -> None:
    end = filled.end_offsets()
    at_end = {str(partition): offset for partition, offset in end.items()}
    assert reader(filled).latestOffset(at_end, ReadAllAvailable()) == at_end
    assert reader(filled).partitions(at_end, at_end) == []


def test_a_log_that_shrank_is_damage(filled: EmbeddedLog) -> None:
    max((filled.path / "0").iterdir()).unlink()
    with pytest.raises(Damaged, match="ends at offset 40 in partition 0, but was already read up to 50"):
        reader(filled).latestOffset({"0": 50, "1": 0}, ReadAllAvailable())


def test_a_checkpoint_of_another_log_is_refused(filled: EmbeddedLog) -> None:
    with pytest.raises(ConfigError, match=r"checkpoint must be of .*, which has 2 partitions"):
        reader(filled).latestOffset({"0": 5}, ReadAllAvailable())
