"""How right the capacity model is on real Spark: its word after one loop of ordinary load, against saturation.

    python benchmarks/capacity.py [--max 6] [--loop 60] [--json]

For each scale-out: the job gets a load that swings between 35 % and 75 % of what it can roughly do, for one loop, and a
model that knows nothing else learns from it. Then the same job is saturated, as `penstock calibrate` does it, with the
batch limits of an ordinary run. The words of word count follow a Zipf law, so the keys are skewed. The first scale-out
is saturated once before, to know roughly what the job can do. About two and a half minutes for each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from penstock.errors import Unavailable
from penstock.experiment import capacity, spec
from penstock.experiment.feed import Feed, Task
from penstock.experiment.pipeline import Pipeline
from penstock.models.capacity import Capacity, warm

EXPERIMENT = """
job = "wordcount"
max_workers = {most}
[workload]
kind = "constant"
level = 0
[policy]
name = "static"
"""


def tell(text: str) -> None:
    print(f"· {text}", file=sys.stderr, flush=True)


def settle(pipeline: Pipeline, workers: int) -> None:
    """All workers are there and warm, and nothing waits."""
    if pipeline.target.requested != workers:
        pipeline.target.rescale(workers)
    deadline = time.time() + 300
    while time.time() < deadline:
        with suppress(Unavailable):
            seen = pipeline.target.observe()
            ready = warm(seen.per_worker, seen.at)
            if len(ready) == seen.workers == workers and (seen.backlog or 0) < 1000:
                return
        time.sleep(1)
    raise SystemExit(f"{workers} workers were not ready after 5 minutes")


def learned(pipeline: Pipeline, workers: int, rough: float, seconds: float, folder: Path) -> float:
    """The estimate of a fresh model after one loop, with what a worker takes to warm up under load before it."""
    model, last = Capacity(memory=2 * seconds), None
    swing = {"kind": "sine", "low": 0.35 * rough, "high": 0.75 * rough, "periods": 1, "duration": 2 * seconds}
    task = Task(
        log=str(pipeline.log.path),
        job="wordcount",
        workload=swing,
        progress=str(folder / f"feed-{workers}.json"),
        until=2 * seconds,
    )
    began = time.time()
    with Feed(task) as feed:
        while time.time() - began < 2 * seconds and not feed.done:
            time.sleep(1)
            with suppress(Unavailable):
                seen = pipeline.target.observe()
                ready = warm(seen.per_worker, seen.at)
                fresh = seen.batch is not None and seen.batch.number != last and not seen.batch.cold
                # The first loop fills the windows and warms the workers up; the model sees only the second.
                if fresh and len(ready) == workers and seen.at - began > seconds:
                    last = seen.batch.number if seen.batch else None
                    model.learn(seen.at, ready)
    estimate = model.at(workers)
    if estimate is None:
        raise SystemExit(f"nothing was learned with {workers} workers")
    return estimate.capacity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max", type=int, default=6, help="the largest scale-out")
    parser.add_argument("--loop", type=float, default=60.0, help="seconds of a loop")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
        experiment = spec.parse(EXPERIMENT.format(most=arguments.max), "capacity")
        with Pipeline(experiment, Path(folder) / "run", workers=1, tell=tell) as pipeline:
            tell("warming up")
            pipeline.warm_up()
            rough = capacity.measure(pipeline, 1, seconds=15).rate
            for workers in range(1, pipeline.cluster.max_workers + 1):
                settle(pipeline, workers)
                tell(f"{workers} workers: one loop of ordinary load")
                estimate = learned(pipeline, workers, rough * workers, arguments.loop, Path(folder))
                tell(f"{workers} workers: saturating")
                found = capacity.measure(pipeline, workers, seconds=30)
                rough = found.per_worker
                error = estimate / found.rate - 1
                rows.append({"workers": workers, "estimated": estimate, "measured": found.rate, "error": error})
                tell(f"{workers} workers: {estimate:,.0f} estimated, {found.rate:,.0f} measured, {error:+.1%}")
    errors = [abs(row["error"]) for row in rows]
    result = {"rows": rows, "median_error": statistics.median(errors), "worst_error": max(errors)}
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"{'workers':>8} {'estimated':>12} {'measured':>12} {'error':>8}")
    for row in rows:
        print(f"{row['workers']:>8} {row['estimated']:>12,.0f} {row['measured']:>12,.0f} {row['error']:>+8.1%}")
    print(f"median error {result['median_error']:.1%}, worst {result['worst_error']:.1%}")


if __name__ == "__main__":
    main()
