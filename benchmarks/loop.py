"""What the loop itself costs: samples and decisions per second, and what the journal adds.

    python benchmarks/loop.py [--json] [--samples N] [--rounds N]

The job is the toy of penstock.testing, so this is the overhead around a policy and a target, not theirs. Compare the
ratios; the absolute numbers are this machine's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from penstock import guards, journal
from penstock.journal import Journal, Start
from penstock.loop import Loop, guards_of, policy_of, replay
from penstock.policies import make
from penstock.testing import FakeClock, FakeTarget


def run(samples: int, interval: float, path: Path | None) -> float:
    """Seconds for `samples` turns of the loop with 8 workers and a decision every `interval` samples."""
    clock = FakeClock()
    target = FakeTarget(clock, workers=8, rate=lambda _: 6000.0)
    file = None if path is None else Journal.open(path)
    loop = Loop(target, make("hpa", interval=interval), guards=guards.default(1, 12), journal=file, clock=clock)
    begin = time.perf_counter()
    loop.run(lambda: clock.now() >= samples)
    spent = time.perf_counter() - begin
    if file is not None:
        file.close()
    return spent


def replayed(path: Path) -> float:
    """Seconds to read a journal and decide it all again."""
    begin = time.perf_counter()
    records = journal.read(path)
    start = next(records)
    assert isinstance(start, Start)
    for _ in replay(records, policy_of(start), guards_of(start)):
        pass
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    n = arguments.samples
    with tempfile.TemporaryDirectory() as folder:
        fresh = (Path(folder) / f"{i}.jsonl" for i in range(10**6))
        kept = Path(folder) / "kept.jsonl"
        run(n, 15.0, kept)
        cases: dict[str, Callable[[], float]] = {
            "samples, no journal": lambda: run(n, n + 1.0, None),
            "samples, journal": lambda: run(n, n + 1.0, next(fresh)),
            "decisions, no journal": lambda: run(n, 1.0, None),
            "decisions, journal": lambda: run(n, 1.0, next(fresh)),
            "replay of samples": lambda: replayed(kept),
        }
        rates: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(arguments.rounds):  # interleaved, so that a slow moment hits all alike
            for name, case in cases.items():
                rates[name].append(n / case())
        bytes_per_sample = kept.stat().st_size / n
    median = {name: statistics.median(values) for name, values in rates.items()}
    result = {
        "per_second": {name: round(value) for name, value in median.items()},
        "spread": {name: round((max(v) - min(v)) / median[name], 3) for name, v in rates.items()},
        "journal_cost": {
            "sample": round(median["samples, no journal"] / median["samples, journal"], 2),
            "decision": round(median["decisions, no journal"] / median["decisions, journal"], 2),
        },
        "bytes_per_sample": round(bytes_per_sample),
    }
    if arguments.json:
        print(json.dumps(result))
        return
    for name, value in median.items():
        print(f"{name:<24}{value:>10,.0f} /s   spread {100 * (max(rates[name]) - min(rates[name])) / value:.0f} %")
    costs = result["journal_cost"]
    print(f"with the journal (decisions are forced to disk) a step takes, as a ratio: {costs}")
    print(f"a sample of 8 workers takes {bytes_per_sample:.0f} bytes")


if __name__ == "__main__":
    main()
