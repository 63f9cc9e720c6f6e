"""How right the capacity model was while `bench spark` ran: its word at every loop, against the suite's calibration.

    python benchmarks/replayed_capacity.py [DIRECTORY ...] [--json]

Every journal of the suite, whichever policy made it, is replayed through a fresh Daedalus, and what it says of the
scale-out that runs is held against as many times what one worker did when the suite was calibrated. That is not the
truth of every minute: machines that others use as well change their speed. But versions of the model can be compared on
the same runs, in seconds. Loops in which it does not yet plan are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from penstock.errors import ConfigError
from penstock.experiment import bench
from penstock.journal import Decided, Sample, read
from penstock.policies import make
from penstock.policies.daedalus import Daedalus

USUAL = Path("runs/bench-spark")
EARLY = 110.0  # seconds: until then a load of twelve minutes is on its first rise


def errors(journal: Path, of_one: float) -> Iterator[tuple[float, float]]:
    """Seconds since the beginning, and by how much of the truth the model's word was off, loop by loop."""
    policy = make("daedalus", **{key: value for key, value in bench.POLICIES["daedalus"].items() if key != "name"})
    assert isinstance(policy, Daedalus)
    began: float | None = None
    due = 0.0
    for record in read(journal):
        if not isinstance(record, Sample | Decided) or record.observation is None:
            continue
        seen = record.observation
        began = seen.at if began is None else began
        policy.learn(seen)
        if seen.at < due or not seen.requested:
            continue
        due = seen.at + policy.period
        estimate = policy._known.capacity.at(seen.requested)
        if estimate is not None and policy._known.acquainted:
            yield seen.at - began, estimate.capacity / (of_one * seen.requested) - 1
        policy._known.renew()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", type=Path, help="of `penstock bench spark`; default: runs/bench-spark")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if not arguments.suites and not USUAL.exists():  # as in `make bench`, which runs every benchmark there is
        print(f"nothing to replay: `penstock bench spark` has left nothing in {USUAL}")
        return
    found: dict[str, dict[str, float]] = {}
    everything: list[float] = []
    for suite in arguments.suites or [USUAL]:
        if not (suite / "capacity.json").exists():
            parser.error(f"{suite} has no capacity.json: it is no directory of `penstock bench spark`")
        calibrated = json.loads((suite / "capacity.json").read_text())
        of_one = calibrated["rate"] / calibrated["workers"]
        for journal in sorted(suite.glob("*/journal.jsonl")):
            try:
                off = list(errors(journal, of_one))
            except ConfigError as error:  # of a run that was stopped before its first line
                print(f"· left out: {error}", file=sys.stderr)
                continue
            if off:
                found[str(journal.parent)] = summed([e for _, e in off], [e for at, e in off if at < EARLY])
                everything += [e for _, e in off]
    if not everything:
        parser.error("no journal of these has a loop in which Daedalus would have planned")
    total = summed(everything, [])
    if arguments.json:
        print(json.dumps({"runs": found, "all": total}))
        return
    print(f"{'bias':>8} {'median':>8} {'p90':>8} {'early':>8} {'loops':>6}  run")
    for name, row in [*found.items(), ("all", total)]:
        early = f"{row['early']:+8.1%}" if "early" in row else f"{'':>8}"
        print(f"{row['bias']:+8.1%} {row['median']:8.1%} {row['p90']:8.1%} {early} {row['loops']:6.0f}  {name}")


def summed(off: list[float], early: list[float]) -> dict[str, float]:
    sizes = np.abs(off)
    row = {"bias": float(np.mean(off)), "median": float(np.median(sizes)), "p90": float(np.quantile(sizes, 0.9))}
    return row | {"loops": float(len(off))} | ({"early": float(np.mean(early))} if early else {})


if __name__ == "__main__":
    main()
