"""What rescales cost and save: Daedalus with other settings against HPA 80, simulated, on the loads of `bench spark`.

    python benchmarks/rescales.py [--json] [--seeds 3] [--with worth=3600,foresight=0] [--with ...]

Word count on Spark as it was measured on usual days, with peaks at two shares of what six workers can do, and on the
slow days of November 2026, when a batch took a worker three quarters of a second besides its records and next to no
load took half of two workers' CPU. Workers warm up in 25 and in 45 s. For each machine: worker-seconds and average
latency as a share of HPA's, and the rescales of both. About 20 s of one core for each row and seed.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from penstock.experiment import bench
from penstock.experiment.cell import Cell, Row, execute
from penstock.targets.simulated import load as profile_named

PROFILE = "spark-wordcount"
LOADS = ("sine", "advertising")
WARM_UPS = (25, 45)
# What differs from the profile, and the peak as a share of what six workers do without a batch's fixed costs: 80 % of
# what four of them do, as in `bench spark`, or of all six. With five workers CPU on a slow day was 0.08 + rate / 11,170
# + 0.76 / seconds from batch to batch: 0.80 at 5,200 records/s each every 3 s, 0.97 at 8,700 in full batches.
SLOW = {"capacity": 11170.0, "batch_task": 0.45, "batch_tasks": 3, "batch_noise": 0.15, "cpu_noise": 0.05}
MACHINES: dict[str, tuple[dict[str, float], float]] = {
    "usual": ({}, 0.53),
    "usual, high": ({}, 0.8),
    "slow": (SLOW, 0.416),
    "fast": ({"capacity": 28_000.0, "batch_limit": 112_000}, 0.53),  # as `bench spark` has it there
    "fast, held": ({"capacity": 28_000.0}, 0.38),  # full batches at every trigger, 20,000 records/s each, are the limit
}


def cells(settings: Mapping[str, Any], load: str, machine: str, seeds: int) -> Iterator[Cell]:
    differs, peak = MACHINES[machine]
    plain = json.loads(json.dumps(asdict(profile_named(PROFILE))))  # as a TOML file has it: lists, no tuples
    measured = {key: value for key, value in plain.items() if value is not None}
    for warmup in WARM_UPS:
        for seed in range(seeds):
            ripple = {"seed": seed} if load == "advertising" else {}
            yield Cell(
                group=load,
                policy=str(settings["name"]),
                settings=settings,
                profile={**measured, **differs, "warmup": warmup},
                workload={**bench.LOADS[load], **ripple, "duration": 60 * bench.MINUTES},
                seed=seed,
                max_workers=bench.MOST,
                initial_workers=bench.FIRST_WORKERS,
                peak_share=peak,
                guards={"settle": 10},
            )


def lived(settings: Mapping[str, Any], seeds: int, pool: Executor) -> dict[tuple[str, str], list[Row]]:
    places = [(load, machine) for load in LOADS for machine in MACHINES]
    runs = {place: list(cells(settings, *place, seeds)) for place in places}
    return {place: list(pool.map(execute, made)) for place, made in runs.items()}


def mean(rows: list[Row], measure: str) -> float:
    return fmean(getattr(row, measure) for row in rows)


def compared(ours: list[Row], theirs: list[Row]) -> dict[str, float]:
    ratios = {name: mean(ours, name) / mean(theirs, name) for name in ("worker_seconds", "latency_mean")}
    return ratios | {"rescales": mean(ours, "rescales"), "rescales_hpa": mean(theirs, "rescales")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--with", dest="variants", action="append", default=[], help="settings of Daedalus; repeat it")
    arguments = parser.parse_args()
    chosen: dict[str, dict[str, float]] = {}
    for variant in ["", *arguments.variants]:
        try:
            pairs = (part.split("=") for part in variant.split(",") if part)
            chosen[variant] = {key: json.loads(value) for key, value in pairs}
        except ValueError:
            parser.error(f"--with must be like worth=3600,foresight=0, got {variant!r}")
    found: dict[str, dict[str, dict[str, float]]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        hpa = lived(bench.POLICIES["hpa-80"], arguments.seeds, pool)
        for variant in chosen:
            rows = lived({**bench.POLICIES["daedalus"], **chosen[variant]}, arguments.seeds, pool)
            found[variant or "as it is"] = {
                f"{load}, {machine}": compared(rows[load, machine], hpa[load, machine]) for load, machine in rows
            }
    if arguments.json:
        print(json.dumps(found))
        return
    table = Table("Daedalus", *next(iter(found.values())), title="worker-seconds, latency against HPA 80; rescales")
    for variant, places in found.items():
        shown = (
            f"{c['worker_seconds']:.2f} x, {c['latency_mean']:.2f} x; {c['rescales']:.1f} of {c['rescales_hpa']:.1f}"
            for c in places.values()
        )
        table.add_row(variant, *shown)
    Console().print(table)


if __name__ == "__main__":
    main()
