"""The suite on the real cluster: the same job and the same loads under one policy after another.

As Daedalus was evaluated (ICPE 2024, sec. 4.2 to 4.5): what the static deployment can do is measured first, once, and
every load's peak is set below it; each policy then gets the very same load, and may have half as many workers more than
static. Six hours there are minutes here, so all policies have their seconds divided by one number, TIME_SCALE.

A suite lives in a directory: `capacity.json` and one directory per run. Begun again there, it keeps what has finished
and goes on with the rest.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from penstock import workloads
from penstock.errors import ConfigError, Unavailable
from penstock.experiment import capacity, spec
from penstock.experiment.pipeline import Pipeline
from penstock.workloads import Load

TIME_SCALE = 15.0  # how many times faster than in the paper every policy's clock runs; the load is compressed 30 times
REQUEST = 0.5  # of a worker's limit: what HPA's percentages are of in the paper's Flink deployment
PEAK = 0.8  # of what static can do: "scaled so that the maximum … is less than this throughput", sec. 4.2
MINUTES = 12.0
MOST = 6
STATIC = 12 / 18  # of the most workers: static has 12 in sec. 4.3.1, and an autoscaler may have 18
FIRST_WORKERS = 2  # for all but static
WARM_UP = 12  # batches before the load begins: in 12 minutes a cold JVM counts for more than in six hours
CALIBRATION_SECONDS = 45.0
CALIBRATION_BATCHES = 5
BATCH = 60_000  # records of a batch for each worker at most: on most machines that is four seconds of work or more …
BATCH_SECONDS = 4.0  # … and on a fast one it is made so, or the limit would be the trigger, and not CPU
OWN = ("calibration", "capacity.json.partial")  # what a calibration that was stopped leaves behind

Table = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Case:
    """One run of the suite: a load under a policy."""

    load: str
    policy: str

    @property
    def name(self) -> str:
        return f"{self.load}-{self.policy}"


CASES = (
    Case("sine", "daedalus"),
    Case("sine", "hpa-80"),
    Case("sine", "hpa-85"),
    Case("sine", "static"),
    Case("advertising", "daedalus"),
    Case("advertising", "hpa-80"),
    Case("sine", "hpa-80-of-limit"),  # the last, for whoever counts against all that a worker may use
)

# Shapes only: the peak comes from the calibration, the duration from the suite.
LOADS: dict[str, Table] = {
    "sine": {"kind": "sine", "low": 0.1, "high": 1.0, "periods": 2},
    "advertising": {"kind": "advertising", "high": 1.0},
}


def _hpa(target_cpu: float, request: float = REQUEST) -> Table:
    """Kubernetes' defaults with the paper's five minutes between changes, both ways (sec. 4.3.2), in scaled time.

    The percentages are of what a pod requests, in the paper's deployment half of what it may use: docs/simulator.md.
    """
    return {
        "name": "hpa",
        "target_cpu": target_cpu,
        "cpu_request": request,
        "interval": 15 / TIME_SCALE,
        "scale_up_period": 15 / TIME_SCALE,
        "scale_down_period": 15 / TIME_SCALE,
        "scale_up_stabilisation": 300 / TIME_SCALE,
        "scale_down_stabilisation": 300 / TIME_SCALE,
    }


POLICIES: dict[str, Table] = {
    "daedalus": {"name": "daedalus", "time_scale": TIME_SCALE},
    "hpa-80": _hpa(0.80),
    "hpa-85": _hpa(0.85),
    "hpa-80-of-limit": _hpa(0.80, request=1.0),
    "static": {"name": "static"},
}


@dataclass(frozen=True, slots=True)
class Calibration:
    """What all runs of a suite share, so that a resumed one cannot differ from those before.

    minutes, max_workers, static: as asked for; workers: those of static that the cluster has room for.
    rate: records/s that these could do, from `batches` batches with this `spread`; peak: records/s of every load.
    machine: where it was measured.
    batch: records that a batch of a run has at most for each worker.
    """

    minutes: float
    max_workers: int
    static: int
    workers: int
    rate: float
    spread: float
    batches: int
    peak: float
    machine: str
    batch: int = BATCH

    @property
    def per_worker(self) -> float:
        return self.rate / self.workers


def choose(only: Iterable[str] = ()) -> tuple[Case, ...]:
    """The cases of these names, or all of them, in the suite's order."""
    names = list(only)
    known = [case.name for case in CASES]
    for name in names:
        if name not in known:
            raise ConfigError(f"only must be one of {', '.join(known)}, got {name!r}")
    return tuple(case for case in CASES if not names or case.name in names)


def static_of(most: int) -> int:
    """How many workers static has, where so many are the most: as many as the paper's, in proportion."""
    return max(1, round(STATIC * most))


def toml(case: Case, *, peak: float, minutes: float, most: int, static: int, batch: int = BATCH) -> str:
    """The experiment of a case, as a file that `penstock run` also takes.

    >>> print(toml(Case("sine", "static"), peak=9000, minutes=12, most=6, static=4).split("[guards]")[0].strip())
    name = "sine-static"
    job = "wordcount"
    min_workers = 1
    max_workers = 6
    initial_workers = 4
    <BLANKLINE>
    [workload]
    kind = "sine"
    low = 0.1
    high = 1.0
    periods = 2
    duration = 720.0
    scale_to = 9000
    <BLANKLINE>
    [stream]
    warm_up = 12
    max_records_per_worker = 60000
    <BLANKLINE>
    [policy]
    name = "static"
    workers = 4
    """
    still = case.policy == "static"
    policy = {**POLICIES[case.policy], **({"workers": static} if still else {})}
    first = static if still else min(FIRST_WORKERS, most)
    stream: Table = {"warm_up": WARM_UP, "max_records_per_worker": batch}
    return _text(case.name, most, first, _shape(case.load, peak, minutes), policy, stream)


def load(name: str, *, peak: float, minutes: float) -> Load:
    """One of the suite's loads, as every policy gets it."""
    return workloads.make_from(_shape(name, peak, minutes))


def _shape(name: str, peak: float, minutes: float) -> Table:
    return {**LOADS[name], "duration": float(minutes) * 60, "scale_to": peak}


def _text(name: str, most: int, first: int, workload: Table, policy: Table, stream: Table) -> str:
    head: Table = {
        "name": name,
        "job": "wordcount",
        "min_workers": 1,
        "max_workers": most,
        "initial_workers": first,
    }
    tables = {"workload": workload, "stream": stream, "policy": policy, "guards": {"settle": 10}}
    return _lines(head) + "".join(f"\n[{key}]\n{_lines(table)}" for key, table in tables.items())


def _lines(table: Table) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())  # JSON's scalars are TOML's


def experiments(
    cases: Iterable[Case], *, peak: float, minutes: float, most: int, static: int, batch: int = BATCH
) -> dict[Case, spec.Experiment]:
    """The cases, checked: what is wrong with one is said before anything starts."""
    texts = {c: toml(c, peak=peak, minutes=minutes, most=most, static=static, batch=batch) for c in cases}
    return {case: spec.parse(text, case.name) for case, text in texts.items()}


def finished(directory: Path, experiment: spec.Experiment) -> bool:
    """Whether this run is there, whole; ConfigError if another one is."""
    summary = directory / "summary.json"
    if not summary.exists() or not json.loads(summary.read_text())["finished"]:
        return False
    copy = directory / "experiment.toml"
    if not copy.exists() or copy.read_text() != experiment.text:
        raise ConfigError(
            f"into must be a new directory or one of the same suite, got {str(directory.parent)!r}, "
            f"where {directory.name} has run with other settings"
        )
    return True


def recall(into: Path) -> Calibration | None:
    """The calibration that a suite in this directory began with; None if there is none yet."""
    path = into / "capacity.json"
    if not path.exists():
        return None
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        return Calibration(**{field.name: document[field.name] for field in fields(Calibration)})
    except (ValueError, TypeError, KeyError):
        raise ConfigError(f"into must have the capacity.json of a suite, got {str(path)!r}, which is none") from None


def claim(into: Path, *, minutes: float, most: int, static: int) -> Calibration | None:
    """The calibration of the suite in this directory, None where there is to be one; ConfigError for anything else."""
    known = recall(into)
    if known is None:
        if into.exists() and (not into.is_dir() or any(path.name not in OWN for path in into.iterdir())):
            raise ConfigError(f"into must be a new directory or one of a suite, got {str(into)!r}")
        return None
    for field, before, now in (
        ("minutes", known.minutes, minutes),
        ("max", known.max_workers, most),
        ("static", known.static, static),
    ):
        if before != now:
            raise ConfigError(f"{field} must be {before:g}, as {str(into)!r} began with, got {now:g}")
    return known


def calibrate(
    into: Path,
    *,
    minutes: float,
    most: int,
    static: int,
    tell: Callable[[str], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Calibration:
    """What static's workers can do, one batch after the other; measured once, and kept with the suite."""
    known = claim(into, minutes=minutes, most=most, static=static)
    if known is not None:
        return known
    directory = into / "calibration"
    shutil.rmtree(directory, ignore_errors=True)  # of one that was stopped
    # No trigger is waited for: what CPU allows is asked.
    stream: Table = {"warm_up": WARM_UP, "max_records_per_worker": BATCH, "trigger": 0}
    text = _text("calibration", most, static, {"kind": "constant", "level": 0}, POLICIES["static"], stream)
    with Pipeline(spec.parse(text, "calibration"), directory, workers=static, tell=tell) as pipeline:
        tell("warming up: the first batches load and compile")
        pipeline.warm_up(stop)
        workers = min(static, pipeline.cluster.max_workers)
        tell(f"calibrating: how much can {workers} workers do here?")
        found = capacity.measure(pipeline, workers, batches=CALIBRATION_BATCHES, seconds=CALIBRATION_SECONDS, stop=stop)
        bounded, larger = pipeline.cluster.groups is not None, pipeline.max_records_per_worker / BATCH
    shutil.rmtree(directory, ignore_errors=True)
    calibration = Calibration(
        minutes,
        most,
        static,
        workers,
        found.rate,
        found.spread,
        found.batches,
        PEAK * found.rate,
        _machine(bounded),
        batch_of(found.per_worker / larger),
    )
    partial = into / "capacity.json.partial"
    partial.write_text(json.dumps(asdict(calibration), indent=2))
    partial.rename(into / "capacity.json")  # whole or not at all
    tell(f"{workers} workers do {found.rate:,.0f} records/s (± {found.spread:.0%} between batches)")
    return calibration


def batch_of(per_worker: float) -> int:
    """Records of a batch for a worker that does so many a second.

    >>> batch_of(9_000.0), batch_of(26_400.0)
    (60000, 106000)
    """
    return max(BATCH, 1000 * round(BATCH_SECONDS * per_worker / 1000))


def run(
    cases: Sequence[Case],
    into: Path,
    *,
    minutes: float,
    most: int,
    static: int,
    do: Callable[[Case | None, str], int],
    tell: Callable[[str], None] = lambda _: None,
) -> int:
    """Calibrate, then run what has not finished, in order.

    do: runs a case, or calibrates without one, under a title; the first that is not 0 ends the suite and is returned.
    """
    calibration = claim(into, minutes=minutes, most=most, static=static)
    # What is wrong with any case is said now: before the calibration the peak is not known, but all else is.
    peak, room, batch = 1.0, static, BATCH
    if calibration is not None:
        peak, room, batch = calibration.peak, calibration.workers, calibration.batch
    for case, experiment in experiments(cases, peak=peak, minutes=minutes, most=most, static=room, batch=batch).items():
        finished(into / case.name, experiment)
    into.mkdir(parents=True, exist_ok=True)
    if calibration is None:
        title = f"calibration: {static} workers, saturated, for all runs alike"
        tell(title)
        if code := do(None, title):
            return code
        calibration = recall(into)
        if calibration is None:
            raise Unavailable(f"the calibration ended without a result in {str(into)!r}")
    tell(f"the peak of every load is {calibration.peak:,.0f} of {calibration.rate:,.0f} records/s")
    checked = experiments(
        cases,
        peak=calibration.peak,
        minutes=minutes,
        most=most,
        static=calibration.workers,
        batch=calibration.batch,
    )
    for place, case in enumerate(cases, 1):
        title = f"run {place} of {len(cases)}: {case.policy} on {case.load}"
        if finished(into / case.name, checked[case]):
            tell(f"{title}: finished before, kept")
            continue
        tell(title)
        if code := do(case, title):
            return code
    return 0


def _machine(bounded: bool) -> str:
    kind = "each worker bounded to its share of a core" if bounded else "workers not bounded to a share of a core"
    return f"{platform.system()}, {os.cpu_count()} cores, PySpark {version('pyspark')}, {kind}"
