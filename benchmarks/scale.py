"""What scale costs: each job saturated with 1, 2, 4 and 6 bounded workers, on a real cluster.

    python benchmarks/scale.py [--only JOB …] [--cpu 0.2] [--seconds 20] [--json]

Per worker, as a share of what a single one does; less than 80 % is marked. About five minutes for each job.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock import jobs
from penstock.experiment import capacity, spec
from penstock.experiment.pipeline import Pipeline

SIZES = (1, 2, 4, 6)
GOAL = 0.8
EXPERIMENT = """
job = "{job}"
max_workers = {most}
[workload]
kind = "constant"
level = 0
[policy]
name = "static"
[cluster]
cpu = {cpu}
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A job at one scale-out, in records/s; spread: standard deviation over batches, as a share."""

    job: str
    workers: int
    rate: float
    spread: float
    of_single: float


def tell(text: str) -> None:
    print(f"· {text}", file=sys.stderr, flush=True)


def measure(name: str, cpu: float, seconds: float) -> list[Row]:
    found: list[capacity.Capacity] = []
    experiment = spec.parse(EXPERIMENT.format(job=name, most=max(SIZES), cpu=cpu), name)
    with (
        tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder,
        Pipeline(experiment, Path(folder), workers=1, tell=tell) as pipeline,
    ):
        pipeline.warm_up()
        for workers in (n for n in SIZES if n <= pipeline.cluster.max_workers):
            found.append(capacity.measure(pipeline, workers, seconds=seconds))
            tell(f"{name}: {workers} workers do {found[-1].rate:,.0f} records/s")
    single = found[0].per_worker
    return [Row(name, each.workers, each.rate, each.spread, each.per_worker / single) for each in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(jobs.JOBS), help="a job; may be repeated")
    parser.add_argument("--cpu", type=float, default=0.2, help="share of a core that each worker is bounded to")
    parser.add_argument("--seconds", type=float, default=20.0, help="of batches that are counted at each scale-out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = [row for name in arguments.only or jobs.JOBS for row in measure(name, arguments.cpu, arguments.seconds)]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"{'job':<14} {'workers':>8} {'records/s':>12} {'spread':>8} {'of a single one, each':>22}")
    for row in rows:
        mark = "" if row.of_single >= GOAL else "  below the goal"
        print(f"{row.job:<14} {row.workers:>8} {row.rate:>12,.0f} {row.spread:>8.0%} {row.of_single:>22.0%}{mark}")


if __name__ == "__main__":
    main()
