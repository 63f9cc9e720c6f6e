"""Runs that really happened, as the simulator can live through them again: others' Flink runs, and our own journals.

The folder of others' runs has koper/ (one row per 15 s) and phoebe/ (one per second), see docs/simulator.md. Which of
them a profile is calibrated on is fixed here, so that nobody chooses after the fact.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock import journal as journals
from penstock.errors import ConfigError, check
from penstock.journal import Decided, Sample
from penstock.settings import one_of
from penstock.targets.simulated import Run

Floats = NDArray[np.float64]

PROFILES = {
    "nexmark-q1-koper": "koper/q1-",
    "nexmark-q3-koper": "koper/q3-",
    "nexmark-q11-koper": "koper/q11-",
    "top-speed-windowing": "phoebe/cars-",
    "ysb-phoebe": "phoebe/ads-",
}
KOPER = ("input_rate", "throughput", "lag", "latency_s", "cpu", "workers")
PHOEBE = ("input_rate", "throughput", "latency_ms", "workers")
# Query 3 has two sources with half the load each (Koper sec. 4.6), and its recorded throughput is that of one.
SEEN = {"koper/q3-": 2.0}
# Chaos Mesh took a worker's heartbeats away eight times, at the same instants of every run: by the loads that table II
# gives for them. Throughput begins to fall 28 s (cars) and 52 s (ads) later, as read off the runs with 24 workers,
# whose load is never the reason; until then the job works on.
FAILED = 1185.0
FAILED_EVERY, FAILURES = 2745.0, 8
# No run under an autoscaler; and one whose throughput metric is missing: its lag shows some 290 million records read
# where its throughput adds up to 10 million.
LEFT_OUT = ("cars-profile", "q3-ds2-modern-00")
PHOEBE_EVERY = 10  # its values are means of two minutes: every tenth second says all
JOURNAL_EVERY = 5.0  # seconds: about a micro-batch


@dataclass(frozen=True)
class Evidence:
    """The runs of one profile: to calibrate on, and to validate with."""

    profile: str
    calibrate: tuple[Run, ...]
    validate: tuple[Run, ...]


def recorded(folder: Path, only: Sequence[str] = ()) -> list[Evidence]:
    """Others' runs in a folder, by profile.

    Koper's are calibrated on every other setting; Phoebe's on fixed scale-outs of 4 and 12 and on reactive scaling.
    """
    for name in only:
        one_of("only", PROFILES, name)
    if not folder.is_dir():
        raise ConfigError(f"data must be a directory of recorded runs (koper/, phoebe/), got {str(folder)!r}")
    found = []
    for profile, prefix in PROFILES.items():
        if only and profile not in only:
            continue
        paths = [path for path in sorted(folder.glob(f"{prefix}*.csv.gz")) if not path.name.startswith(LEFT_OUT)]
        runs = [_koper(path, SEEN.get(prefix, 1.0)) if prefix.startswith("koper") else _phoebe(path) for path in paths]
        if prefix.startswith("koper"):
            known = [place % 2 == 0 for place in range(len(runs))]
        else:
            known = [run.name.endswith(("static-4", "static-12", "reactive-1")) for run in runs]
        if runs:
            found.append(_split(profile, runs, known))
    if not found:
        wanted = " or ".join(f"{prefix}*.csv.gz" for name, prefix in PROFILES.items() if not only or name in only)
        raise ConfigError(f"data must hold recorded runs ({wanted}), got {str(folder)!r}, which has none")
    return found


def own(paths: Sequence[Path], profile: str) -> Evidence:
    """Runs of our own, from their journals: calibrated on every other one, if there are several."""
    runs = [from_journal(path) for path in paths]
    return _split(profile, runs, [len(runs) > 1 and place % 2 == 0 for place in range(len(runs))])


def _split(profile: str, runs: Sequence[Run], known: Sequence[bool]) -> Evidence:
    pairs = list(zip(runs, known, strict=True))
    return Evidence(profile, tuple(run for run, yes in pairs if yes), tuple(run for run, yes in pairs if not yes))


def from_journal(path: Path) -> Run:
    """A journal as rows of five seconds, each with what was seen last in it."""
    records = [r for r in journals.read(path) if isinstance(r, Sample | Decided)]
    seen = [r.observation for r in records if r.observation is not None]
    if not seen:
        raise ConfigError(f"journal must have observations, got {str(path)!r}, which has none")
    begin = seen[0].at
    rows = int((seen[-1].at - begin) // JOURNAL_EVERY) + 1
    check(rows >= 2, "journal", f"last at least {2 * JOURNAL_EVERY:g} s to be lived through again", str(path))
    found = np.full((6, rows), np.nan)
    lost: set[float] = set()
    for o in seen:
        row = int((o.at - begin) // JOURNAL_EVERY)
        values = (o.input_rate, o.workers, o.processed_rate, o.backlog, o.latency, o.cpu)
        found[:, row] = [
            before if value is None else value for value, before in zip(values, found[:, row], strict=True)
        ]
        if any(event.code == "worker.lost" for event in o.events):
            lost.add(o.at - begin)
    name = path.parent.name if path.name == "journal.jsonl" else path.stem
    for what, values in (("input rates", found[0]), ("worker counts", found[1])):
        if not np.isfinite(values).any():
            raise ConfigError(f"journal must have {what}, got {str(path)!r}, which has none")
    load, workers, throughput, backlog, latency, cpu = found
    return Run(name, JOURNAL_EVERY, load, workers, throughput, backlog, latency, cpu, tuple(sorted(lost)))


def _koper(path: Path, factor: float) -> Run:
    """A run of the thesis; its latency may be a little below 0, as two clocks are."""
    data = _columns(path, KOPER)
    return Run(
        name=path.name.removesuffix(".csv.gz"),
        every=15.0,
        load=data["input_rate"],
        workers=data["workers"],
        throughput=data["throughput"] * factor,
        backlog=data["lag"],
        latency=np.maximum(data["latency_s"], 0.0),
        cpu=data["cpu"],
    )


def _phoebe(path: Path) -> Run:
    """A run of Phoebe's artefacts, without backlog and CPU. Failures were injected; the record does not name them."""
    data = {name: values[::PHOEBE_EVERY] for name, values in _columns(path, PHOEBE).items()}
    unknown = np.full(len(data["workers"]), np.nan)
    return Run(
        name=path.name.removesuffix(".csv.gz"),
        every=float(PHOEBE_EVERY),
        load=data["input_rate"],
        workers=data["workers"],
        throughput=data["throughput"],
        backlog=unknown,
        latency=data["latency_ms"] / 1000,
        cpu=unknown,
        failures=tuple(FAILED + FAILED_EVERY * i for i in range(FAILURES)),
    )


def _columns(path: Path, names: Sequence[str]) -> Mapping[str, Floats]:
    """These columns of a recorded run; what is empty is NaN."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise ConfigError(f"data must be CSV compressed with gzip, got {str(path)!r}: {error}") from None
    for name in names:
        if not rows or rows[0].get(name) is None:
            raise ConfigError(f"{path} must have a column {name}, got {', '.join(rows[0]) if rows else 'no rows'}")
    found = {}
    for name in names:
        try:
            found[name] = np.array([float(row[name] or "nan") for row in rows])
        except ValueError as error:
            raise ConfigError(f"{path}: {name} must be a number in every row, got {error}") from None
    return found
