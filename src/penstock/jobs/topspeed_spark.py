"""Top Speed Windowing on a worker: a bucket's records as Spark hands them over, its state, and what goes back.

It travels to the workers with the step, and like it uses nothing else of Penstock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from penstock.jobs.topspeed_step import ANEW_MS, NEVER, Cars, Results, advance, nobody, packed, unpacked

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

RESULTS = "car string, at bigint, distance bigint, top_speed bigint, records bigint, aside string"
STATE = "cars binary"


def stream(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:  # noqa: ARG001
    """A bucket's records of one batch; or none, when no car of it was seen for long."""
    if state.hasTimedOut:
        state.remove()
        return
    stored = state.getOption
    watermark = state.getCurrentWatermarkMs()
    known = nobody() if stored is None else unpacked(bytes(stored[0]))
    cars, results = _taken_in(known, pd.concat(list(frames), ignore_index=True), watermark - ANEW_MS)
    state.update((packed(cars),))
    newest = int(cars.latest.max()) if len(cars.latest) else 0
    state.setTimeoutTimestamp(max(newest + ANEW_MS, watermark) + 1)
    yield results


def batch(frame: pd.DataFrame) -> pd.DataFrame:
    """A bucket's records, all at once."""
    return _taken_in(nobody(), frame, NEVER)[1]


def _taken_in(known: Cars, frame: pd.DataFrame, forget: int) -> tuple[Cars, pd.DataFrame]:
    aside = frame["aside"].to_numpy()
    fine = pd.isna(aside)
    events = frame if fine.all() else frame[fine]
    time, distance, speed = (events[name].to_numpy(np.int64) for name in ("event_time", "distance", "speed"))
    cars, results = advance(known, events["car"].to_numpy(object), time, distance, speed, forget)
    return cars, _frame(results, aside[~fine])


def _frame(results: Results, aside: Any) -> pd.DataFrame:
    """Results, then the malformed lines. All columns are objects, as are the empty rows that Spark puts beneath them:
    of mixed types, pandas would complain."""
    count = len(results.car)

    def padded(values: Any) -> Any:
        return np.append(values.astype(object), np.full(len(aside), None))

    return pd.DataFrame(
        {
            "car": padded(results.car),
            "at": padded(results.time),
            "distance": padded(results.distance),
            "top_speed": padded(results.top_speed),
            "records": padded(results.records),
            "aside": np.append(np.full(count, None), aside),
        }
    )
