"""Recorded arrivals: files of several makes, gaps, and the arrivals that others published."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import ConfigError
from penstock.workloads import Recorded, make_from

ROWS = "seconds,rate\n0,100\n10,200\n20,0\n"
ARRIVALS = Path(__file__).parents[3] / "shared" / "data" / "arrivals"


def written(folder: Path, text: str, name: str = "load.csv") -> str:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


INTERPOLATED = {
    "on a row": (ROWS, 10, 200),
    "between rows": (ROWS, 5, 150),
    "an empty value is unknown, not 0": ("seconds,rate\n0,100\n10,\n20,200\n", 10, 150),
    "NaN is unknown": ("seconds,rate\n0,100\n10,nan\n20,200\n", 10, 150),
    "a missing row is unknown": ("seconds,rate\n0,100\n1,100\n21,200\n", 11, 150),
    "irregular rows": ("seconds,rate\n0,0\n1,10\n10,100\n", 5.5, 55),
    "time starts at the first row": ("seconds,rate\n1000,100\n1010,200\n", 5, 150),
    "fractions of a second": ("seconds,rate\n0.0,0\n0.5,10\n", 0.25, 5),
    "a hole of hours": ("seconds,rate\n0,0\n1,0\n36001,36000\n", 18001, 18000),
    "other columns do not matter": ("note,seconds,rate\na,0,100\nb,10,200\n", 5, 150),
}


@pytest.mark.parametrize(("text", "t", "rate"), INTERPOLATED.values(), ids=INTERPOLATED)
def test_rate(tmp_path: Path, text: str, t: float, rate: float) -> None:
    assert Recorded(written(tmp_path, text)).rate(t) == pytest.approx(rate)


def test_a_compressed_file_reads_the_same(tmp_path: Path) -> None:
    plain, packed = Recorded(written(tmp_path, ROWS)), Recorded(written(tmp_path, ROWS, "load.csv.gz"))
    assert [plain.rate(t) for t in range(21)] == [packed.rate(t) for t in range(21)]
    assert (plain.duration, plain.peak()) == (20, 200)


def test_timestamps_and_counts(tmp_path: Path) -> None:
    path = written(tmp_path, "date,messages\n2020-02-01 00:00:00,300\n2020-02-01 00:05:00,600\n2020-02-01 00:10:00,\n")
    load = Recorded(path, time="date", value="messages", per=300)
    assert (load.rate(0), load.rate(150), load.peak(), load.duration) == (1.0, 1.5, 2.0, 300)


UNITS: dict[str, tuple[dict[str, object], float, float]] = {
    "milliseconds of the time column": ({"unit": "ms"}, 0.02, 200),
    "minutes, spelt out": ({"unit": "minutes"}, 1200, 200),
    "counts per minute": ({"per": "minute"}, 20, 200 / 60),
    "counts per ten seconds": ({"per": 10}, 20, 20),
    "both": ({"unit": "hour", "per": "hour"}, 72000, 200 / 3600),
}


@pytest.mark.parametrize(("config", "duration", "peak"), UNITS.values(), ids=UNITS)
def test_units(tmp_path: Path, config: dict[str, object], duration: float, peak: float) -> None:
    load = make_from({"kind": "recorded", "path": written(tmp_path, ROWS), **config})
    assert [load.duration, load.peak()] == pytest.approx([duration, peak])


def test_days_and_decimals(tmp_path: Path) -> None:
    path = tmp_path / "load.parquet"
    days = pa.array([0, 1], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"day": days, "n": pa.array(["1.5", "2.5"]).cast(pa.decimal128(5, 2))}), path)
    load = Recorded(str(path), time="day", value="n")
    assert (load.duration, load.peak()) == (86400, 2.5)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_parquet(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "load.parquet"
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    times = pa.array([60 * per_second, None, 90 * per_second], pa.int64()).cast(pa.timestamp(unit))
    pq.write_table(pa.table({"at": times, "n": [10, 15, 20]}), path)
    load = Recorded(str(path), time="at", value="n")
    assert (load.duration, load.rate(15)) == (30, 15)


def test_a_part_of_the_file(tmp_path: Path) -> None:
    load = Recorded(written(tmp_path, ROWS), skip=5, length=10)
    assert (load.duration, load.rate(0), load.rate(5), load.rate(10), load.peak()) == (10, 150, 200, 100, 200)
    assert Recorded(written(tmp_path, ROWS), skip=15).peak() == 100


def test_a_copy_needs_no_file(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS)
    packed = pickle.dumps(Recorded(path))
    Path(path).unlink()
    assert pickle.loads(packed).rate(5) == 150  # noqa: S301 - our own


REFUSED: dict[str, tuple[str, dict[str, object], str]] = {
    "another column": (ROWS, {"value": "messages"}, "column must be one of seconds, rate"),
    "negative rates": ("seconds,rate\n0,1\n1,-5\n", {}, "rate must be 0 or more"),
    "backwards": ("seconds,rate\n0,1\n5,1\n3,1\n", {}, "load.csv), got 3 s after 5 s"),
    "the same time twice": ("seconds,rate\n0,1\n5,1\n5,1\n", {}, "seconds must increase from row to row"),
    "a column twice": ("seconds,rate,rate\n0,1,2\n1,2,3\n", {}, "column must be there once only"),
    "ragged": ("seconds,rate\n0,1\n1\n2,3\n", {}, "path must be a CSV or Parquet file"),
    "a wrong unit word": (
        ROWS,
        {"unit": "secs"},
        "unit must be a unit of time (nanosecond, microsecond, millisecond, second, minute, hour, day), got 'secs'",
    ),
    "a wrong word for per": (ROWS, {"per": "fortnight"}, "per must be a unit of time (nanosecond, microsecond, milli"),
    "one row": ("seconds,rate\n0,1\n", {}, "path must have two rows or more with a time and a value"),
    "nothing known": ("seconds,rate\n0,\n1,\n2,\n", {}, "rate must hold numbers or timestamps"),
    "empty": ("", {}, "path must be a CSV or Parquet file"),
    "words": ("seconds,rate\n0,many\n1,few\n", {}, "column rate must hold numbers or timestamps, got string"),
    "skip everything": (ROWS, {"skip": 20}, "skip must be below the 20 s"),
    "longer than it is": (ROWS, {"skip": 5, "length": 16}, "length must be at most the 15 s that are there, got 16"),
    "counts over nothing": (ROWS, {"per": 0}, "per must be above 0, got 0"),
}


@pytest.mark.parametrize(("text", "config", "message"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_does_not_do_is_refused(tmp_path: Path, text: str, config: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        make_from({"kind": "recorded", "path": written(tmp_path, text), **config})
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_torn_archive_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "load.csv.gz"
    path.write_bytes(gzip.compress(("seconds,rate\n" + "1,2\n" * 999).encode())[:40])
    with pytest.raises(ConfigError, match=r"^path must be .*load\.csv\.gz.*$"):
        Recorded(str(path))
    (tmp_path / "load.parquet").write_text(ROWS)
    with pytest.raises(ConfigError, match=r"^path must be a CSV or Parquet file, got .*load\.parquet.*$"):
        Recorded(str(tmp_path / "load.parquet"))


def test_no_file() -> None:
    with pytest.raises(ConfigError, match=r"path must be a file that can be read, got 'nowhere\.csv'"):
        Recorded("nowhere.csv")


@pytest.mark.skipif(not ARRIVALS.is_dir(), reason=f"the published arrivals are not on this machine ({ARRIVALS})")
@pytest.mark.parametrize(
    ("name", "columns", "rows", "step"),
    [
        ("avazu-5min", ("date", "messages"), 3156, 300),
        ("cars-1s", ("seconds", "rate"), 21601, 1),
        ("google-5min", ("date", "messages"), 6049, 300),
        ("taxi-5min", ("date", "messages"), 6049, 300),
        ("wiki_de-5min", ("date", "messages"), 6048, 300),
    ],
)
def test_published_arrivals(name: str, columns: tuple[str, str], rows: int, step: int) -> None:
    time, value = columns
    load = make_from(
        {
            "kind": "recorded",
            "path": str(ARRIVALS / f"{name}.csv.gz"),
            "time": time,
            "value": value,
            "scale_to": 5000,
            "compress": 10,
        }
    )
    assert load.duration == (rows - 1) * step / 10
    sampled = [load.rate(i * step / 10) for i in range(rows)]
    assert max(sampled) == pytest.approx(5000) == load.peak()
    assert min(sampled) >= 0
