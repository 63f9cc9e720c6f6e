"""What scale costs: each job saturated with 1, 2, 4 and 6 bounded workers, on a real cluster.

    python benchmarks/scale.py [--only JOB …] [--cpu 0.2] [--seconds 20] [--profiles DIRECTORY] [--json]

`penstock calibrate` for one job after another, about four minutes each. Per worker, as a share of what a single one
does; less than 80 % is marked. With --profiles, what was measured is also written as profiles for the simulator,
`spark-JOB.toml`; word count keeps the one it has, which knows more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock import jobs

SIZES = (1, 2, 4, 6)
GOAL = 0.8
KNOWN = "wordcount"


@dataclass(frozen=True, slots=True)
class Row:
    """A job at one scale-out, in records/s; spread: standard deviation over batches, as a share."""

    job: str
    workers: int
    rate: float
    spread: float
    batches: int
    of_single: float


def measure(name: str, cpu: float, seconds: float, profiles: Path | None) -> list[Row]:
    command = [sys.executable, "-m", "penstock", "calibrate", name, f"--cpu={cpu}", f"--seconds={seconds}", "--json"]
    command += [f"--at={workers}" for workers in SIZES]
    if profiles is not None and name != KNOWN:
        command.append(f"--profile={profiles / f'spark-{name}.toml'}")
    print(f"· {name}", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # its progress goes to our terminal
    found = json.loads(done.stdout)["capacities"]
    single = found[0]["rate"] / found[0]["workers"]
    return [
        Row(name, c["workers"], c["rate"], c["spread"], c["batches"], c["rate"] / c["workers"] / single) for c in found
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(jobs.JOBS), help="a job; may be repeated")
    parser.add_argument("--cpu", type=float, default=0.2, help="share of a core that each worker is bounded to")
    parser.add_argument("--seconds", type=float, default=20.0, help="of batches that are counted at each scale-out")
    parser.add_argument("--profiles", type=Path, help="a directory to write the simulator's profiles to")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.profiles is not None:
        arguments.profiles.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in arguments.only or jobs.JOBS:
        rows += measure(name, arguments.cpu, arguments.seconds, arguments.profiles)
        for row in rows[-len(SIZES) :]:
            share = f"{row.of_single:.0%} of a single one, each"
            print(f"· {name}: {row.workers} workers, {row.rate:,.0f} records/s, {share}", file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"{'job':<14} {'workers':>8} {'records/s':>12} {'spread':>8} {'of a single one, each':>22}")
    for row in rows:
        mark = "" if row.of_single >= GOAL else "  below the goal"
        print(f"{row.job:<14} {row.workers:>8} {row.rate:>12,.0f} {row.spread:>8.0%} {row.of_single:>22.0%}{mark}")


if __name__ == "__main__":
    main()
