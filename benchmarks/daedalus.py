"""What Daedalus costs, and how right its recovery times are.

    python benchmarks/daedalus.py [--json] [--days 7] [--seeds 3]

cost: `learn` for 60 samples of 12 workers, then `decide` with a forecast over 18 scale-outs: one loop of a minute;
in CPU milliseconds, after an hour and at the end of a simulated week. memory: bytes of all it keeps, day by day.
recovery: predicted against observed for every rescale and failure of six simulated hours on the profiles of the paper's
jobs, in which a worker is lost every 67 minutes; those that end before the next rescale and that could be predicted.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import sys
import time
from collections.abc import Iterator
from math import pi, sin

import numpy as np

from penstock import guards, workloads
from penstock.core import Decision, Observation, Worker
from penstock.policies.daedalus import Daedalus
from penstock.targets.simulated import SimulatedTarget, run

SETTINGS = (("flink-wordcount", "sine"), ("flink-ysb", "advertising"), ("flink-traffic", "traffic"))
HOURS = 6
FAILURES = (4000.0, 8000.0, 12000.0, 16000.0, 20000.0)  # seconds after the start


def minutes(workers: int, seed: int = 0) -> Iterator[list[Observation]]:
    """Sixty samples each: a day's swing with noise, on workers that each have a little of their own."""
    rng = np.random.default_rng(seed)
    own = 1 + 0.05 * rng.standard_normal(workers)
    second = 0
    while True:
        samples = []
        for _ in range(60):
            second += 1
            load = (6000 + 4000 * sin(2 * pi * second / 86400)) * (1 + 0.02 * rng.standard_normal())
            rate = load / workers
            cpus = 0.1 + 0.0008 * rate * own + 0.01 * rng.standard_normal(workers)
            per_worker = tuple(Worker(f"w{i}", float(cpu), rate, 0.0, 0.0) for i, cpu in enumerate(cpus))
            samples.append(
                Observation(
                    at=float(second),
                    workers=workers,
                    requested=workers,
                    uptime=1e6 + second,
                    input_rate=load,
                    processed_rate=load,
                    backlog=load,
                    latency=1.0,
                    per_worker=per_worker,
                )
            )
        yield samples


def cost(days: float) -> tuple[dict[str, list[float]], list[int]]:
    """CPU milliseconds of the loops of the second hour and of the last, and the policy's size at each day's end."""
    policy, sizes = Daedalus(max_workers=18), []
    spent: dict[str, list[float]] = {"after an hour": [], "at the end": []}
    total = int(days * 1440)
    for minute, samples in enumerate(minutes(12)):
        begin = time.process_time()
        for observation in samples:
            policy.learn(observation)
        policy.decide(samples[-1])
        took = 1000 * (time.process_time() - begin)
        if 60 <= minute < 120:
            spent["after an hour"].append(took)
        if minute >= total - 60:
            spent["at the end"].append(took)
        if minute % 1440 == 1439:
            sizes.append(len(pickle.dumps(policy)))
            print(f"· day {len(sizes)} of {days:g}: {sizes[-1]:,} bytes", file=sys.stderr, flush=True)
        if minute + 1 >= total:
            return spent, sizes
    raise AssertionError("minutes never end")


def recoveries(profile: str, kind: str, seed: int) -> list[tuple[str, float, float]]:
    """What it was, predicted and observed seconds of each that has both; a recovery of 0 has no relative error."""
    idle = SimulatedTarget(profile, workloads.make("constant", level=1.0), workers=12, seed=seed)
    peak, duration = 0.9 * idle.capacity, HOURS * 3600.0
    table = {"kind": kind, "high": peak, "duration": duration}
    load = workloads.make_from(table | ({"low": 0.05 * peak, "periods": 2} if kind == "sine" else {}))
    found: list[tuple[str, float, float]] = []

    def note(_: Observation, decision: Decision) -> None:
        for reason in decision.reasons:
            observed, predicted = reason.facts.get("observed"), reason.facts.get("predicted")
            if reason.code == "recovery.observed" and isinstance(observed, float) and isinstance(predicted, float):
                what = "failures" if reason.facts["way"] == "failure" else "rescales"
                found.extend([(what, predicted, observed)] if observed > 0 else [])

    target = SimulatedTarget(profile, load, workers=4, seed=seed)
    for after in FAILURES:
        target.fail(target.clock.now() + after)
    run(target, Daedalus(max_workers=18), guards.default(1, 18), duration=duration, on_decision=note)
    return found


def scored(name: str, found: list[tuple[str, float, float]]) -> dict[str, str | int | float]:
    errors = [abs(predicted - observed) / observed for _, predicted, observed in found]
    return {
        "what": name,
        "recoveries": len(found),
        "median_error": statistics.median(errors),
        "p90_error": float(np.percentile(errors, 90)),
        "median_seconds": statistics.median(observed for _, _, observed in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--days", type=float, default=7.0, help="simulated days for cost and memory")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each profile for the recovery times")
    arguments = parser.parse_args()
    if arguments.seeds < 1 or not arguments.days > 0:
        parser.error(f"--seeds must be at least 1 and --days above 0, got {arguments.seeds} and {arguments.days:g}")
    spent, sizes = cost(arguments.days)
    rows, everything = [], []
    for profile, kind in SETTINGS:
        found = [each for seed in range(arguments.seeds) for each in recoveries(profile, kind, seed)]
        rows.append(scored(f"{profile}, {kind}", found))
        everything += found
        print(f"· {profile}: {len(found)} recoveries", file=sys.stderr, flush=True)
    rows += [scored(name, [e for e in everything if e[0] == name]) for name in ("rescales", "failures")]
    rows.append(scored("all", everything))
    loops = {
        when: {"median_ms": statistics.median(values), "p99_ms": float(np.percentile(values, 99))}
        for when, values in spent.items()
    }
    if arguments.json:
        print(json.dumps({"loop": loops, "bytes_per_day": sizes, "recovery": rows}))
        return
    for when, figures in loops.items():
        print(f"a loop {when}: median {figures['median_ms']:.1f} ms, p99 {figures['p99_ms']:.1f} ms of CPU")
    print("kept at the end of each day, in bytes:", ", ".join(f"{size:,}" for size in sizes))
    print(f"{'recovery':<26} {'how many':>9} {'median error':>13} {'p90 error':>10} {'median s':>9}")
    for row in rows:
        print(
            f"{row['what']:<26} {row['recoveries']:>9} {row['median_error']:>13.1%} "
            f"{row['p90_error']:>10.0%} {row['median_seconds']:>9.0f}"
        )


if __name__ == "__main__":
    main()
