"""A load that somebody measured, read from a file."""

from __future__ import annotations

import difflib
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

UNITS = {
    "nanosecond": 1e-9,
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
}
SHORT = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second", "min": "minute", "h": "hour"}


@dataclass(frozen=True, slots=True)
class Recorded(Load):
    """Recorded arrivals at any resolution, regular or not, straight from one row to the next.

    A gap (no row, an empty value) is not known to be zero: the rate goes straight from the last known row to the next.

    path: a CSV (also .csv.gz) or Parquet file.
    time: the column of instants: numbers or timestamps, of any beginning.
    value: the column of rates, or of counts with per.
    unit: what the numbers of the time column are: second, millisecond, microsecond, nanosecond, minute, hour or day.
    per: what one value counts, in seconds or as such a word: 300 for records per five minutes, 1 for records/s.
    skip: seconds to leave out at the beginning.
    length: seconds to take; all the rest when left out.
    """

    kind: ClassVar[str] = "recorded"

    path: str
    time: str = "seconds"
    value: str = "rate"
    unit: str = "second"
    per: float | str = 1.0
    skip: float = 0.0
    length: float | None = None
    duration: float = field(init=False)
    holes: int = field(init=False, compare=False)  # rows without a time or a value
    _times: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _rates: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        per, unit = _seconds("per", self.per), _seconds("unit", self.unit)
        check(math.isfinite(self.skip) and self.skip >= 0, "skip", "be 0 seconds or more", self.skip)
        times, rates, holes = _known_rows(Path(self.path), self.time, self.value, unit)
        left = float(times[-1]) - self.skip
        check(left > 0, "skip", f"be below the {times[-1]:g} s that {self.path} lasts", self.skip)
        if self.length is not None:
            check_above_zero("length", self.length)
            check(self.length <= left, "length", f"be at most the {left:g} s that are there", self.length)
        object.__setattr__(self, "duration", left if self.length is None else float(self.length))
        object.__setattr__(self, "holes", holes)
        object.__setattr__(self, "_times", times - self.skip)
        object.__setattr__(self, "_rates", rates / per)

    def at(self, t: float) -> float:
        return float(np.interp(t, self._times, self._rates))

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.interp(ts, self._times, self._rates)

    def peak(self) -> float:
        inside = self._rates[(self._times >= 0) & (self._times <= self.duration)]
        return float(max(self.at(0.0), self.at(self.duration), inside.max(initial=0.0)))


def _seconds(field: str, given: float | str) -> float:
    """A number of seconds, also from the word for a unit of time: minute, minutes, min."""
    if not isinstance(given, str):
        check_above_zero(field, given)
        return given
    word = SHORT.get(given, given.lower().removesuffix("s"))
    if word not in UNITS:
        near = difflib.get_close_matches(given, [*UNITS, *SHORT], n=1)
        rule = f"be a unit of time ({', '.join(UNITS)})"
        raise ConfigError(f"{field} must {rule}, got {given!r}{f'; did you mean {near[0]!r}?' if near else ''}")
    return UNITS[word]


def _known_rows(path: Path, time: str, value: str, unit: float) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Seconds since the first row, and values, of the rows that have both, and how many have not.

    Numbers of time are in units of `unit`.
    """
    table = _read(path)
    for name in (time, value):
        check(name in table.column_names, "column", f"be one of {', '.join(table.column_names)} ({path})", name)
        check(table.column_names.count(name) == 1, "column", f"be there once only ({path})", name)
    times, values = _numbers(table, time, unit), _numbers(table, value)
    known = np.isfinite(times) & np.isfinite(values)
    check(int(known.sum()) >= 2, "path", "have two rows or more with a time and a value", str(path))
    times, values = times[known] - times[known][0], values[known]
    late = np.flatnonzero(np.diff(times) <= 0)
    if late.size:
        before, after = times[late[0]], times[late[0] + 1]
        raise ConfigError(f"{time} must increase from row to row ({path}), got {after:g} s after {before:g} s")
    check(bool((values >= 0).all()), value, f"be 0 or more ({path})", float(values.min()))
    return times, values, int((~known).sum())


def _read(path: Path) -> pa.Table:
    import pyarrow as pa  # slow to import, and only recorded loads need it
    from pyarrow import csv, parquet

    try:
        if path.suffix in (".parquet", ".pq"):
            return parquet.read_table(path)
        return csv.read_csv(path)
    except OSError as error:
        raise ConfigError(f"path must be a file that can be read, got {str(path)!r}: {_line(error)}") from error
    except (pa.ArrowException, ValueError) as error:  # ragged rows, another format, letters of another encoding
        raise ConfigError(f"path must be a CSV or Parquet file, got {str(path)!r}: {_line(error)}") from error


def _line(error: Exception) -> str:
    """What a library says, on one line."""
    return " ".join(str(error).split())


def _numbers(table: pa.Table, name: str, unit: float = 1.0) -> NDArray[np.float64]:
    """The column as numbers, times as seconds; what is unknown becomes NaN, which no caller sees."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = pa.chunked_array([chunk.cast(pa.timestamp("ns")).cast(pa.int64()) for chunk in column.chunks])
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64) / 1e9
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise ConfigError(f"column {name} must hold numbers or timestamps, got {column.type}")
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64) * unit
