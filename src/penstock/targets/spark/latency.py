"""Event latency of a query, from its records' own timestamps.

One aggregate rides along with each batch: the time below which a twentieth of its events lie. The batch's end minus
that is the p95 of the latency from event to result. It needs no second pass and works with any source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.targets.spark.progress import EVENT_TIME, METRIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def observe_latency(records: DataFrame, column: str = "timestamp") -> DataFrame:
    """The same records, observed: Penstock then knows the query's p95 event latency. `column` is the event time."""
    from pyspark.sql import functions as F  # noqa: N812

    event_time = F.percentile_approx(F.col(column).cast("double"), 0.05, 1_000)
    return records.observe(METRIC, event_time.alias(EVENT_TIME))
