"""All measures of one run at once, from its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from penstock.errors import check
from penstock.measures.latencies import Latency, latency
from penstock.measures.recovery import Disturbance, Recovery, recoveries
from penstock.measures.series import Series, highest, mean
from penstock.measures.spec import Capacity, Elasticity, elasticity, excess_time

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What the workers cost, all of the time in which their number was known; `money` if there is a price."""

    worker_seconds: float | None
    average_workers: float | None
    money: float | None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Records that waited: the mean over time, the most, and what was left at the end."""

    mean: float | None
    max: float | None
    end: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One run, measured; None is unknown or not asked for.

    duration: seconds.
    downtime: seconds in which nothing was processed though there was something to do.
    rescales, failures: how many.
    recoveries: how each of them ended.
    elasticity, excess_time: against the capacity that was given.
    """

    duration: float
    cost: Cost
    latency: Latency
    backlog: Backlog
    downtime: float
    rescales: int
    failures: int
    recoveries: tuple[Recovery, ...]
    elasticity: Elasticity | None
    excess_time: float | None


def assess(
    series: Series,
    disturbances: Sequence[Disturbance] = (),
    *,
    max_workers: int,
    min_workers: int = 1,
    capacity: Capacity | None = None,
    latency_target: float | None = None,
    price: float | None = None,
) -> Assessment:
    """All measures of a run; `price` is that of a worker for an hour, `capacity` records/s by number of workers."""
    follows = None
    if capacity is not None:
        follows = elasticity(series, capacity, max_workers=max_workers, min_workers=min_workers)
    return Assessment(
        duration=series.duration,
        cost=cost(series, price),
        latency=latency(series, latency_target),
        backlog=backlog(series),
        downtime=downtime(series),
        rescales=sum(disturbance.cause == "rescale" for disturbance in disturbances),
        failures=sum(disturbance.cause == "failure" for disturbance in disturbances),
        recoveries=tuple(recoveries(series, disturbances)),
        elasticity=follows,
        excess_time=None if capacity is None else excess_time(series, capacity),
    )


def cost(series: Series, price: float | None = None) -> Cost:
    """Worker-seconds, and money at `price` per worker and hour.

    >>> cost(Series.ticks(1800, workers=[2, 4]), price=0.5)
    Cost(worker_seconds=10800.0, average_workers=3.0, money=1.5)
    """
    if price is not None:
        check(isfinite(price) and price >= 0, "price", "be 0 or more per worker and hour", price)
    known = ~np.isnan(series.workers)
    if not known.any():
        return Cost(None, None, None)
    seconds = float(series.seconds[known].sum())
    paid = float((series.workers[known] * series.seconds[known]).sum())
    return Cost(paid, paid / seconds if seconds else None, None if price is None else paid / HOUR * price)


def backlog(series: Series) -> Backlog:
    """The backlog of a run."""
    known = series.backlog[~np.isnan(series.backlog)]
    return Backlog(
        mean=mean(series.backlog, series.seconds),
        max=highest(series.backlog),
        end=float(known[-1]) if known.size else None,
    )


def downtime(series: Series) -> float:
    """Seconds in which nothing was processed, though records arrived or waited."""
    waiting = (series.input_rate > 0) | (series.backlog > 0)
    return float(series.seconds[waiting & (series.processed_rate <= 0)].sum())
