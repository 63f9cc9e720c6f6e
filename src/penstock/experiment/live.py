"""A run for real: cluster, job, load and loop, from start to recount.

A run lives in a directory of its own. Run again with the same directory after a crash, it goes on: the query from its
checkpoint, the load from where it was, the policy from the journal, with as many workers as were last asked for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock import journal as journals
from penstock import workloads
from penstock.core import Observation
from penstock.errors import ConfigError, Unavailable
from penstock.experiment import capacity
from penstock.experiment.feed import Feed, Task, read_progress
from penstock.experiment.pipeline import Pipeline
from penstock.experiment.spec import Experiment
from penstock.jobs import Verdict
from penstock.journal import Journal
from penstock.loop import Loop, Pilot, Step, SystemClock
from penstock.measures import Measures, summarise
from penstock.sources.rate import Progress
from penstock.targets.spark.target import WINDOW

DRAIN_PATIENCE = 300.0
QUICK_WORKERS = 2  # a quick calibration: two workers, so that the fixed cost of a batch weighs as it does in the run
QUICK_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Moment:
    """What a view of the run shows."""

    step: Step
    t: float
    duration: float
    capacity_per_worker: float | None
    feed: Progress | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    verdict: Verdict
    measures: Measures
    max_workers: int
    failed_tasks: int
    capacity_per_worker: float | None
    behind: int
    directory: Path
    finished: bool

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "directory": str(self.directory)}


class Run:
    """One experiment in one directory.

    dry_run: decide and write down, but rescale nothing.
    tell: hears what is being done; on_moment: hears every step of the loop.
    """

    def __init__(
        self,
        experiment: Experiment,
        directory: Path,
        *,
        dry_run: bool = False,
        tell: Callable[[str], None] = lambda _: None,
        on_moment: Callable[[Moment], None] = lambda _: None,
    ) -> None:
        self.experiment = experiment
        self.directory = directory
        self.journal_path = directory / "journal.jsonl"
        self._dry_run = dry_run
        self._tell = tell
        self._on_moment = on_moment
        self._notes = directory / "run.json"
        self._feed_path = directory / "feed.json"
        self._claim()

    def _claim(self) -> None:
        """A directory belongs to one experiment."""
        copy = self.directory / "experiment.toml"
        if copy.exists() and copy.read_text() != self.experiment.text:
            raise ConfigError(
                f"into must be a new directory or one of the same experiment, got {str(self.directory)!r}"
            )
        summary = self.directory / "summary.json"
        if summary.exists() and json.loads(summary.read_text())["finished"]:
            raise ConfigError(f"into must be a new directory, got {str(self.directory)!r}, where this run has finished")
        if not copy.exists() and self.directory.exists() and any(self.directory.iterdir()):
            raise ConfigError(f"into must be a new or empty directory, got {str(self.directory)!r}")
        self.directory.mkdir(parents=True, exist_ok=True)
        copy.write_text(self.experiment.text)

    @property
    def resumed(self) -> bool:
        return self.journal_path.exists() and self.journal_path.stat().st_size > 0

    def execute(self, stop: Callable[[], bool] = lambda: False) -> Outcome:
        """Run to the end of the load, drain, recount; or until `stop`."""
        resumed = self.resumed
        workers = self._last_requested() if resumed else self._first_workers()
        with ExitStack() as stack:
            journal = stack.enter_context(Journal.open(self.journal_path))  # first, so that two runs cannot meet
            pipeline = stack.enter_context(
                Pipeline(self.experiment, self.directory, workers=workers, control=not self._dry_run, tell=self._tell)
            )
            if resumed:
                self._tell(f"resuming with {workers} workers, as the journal has it")
            else:
                self._tell("warming up: the first batches load and compile")
                pipeline.warm_up(stop)
            per_worker = self._capacity(pipeline, stop)
            table = dict(self.experiment.workload)
            if self.experiment.peak_of_capacity is not None and per_worker is not None:
                table["scale_to"] = self.experiment.peak_of_capacity * per_worker * pipeline.cluster.max_workers
            finished, feed = self._control(pipeline, journal, table, per_worker, stop)
            failed = pipeline.target.executors.failed_tasks()
            pipeline.stop_query()
            self._tell("recounting every record from the log")
            verdict = pipeline.verify()
            most = pipeline.cluster.max_workers
        measures = summarise(journals.read(self.journal_path), most)
        return Outcome(verdict, measures, most, failed, per_worker, feed.worst if feed else 0, self.directory, finished)

    def _control(
        self,
        pipeline: Pipeline,
        journal: Journal,
        table: dict[str, Any],
        per_worker: float | None,
        stop: Callable[[], bool],
    ) -> tuple[bool, Progress | None]:
        experiment = pipeline.experiment  # as its cluster can hold it
        load = workloads.make_from(table)
        before = read_progress(self._feed_path)
        start_t = before.t if before is not None else 0.0
        clock = SystemClock()
        loop = Loop(
            pipeline.target,
            experiment.policy(),
            guards=experiment.guards(),
            journal=journal,
            clock=clock,
            sample_every=self.experiment.head.sample_every,
            dry_run=self._dry_run,
            shadows=[
                Pilot(policy, experiment.guards(), label=f"{policy.name}-{i}")
                for i, policy in enumerate(experiment.shadows(), 1)
            ],
        )
        loop.resume(self.journal_path)
        task = Task(
            log=str(pipeline.log.path),
            job=self.experiment.job.name,
            job_settings=self.experiment.job.settings,
            workload=table,
            progress=str(self._feed_path),
            seed=int(start_t),
            start_t=start_t,
            until=load.duration,
        )
        self._tell(f"the load starts: {load.duration - start_t:.0f} s, up to {load.peak():,.0f} records/s")
        drained_by: float | None = None
        finished = False
        feed_progress: Progress | None = before
        with Feed(task) as feed:

            def over() -> bool:
                nonlocal drained_by
                if feed.done and drained_by is None:
                    drained_by = time.monotonic() + DRAIN_PATIENCE
                late = drained_by is not None and time.monotonic() > drained_by
                return stop() or finished or late or not pipeline.query.isActive  # type: ignore[union-attr]

            def watch(step: Step) -> None:
                nonlocal finished, feed_progress
                feed_progress = feed.progress() or feed_progress
                finished = feed.done and _idle(step.observation)
                t = feed_progress.t if feed_progress else start_t
                self._on_moment(Moment(step, t, load.duration, per_worker, feed_progress))

            loop.run(over, watch)
        if pipeline.query is not None and not pipeline.query.isActive:
            raise Unavailable(f"the query ended by itself: {pipeline.query.exception()}")
        return finished, feed_progress

    def _capacity(self, pipeline: Pipeline, stop: Callable[[], bool]) -> float | None:
        """Records/s per worker, measured once per run when the load is to be scaled to it."""
        if self._notes.exists():
            known: float | None = json.loads(self._notes.read_text())["capacity_per_worker"]
            return known
        if self.experiment.peak_of_capacity is None:
            return None
        workers = min(self._first_workers(), pipeline.cluster.max_workers)
        self._tell(f"calibrating: how much can {workers} workers do here?")
        found = capacity.measure(pipeline, workers, batches=3, seconds=QUICK_SECONDS, stop=stop)
        self._tell(f"a worker does {found.per_worker:,.0f} records/s (± {found.spread:.0%} between batches); draining")
        self._wait(stop, lambda: _idle(pipeline.target.observe()))
        first = min(self.experiment.initial_workers, pipeline.cluster.max_workers)
        self._notes.write_text(json.dumps({"capacity_per_worker": found.per_worker}))
        if first != workers:
            pipeline.target.rescale(first)
        # What was measured under saturation must be out of every window before a policy looks.
        calm_at = time.monotonic() + 1.5 * WINDOW
        self._wait(stop, lambda: pipeline.target.observe().workers == first and time.monotonic() > calm_at)
        pipeline.warm_up(stop, batches=1)
        return found.per_worker

    def _first_workers(self) -> int:
        """Enough for the calibration, if there is to be one and it may rescale."""
        quick = QUICK_WORKERS if self.experiment.peak_of_capacity is not None and not self._dry_run else 1
        return min(max(self.experiment.initial_workers, quick), self.experiment.head.max_workers)

    def _wait(self, stop: Callable[[], bool], until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DRAIN_PATIENCE
        while not until():
            if stop():
                raise KeyboardInterrupt
            if time.monotonic() > deadline:
                raise Unavailable(f"the job did not calm down within {DRAIN_PATIENCE:.0f} s after its calibration")
            time.sleep(1)

    def _last_requested(self) -> int:
        """The new cluster starts with as many workers as were last asked for."""
        last = journals.last_requested(journals.read(self.journal_path)) or self.experiment.initial_workers
        return min(last, self.experiment.head.max_workers)


def _idle(seen: Observation) -> bool:
    return seen.backlog == 0
