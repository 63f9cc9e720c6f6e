"""A run as aligned arrays, from a journal or from a simulator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.core import Observation
from penstock.errors import check
from penstock.journal import Record
from penstock.measures.summary import spans

Floats = NDArray[np.float64]
MEASURED = ("input_rate", "processed_rate", "backlog", "latency")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """What held when, row by row. In these arrays, and nowhere else in Penstock, NaN is what is not known.

    at: when a row begins, in seconds.
    seconds: how long it holds; none for what was seen just before a gap.
    workers: how many there are to be paid, also while the job is down.
    input_rate, processed_rate: records/s.
    backlog: records.
    latency: seconds.
    """

    at: Floats
    seconds: Floats
    workers: Floats
    input_rate: Floats
    processed_rate: Floats
    backlog: Floats
    latency: Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            values = getattr(self, field.name)
            check(values.shape == self.at.shape, field.name, f"have {len(self.at)} values, as `at`", values.shape)
        check(bool((np.diff(self.at) >= 0).all()), "at", "be in order of time", "a time before the one before it")
        check(bool((self.seconds >= 0).all()), "seconds", "be 0 or more", float(self.seconds.min(initial=0)))

    @classmethod
    def ticks(cls, tick: float, *, start: float = 0.0, **known: ArrayLike) -> Series:
        """Rows of equal length, as a simulator has them; what is not given is unknown.

        >>> Series.ticks(1, workers=[2, 2, 3], latency=[0.1, 0.1, 4]).at.tolist()
        [0.0, 1.0, 2.0]
        """
        check(tick > 0, "tick", "be above 0 seconds", tick)
        unknown = set(known) - {"workers", *MEASURED}
        check(not unknown, "series", f"be some of workers, {', '.join(MEASURED)}", sorted(unknown))
        given = {name: np.asarray(values, dtype=np.float64) for name, values in known.items()}
        rows = max((len(values) for values in given.values()), default=0)
        nothing = {name: np.full(rows, nan) for name in ("workers", *MEASURED)}
        at = np.asarray(start + tick * np.arange(rows), dtype=np.float64)
        return cls(at=at, seconds=np.full(rows, float(tick)), **(nothing | given))

    @classmethod
    def of(cls, records: Iterable[Record]) -> Series:
        """The observations of a journal, each until the next.

        While nobody looked, the workers last seen run on, and nothing else is known.
        """
        rows: list[tuple[float, ...]] = []
        workers, latest = nan, -np.inf
        for span in spans(list(records)):
            seen = span.observation
            workers = workers if seen.workers is None else float(seen.workers)
            latest = max(latest, seen.at)  # a clock that goes back stands still
            rows.append((latest, span.seen, workers, *_measured(seen)))
            if span.gap:
                rows.append((latest, span.seconds, workers, nan, nan, nan, nan))
        columns = np.array(rows, dtype=np.float64).reshape(len(rows), 7).T
        return cls(**{field.name: column for field, column in zip(fields(cls), columns, strict=True)})

    @property
    def duration(self) -> float:
        """Seconds in all."""
        return float(self.seconds.sum())

    @property
    def end(self) -> float:
        """When the last row ends."""
        return float(self.at[-1] + self.seconds[-1]) if len(self.at) else 0.0


def _measured(seen: Observation) -> tuple[float, ...]:
    return tuple(nan if value is None else float(value) for value in (getattr(seen, name) for name in MEASURED))


def weights(values: Floats, seconds: Floats) -> Floats:
    """For how long each value was known; if no time passed at all, each that is known counts once."""
    known = np.where(np.isnan(values), 0.0, seconds)
    return known if known.sum() > 0 else np.where(np.isnan(values), 0.0, 1.0)


def mean(values: Floats, seconds: Floats) -> float | None:
    """The mean over the time in which there was a value."""
    weight = weights(values, seconds)
    total = float(weight.sum())
    return float((np.where(weight > 0, values, 0.0) * weight).sum() / total) if total else None


def highest(values: Floats) -> float | None:
    """The highest value that is known."""
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else None
