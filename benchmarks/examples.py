"""Run the example of each job's page in the docs for real, and say whether its results are right.

    python benchmarks/examples.py [--only JOB …] [--at-once 2] [--json]

Each takes about five minutes: a cluster of its own, a quick calibration, three minutes of load, a recount of every
record. Two at once share this machine's cores, so that only what is counted means anything, not how fast it went.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock import jobs

PAGES = Path(__file__).parent.parent / "docs" / "jobs"


@dataclass(frozen=True, slots=True)
class Row:
    """What came of an example; equal: whether the recount was; error: the last of what it said, if it failed."""

    job: str
    policy: str
    records: int | None
    equal: bool | None
    rescales: int | None
    average_workers: float | None
    error: str = ""


def example(job: str) -> str:
    """The experiment on the job's page."""
    found = re.search(r"```toml\n(.*?)```", (PAGES / f"{job}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, f"docs/jobs/{job}.md has no example"
    return found[1]


def run(job: str, folder: Path) -> Row:
    path = folder / f"{job}.toml"
    text = example(job)
    policy = tomllib.loads(text)["policy"]["name"]
    path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "penstock", "run", str(path), f"--into={folder / job}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        return Row(job, policy, None, None, None, None, said[-1])
    verdict, measures = told["verdict"], told["measures"]
    rescales = measures["rescales_up"] + measures["rescales_down"]
    return Row(job, policy, verdict["records_in"], verdict["equal"], rescales, measures["average_workers"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(jobs.JOBS), help="a job; may be repeated")
    parser.add_argument("--at-once", type=int, default=2, help="how many run beside each other")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    told = threading.Lock()

    def one(job: str) -> Row:
        row = run(job, Path(folder))
        with told:
            outcome = row.error or f"{row.records:,} records, {'equal' if row.equal else 'NOT EQUAL'}"
            print(f"· {job}: {outcome}", file=sys.stderr, flush=True)
        return row

    with (
        tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(arguments.at_once) as pool,
    ):
        rows = list(pool.map(one, arguments.only or list(jobs.JOBS)))
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print(f"{'job':<14} {'policy':<10} {'records':>12} {'recount':>10} {'rescales':>9} {'workers':>8}")
        for row in rows:
            if row.error:
                print(f"{row.job:<14} {row.error}")
                continue
            equal = "equal" if row.equal else "NOT EQUAL"
            figures = f"{row.records:>12,} {equal:>10} {row.rescales:>9} {row.average_workers:>8.1f}"
            print(f"{row.job:<14} {row.policy:<10} {figures}")
    sys.exit(0 if all(row.equal for row in rows) else 1)


if __name__ == "__main__":
    main()
