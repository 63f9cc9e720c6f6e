"""The command that runs whole suites: bench.

Every run has a process of its own, so that each starts with as cold a driver as the others, and one that crashes takes
nothing else with it. `Task` says which; it comes as JSON on standard input, which stays open: when it closes, because
the suite was killed, its run stops too.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from penstock import journal as journals
from penstock.cli import render
from penstock.cli.inspect import Json
from penstock.cli.live import Flag, conduct, progress_console, stoppable
from penstock.cli.simulate import Master, On, Place, Processes
from penstock.cli.view import View
from penstock.errors import ConfigError, PenstockError, Refused, check
from penstock.experiment import bench as spark_suite
from penstock.experiment import spec
from penstock.experiment.bench import Calibration, Case

if TYPE_CHECKING:
    from penstock.report.results import Ran

INTERRUPTED = 130
SEEDS = 5  # of a simulated suite


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command; None: as the suite has it."""

    into: Path | None
    minutes: float | None
    most: int | None
    static: int | None
    only: tuple[str, ...]
    report_only: bool
    as_json: bool
    seeds: int | None = None
    place: Place = field(default_factory=Place)


@dataclass(frozen=True, slots=True)
class Task:
    """What one process does: the run of a case or, without one, the calibration."""

    into: str
    minutes: float
    most: int
    static: int
    case: str | None
    title: str
    as_json: bool


def bench(
    suite: Annotated[str, Parameter(help="Which suite: spark, daedalus, ds2, gesscale, koper, phoebe.")],
    /,
    *,
    into: Annotated[Path | None, Parameter(help="Directory of the suite. Default: runs/bench-SUITE.")] = None,
    minutes: Annotated[float | None, Parameter(help="spark: length of each run's load. Default: 12.")] = None,
    most: Annotated[int | None, Parameter(name="--max", help="spark: the most workers. Default: 6.")] = None,
    static: Annotated[
        int | None,
        Parameter(help="spark: workers of the static run, which no load exceeds. Default: two thirds of --max."),
    ] = None,
    only: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="A run (sine-hpa-80) or load (q1); may be repeated."),
    ] = (),
    seeds: Annotated[int | None, Parameter(help="Simulated runs of each policy. Default: 5.")] = None,
    processes: Processes = None,
    on: On = "local",
    master: Master = None,
    report_only: Annotated[bool, Flag, Parameter(help="Run nothing; write the report from what is there.")] = False,
    as_json: Json = False,
) -> int:
    """Run a suite of experiments one after the other, and report on them.

    spark: word count on a real Spark cluster under Daedalus, HPA at 80 and 85 % and a static number of workers, on a
    sine; and under the first two on an advertising day. About an hour and a half. Stopped or crashed, the same command
    with the same --into keeps what has finished and goes on with the rest.

    daedalus, ds2, gesscale, koper, phoebe: these papers' experiments on the simulator, measured beside published, in a
    minute or so; what a paper ran and Penstock does not have yet is listed as missing. See docs/benchmarks.md.

        penstock bench daedalus --seeds 5
        penstock bench koper --only q1 --on spark --master spark://host:7077
        penstock bench spark
        penstock bench spark --only sine-daedalus --only sine-hpa-80
        penstock bench spark --report-only --json
    """
    if suite not in SUITES:
        raise ConfigError(f"suite must be one of {', '.join(SUITES)}, got {suite!r}")
    place = Place(on, master, processes)
    return SUITES[suite](Asked(into, minutes, most, static, only, report_only, as_json, seeds, place))


def _spark(asked: Asked) -> int:
    if asked.seeds is not None or asked.place != Place():
        raise ConfigError("seeds, on, master and processes must be left out with a real cluster, got one of them")
    into = asked.into or Path("runs/bench-spark")
    minutes = spark_suite.MINUTES if asked.minutes is None else asked.minutes
    most = spark_suite.MOST if asked.most is None else asked.most
    check(math.isfinite(minutes) and 1 <= minutes <= 1440, "minutes", "be from 1 to 1440", minutes)
    check(2 <= most <= 64, "max", "be from 2 to 64", most)
    static = spark_suite.static_of(most) if asked.static is None else asked.static
    check(1 <= static <= most, "static", f"be from 1 to max ({most})", static)
    cases = spark_suite.choose(asked.only)
    console = progress_console(asked.as_json)
    code = 0
    if not asked.report_only:

        def do(case: Case | None, title: str) -> int:
            return _apart(Task(str(into), minutes, most, static, case.name if case else None, title, asked.as_json))

        code = spark_suite.run(cases, into, minutes=minutes, most=most, static=static, do=do, tell=console.print)
    calibration = spark_suite.recall(into)
    done = [] if calibration is None else _ran(into)
    if calibration is None or not done:
        if code == 0:
            raise ConfigError(f"into must have a run of the suite to report on, got {str(into)!r}")
        return code
    document, sound = _report(into, calibration, done)
    if asked.as_json:
        render.emit(document)
    else:
        _show(console, document, into / "report.md")
    return code or (0 if sound else 1)


def _paper(name: str) -> Callable[[Asked], int]:
    """A suite on the simulator."""

    def run(asked: Asked) -> int:
        from penstock.cli.simulate import suite
        from penstock.experiment.suites import SUITES as PAPERS

        for field_name, value in (("minutes", asked.minutes), ("max", asked.most), ("static", asked.static)):
            if value is not None:
                raise ConfigError(f"{field_name} must be left out with {name}, where the paper sets it, got {value:g}")
        check(not asked.report_only, "report-only", "be left out with a simulation, which is quick to repeat", True)
        seeds = SEEDS if asked.seeds is None else asked.seeds
        return suite(
            PAPERS[name], seeds=seeds, into=asked.into, only=asked.only, place=asked.place, as_json=asked.as_json
        )

    return run


SUITES: dict[str, Callable[[Asked], int]] = {
    "spark": _spark,
    **{name: _paper(name) for name in ("daedalus", "ds2", "gesscale", "koper", "phoebe")},
}


def _apart(task: Task) -> int:
    """Do a task in a process of its own; its exit code, or 130 if it was asked to stop."""
    command = [sys.executable, "-m", "penstock.cli.bench"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None  # noqa: S101 - it was asked for above
    with _handing_on(process) as asked:
        process.stdin.write(json.dumps(asdict(task)).encode() + b"\n")
        process.stdin.flush()
        try:
            code = process.wait()
        finally:
            process.stdin.close()
            process.wait()
    if code < 0:
        return 128 - code
    return INTERRUPTED if asked() and code == 0 else code


@contextmanager
def _handing_on(process: subprocess.Popen[bytes]) -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM are for the run: it ends in good order, and then so does the suite."""
    asked = False

    def ask(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        process.send_signal(number)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _serve() -> int:
    """The other side of `_apart`."""
    task = Task(**json.loads(sys.stdin.readline()))
    _end_with_owner()
    try:
        if task.case is None:
            _calibrate(task)
        else:
            _case(task, task.case)
    except PenstockError as error:
        print(f"penstock: {' '.join(str(error).split())}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError | Refused) else 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _end_with_owner() -> None:
    """Stop in good order when standard input closes: whoever started this process is gone."""

    def watch() -> None:
        while os.read(0, 1):  # not through sys.stdin, whose lock would be held when Python ends
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _calibrate(task: Task) -> None:
    with View(progress_console(task.as_json), task.title, task.most) as view, stoppable() as stop:
        spark_suite.calibrate(
            Path(task.into), minutes=task.minutes, most=task.most, static=task.static, tell=view.tell, stop=stop
        )


def _case(task: Task, name: str) -> None:
    into = Path(task.into)
    calibration = spark_suite.calibrate(into, minutes=task.minutes, most=task.most, static=task.static)
    (case,) = spark_suite.choose((name,))
    text = spark_suite.toml(
        case,
        peak=calibration.peak,
        minutes=task.minutes,
        most=task.most,
        static=calibration.workers,
        batch=calibration.batch,
    )
    summary = into / name / "summary.json"
    failed_before = json.loads(summary.read_text())["failed_tasks"] if summary.exists() else 0
    with stoppable() as stop:
        ran = conduct(
            spec.parse(text, name),
            into / name,
            progress_console(task.as_json),
            title=task.title,
            stop=stop,
            capacity_per_worker=calibration.per_worker,
        )
    if failed_before:  # a run that went on knows only what failed since
        document = {**ran.document, "failed_tasks": ran.outcome.failed_tasks + failed_before}
        summary.write_text(json.dumps(document, indent=2))


def _ran(into: Path) -> list[Ran]:
    """The runs that are there to be reported: all but those that were stopped early."""
    from penstock.report.results import Ran

    found = []
    for case in spark_suite.CASES:
        summary = into / case.name / "summary.json"
        if not summary.exists():
            continue
        document = json.loads(summary.read_text())
        if not document.get("stopped", False):
            records = list(journals.read(into / case.name / "journal.jsonl"))
            found.append(Ran(case.load, case.policy, records, document))
    return found


def _report(into: Path, calibration: Calibration, runs: Sequence[Ran]) -> tuple[dict[str, Any], bool]:
    """Write report.md, results.csv, results.json and a picture per load; the results, and whether all are sound."""
    from penstock.report import markdown, panels, results

    pictures = {}
    for load in dict.fromkeys(run.load for run in runs):
        planned = spark_suite.load(load, peak=calibration.peak, minutes=calibration.minutes)
        grid = [planned.duration * i / 400 for i in range(401)]
        pictures[load] = f"{load}.png"
        panels.draw(
            [run for run in runs if run.load == load],
            into / pictures[load],
            title=f"Word count on Spark, {load} load",
            planned=[(t, planned.rate(t)) for t in grid],
            static=calibration.workers,
            capacity=calibration.rate,
        )
    found = results.collect(runs, calibration.workers)
    checks = results.judge(found, results.Goal())
    command = f"penstock bench spark --minutes {calibration.minutes:g} --max {calibration.max_workers}"
    if calibration.static != spark_suite.static_of(calibration.max_workers):
        command += f" --static {calibration.static}"
    missing = [case.name for case in spark_suite.CASES if case.name not in {run.name for run in runs}]
    page = markdown.page(
        found,
        checks,
        title="Word count on a real Spark cluster",
        command=command,
        setting=_setting(calibration),
        pictures=pictures,
        missing=missing,
    )
    document = results.document(
        found,
        checks,
        suite="spark",
        command=command,
        date=results.dates(found),
        time_scale=spark_suite.TIME_SCALE,
        calibration=asdict(calibration),
        missing=missing,
    )
    (into / "report.md").write_text(page)
    (into / "results.csv").write_text(results.table(found))
    (into / "results.json").write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    return document, all(r.sound for r in found)


def _setting(calibration: Calibration) -> list[str]:
    c, scale, peak = calibration, spark_suite.TIME_SCALE, f"{100 * spark_suite.PEAK:.0f} %"
    return [
        f"{c.machine}.",
        f"Measured first: {c.workers} workers do {c.rate:,.0f} records/s (± {100 * c.spread:.0f} % over {c.batches} "
        f"batches). Every load lasts {c.minutes:g} minutes and peaks at {peak} of that, {c.peak:,.0f} records/s. "
        f"Static has these {c.workers}, all others at most {c.max_workers}.",
        f"Every policy's seconds are divided by {scale:g}: Daedalus decides every {60 / scale:g} s instead of 60, HPA "
        f"every {15 / scale:g} s instead of 15 and with windows of {300 / scale:g} s instead of 300, both ways.",
    ]


def _show(console: Console, document: dict[str, Any], report: Path) -> None:
    table = render.table(
        "load", "policy", "workers", "of static", "latency", "p95", "out / in", "recount", title="What came of it"
    )
    for r in document["results"]:
        share = "unknown" if r["share_of_static"] is None else f"{100 * r['share_of_static']:.0f} %"
        average, latency, p95 = (
            "unknown" if r[key] is None else f"{r[key]:.2f}{unit}"
            for key, unit in (("average_workers", ""), ("latency_average", " s"), ("latency_p95", " s"))
        )
        mark = "[green]equal[/]" if r["equal"] else "[bold red]NOT EQUAL[/]"
        drained = "" if r["drained"] else ", [bold red]not drained[/]"
        rescales = f"{r['rescales_out']} / {r['rescales_in']}"
        table.add_row(r["load"], r["policy"], average, share, latency, p95, rescales, f"{mark}{drained}")
    console.print(table)
    if document["missing"]:
        console.print(f"Not run, or not finished: {', '.join(document['missing'])}; the same command goes on.")
    console.print(f"Report: {report}")


if __name__ == "__main__":
    sys.exit(_serve())
