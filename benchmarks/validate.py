"""Does the simulator agree with reality? Recorded load and worker counts in, errors out, per run.

    python benchmarks/validate.py [DATA] [--json] [--shipped]

DATA is the folder of recorded runs (koper/ and phoebe/, see docs/simulator.md). Each profile is calibrated on part of
its runs and validated on the others; both errors are printed. With --shipped the profiles are taken as they are.
Exit code 1 if a run that was not used for calibration misses a goal.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.targets.simulated import Agreement, Profile, Run, agree, feed, fit, load

GOALS = {"throughput": 0.10, "cpu": 0.15, "backlog": 0.90, "latency": 0.90}
FITTED = (
    *("capacity", "exponent", "ceiling", "idle_cpu", "full_cpu", "downtime_out", "downtime_in", "downtime_failure"),
    *("warmup", "warmup_speed", "warmup_cpu", "behind_speed", "burst", "backlog_floor"),
)
EMPTY: NDArray[np.float64] = np.zeros(0)
PROFILES = {
    "koper/q1-": "nexmark-q1-koper",
    "koper/q3-": "nexmark-q3-koper",
    "koper/q11-": "nexmark-q11-koper",
    "phoebe/cars-": "top-speed-windowing",
    "phoebe/ads-": "ysb-phoebe",
}
# Query 3 has two sources with half the load each (Koper sec. 4.6), and its recorded throughput is that of one.
SEEN = {"koper/q3-": 2.0}
# Chaos Mesh took a worker's heartbeats away eight times, at the same instants of every run: by the loads that table II
# gives for them. Throughput begins to fall 28 s (cars) and 52 s (ads) later, as read off the runs with 24 workers,
# whose load is never the reason; until then the job works on.
FAILED = 1185
# Its throughput metric is missing: lag shows some 290 million records read where throughput adds up to 10 million.
BROKEN = ("q3-ds2-modern-00",)


def columns(path: Path) -> dict[str, NDArray[np.float64]]:
    """The columns of a recorded run; what is empty is NaN."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}


def koper(path: Path, factor: float) -> Run:
    """A run of the thesis: one row per 15 s."""
    data = columns(path)
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


def phoebe(path: Path) -> Run:
    """A run of Phoebe's artefacts: every tenth second, as its values are means of two minutes.

    Failures were injected; the record shows them but does not name them.
    """
    data = columns(path)
    return Run(
        name=path.name.removesuffix(".csv.gz"),
        every=10.0,
        load=data["input_rate"][::10],
        workers=data["workers"][::10],
        throughput=data["throughput"][::10],
        backlog=EMPTY,
        latency=data["latency_ms"][::10] / 1000,
        cpu=EMPTY,
        failures=tuple(float(FAILED + 2745 * i) for i in range(8)),
    )


def runs(data: Path, prefix: str) -> list[Run]:
    """The runs of one profile, by name."""
    paths = sorted(
        path for path in data.glob(f"{prefix}*.csv.gz") if not path.name.startswith(("cars-profile", *BROKEN))
    )
    factor = SEEN.get(prefix, 1.0)
    return [koper(path, factor) if prefix.startswith("koper") else phoebe(path) for path in paths]


def split(prefix: str, found: list[Run]) -> list[Run]:
    """Those to calibrate on. Koper: every other setting; Phoebe: fixed scale-outs 4 and 12, and reactive."""
    if prefix.startswith("koper"):
        return found[::2]
    return [run for run in found if run.name.endswith(("static-4", "static-12", "reactive-1"))]


def compare(profile: Profile, run: Run) -> Agreement:
    """One run lived through again."""
    fed = feed(profile, run.load, run.workers, seed=0, every=run.every, failures=run.failures)
    return agree(run, fed)


def misses(agreement: Agreement) -> list[str]:
    """The goals that a run does not reach."""
    return [
        name
        for name, goal in GOALS.items()
        if (value := getattr(agreement, name)) is not None
        and (value > goal if name in ("throughput", "cpu") else value < goal)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--json", action="store_true", help="print one JSON object per run")
    parser.add_argument("--shipped", action="store_true", help="take the profiles as they are, without calibration")
    parser.add_argument("--only", default="", help="only profiles whose name contains this")
    arguments = parser.parse_args()
    missed = 0
    for prefix, name in PROFILES.items():
        if arguments.only not in name:
            continue
        found = runs(arguments.data, prefix)
        if not found:
            print(f"{name}: no runs in {arguments.data}", file=sys.stderr)
            continue
        known = split(prefix, found)
        profile = load(name) if arguments.shipped else fit(load(name), known)
        if not arguments.json:
            print(f"{name}: " + ", ".join(f"{key} {getattr(profile, key):.4g}" for key in FITTED))
        for run in found:
            part = "calibrated" if run in known else "validated"
            agreement = compare(profile, run)
            wrong = misses(agreement)
            missed += bool(wrong) and part == "validated"
            if arguments.json:
                print(json.dumps({"profile": name, "part": part, **asdict(agreement), "misses": wrong}))
                continue
            cells = [f"{key} {'-' if (v := getattr(agreement, key)) is None else f'{v:6.1%}'}" for key in GOALS]
            print(f"  {part:10} {run.name:28} {'  '.join(cells)}  {'misses ' + ', '.join(wrong) if wrong else 'ok'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
