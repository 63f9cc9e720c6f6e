"""How right the capacity model is on real Spark: its word after one loop of ordinary load, against saturation.

    python benchmarks/capacity.py [--max 6] [--loop 60] [--steady 0.05] [--tries 3] [--batch N] [--cpu 0.2] [--json]
                                  [--keep FILE]
    python benchmarks/capacity.py --replay FILE

For each scale-out: the job is saturated, as `penstock calibrate` does it, with the batch limits of an ordinary run;
then it gets a load that swings between 35 % and 75 % of that for one loop, and a model that knows nothing else learns
from it; then it is saturated once more. The mean of the two is what the model's word is held against. The words of word
count follow a Zipf law, so the keys are skewed. Four minutes each.

On a machine that others use as well the speed itself changes, and no word of any model can be judged by a loop at
another speed than that of saturation. Two figures tell. `drift` is what changed between the two saturations: half of it
may be an error of what was measured. `slower` is how much more CPU time a small piece of Python took in the loop than
in the saturations, as it is run ten times a second beside all of it: a neighbour of half a minute, in the middle,
leaves no drift. Where either may be an error of more than `--steady`, there is another loop and another saturation, up
to `--tries` loops, and the steadiest counts: chosen by the machine, never by the error. All are printed.

`--keep` appends what the model saw, one JSON object per sample and one per scale-out with what was found. `--replay`
asks the model of now about such a file, in seconds; benchmarks/data has some.

Where full batches end before the next trigger, no more can be done whatever the workers are capable of, and nothing
would be measured. So batches have room for four seconds of a worker's work, as in `penstock bench spark`: one worker
without a trigger says how many records that is, before all else. `--batch` sets it. Where the trigger is the limit all
the same, the benchmark stops, and asks for larger batches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.core import Batch, Observation, Stage, Worker
from penstock.errors import Unavailable
from penstock.experiment import bench, capacity, spec
from penstock.experiment.feed import Feed, Task
from penstock.experiment.pipeline import Pipeline
from penstock.models.capacity import Capacity, warm
from penstock.models.pace import Pace

EXPERIMENT = """
job = "wordcount"
max_workers = {most}
[stream]
warm_up = 12
max_records_per_worker = {batch}
trigger = {trigger}
[cluster]
cpu = {cpu}
[workload]
kind = "constant"
level = 0
[policy]
name = "static"
"""


TRIGGER = 3.0  # seconds, as a run has it where nothing is said
LEAD = 30.0  # seconds
HELD = 0.95  # of what full batches at every trigger bring: so close to it, CPU is not the limit
SATURATED = 45.0  # seconds, at least: on a slow machine a full batch takes seven of them


@dataclass(frozen=True, slots=True)
class Row:
    """One scale-out, in records/s: the model's word, and what it did at saturation before and after.

    slower: how much slower the machine was in between, as a share; None where no probe ran.
    """

    workers: int
    estimated: float
    before: float
    after: float
    slower: float | None = None

    @property
    def measured(self) -> float:
        return (self.before + self.after) / 2

    @property
    def error(self) -> float:
        return self.estimated / self.measured - 1

    @property
    def drift(self) -> float:
        return self.after / self.before - 1

    @property
    def unsteady(self) -> float:
        """How much of the error may be the machine's, which was not at one speed."""
        return max(abs(self.drift) / 2, abs(self.slower or 0.0))


class Probe(threading.Thread):
    """How fast the machine is: CPU seconds of one and the same piece of work, ten times a second, until stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._seen: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._words = [f"word-{number % 1_000}" for number in np.random.default_rng(0).zipf(1.5, 8_000).tolist()]

    def run(self) -> None:
        while not self._over.wait(0.1):
            began = time.thread_time()
            counts: dict[str, int] = {}
            for word in self._words:
                counts[word] = counts.get(word, 0) + 1
            self._seen.append((time.time(), time.thread_time() - began))

    def stop(self) -> None:
        self._over.set()
        self.join()

    def cost(self, *spans: tuple[float, float]) -> float:
        """Mean CPU seconds of the work over all these spans of time."""
        return statistics.mean(cost for at, cost in self._seen if any(a <= at <= b for a, b in spans))


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


def word(samples: Iterable[Mapping[str, Any]], workers: int, seconds: float) -> float:
    """What a model that knows nothing else makes of a loop of so many seconds."""
    model = Capacity(memory=2 * seconds)
    for sample in samples:
        seen = [Worker(name, cpu=cpu, rate=rate) for name, cpu, rate in sample["workers"]]
        pace = None if sample["pace"] is None else Pace(**sample["pace"])
        stages = tuple(Stage(**stage) for stage in sample["batch"].get("stages", ()))
        model.learn(sample["at"], seen, pace=pace, batch=Batch(**{**sample["batch"], "stages": stages}))
    estimate = model.at(workers)
    if estimate is None:
        raise SystemExit(f"nothing was learned with {workers} workers")
    return estimate.capacity


def seen_in(
    pipeline: Pipeline, workers: int, rough: float, seconds: float, folder: Path
) -> Iterator[Mapping[str, Any]]:
    """Samples of one loop of ordinary load; before it, as long as it takes to fill the metrics' windows."""
    last = None  # the last batch that was seen
    swing = {"kind": "sine", "low": 0.35 * rough, "high": 0.75 * rough, "periods": 1, "duration": LEAD + seconds}
    task = Task(
        log=str(pipeline.log.path),
        job="wordcount",
        workload=swing,
        progress=str(folder / "feed.json"),
        until=LEAD + seconds,
    )
    began = time.time()
    with Feed(task) as feed:
        while time.time() - began < LEAD + seconds and not feed.done:
            time.sleep(1)
            with suppress(Unavailable):
                seen = pipeline.target.observe()
                ready = warm(seen.per_worker, seen.at)
                new = seen.batch is not None and seen.batch != last and not seen.batch.cold
                if seen.batch and new and len(ready) == workers and seen.at - began > LEAD:
                    paced = Pace.between(last, seen.batch, workers)
                    yield {
                        "at": seen.at,
                        "workers": [[w.name, w.cpu, w.rate] for w in ready],
                        "pace": None if paced is None else asdict(paced),
                        "batch": asdict(seen.batch),
                    }
                last = seen.batch


@dataclass(frozen=True, slots=True)
class Saturated:
    """Records/s with more waiting than they can take, and what was seen of each batch that was counted."""

    rate: float
    seen: tuple[Mapping[str, Any], ...]

    @property
    def span(self) -> tuple[float, float]:
        return self.seen[0]["at"], self.seen[-1]["at"]


def saturated(pipeline: Pipeline, workers: int) -> Saturated:
    """Measured as `penstock calibrate` does; refused where a trigger is waited for, and not CPU."""
    seen: list[Mapping[str, Any]] = []

    def look(now: Observation, counted: int) -> None:
        del seen[counted:]  # a worker was lost, and counting begins anew
        if now.batch is not None and counted > len(seen):
            shown = [[w.name, w.cpu, w.rate] for w in now.per_worker]
            seen.append({"at": now.at, "workers": shown, "full": asdict(now.batch)})

    rate = capacity.measure(pipeline, workers, seconds=SATURATED, on_sample=look).rate
    most = workers * pipeline.max_records_per_worker / pipeline.experiment.stream.trigger
    if rate > HELD * most:
        raise SystemExit(
            f"{workers} workers do {rate:,.0f} of the {most:,.0f} records/s that full batches at every trigger bring: "
            f"--batch must be larger here, got {pipeline.experiment.stream.max_records_per_worker}, or --cpu smaller"
        )
    return Saturated(rate, tuple(seen))


def tried(
    pipeline: Pipeline, before: Saturated, workers: int, loop: float, folder: Path, keep: Path | None, probe: Probe
) -> tuple[Row, Saturated]:
    """One scale-out, saturated a moment ago: an ordinary loop, and saturated again."""
    settle(pipeline, workers)
    tell(f"{workers} workers: one loop of ordinary load")
    folder.mkdir()
    samples = list(seen_in(pipeline, workers, before.rate, loop, folder))
    estimate = word(samples, workers, loop)
    tell(f"{workers} workers: saturating again")
    after = saturated(pipeline, workers)
    slower = probe.cost((samples[0]["at"], samples[-1]["at"])) / probe.cost(before.span, after.span) - 1
    row = Row(workers, estimate, before.rate, after.rate, slower)
    if keep is not None:
        with keep.open("a") as file:
            lines = [*samples, asdict(row), *before.seen, *after.seen]
            file.writelines(json.dumps(line) + "\n" for line in lines)
    found = f"{estimate:,.0f} estimated, {before.rate:,.0f}, {after.rate:,.0f} found"
    tell(f"{workers} workers: {found}, {row.error:+.1%}, the machine {slower:+.1%} slower in between")
    return row, after


def replayed(path: Path, loop: float) -> list[Row]:
    """The rows of a file that was kept, with the word of the model of now."""
    rows: list[Row] = []
    samples: list[dict[str, Any]] = []
    for line in path.read_text().splitlines():
        kept = json.loads(line)
        if "workers" in kept and "estimated" in kept:
            rows.append(replace(Row(**kept), estimated=word(samples, kept["workers"], loop)))
            samples = []
        elif "full" not in kept:
            samples.append(kept)
    return rows


def pipeline_of(folder: Path, most: int, batch: int, cpu: float, trigger: float) -> Pipeline:
    text = EXPERIMENT.format(most=most, batch=batch, cpu=cpu, trigger=trigger)
    return Pipeline(spec.parse(text, "capacity"), folder, workers=1, tell=tell)


def roomy(folder: Path, cpu: float) -> int:
    """Records of a batch for each worker that the trigger is not the limit for."""
    with pipeline_of(folder, 1, bench.BATCH, cpu, trigger=0.0) as pipeline:
        tell("warming up, to find how large batches must be")
        pipeline.warm_up()
        alone = capacity.measure(pipeline, 1, seconds=SATURATED).rate * bench.BATCH / pipeline.max_records_per_worker
    batch = bench.batch_of(alone)
    tell(f"one worker does {alone:,.0f} records/s: batches of {batch:,} for each")
    return batch


def measured(
    most: int, loop: float, steady: float, tries: int, batch: int | None, cpu: float, keep: Path | None
) -> list[Row]:
    """All scale-outs, on a cluster."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
        batch = batch or roomy(Path(folder) / "alone", cpu)
        probe = Probe()
        probe.start()
        with pipeline_of(Path(folder) / "run", most, batch, cpu, TRIGGER) as pipeline:
            tell("warming up")
            pipeline.warm_up()
            for workers in range(1, pipeline.cluster.max_workers + 1):
                tell(f"{workers} workers: saturating")
                found = saturated(pipeline, workers)
                for attempt in range(1, tries + 1):
                    place = Path(folder) / f"{workers}-{attempt}"
                    row, found = tried(pipeline, found, workers, loop, place, keep, probe)
                    rows.append(row)
                    if row.unsteady <= steady:
                        break
                settle(pipeline, workers)
        probe.stop()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max", type=int, default=6, help="the largest scale-out")
    parser.add_argument("--loop", type=float, default=60.0, help="seconds of a loop")
    parser.add_argument(
        "--steady",
        type=float,
        default=0.05,
        help="the most of an error, as a share, that may be the machine's where a loop counts",
    )
    parser.add_argument("--tries", type=int, default=3, help="loops of a scale-out at most")
    parser.add_argument("--batch", type=int, help="the most records of a batch for each worker; found if not given")
    parser.add_argument("--cpu", type=float, default=0.2, help="share of a core that each worker is bounded to")
    parser.add_argument("--keep", type=Path, help="append what the model saw and what was found to this file")
    parser.add_argument("--replay", type=Path, help="no cluster: ask the model of now about a file that --keep wrote")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.tries < 1:
        parser.error(f"--tries must be 1 or more, got {arguments.tries}")
    if not arguments.steady >= 0:
        parser.error(f"--steady must be 0 or more, got {arguments.steady}")
    if arguments.batch is not None and arguments.batch < 1:
        parser.error(f"--batch must be 1 or more, got {arguments.batch}")
    if not 0 < arguments.cpu <= 1:
        parser.error(f"--cpu must be above 0 and at most 1, got {arguments.cpu}")
    if arguments.replay is not None and not arguments.replay.is_file():
        parser.error(f"--replay must name a file that --keep wrote, got {arguments.replay}")
    if arguments.replay is not None:
        rows = replayed(arguments.replay, arguments.loop)
        if not rows:
            parser.error(f"--replay must name a file that --keep wrote, got {arguments.replay}, which has no scale-out")
    else:
        rows = measured(
            arguments.max,
            arguments.loop,
            arguments.steady,
            arguments.tries,
            arguments.batch,
            arguments.cpu,
            arguments.keep,
        )
    chosen = [
        min((r for r in rows if r.workers == n), key=lambda r: r.unsteady) for n in sorted({r.workers for r in rows})
    ]
    errors = [abs(row.error) for row in chosen]
    plain = [
        {**asdict(row), "measured": row.measured, "error": row.error, "drift": row.drift, "counts": row in chosen}
        for row in rows
    ]
    result = {"rows": plain, "median_error": statistics.median(errors), "worst_error": max(errors)}
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"{'workers':>8} {'estimated':>12} {'measured':>12} {'error':>8} {'drift':>8} {'slower':>8}")
    for row in rows:
        slower = "unknown" if row.slower is None else f"{row.slower:+.1%}"
        rates = f"{row.workers:>8} {row.estimated:>12,.0f} {row.measured:>12,.0f}"
        shown = f"{rates} {row.error:>+8.1%} {row.drift:>+8.1%} {slower:>8}"
        print(shown if row in chosen else f"{shown}  unsteady, measured anew")
    print(f"median error {result['median_error']:.1%}, worst {result['worst_error']:.1%}")


if __name__ == "__main__":
    main()
