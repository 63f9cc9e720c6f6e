"""What a decision of each policy costs, and how many jobs one core can look after.

    python benchmarks/policies.py [--json] [--minutes 40]

Every policy watches the same simulated job (Flink's word count of the Daedalus paper, 12 workers, a sample a second),
and decides as often as it wants to. CPU milliseconds of `decide`, and of `learn` per sample; and how many such jobs
fit on one core, with all their samples and decisions. Phoebe and TWRES without a profile only hold.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

from penstock import workloads
from penstock.policies import POLICIES, make
from penstock.targets.simulated import SimulatedTarget


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--minutes", type=int, default=40, help="of the simulated job")
    arguments = parser.parse_args()
    load = workloads.make("sine", low=5_000.0, high=45_000.0, duration=3600.0)
    target = SimulatedTarget("flink-wordcount", load, workers=12)
    target.clock.sleep(60 * arguments.minutes)
    samples = target.between(0, 60 * arguments.minutes, 1)
    rows = []
    for name in POLICIES:
        policy = make(name, max_workers=18)
        learning, deciding = 0.0, []
        due = samples[0].at
        for sample in samples:
            begin = time.process_time()
            policy.learn(sample)
            learned = time.process_time()
            learning += learned - begin
            if sample.at >= due:
                policy.decide(sample)
                deciding.append(1000 * (time.process_time() - learned))
                due += policy.period
        share = (learning + sum(deciding) / 1000) / len(samples)
        rows.append(
            {
                "policy": name,
                "decide_median_ms": statistics.median(deciding),
                "decide_p99_ms": float(np.percentile(deciding, 99)),
                "learn_ms": 1000 * learning / len(samples),
                "jobs_per_core": int(1 / share) if share > 0 else None,
            }
        )
    if arguments.json:
        print(json.dumps(rows))
        return
    print(f"{'policy':<20} {'decide, median':>15} {'p99':>8} {'learn':>9} {'jobs per core':>14}")
    for row in rows:
        print(
            f"{row['policy']:<20} {row['decide_median_ms']:>12.2f} ms {row['decide_p99_ms']:>5.1f} ms "
            f"{row['learn_ms']:>6.3f} ms {row['jobs_per_core'] or 0:>14,}"
        )


if __name__ == "__main__":
    main()
