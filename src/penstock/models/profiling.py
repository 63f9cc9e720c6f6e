"""What a profiling phase yields, and how it judges its deployments.

Phoebe (Geldenhuys, Scheinert, Kao, Thamsen, ICWS 2022) sec. III-C: deployments at evenly spaced scale-outs all get the
same load at rising rates. At each rate their latencies form one close group, or two: then those in the higher one could
not keep up, their maximum processing capacity T_max is found, and they go. With two or fewer left there is no majority
to compare with, and each is compared with a line through its own past.

Where the paper leaves it open: T_max is the throughput measured when the latency leaves the group, as a job that is
behind does all it can; the groups are the exact two means of log latencies, and count as two from a factor of 3
between them on (noise makes two means of anything). Deviation: when there is one group only, each is compared with its
own past as well, as all of them may have fallen behind at once; and then one that leaves a tenth undone is over, too:
within half a minute of slow batches latency does not treble.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, isfinite, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import ConfigError, check

APART = 3.0  # latencies that differ by this factor are not of one group
ENOUGH = 0.9  # of what is given; whoever processes less falls behind, however little its latency shows of that yet
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Point:
    """One deployment at one rate.

    workers: its scale-out. rate: records/s offered. latency: mean seconds. throughput: records/s processed.
    """

    workers: int
    rate: float
    latency: float
    throughput: float


@dataclass(frozen=True, slots=True)
class ObservedRecovery:
    """Seconds from an injected failure until latency was normal again, at a scale-out and a rate.

    silent: of these, how many passed before anything showed; nobody who only watches sees them.
    """

    workers: int
    rate: float
    seconds: float
    silent: float = 0.0


@dataclass(frozen=True, slots=True)
class Limit:
    """The most records/s that a scale-out could process."""

    workers: int
    rate: float


@dataclass(frozen=True, slots=True)
class ProfilingData:
    """All that a profiling phase found out.

    points: every deployment at every rate it was measured at.
    limits: T_max of each scale-out that got to it.
    recoveries: after injected failures.
    worker_seconds: what the phase cost; of which `failure_seconds` for the recoveries.
    """

    points: tuple[Point, ...]
    limits: tuple[Limit, ...]
    recoveries: tuple[ObservedRecovery, ...] = ()
    worker_seconds: float = 0.0
    failure_seconds: float = 0.0

    def text(self) -> str:
        """As JSON, which `profile_from` reads."""
        return json.dumps({"format": FORMAT, **asdict(self)}, allow_nan=False)


def profile_from(text: str) -> ProfilingData:
    """The profile of a JSON text, or a ConfigError.

    >>> known = ProfilingData((Point(2, 1000.0, 1.0, 1000.0),), (Limit(2, 1500.0),))
    >>> profile_from(known.text()) == known
    True
    """
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    try:
        raw = json.loads(text)
    except ValueError:
        raise ConfigError(f"profile must be what `penstock profile` wrote, got {shown!r}") from None
    try:
        check(raw["format"] == FORMAT, "profile.format", f"be {FORMAT}", raw["format"])
        data = ProfilingData(
            points=tuple(Point(**_numbers(each)) for each in raw["points"]),
            limits=tuple(Limit(**_numbers(each)) for each in raw["limits"]),
            recoveries=tuple(ObservedRecovery(**_numbers(each)) for each in raw["recoveries"]),
            worker_seconds=float(raw["worker_seconds"]),
            failure_seconds=float(raw["failure_seconds"]),
        )
    except (TypeError, KeyError, AttributeError, ValueError):
        raise ConfigError(f"profile must be what `penstock profile` wrote, got {shown!r}") from None
    check(bool(data.points and data.limits), "profile", "have points and the limit of at least one scale-out", shown)
    return data


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in row.items():
        fits = type(value) is int and value >= 1 if key == "workers" else isfinite(value) and value >= 0
        check(fits, f"profile.{key}", "be a number that can be", value)
    return dict(row)


def scale_outs(least: int, most: int, count: int) -> tuple[int, ...]:
    """Evenly spaced, both ends included: the paper's S, with 8 from 2 to 24; fewer where there are not as many.

    >>> scale_outs(2, 24, 8)
    (2, 5, 8, 11, 15, 18, 21, 24)
    """
    check(least >= 1, "least", "be at least 1 worker", least)
    check(most >= least, "most", f"be at least {least}", most)
    check(count >= 1, "count", "be at least 1", count)
    if count == 1:
        return (most,)
    places = (least + (most - least) * i / (count - 1) for i in range(count))
    return tuple(sorted({int(place + 0.5) for place in places}))


def rising(first: float = 20_000.0, step: float = 20_000.0, count: int = 100) -> tuple[float, ...]:
    """The rates to offer, one after the other."""
    check(isfinite(first) and first > 0, "first", "be above 0 records/s", first)
    check(isfinite(step) and step > 0, "step", "be above 0 records/s", step)
    return tuple(first + step * i for i in range(count))


@dataclass(frozen=True, slots=True)
class Groups:
    """Latencies in one group, or two.

    boundary: seconds; above it is the higher group. None: there is one only.
    """

    low: float
    high: float | None
    boundary: float | None

    def valid(self, latency: float) -> bool:
        return self.boundary is None or latency <= self.boundary


def groups(latencies: ArrayLike) -> Groups:
    """The two clusters of latencies, normalised by their 1st percentile and on a log scale; the lower one is valid.

    >>> found = groups([1.0, 1.1, 0.9, 30.0])
    >>> found.valid(1.2), found.valid(20.0), groups([1.0, 1.1, 0.9, 1.4]).boundary
    (True, False, None)
    """
    known = np.asarray(latencies, dtype=np.float64)
    unit = max(float(np.percentile(known, 1)), 1e-9)
    ordered = np.sort(np.log(np.maximum(known / unit, 1.0)))
    low, high = _two_means(ordered)
    if high - low < log(APART):
        return Groups(unit * exp(float(ordered.mean())), None, None)
    return Groups(unit * exp(low), unit * exp(high), unit * exp((low + high) / 2))


def _two_means(ordered: NDArray[np.float64]) -> tuple[float, float]:
    """The means of the lower and the higher part, cut where the squares within both are least; exact in one dimension.

    Least squares within is the same as the greatest distance between, n1 n2 (m2 - m1)^2.
    """
    n = len(ordered)
    if n < 2:
        return float(ordered[0]), float(ordered[0])
    sums = np.cumsum(ordered)[:-1]
    counts = np.arange(1, n)
    low, high = sums / counts, (ordered.sum() - sums) / (n - counts)
    cut = int(np.argmax(counts * (n - counts) * (high - low) ** 2))
    return float(low[cut]), float(high[cut])


def judge(measured: Sequence[Point], before: Sequence[Point]) -> tuple[Point, ...]:
    """Those of one rate's deployments that could not keep up.

    before: valid points of earlier rates.
    """
    found = groups([point.latency for point in measured]) if len(measured) > 2 else None
    if found is not None and found.boundary is not None:
        return tuple(point for point in measured if not found.valid(point.latency))
    return tuple(point for point in measured if _strays(point, [b for b in before if b.workers == point.workers]))


def _strays(point: Point, past: Sequence[Point]) -> bool:
    """Whether a latency is far above a line through the scale-out's own past, or much is left undone."""
    if point.throughput < ENOUGH * point.rate:
        return True
    if not past:
        return False
    latencies = np.log([max(each.latency, 1e-9) for each in past])
    expected = float(latencies.mean())
    if len(past) > 1:
        slope, intercept = np.polyfit([each.rate for each in past], latencies, 1)
        # Two noisy points make a steep line: it may not foretell more than was ever seen.
        expected = min(float(slope * point.rate + intercept), float(latencies.max()))
    return log(max(point.latency, 1e-9)) > expected + log(APART)
