"""What may be deleted, and what never is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import SourceError
from penstock.sources.log import EmbeddedLog
from penstock.sources.segments import Segment

Batch = Callable[[int, int], pa.RecordBatch]


def aged(log: EmbeddedLog) -> None:
    """The segment with base offset n was written at second n."""
    for path in log.path.glob("*/*.arrow"):
        told = Segment.parse(path.name)
        assert told is not None
        os.utime(path, (told.base, told.base))


@pytest.mark.parametrize(
    ("asked", "begin"),
    [
        ({}, 0),
        ({"max_age": 25.0, "now": 50.0}, 30),
        ({"max_age": 30.0, "now": 50.0}, 20),
        ({"max_age": 0.0, "now": 1e9}, 40),
        ({"max_bytes": 0}, 40),
        ({"max_bytes": 10**9}, 0),
        ({"max_bytes": 0, "keep_from": {0: 25, 1: 0}}, 20),
        ({"max_bytes": 0, "keep_from": {0: 30}}, 30),
        ({"max_age": 0.0, "now": 1e9, "keep_from": {}}, 0),
    ],
)
def test_whole_old_segments_go(filled: EmbeddedLog, asked: dict[str, object], begin: int) -> None:
    aged(filled)
    went = filled.retain(**asked)  # type: ignore[arg-type]
    assert went == begin // 10
    assert filled.begin_offsets() == EmbeddedLog.open(filled.path).begin_offsets() == {0: begin, 1: 0}
    assert filled.end_offsets() == {0: 50, 1: 0}
    kept = [i for batch in filled.read(0, begin, 50) for i in batch.column("id").to_pylist()]
    assert kept == list(range(begin, 50))


def test_size_counts_the_whole_log_and_takes_the_oldest_anywhere(log: EmbeddedLog, batch: Batch) -> None:
    with log.writer(durable=False) as writer:
        for i in range(4):
            writer.append(0, batch(i, 1))
            writer.append(1, batch(i, 1))
    for path in log.path.glob("*/*.arrow"):
        told = Segment.parse(path.name)
        assert told is not None
        at = 10 * told.base + (100 if path.parent.name == "1" else 0)
        os.utime(path, (at, at))
    sizes = sum(path.stat().st_size for path in log.path.glob("*/*.arrow"))
    log.retain(max_bytes=sizes // 2)
    assert log.begin_offsets() == {0: 3, 1: 1}, "partition 0 is older, but its newest segment stays"


def test_reading_what_was_retained_away_is_an_error(filled: EmbeddedLog) -> None:
    filled.retain(max_bytes=0)
    with pytest.raises(SourceError, match=r"0 begins at offset 40: 12 to 40 has been retained away"):
        filled.read(0, 12, 45)


def test_offsets_go_on_after_everything_old_is_gone(filled: EmbeddedLog, batch: Batch) -> None:
    filled.retain(max_bytes=0)
    with EmbeddedLog.open(filled.path).writer() as writer:
        writer.append(0, batch(50, 10))
    assert filled.end_offsets()[0] == 60
    assert filled.lag({}) == 20


@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    share=st.floats(0, 1),
    max_bytes=st.none() | st.integers(0, 5000),
    max_age=st.none() | st.floats(0, 60),
)
def test_what_a_reader_still_needs_is_never_deleted(
    counts: list[int], share: float, max_bytes: int | None, max_age: float | None
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = EmbeddedLog.create(Path(directory) / "log", pa.schema({"id": pa.int64()}), partitions=1)
        with log.writer(durable=False) as writer:
            for count in counts:
                writer.append(0, pa.record_batch({"id": range(count)}))
        aged(log)
        end = sum(counts)
        committed = round(share * end)
        log.retain(max_bytes=max_bytes, max_age=max_age, keep_from={0: committed}, now=60.0)
        assert log.begin_offsets()[0] <= committed
        assert sum(batch.num_rows for batch in log.read(0, committed, end)) == end - committed
