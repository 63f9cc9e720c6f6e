"""What a recount goes by, made by hand."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.jobs import events
from penstock.jobs.evidence import Batch, Evidence
from penstock.sources.log import EmbeddedLog

Line = tuple[int, str]  # milliseconds of arrival, and what arrived
Made = tuple[Sequence[Line], int, pa.Table]  # what a batch read, the watermark at its end, and its results


@pytest.fixture
def evidence_of(tmp_path: Path) -> Callable[[Sequence[Made]], Evidence]:
    """Evidence of these batches, in order."""

    def make(batches: Sequence[Made]) -> Evidence:
        log = EmbeddedLog.create(tmp_path / "log", events.SCHEMA, 1)
        read: list[Batch] = []
        end = late = 0
        with log.writer() as writer:
            for number, (lines, watermark, _) in enumerate(batches):
                times = pa.array([at * 1000 for at, _ in lines], pa.int64()).cast(events.SCHEMA.field(0).type)
                values = pa.array([line for _, line in lines], pa.string())
                if lines:
                    writer.append(0, pa.RecordBatch.from_arrays([times, values], schema=events.SCHEMA))
                read.append(Batch(number, {0: end}, {0: end + len(lines)}, watermark, late))
                end, late = end + len(lines), watermark
        return Evidence(log, read, [rows for _, _, rows in batches].__getitem__)

    return make
