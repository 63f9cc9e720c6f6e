"""What the simulator costs: simulated seconds per second of one core (CPU time, so that neighbours do not count).

    python benchmarks/simulator.py [--json] [--hours N] [--rounds N]

One Flink word count of 12 workers for six hours under a sine, a sample every second: static and HPA in the lean runner,
and HPA in the whole loop, which makes sure that every observation could be written down. The goal is 20,000 for static.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

from penstock import guards
from penstock.core import Policy
from penstock.loop import Loop
from penstock.policies import make
from penstock.targets.simulated import SimulatedTarget, capacity, load, run
from penstock.workloads import Sine

GOAL = 20_000


def target(name: str, seconds: float, workers: int) -> SimulatedTarget:
    """A job at up to 95 % of what it can do."""
    most = capacity(load(name), workers)
    return SimulatedTarget(name, Sine(low=0.1 * most, high=0.95 * most, periods=2, duration=seconds), workers=workers)


def lean(name: str, policy: Callable[[], Policy], seconds: float, workers: int) -> float:
    """Simulated seconds per second in the lean runner."""
    job = target(name, seconds, workers)
    begin = time.process_time()
    run(job, policy(), guards.default(1, 12), duration=seconds)
    job.series()
    return seconds / (time.process_time() - begin)


def looped(name: str, policy: Callable[[], Policy], seconds: float, workers: int) -> float:
    """The same in the loop, without a journal."""
    job = target(name, seconds, workers)
    loop = Loop(job, policy(), guards=guards.default(1, 12), clock=job.clock)
    begin = time.process_time()
    loop.run(lambda: job.clock.now() >= seconds)
    return seconds / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--hours", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    seconds = arguments.hours * 3600

    def static() -> Policy:
        return make("static", workers=12)

    def hpa() -> Policy:
        return make("hpa", max_workers=12)

    def still() -> Policy:
        return make("static", workers=6)

    cases: dict[str, Callable[[], float]] = {
        "static, continuous": lambda: lean("flink-wordcount", static, seconds, 12),
        "static, micro-batches": lambda: lean("spark-wordcount", still, seconds, 6),
        "hpa, continuous": lambda: lean("flink-wordcount", hpa, seconds, 12),
        "hpa, continuous, whole loop": lambda: looped("flink-wordcount", hpa, seconds / 6, 12),
    }
    speeds = {name: [case() for _ in range(arguments.rounds)] for name, case in cases.items()}
    if arguments.json:
        print(json.dumps({"goal": GOAL, "seconds_per_second": speeds}))
        return
    for name, found in speeds.items():
        print(f"{name:30} {statistics.median(found):10,.0f} simulated s/s  ({min(found):,.0f} to {max(found):,.0f})")
    print(f"{'goal for static, continuous':30} {GOAL:10,}")


if __name__ == "__main__":
    main()
