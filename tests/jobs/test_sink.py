"""Sinks: each batch counts once, however often it comes. Spark's part is played by what it would hand over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.jobs import sink
from penstock.jobs.evidence import Batch, Batches
from penstock.sources.log import EmbeddedLog


class Rows:
    """The part of a DataFrame that brings rows to the driver."""

    def __init__(self, *values: int) -> None:
        self._values = list(values)

    def toArrow(self) -> pa.Table:  # noqa: N802
        return pa.table({"n": pa.array(self._values, pa.int64())})

    def limit(self, count: int) -> Rows:
        return Rows(*self._values[:count])


def rows(*values: int) -> Any:
    return Rows(*values)


def made(kind: str, path: Path, said: list[str] | None = None) -> sink.Sink:
    return sink.make(kind, path, bulky=False, tell=(said if said is not None else []).append)


@pytest.mark.parametrize("kind", ["parquet", "log"])
def test_a_repeated_batch_counts_once(kind: str, tmp_path: Path) -> None:
    for number, values in ((0, (1, 2)), (1, ()), (2, (3,)), (2, (3,))):
        made(kind, tmp_path / "out").write(rows(*values), number)
    kept = made(kind, tmp_path / "out")
    assert isinstance(kept, sink.Kept)
    assert [kept.read(number)["n"].to_pylist() for number in range(3)] == [[1, 2], [], [3]]


def test_a_batch_that_was_cut_off_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "000000000.tmp").write_bytes(b"half a fi")
    kept = made("parquet", tmp_path)
    kept.write(rows(7), 0)
    assert isinstance(kept, sink.Kept)
    assert kept.read(0)["n"].to_pylist() == [7]
    assert not list(tmp_path.glob("*.tmp"))


def test_the_log_can_be_read_by_the_next_job(tmp_path: Path) -> None:
    kept = made("log", tmp_path / "out")
    kept.write(rows(1, 2), 0)
    kept.write(rows(3), 4)
    log = EmbeddedLog.open(tmp_path / "out")
    found = [row for batch in log.read(0, 0, 3) for row in batch.to_pylist()]
    assert found == [{"n": 1, "batch": 0}, {"n": 2, "batch": 0}, {"n": 3, "batch": 4}]


def test_the_console_shows_the_first_rows(tmp_path: Path) -> None:
    said: list[str] = []
    console = made("console", tmp_path, said)
    console.write(rows(*range(25)), 3)
    lines = said[0].splitlines()
    assert (lines[0], lines[1], lines[-1], len(lines)) == ("batch 3:", "n=0", "…", 22)
    assert not isinstance(console, sink.Kept)


def test_notes_on_batches(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    for number, (end, watermark) in enumerate(((5, 0), (9, 1000))):
        lines = ["v1", json.dumps({"batchWatermarkMs": watermark}), json.dumps({"0": end, "1": end + 1})]
        (checkpoint / "offsets" / str(number)).write_text("\n".join(lines))
        Batches(tmp_path / "batches", checkpoint).note(number)
    found = Batches(tmp_path / "batches", checkpoint).read({0: 0, 1: 0})
    assert found == [
        Batch(0, {0: 0, 1: 0}, {0: 5, 1: 6}, watermark=0, late=0),
        Batch(1, {0: 5, 1: 6}, {0: 9, 1: 10}, watermark=1000, late=0),
    ]
