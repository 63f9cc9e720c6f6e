"""A load that somebody measured, read from a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import ConfigError, check
from penstock.workloads.base import Load, check_above_zero

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Recorded(Load):
    """Recorded arrivals at any resolution, regular or not, straight from one row to the next.

    A gap (no row, an empty value) is not known to be zero: the rate goes straight from the last known row to the next.

    path: a CSV (also .csv.gz) or Parquet file.
    time: the column of instants: numbers are seconds, else timestamps.
    value: the column of rates, or of counts with per.
    per: seconds that one value counts: 300 for records per five minutes, 1 for records/s.
    skip: seconds to leave out at the beginning.
    length: seconds to take; all the rest when left out.
    """

    kind: ClassVar[str] = "recorded"

    path: str
    time: str = "seconds"
    value: str = "rate"
    per: float = 1.0
    skip: float = 0.0
    length: float | None = None
    duration: float = field(init=False)
    _times: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _rates: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_above_zero("per", self.per)
        check(math.isfinite(self.skip) and self.skip >= 0, "skip", "be 0 seconds or more", self.skip)
        times, rates = _known_rows(Path(self.path), self.time, self.value)
        left = float(times[-1]) - self.skip
        check(left > 0, "skip", f"be below the {times[-1]:g} s that {self.path} lasts", self.skip)
        if self.length is not None:
            check_above_zero("length", self.length)
            check(self.length <= left, "length", f"be at most the {left:g} s that are there", self.length)
        object.__setattr__(self, "duration", left if self.length is None else float(self.length))
        object.__setattr__(self, "_times", times - self.skip)
        object.__setattr__(self, "_rates", rates / self.per)

    def at(self, t: float) -> float:
        return float(np.interp(t, self._times, self._rates))

    def peak(self) -> float:
        inside = self._rates[(self._times >= 0) & (self._times <= self.duration)]
        return float(max(self.at(0.0), self.at(self.duration), inside.max(initial=0.0)))


def _known_rows(path: Path, time: str, value: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds since the first row, and values, of the rows that have both."""
    table = _read(path)
    for name in (time, value):
        check(name in table.column_names, "column", f"be one of {', '.join(table.column_names)} ({path})", name)
    times, values = _numbers(table, time), _numbers(table, value)
    known = np.isfinite(times) & np.isfinite(values)
    check(int(known.sum()) >= 2, "path", "have two rows or more with a time and a value", str(path))
    times, values = times[known] - times[known][0], values[known]
    late = np.flatnonzero(np.diff(times) <= 0)
    check(not late.size, time, f"increase from row to row ({path})", float(times[late[0] + 1]) if late.size else None)
    check(bool((values >= 0).all()), value, f"be 0 or more ({path})", float(values.min()))
    return times, values


def _read(path: Path) -> pa.Table:
    import pyarrow as pa  # slow to import, and only recorded loads need it
    from pyarrow import csv, parquet

    try:
        if path.suffix in (".parquet", ".pq"):
            return parquet.read_table(path)
        return csv.read_csv(path)
    except OSError as error:
        raise ConfigError(f"path must be a file that can be read, got {str(path)!r}: {error}") from error
    except pa.ArrowInvalid as error:
        raise ConfigError(f"path must be a CSV or Parquet file, got {str(path)!r}: {error}") from error


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    """The column as numbers, timestamps as seconds; what is unknown becomes NaN, which no caller sees."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = pa.chunked_array([chunk.cast(pa.timestamp("ns")).cast(pa.int64()) for chunk in column.chunks])
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64) / 1e9
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise ConfigError(f"column {name} must hold numbers or timestamps, got {column.type}")
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
