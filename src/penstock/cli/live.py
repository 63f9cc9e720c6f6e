"""Commands that run something for real: demo, run, calibrate."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock import journal as journals
from penstock.cli import render
from penstock.cli.inspect import Json
from penstock.cli.view import View
from penstock.core import Observation, Operator
from penstock.errors import Unavailable, check
from penstock.experiment import calibrated, capacity, spec
from penstock.experiment.capacity import Capacity
from penstock.experiment.live import Moment, Outcome, Run
from penstock.experiment.pipeline import Pipeline
from penstock.targets.simulated import Stage

RUNS = Path("runs")
BULKY = ("log", "checkpoint", "cluster", "results", "batches")  # what the recount needs, and nothing else does

Into = Annotated[Path | None, Parameter(help="Directory of the run. Default: a new one under ./runs.")]
Flag = Parameter(negative=(), show_default=False)


def demo(
    *,
    into: Into = None,
    seconds: Annotated[float, Parameter(help="Length of the load.")] = 360.0,
    keep: Annotated[bool, Flag, Parameter(help="Keep the log, checkpoint and Spark's files as well.")] = False,
    as_json: Json = False,
) -> int:
    """See a real Spark job scale itself: about six minutes of load on a cluster of real executor processes.

    Starts a Spark cluster on this machine, measures quickly what a worker can do, feeds word count with a sine of two
    periods and lets Daedalus scale it. Ends with a recount of every record, a summary and a picture.

        penstock demo
        penstock demo --seconds 180 --into runs/short
    """
    check(seconds > 0, "seconds", "be above 0", seconds)
    text = (resources.files("penstock.experiment") / "demo.toml").read_text()
    experiment = spec.parse(text.replace("duration = 360", f"duration = {seconds:g}"), "demo")
    return _run(experiment, into, dry_run=False, keep=keep, as_json=as_json)


def run(
    experiment: Annotated[Path, Parameter(help="A TOML file: job, workload, policy.")],
    /,
    *,
    into: Into = None,
    dry_run: Annotated[bool, Flag, Parameter(help="Decide and write down why, but change nothing.")] = False,
    as_json: Json = False,
) -> int:
    """Run an experiment: start a cluster, the job and its load, and scale it as its policy decides.

    Stopped or crashed, the same command with the same --into goes on where it was. See docs/experiments.md for what
    may stand in the file; experiments/demo.toml is one to start from.

        penstock run experiments/demo.toml
        penstock run my.toml --into runs/mine --dry-run
    """
    return _run(spec.load(experiment), into, dry_run=dry_run, keep=True, as_json=as_json)


def calibrate(
    job: Annotated[str, Parameter(help="The job, see `penstock jobs`.")],
    /,
    *,
    most: Annotated[int, Parameter(name="--max", help="The largest scale-out.")] = 6,
    at: Annotated[list[int] | None, Parameter(name="--at", help="Only this scale-out; may be repeated.")] = None,
    seconds: Annotated[float, Parameter(help="Least time to count at each scale-out, once it is warm.")] = 20.0,
    cpu: Annotated[float, Parameter(help="Share of a core that each worker is bounded to.")] = 0.2,
    profile: Annotated[Path | None, Parameter(help="Also write a profile for the simulator: a .toml file.")] = None,
    as_json: Json = False,
) -> int:
    """Measure what a job can do here: saturate every scale-out from 1 to --max and print records/s for each.

    Takes about a minute for each scale-out: new workers are warmed up before anything is counted. With --profile,
    `penstock simulate` and `penstock validate` can go by what this machine can do.

        penstock calibrate wordcount
        penstock calibrate ysb --max 3 --json
        penstock calibrate ysb --at 1 --at 6
        penstock calibrate wordcount --profile mine.toml
    """
    check(most >= 1, "max", "be at least 1", most)
    for chosen in at or ():
        check(1 <= chosen <= most, "at", f"be from 1 to {most}, the most", chosen)
    check(seconds > 0, "seconds", "be above 0", seconds)
    if profile is not None:
        check(profile.suffix == ".toml", "profile", "be a file whose name ends with .toml", str(profile))
        check(profile.parent.is_dir(), "profile", "be in a directory that exists", str(profile))
    experiment = spec.parse(SATURATED.format(job=json.dumps(job), most=most, batch=BATCH, cpu=cpu), f"calibrate {job}")
    console = progress_console(as_json)
    measured: list[Capacity] = []
    operators: list[tuple[Operator, ...]] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as directory,
        stoppable() as stop,
        Progress(*columns, console=console, transient=True) as progress,
        Pipeline(experiment, Path(directory), workers=1, tell=progress.print) as pipeline,
    ):
        bounded = pipeline.cluster.groups is not None
        room = pipeline.cluster.max_workers
        sizes = [workers for workers in range(1, room + 1) if not at or workers in at]
        if not sizes:
            raise Unavailable(f"there is room for {room} workers here: {at} cannot be measured")
        progress.print("warming up: the first batches load and compile")
        pipeline.warm_up(stop)
        for workers in sizes:
            found, seen = _measure(pipeline, workers, seconds, progress, stop)
            measured.append(found)
            operators += seen
    slope = capacity.linear(measured)
    if profile is not None:
        _write_profile(profile, job, measured, calibrated.operators_from(operators), cpu if bounded else None)
    if as_json:
        rows = [{**asdict(c), "of_linear": c.per_worker / slope} for c in measured]
        document = {"job": job, "cpu": cpu if bounded else None, "per_worker": slope, "capacities": rows}
        render.emit(document if profile is None else {**document, "profile": str(profile)})
        return 0
    title = f"{job}: what it can do here" + (f", {cpu:g} core per worker" if bounded else ", unbounded workers")
    table = render.table("workers", "records/s", "per worker", "of linear", "± between batches", "batches", title=title)
    for c in measured:
        share, spread = f"{c.per_worker / slope:.0%}", f"{c.spread:.0%}"
        table.add_row(str(c.workers), f"{c.rate:,.0f}", f"{c.per_worker:,.0f}", share, spread, str(c.batches))
    console.print(table)
    console.print(f"Linear is {slope:,.0f} records/s per worker: the line through zero that fits best.")
    if profile is not None:
        console.print(f"Profile: {profile}")
    return 0


def _write_profile(
    path: Path, job: str, measured: list[Capacity], operators: tuple[Stage, ...], cpu: float | None
) -> None:
    """What was measured as a profile for the simulator."""
    share = "unbounded workers" if cpu is None else f"{cpu:g} core per worker"
    description = f"{job} on Spark, {share}, measured by penstock calibrate"
    made = calibrated.profile_from(job, measured, batch=BATCH, operators=operators, description=description)
    notes = dict.fromkeys(calibrated.MEASURED, "measured")
    heading = (
        f"Written by `penstock calibrate {job}` on {time.strftime('%Y-%m-%d')}; what is not marked as measured"
        f"{', but for the operators,' if operators else ''} is as {calibrated.base(job)} has it."
    )
    path.write_text(calibrated.toml(made, notes, heading), encoding="utf-8")


BATCH = 100_000  # records per worker
# A trigger of 0 starts each batch when the last one ends; large batches keep their fixed cost from weighing much.
SATURATED = """
job = {job}
max_workers = {most}
[workload]
kind = "constant"
level = 0
[policy]
name = "static"
[stream]
trigger = 0
max_records_per_worker = {batch}
[cluster]
cpu = {cpu}
"""


def _measure(
    pipeline: Pipeline, workers: int, seconds: float, progress: Progress, stop: Callable[[], bool]
) -> tuple[Capacity, list[tuple[Operator, ...]]]:
    """One scale-out, and the operators as each sample that counts had them."""
    bar = progress.add_task(f"{workers} workers: coming up", total=None)
    began: float | None = None
    operators: list[tuple[Operator, ...]] = []

    def on_sample(seen: Observation, counted: int) -> None:
        nonlocal began
        if counted:
            operators.append(seen.operators)
            began = began or time.monotonic()
            text = f"{workers} workers: {counted} batches"
            progress.update(bar, description=text, total=seconds, completed=time.monotonic() - began)

    found = capacity.measure(pipeline, workers, seconds=seconds, stop=stop, on_sample=on_sample)
    progress.remove_task(bar)
    progress.print(f"{workers} workers: {found.rate:,.0f} records/s")
    return found, operators


@dataclass(frozen=True, slots=True)
class Conducted:
    """A run that is over: what came of it, where it is written down, and whether somebody stopped it."""

    outcome: Outcome
    document: dict[str, Any]
    picture: Path
    journal: Path
    stopped: bool


def _run(experiment: spec.Experiment, into: Path | None, *, dry_run: bool, keep: bool, as_json: bool) -> int:
    console = progress_console(as_json)
    directory = into or RUNS / f"{_slug(experiment.head.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    title = f"penstock {experiment.head.name}: {experiment.job.name} under {experiment.policy().name}"
    with stoppable() as stop:
        ran = conduct(experiment, directory, console, title=title, stop=stop, dry_run=dry_run, keep=keep)
    if as_json:
        render.emit(ran.document)
    else:
        _summary(console, ran.outcome, ran.picture, ran.journal)
    return 0 if ran.outcome.verdict.equal is not False and (ran.outcome.finished or ran.stopped) else 1


def conduct(
    experiment: spec.Experiment,
    directory: Path,
    console: Console,
    *,
    title: str,
    stop: Callable[[], bool],
    dry_run: bool = False,
    keep: bool = False,
    capacity_per_worker: float | None = None,
) -> Conducted:
    """Run an experiment before the user's eyes, draw it, and write its summary.json.

    keep: also what only the recount needs; capacity_per_worker: records/s, where it was measured outside of the run.
    """
    with View(console, title, experiment.head.max_workers) as view:

        def show(moment: Moment) -> None:
            view.show(replace(moment, capacity_per_worker=moment.capacity_per_worker or capacity_per_worker))

        live = Run(experiment, directory, dry_run=dry_run, tell=view.tell, on_moment=show)
        outcome = live.execute(stop)
        stopped = stop()
    from penstock.report.picture import draw

    outcome = replace(outcome, capacity_per_worker=outcome.capacity_per_worker or capacity_per_worker)
    picture = directory / "run.png"
    draw(
        journals.read(live.journal_path),
        picture,
        title=title,
        max_workers=outcome.max_workers,
        capacity_per_worker=outcome.capacity_per_worker,
    )
    document = {
        **outcome.to_json(),
        "stopped": stopped and not outcome.finished,
        "picture": str(picture),
        "journal": str(live.journal_path),
    }
    (directory / "summary.json").write_text(json.dumps(document, indent=2))
    if not keep and outcome.finished and outcome.verdict.equal:
        for name in BULKY:
            shutil.rmtree(directory / name, ignore_errors=True)
    return Conducted(outcome, document, picture, live.journal_path, stopped)


def _summary(console: Console, outcome: Outcome, picture: Path, journal: Path) -> None:
    measures, verdict = outcome.measures, outcome.verdict
    title = "What came of it" if outcome.finished else "What came of it (stopped early)"
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    if verdict.equal is not None:
        mark = "[green]equal[/]" if verdict.equal else "[bold red]NOT EQUAL[/]"
        table.add_row("records in, records out", f"{verdict.records_in:,}, {verdict.records_out:,}: {mark}")
    table.add_row("recount", verdict.sentence)
    if verdict.set_aside or verdict.late:
        table.add_row("malformed, too late", f"{verdict.set_aside:,} set aside, {verdict.late:,} came too late")
    if measures.average_workers is not None:
        saved = 1 - measures.average_workers / outcome.max_workers
        text = f"{measures.average_workers:.2f} instead of {outcome.max_workers}: {saved:.0%} less than always-max"
        table.add_row("average workers", text)
    if measures.latency_p95 is not None:
        table.add_row("latency", f"p95 {measures.latency_p95:.1f} s, worst {measures.latency_max:.1f} s")
    table.add_row("rescales", f"{measures.rescales_up} out, {measures.rescales_down} in")
    table.add_row("failed tasks", str(outcome.failed_tasks))
    if outcome.behind:
        table.add_row("load generator", f"at worst {outcome.behind:,} records late")
    table.add_row("picture", str(picture))
    table.add_row("why each step", f"penstock explain {journal}")
    console.print(table)


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask to stop; a second one insists."""
    asked = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        sys.stderr.write("stopping: the job drains no further, its results are counted (again to end at once)\n")

    def stop() -> bool:
        # Spark's session brings a handler of its own that would cancel jobs; ours is put back at every look.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not ask:
                signal.signal(number, ask)
        return asked

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        stop()
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def progress_console(as_json: bool) -> Console:
    """Progress goes to standard error where standard output is for a program."""
    return Console(stderr=as_json, highlight=False)


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-") or "run"
