"""What came of a simulated run, as plain data.

Numbers are kept to nine digits: what a processor does with the last bits of a sum is no part of a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.measures import Series, distribution

POINTS = 240  # of a run's lines in a figure
SHARES = 101  # of its latency distribution
DIGITS = 9

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of a cell; None is unknown. Seconds, records, workers; shares are 0..1.

    latency_*: of the 95th percentile over time, nothing left out; latency_known: share of the time it is known for.
    over_target: share of that time above the latency target.
    workers_*, accuracy_*, timeshare_*: against the fewest workers that the load needed at each instant,
    which are ideal_workers on average.
    recovery_rescale, recovery_failure: mean seconds until all was normal again, by the latency that the metric shows
        and by what truly waited, where that was seen.
    capacity_error, forecast_error: what decisions expected against what was true, as a share of it.
    recovery_error: how far recoveries from failures were off what the policy's models said as each began, as a mean
        share of that.
    profiling_seconds: worker-seconds of the profiling phase before the run, which are in no other figure.
    note: why there is nothing. lines: load, workers, latency, backlog over time and decisions, as JSON.
    """

    number: int
    group: str
    policy: str
    name: str
    profile: str
    seed: int
    duration: float
    max_workers: int
    latency_target: float
    ideal_workers: float
    average_workers: float | None = None
    worker_seconds: float | None = None
    money: float | None = None
    latency_mean: float | None = None
    latency_p50: float | None = None
    latency_p95: float | None = None
    latency_p99: float | None = None
    latency_max: float | None = None
    latency_known: float | None = None
    over_target: float | None = None
    rescales: int | None = None
    rescales_out: int | None = None
    rescales_in: int | None = None
    downtime: float | None = None
    backlog_mean: float | None = None
    backlog_max: float | None = None
    backlog_end: float | None = None
    accuracy_over: float | None = None
    accuracy_under: float | None = None
    workers_over: float | None = None
    workers_under: float | None = None
    timeshare_over: float | None = None
    timeshare_under: float | None = None
    excess_time: float | None = None
    recovery_rescale: float | None = None
    recovery_failure: float | None = None
    capacity_error: float | None = None
    forecast_error: float | None = None
    recovery_error: float | None = None
    profiling_seconds: float | None = None
    cpu_mean: float | None = None
    records_in: float | None = None
    note: str = ""
    lines: str = "{}"


def lines(load: Floats, workers: Floats, late: Floats, waiting: Floats) -> dict[str, Any]:
    """The run at a few hundred instants: means of load and latency, the workers at the end, the highest backlog."""
    length = max(1, -(-len(load) // POINTS))
    rows = range(0, len(load), length)
    means = [late[at : at + length] for at in rows]
    return {
        "every": length,
        "load": [short(float(load[at : at + length].mean())) for at in rows],
        "workers": [int(workers[min(at + length, len(workers)) - 1]) for at in rows],
        "latency": [short(float(np.nanmean(part))) if np.isfinite(part).any() else None for part in means],
        "backlog": [short(float(waiting[at : at + length].max())) for at in rows],
    }


def quantiles(series: Series) -> list[float | None]:
    """The distribution of its latency over time."""
    spread = distribution(series.latency, series.seconds)
    return [short(spread.quantile(share)) for share in np.linspace(0.0, 1.0, SHARES)]


def short(value: float | None) -> float | None:
    """As many digits as a figure shows."""
    return None if value is None else float(f"{value:.5g}")


def made(known: Mapping[str, Any]) -> Row:
    """The row of these measures, with floats to nine digits and nothing that is not a number."""
    kept: dict[str, Any] = {}
    for each in fields(Row):
        value = known.get(each.name, each.default)
        if isinstance(value, float):
            value = float(f"{value:.{DIGITS}g}") if isfinite(value) else None
        kept[each.name] = value
    return Row(**kept)
