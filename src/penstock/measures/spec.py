"""How well the workers followed what the load needed: SPEC's elasticity measures, and the excess time.

Accuracy and timeshare are those of the SPEC research group (Herbst et al., "Elasticity in Cloud Computing: What It Is,
and What It Is Not", ICAC 2013; relative to demand since Herbst et al., "Quantifying Cloud Performance and
Dependability", ACM TOMPECS 2018), excess time is Gesscale's (sec. V-A). The demand is that of `ideal`: the fewest
workers whose capacity covers the load of the moment. Workers are supply as soon as they are there, also while the job
restarts: what a rescale costs shows in latency, backlog and excess time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import check
from penstock.measures.series import Series
from penstock.models.limit import ideal

Capacity = Callable[[int], float] | Sequence[float]


@dataclass(frozen=True, slots=True)
class Elasticity:
    """How far supply was from demand, and for how long.

    accuracy_under, accuracy_over: mean of what was missing, or too much, as a share of the demand.
    workers_under, workers_over: the same in workers (what ICAC 2013 and Gesscale call accuracy).
    timeshare_under, timeshare_over: share of the time in which something was missing, or too much.
    known: seconds in which both load and workers were known.
    """

    accuracy_under: float
    accuracy_over: float
    workers_under: float
    workers_over: float
    timeshare_under: float
    timeshare_over: float
    known: float


def elasticity(series: Series, capacity: Capacity, *, max_workers: int, min_workers: int = 1) -> Elasticity | None:
    """Supply against the demand of the load; None if they were never known together.

    `capacity` has records/s by number of workers, as a function or as a list for 1, 2, … workers.
    """
    known = ~np.isnan(series.input_rate) & ~np.isnan(series.workers)
    seconds = series.seconds[known]
    total = float(seconds.sum())
    if not total:
        return None
    demand = ideal(series.input_rate[known], capacity, max_workers=max_workers, min_workers=min_workers)
    missing = np.maximum(demand - series.workers[known], 0.0)
    surplus = np.maximum(series.workers[known] - demand, 0.0)
    return Elasticity(
        accuracy_under=float((missing / demand * seconds).sum()) / total,
        accuracy_over=float((surplus / demand * seconds).sum()) / total,
        workers_under=float((missing * seconds).sum()) / total,
        workers_over=float((surplus * seconds).sum()) / total,
        timeshare_under=float(seconds[missing > 0].sum()) / total,
        timeshare_over=float(seconds[surplus > 0].sum()) / total,
        known=total,
    )


def excess_time(series: Series, capacity: Capacity) -> float | None:
    """How much longer than the load the job took, as a share of the load's time: (P - I) / T.

    The load's time ends with its last row above zero, and the job's when the backlog is gone: within the run if that
    is long enough, else reckoned from what is left and what the last workers can do. None if either is not known.
    """
    loaded = np.flatnonzero((series.input_rate > 0) & (series.seconds > 0))
    if not loaded.size:
        return None
    finished = loaded[-1] + 1
    load_time = float(series.at[loaded[-1]] + series.seconds[loaded[-1]] - series.at[0])
    empty = np.flatnonzero(series.backlog[finished:] <= 0)
    if empty.size:
        return float(series.at[finished + empty[0]] - series.at[0] - load_time) / load_time
    there = series.workers[series.workers != 0]  # a restart may have stopped all just then: those before come again
    left, workers = series.backlog[-1], there[-1] if there.size else np.nan
    if np.isnan(left) or np.isnan(workers):
        return None
    after = series.duration - load_time
    if left <= 0:
        return after / load_time
    count = int(workers)
    rate = capacity(count) if callable(capacity) else capacity[count - 1]
    check(rate > 0, f"capacity of {count} workers", "be above 0 records/s", rate)
    return (after + float(left) / rate) / load_time
