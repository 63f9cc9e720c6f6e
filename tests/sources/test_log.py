"""Offsets, replay and the refusals of the embedded log."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import ConfigError, Damaged, Unsupported
from penstock.sources import Source
from penstock.sources.log import EmbeddedLog

Batch = Callable[[int, int], pa.RecordBatch]
Contents = Callable[[EmbeddedLog], dict[int, list[int]]]

ID = pa.schema([pa.field("id", pa.int64())])


@settings(max_examples=40, deadline=None)
@given(appends=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=25), data=st.data())
def test_what_is_written_is_read_at_its_offset(appends: list[tuple[int, int]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = EmbeddedLog.create(Path(directory) / "log", ID, partitions=3)
        expected: dict[int, list[int]] = {0: [], 1: [], 2: []}
        with log.writer(durable=False) as writer:
            for i, (partition, count) in enumerate(appends):
                ids = list(range(1000 * i, 1000 * i + count))
                writer.append(partition, pa.record_batch([pa.array(ids, pa.int64())], schema=ID))
                expected[partition] += ids
        for again in (log, EmbeddedLog.open(log.path)):
            assert again.begin_offsets() == {0: 0, 1: 0, 2: 0}
            assert again.end_offsets() == {p: len(ids) for p, ids in expected.items()}
            assert again.lag({}) == sum(map(len, expected.values()))
            for partition, ids in expected.items():
                start = data.draw(st.integers(0, len(ids)))
                end = data.draw(st.integers(start, len(ids)))
                read = [i for batch in again.read(partition, start, end) for i in batch.column("id").to_pylist()]
                assert read == ids[start:end]


def test_a_replay_is_equal(filled: EmbeddedLog, contents: Contents) -> None:
    assert contents(filled) == contents(EmbeddedLog.open(filled.path)) == {0: list(range(50)), 1: []}


def test_a_second_writer_continues_where_the_first_ended(filled: EmbeddedLog, batch: Batch, contents: Contents) -> None:
    with EmbeddedLog.open(filled.path).writer() as writer:
        writer.append(0, batch(50, 5))
    assert contents(filled)[0] == list(range(55))


def test_an_open_reader_sees_what_is_appended(log: EmbeddedLog, batch: Batch) -> None:
    with log.writer() as writer:
        for n in range(1, 30):
            writer.append(1, batch(n, 1))
            assert log.end_offsets() == {0: 0, 1: n}


def test_a_large_batch_comes_back_in_bounded_ones(log: EmbeddedLog) -> None:
    path = log.path.with_name("large")
    large = EmbeddedLog.create(path, ID, partitions=1)
    with large.writer() as writer:
        writer.append(0, pa.record_batch({"id": range(200_000)}))
    batches = list(large.read(0, 65_000, 199_999))
    assert sum(b.num_rows for b in batches) == 134_999
    assert max(b.num_rows for b in batches) <= 65_536
    assert batches[0].column("id")[0].as_py() == 65_000


def test_it_shows_the_face_of_a_source(filled: EmbeddedLog) -> None:
    source: Source = filled
    assert source.lag(source.end_offsets()) == 0


def test_lag_counts_what_is_not_committed(filled: EmbeddedLog) -> None:
    assert (filled.lag({}), filled.lag({0: 20, 1: 0}), filled.lag(filled.end_offsets())) == (50, 30, 0)


def test_nothing_is_written_for_an_empty_batch(log: EmbeddedLog, batch: Batch) -> None:
    with log.writer() as writer:
        writer.append(0, batch(0, 0))
    assert list((log.path / "0").iterdir()) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: EmbeddedLog.open(path / "none"), "path must be a directory that holds a log"),
        (lambda path: EmbeddedLog.open(path), "path must be a directory that holds a log"),
        (lambda path: EmbeddedLog.create(path / "log", ID), "path must not hold a log already"),
        (lambda path: EmbeddedLog.create(path, ID), "path must be an empty directory"),
        (lambda path: EmbeddedLog.create(path / "log" / "log.json", ID), "path must be a directory"),
        (lambda path: EmbeddedLog.create(path / "new", ID, partitions=0), "partitions must be at least 1, got 0"),
        (lambda path: EmbeddedLog.create(path / "new", pa.schema([])), "schema must have at least one field"),
        (lambda path: EmbeddedLog.open(path / "log").read(2, 0, 0), "partition must be one of 0 to 1, got 2"),
        (lambda path: EmbeddedLog.open(path / "log").read(0, 40, 51), "range must lie within 0 to 50"),
        (lambda path: EmbeddedLog.open(path / "log").read(0, 5, 4), "range must lie within 0 to 50"),
    ],
)
def test_what_is_not_possible_is_refused(
    filled: EmbeddedLog, make: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        make(tmp_path)


def test_a_wrong_append_is_refused_and_leaves_nothing(filled: EmbeddedLog, batch: Batch) -> None:
    with filled.writer() as writer:
        with pytest.raises(ConfigError, match="batch must have the schema id: int64, word: string, got 'id: int64'"):
            writer.append(0, pa.record_batch({"id": [1]}))
        with pytest.raises(ConfigError, match="partition must be one of 0 to 1, got 7"):
            writer.append(7, batch(0, 1))
    assert filled.end_offsets() == {0: 50, 1: 0}


def test_an_unknown_format_is_named(filled: EmbeddedLog) -> None:
    described = filled.path / "log.json"
    described.write_text(json.dumps({**json.loads(described.read_text()), "format": 9}))
    with pytest.raises(Unsupported, match=r"log\.json has format 9, this Penstock knows format 1 only"):
        EmbeddedLog.open(filled.path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}'])
def test_a_spoilt_description_is_named(filled: EmbeddedLog, text: str) -> None:
    (filled.path / "log.json").write_text(text)
    with pytest.raises(Damaged, match=r"log\.json does not describe a log"):
        EmbeddedLog.open(filled.path)


def test_strangers_files_are_left_alone(filled: EmbeddedLog, contents: Contents) -> None:
    (filled.path / "0" / "notes.txt").write_text("mine")
    with filled.writer():
        assert contents(filled)[0] == list(range(50))
    assert (filled.path / "0" / "notes.txt").exists()
