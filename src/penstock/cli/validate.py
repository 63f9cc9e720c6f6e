"""The command that asks whether the simulator is like the real thing: validate."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from penstock.cli import render
from penstock.cli.inspect import Json
from penstock.cli.live import Flag
from penstock.cli.simulate import claim
from penstock.errors import ConfigError, check

if TYPE_CHECKING:
    from penstock.experiment.recordings import Evidence
    from penstock.experiment.validation import Lived, Validation
    from penstock.report import page
    from penstock.targets.simulated import Agreement

DATA = Path("../shared/data")
MARK = "validation.json"
SPARK_PROFILE = "spark-wordcount"
WORDS = {"throughput": "throughput", "cpu": "CPU", "backlog": "backlog", "latency": "latency"}
LEGEND = (
    "Recorded load, recorded worker counts, the instants of injected failures and what waited at the start go in; "
    "throughput, backlog, latency and CPU come out, and are compared row by row. Throughput and CPU: the median over "
    "rows of the absolute error, as a share of what was recorded. Backlog and latency: the share of rows within a "
    "factor of ten, where latencies below 10 ms count as 10 ms."
)


def validate(
    *journals: Annotated[Path, Parameter(help="Journals of our own runs, to validate instead of --data.")],
    data: Annotated[
        Path | None, Parameter(help=f"Folder of recorded runs, with koper/ and phoebe/. Default: {DATA}.")
    ] = None,
    only: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="Only this profile's recorded runs; may be repeated."),
    ] = (),
    profile: Annotated[str, Parameter(help="Of the journals: a profile's name, or a .toml file.")] = SPARK_PROFILE,
    shipped: Annotated[bool, Flag, Parameter(help="Take profiles as they are, without calibration.")] = False,
    rounds: Annotated[int, Parameter(help="Of calibration; each has half the step of the one before.")] = 2,
    processes: Annotated[int | None, Parameter(help="Local processes. Default: one per core.")] = None,
    into: Annotated[Path | None, Parameter(help="Directory of the report. Default: runs/validate.")] = None,
    as_json: Json = False,
) -> int:
    """Let the simulator live through runs that really happened, and say how far it is from them.

    Feeds it the recorded load and the recorded worker counts, and compares throughput, backlog, latency and CPU over
    time. Every profile is calibrated on part of its runs and validated with the others; both errors are printed, for
    each run and over all rows. Exit code 1 if the runs that were not used for calibration miss a goal over all rows.

        penstock validate --shipped
        penstock validate --data recordings --only nexmark-q1-koper --json
        penstock validate runs/*/journal.jsonl --profile my.toml
    """
    from penstock.experiment import validation

    check(1 <= rounds <= 10, "rounds", "be from 1 to 10", rounds)
    check(processes is None or processes >= 1, "processes", "be at least 1", processes)
    evidence = _evidence(journals, data, only, profile)
    directory = claim(into or Path("runs") / "validate", MARK, "a validation")
    console = Console(stderr=as_json, highlight=False, width=None if as_json else render.console().width)
    with console.status("comparing" if shipped else "calibrating, which takes minutes") as status:
        found = validation.validate(
            evidence,
            shipped=shipped,
            rounds=rounds,
            processes=processes or len(os.sched_getaffinity(0)),
            progress=lambda name: status.update(f"{name} is done"),
        )
        status.update("drawing")
        document = _document(found)
        _write(found, document, directory)
    if as_json:
        render.emit(document)
    else:
        _show(console, document, directory / "report.html")
    return 0 if document["reached"] else 1


def _evidence(journals: Sequence[Path], data: Path | None, only: Sequence[str], profile: str) -> list[Evidence]:
    from penstock.experiment import recordings

    if only and journals and data is None:
        raise ConfigError(f"only must be given for recorded runs, not for journals, got {only[0]!r}")
    found = []
    if data is not None or not journals:
        found += recordings.recorded(data or DATA, only)
    if journals:
        from penstock.targets.simulated import load

        load(profile)
        found.append(recordings.own(journals, profile))
    elif profile != SPARK_PROFILE:
        raise ConfigError(f"profile must be given with journals only, got {profile!r}")
    return found


def _document(found: Sequence[Validation]) -> dict[str, Any]:
    from penstock.experiment.validation import GOALS, misses, pooled

    lived = [each for one in found for each in one.lived]
    # One journal alone has nothing to be calibrated on; a data set may have nothing left to validate with.
    overall = {
        part: _plain(pooled(lived, calibrated=part == "calibrated"))
        for part in ("calibrated", "validated")
        if any(each.calibrated == (part == "calibrated") for each in lived)
    }
    validated = pooled(lived, calibrated=False)
    return {
        "goals": GOALS,
        "overall": overall,
        "misses": list(misses(validated)),
        "reached": not misses(validated) and "validated" in overall,
        "profiles": [
            {
                "profile": one.profile,
                "fitted": [asdict(change) for change in one.changes],
                "calibrated": _plain(one.over(calibrated=True)) if any(e.calibrated for e in one.lived) else None,
                "validated": _plain(one.over(calibrated=False)) if any(not e.calibrated for e in one.lived) else None,
                "runs": [_run(each) for each in one.lived],
            }
            for one in found
        ],
    }


def _run(lived: Lived) -> dict[str, Any]:
    part = "calibrated" if lived.calibrated else "validated"
    return {"run": lived.run.name, "part": part, "rows": len(lived.run.load), **_plain(lived.agreement)}


def _plain(agreement: Agreement) -> dict[str, Any]:
    from penstock.experiment.validation import misses

    return {**asdict(agreement), "misses": list(misses(agreement))}


def _write(found: Sequence[Validation], document: dict[str, Any], directory: Path) -> None:
    from penstock.report import beside, page

    tables, figures = [], []
    for one, told in zip(found, document["profiles"], strict=True):
        drawn = []
        for place, each in enumerate(one.lived):
            part = "used for calibration" if each.calibrated else "not used for calibration"
            name = f"{_name(one.profile)}-{place + 1}"
            drawn.append(beside.draw(_beside(each, f"{each.run.name} ({part})"), name))
        moved = [f"{c.name} {c.before:.4g} to {c.after:.4g}" for c in one.changes]
        fitted = f"Fitted from the profile as shipped: {', '.join(moved)}." if moved else "The profile as it is."
        tables.append(page.Section(one.profile, (fitted,), tables=(_table(told),)))
        figures.append(page.Section(f"{one.profile}, over time", figures=tuple(drawn)))
    made = page.Page(
        title="Is the simulator like the real thing?",
        source="Recorded runs, lived through again: penstock validate",
        words=tuple(_words(document)),
        sections=(*tables, *figures, page.Section("How it was made", notes=(LEGEND,))),
    )
    (directory / "report.html").write_text(page.html(made), encoding="utf-8")
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    (directory / MARK).write_text(text + "\n", encoding="utf-8")


def _beside(lived: Lived, title: str) -> Any:
    from penstock.report.beside import Beside, Lines

    run, fed = lived.run, lived.fed

    def lines(name: str, label: str, factor: float = 1.0, least: float | None = None) -> Lines:
        pair = (factor * getattr(run, name), factor * getattr(fed, name))
        return Lines(WORDS[name], label, pair[0].tolist(), pair[1].tolist(), least)

    return Beside(
        title=title,
        every=run.every,
        load=run.load.tolist(),
        workers=run.workers.tolist(),
        quantities=(
            lines("throughput", "records/s"),
            lines("backlog", "records", least=1.0),
            lines("latency", "seconds", least=0.001),
            lines("cpu", "% of a worker's own", factor=100.0),
        ),
    )


def _table(told: dict[str, Any]) -> page.Table:
    from penstock.report import page

    columns = ("run", "used for", "throughput, error", "CPU, error", "backlog, same order", "latency, same order")
    rows = [(r["run"], _use(r["part"]), *_cells(r), ", ".join(r["misses"]) or "yes") for r in told["runs"]]
    for part in ("calibrated", "validated"):
        if told[part] is not None:
            rows.append(("all rows", _use(part), *_cells(told[part]), ", ".join(told[part]["misses"]) or "yes"))
    return page.Table("Errors", (*columns, "goals reached, or what misses"), tuple(rows), words=2)


def _words(document: dict[str, Any]) -> list[str]:
    said = []
    for part, where in (("validated", "not used for calibration"), ("calibrated", "used for calibration")):
        found = document["overall"].get(part)
        if found is None:
            continue
        parts = [
            f"{WORDS[name]} {100 * found[name]:.1f} %"
            + (" off" if name in ("throughput", "cpu") else " of rows of the same order")
            for name in WORDS
            if found[name] is not None
        ]
        said.append(f"Over all rows of the runs {where}: {', '.join(parts)}.")
    goals = document["goals"]
    aim = (
        f"at most {100 * goals['throughput']:.0f} % for throughput and {100 * goals['cpu']:.0f} % for CPU, at least "
        f"{100 * goals['backlog']:.0f} % of rows for backlog and latency"
    )
    missed = ", ".join(WORDS[name] for name in document["misses"]) or "nothing is left to validate with"
    said.append(f"The goals ({aim}) are {'reached' if document['reached'] else f'missed: {missed}'}.")
    runs = [r for told in document["profiles"] for r in told["runs"] if r["part"] == "validated"]
    if runs:
        good = sum(not r["misses"] for r in runs)
        said.append(f"Of {len(runs)} runs not used for calibration, {good} reach every goal on their own.")
    return said


def _show(console: Console, document: dict[str, Any], report: Path) -> None:
    for told in document["profiles"]:
        table = render.table("run", "used for", *WORDS.values(), "misses", title=told["profile"])
        for r in told["runs"]:
            table.add_row(r["run"], _use(r["part"]), *_cells(r), ", ".join(r["misses"]))
        for part in ("calibrated", "validated"):
            if told[part] is not None:
                cells = (*_cells(told[part]), ", ".join(told[part]["misses"]))
                table.add_row("all rows", _use(part), *cells, style="bold")
        console.print(table)
        if told["fitted"]:
            moved = ", ".join(f"{c['name']} {c['before']:.4g} to {c['after']:.4g}" for c in told["fitted"])
            console.print(f"Fitted: {moved}")
        console.print()
    for sentence in _words(document):
        console.print(sentence)
    console.print(f"Report: {report}")


def _cells(found: dict[str, Any]) -> tuple[str, ...]:
    return tuple("unknown" if found[name] is None else f"{100 * found[name]:.1f} %" for name in WORDS)


def _use(part: str) -> str:
    return {"calibrated": "calibration", "validated": "validation"}[part]


def _name(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in Path(name).stem).strip("-") or "run"
