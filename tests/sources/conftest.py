"""What the tests of the log share: a small schema, records with known ids, and a log of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.sources.log import EmbeddedLog

FIELDS: list[pa.Field[Any]] = [pa.field("id", pa.int64()), pa.field("word", pa.string())]
SCHEMA = pa.schema(FIELDS)


def records(first: int, count: int) -> pa.RecordBatch:
    ids = np.arange(first, first + count)
    return pa.record_batch([pa.array(ids), pa.array([f"w{i % 7}" for i in ids], pa.string())], schema=SCHEMA)


def ids(log: EmbeddedLog) -> dict[int, list[int]]:
    """All ids that the log holds, per partition, in order."""
    begin, end = log.begin_offsets(), log.end_offsets()
    return {p: [int(i) for b in log.read(p, begin[p], end[p]) for i in b.column("id").to_numpy()] for p in end}


@pytest.fixture
def batch() -> Callable[[int, int], pa.RecordBatch]:
    return records


@pytest.fixture
def contents() -> Callable[[EmbeddedLog], dict[int, list[int]]]:
    return ids


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    return EmbeddedLog.create(tmp_path / "log", SCHEMA, partitions=2)


@pytest.fixture
def filled(log: EmbeddedLog) -> EmbeddedLog:
    """Five segments of ten records in partition 0: offset n holds id n."""
    with log.writer(durable=False) as writer:
        for i in range(5):
            writer.append(0, records(10 * i, 10))
    return log
