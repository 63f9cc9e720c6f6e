"""What the jobs' JSON records have in common: how they are drawn, spoiled, parsed and read again.

A record is a time of arrival and a line of JSON with its own time of the event. Most events arrive within a second of
happening, in no strict order; a few are late, some of them later than any watermark waits for; and a few lines are
malformed. A job never fails on those: they go through it under a key of their own, the line itself (`aside`), and come
out among the results, so they are set aside exactly once, as they came, by the same transaction as everything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Ints = npt.NDArray[np.int64]

SCHEMA = pa.schema(
    [pa.field("timestamp", pa.timestamp("us", "UTC")), pa.field("value", pa.string())]  # type: ignore[arg-type]
)
SPREAD_MS = 250.0  # mean delay of an event that is in time
LATE = 0.002  # share of late events,
LATE_MS = (2_000, 60_000)  # by so much: some within the watermark's patience, some beyond
MALFORMED = 0.001  # share of lines that are not what they should be
PATIENCE_S = 10  # what every watermark waits for


def event_times(random: np.random.Generator, arrivals: Ints) -> Ints:
    """Milliseconds at which the events happened that arrive at these microseconds."""
    delays = random.exponential(SPREAD_MS, len(arrivals)).astype(np.int64)
    late = random.random(len(arrivals)) < LATE
    delays[late] = random.integers(*LATE_MS, int(late.sum()))
    return arrivals // 1000 - delays


def zipf(random: np.random.Generator, size: int, exponent: float) -> Callable[[int], Ints]:
    """Draws indices below `size`, the first the most often."""
    weights = np.arange(1, size + 1) ** -exponent
    edges = np.cumsum(weights / weights.sum())
    edges[-1] = 1.0
    return lambda count: np.searchsorted(edges, random.random(count), side="right").astype(np.int64)


def lines(*pieces: str | pa.Array[Any]) -> pa.Array[Any]:
    """One line per record from its pieces: texts, and arrays of texts or numbers."""
    texts: list[Any] = [piece if isinstance(piece, str) else piece.cast(pa.string()) for piece in pieces]
    joined: pa.Array[Any] = pc.binary_join_element_wise(*texts, "")
    return joined


def records(
    random: np.random.Generator, arrivals: Ints, whole: pa.Array[Any], share: float = MALFORMED
) -> pa.RecordBatch:
    """Lines with their times of arrival; a share of them cut off, without a field's value, or no JSON at all."""
    bad = np.flatnonzero(random.random(len(arrivals)) < share)
    if bad.size:
        kind = random.integers(0, 3, bad.size)
        spoiled = [_spoil(str(line), int(k)) for line, k in zip(whole.take(bad).to_pylist(), kind, strict=True)]
        mask = np.zeros(len(arrivals), dtype=bool)
        mask[bad] = True
        whole = pc.replace_with_mask(whole, pa.array(mask), pa.array(spoiled, pa.string()))
    times = pa.array(arrivals, pa.int64()).cast(SCHEMA.field("timestamp").type)
    return pa.RecordBatch.from_arrays([times, whole], schema=SCHEMA)


def _spoil(line: str, kind: int) -> str:
    if kind == 0:
        return line[: 2 * len(line) // 3]
    return "garbage " + line[:8] if kind == 1 else "{}"


def parsed(frame: DataFrame, ddl: str, valid: Callable[[Column], Column]) -> DataFrame:
    """The lines as columns `timestamp`, `event` and `aside`: the line itself where it is not a valid event, else null.

    valid: of the parsed event; where that is null, the line is malformed.
    """
    from pyspark.sql import functions as F  # noqa: N812

    # Exploded, though there is one of each: else Spark pushes a filter on the event down past the parsing, and parses
    # the line again for every field that the filter looks at.
    event = F.explode(F.array(F.from_json("value", ddl)))
    fine = F.coalesce(valid(F.col("event")), F.lit(False))
    return frame.select("timestamp", "value", event.alias("event")).select(
        "timestamp", "event", F.when(~fine, F.col("value")).alias("aside")
    )


def event_time(frame: DataFrame, column: str) -> DataFrame:
    """With the column `at`, the time of the event (milliseconds in `column`) or of a malformed line's arrival, and its
    watermark."""
    from pyspark.sql import functions as F  # noqa: N812

    at = F.when(F.col("aside").isNull(), F.timestamp_millis(F.col(column))).otherwise(F.col("timestamp"))
    return frame.withColumn("at", at).withWatermark("at", f"{PATIENCE_S} seconds")


def read(line: str, fields: Mapping[str, type]) -> dict[str, Any] | None:
    """A line as Python reads it, with the fields it must have; None where it is malformed. For recounts."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if not isinstance(event, dict):
        return None
    for name, kind in fields.items():
        if not isinstance(event.get(name), (int, float) if kind is float else kind):
            return None
    return event
