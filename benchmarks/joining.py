"""What a worker that joins costs: latency and CPU of the minute after a scale-out, on a real cluster.

    python benchmarks/joining.py [--times 4] [--to 4] [--rate 12000] [--json]

Word count under a constant load that two workers can do goes from two workers to `--to` and back, some times. Each
time: how long the new ones took to register, the CPU seconds that the dearest of them had used until then and after 15
and 40 s (what is above the old ones' is loading and compiling), the longest batch, and the mean latency of the minute.
Two minutes each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from penstock.core import Observation
from penstock.errors import Unavailable
from penstock.experiment import spec
from penstock.experiment.pipeline import Pipeline
from penstock.experiment.spark_rig import SparkSite

EXPERIMENT = """
job = "wordcount"
max_workers = {most}
[stream]
warm_up = 12
[workload]
kind = "constant"
level = 0
[policy]
name = "static"
"""
FIRST = 2
WATCHED = 60.0  # seconds after a scale-out
REST = 45.0  # seconds between two, with the first workers alone


@dataclass(frozen=True, slots=True)
class Row:
    """One scale-out; seconds."""

    registered: float
    cpu_registered: float
    cpu_15: float
    cpu_40: float
    longest_batch: float
    latency_before: float
    latency: float


def tell(text: str) -> None:
    print(f"· {text}", file=sys.stderr, flush=True)


def watched(pipeline: Pipeline, seconds: float) -> list[tuple[Observation, dict[str, float]]]:
    """What is seen in so many seconds, with the CPU seconds that each worker has used so far."""
    seen = []
    groups, cluster = pipeline.cluster.groups, pipeline.cluster
    assert groups is not None
    end = time.time() + seconds
    while time.time() < end:
        with suppress(Unavailable):
            one = pipeline.target.observe()
            app = pipeline.target.executors.app
            used = {w.name: groups.used(cluster.group(app, w.name)) or 0.0 for w in one.per_worker}
            seen.append((one, used))
        time.sleep(0.5)
    return seen


def mean_latency(seen: list[tuple[Observation, dict[str, float]]]) -> float:
    return statistics.fmean(one.latency for one, _ in seen if one.latency is not None)


def join(pipeline: Pipeline, workers: int) -> Row:
    before = watched(pipeline, REST)
    old = {w.name for w in before[-1][0].per_worker}
    began = time.time()
    pipeline.target.rescale(workers)
    after = watched(pipeline, WATCHED)
    pipeline.target.rescale(FIRST)
    there = next((i for i, (one, _) in enumerate(after) if one.workers == workers), None)
    if there is None:
        raise SystemExit(f"{workers} workers were not there after {WATCHED:.0f} s")
    joined = after[there][0].at

    def cpu(when: float) -> float:
        used = next(used for one, used in after[there:] if one.at >= when)
        return max(seconds for name, seconds in used.items() if name not in old)

    batches = [one.batch.seconds for one, _ in after if one.batch is not None and one.batch.ended_at > began]
    return Row(
        joined - began,
        cpu(joined),
        cpu(joined + 15),
        cpu(joined + 40),
        max(batches),
        mean_latency(before[-40:]),
        mean_latency(after),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=4, help="how many scale-outs")
    parser.add_argument("--to", type=int, default=4, help="workers after a scale-out")
    parser.add_argument("--rate", type=float, default=12_000.0, help="records/s")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.times < 1 or arguments.to <= FIRST:
        parser.error(f"--times must be 1 or more and --to above {FIRST}, got {arguments.times} and {arguments.to}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
        experiment = spec.parse(EXPERIMENT.format(most=arguments.to), "joining")
        with Pipeline(experiment, Path(folder) / "run", workers=FIRST, tell=tell) as pipeline:
            if pipeline.cluster.groups is None:
                raise SystemExit("CPU is measured by control groups, and there are none for this user")
            tell("warming up")
            pipeline.warm_up()
            with SparkSite(pipeline).feed(arguments.rate, arguments.times * (REST + WATCHED) + 30):
                for _ in range(arguments.times):
                    rows.append(row := join(pipeline, arguments.to))
                    tell(", ".join(f"{field.name} {getattr(row, field.name):.1f}" for field in fields(row)))
    medians = {field.name: statistics.median(getattr(row, field.name) for row in rows) for field in fields(Row)}
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "medians": medians}))
        return
    names = [field.name for field in fields(Row)]
    print(" ".join(f"{name:>15}" for name in names))
    for values in [*(asdict(row) for row in rows), medians]:
        print(" ".join(f"{values[name]:>15.1f}" for name in names) + ("  median" if values is medians else ""))


if __name__ == "__main__":
    main()
