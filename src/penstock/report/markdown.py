"""The results of a suite as a page to read: what came of it in plain words, pictures, tables, and how it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from penstock.report.results import BASE, STATIC, Check, Ratio, Result, dates, ratios, times

COLUMNS = (
    "policy",
    "average workers",
    "worker-seconds",
    "of static",
    "latency: average",
    "p50",
    "p95",
    "p99",
    "known",
    "rescales out / in",
    "records in = out",
    "failed tasks",
)


def page(
    results: Sequence[Result],
    checks: Sequence[Check],
    *,
    title: str,
    command: str,
    setting: Sequence[str],
    pictures: Mapping[str, str],
    missing: Sequence[str] = (),
) -> str:
    """A Markdown page; `setting` says how the runs were made, `pictures` are file names by load, `missing` not run."""
    parts = [f"# {title}", *_alarms(results, missing), "\n".join(f"- {line}" for line in words(results))]
    for load, group in _by_load(results):
        parts.append(f"## {load}")
        if load in pictures:
            parts.append(f"![{load}: load, workers, latency and resource use]({pictures[load]})")
        parts.append(_table(COLUMNS, [_row(r) for r in group]))
    compared = ratios(results)
    if compared:
        rows = [[r.load, r.policy, times(r.cost), times(r.latency), times(r.rescales)] for r in compared]
        parts += [
            f"## Against {BASE}",
            _table(("load", "policy", "worker-seconds", "average latency", "rescales"), rows),
        ]
    if checks:
        rows = [[c.load, c.goal, c.measured, _kept(c)] for c in checks]
        parts += ["## Goals", _table(("load", "goal", "measured", "reached"), rows)]
    made = (f"`{command}`", f"Run from {dates(results)}.", *setting)
    parts += ["## How it was made", "\n".join(f"- {line}" for line in made), _legend(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def words(results: Sequence[Result]) -> list[str]:
    """Each run that can be compared, in a sentence."""
    compared = {(r.load, r.policy): r for r in ratios(results)}
    bases = {r.load: r for r in results if r.policy == BASE}
    said = []
    for r in results:
        ratio = compared.get((r.load, r.policy))
        if ratio is not None and r.policy != STATIC:
            said.append(_compared(r, bases[r.load], ratio))
        elif r.average_workers is not None:
            said.append(
                f"On {r.load}, {r.policy} had {r.average_workers:.1f} workers on average "
                f"and an average latency of {_seconds(r.latency_average)}."
            )
    return said


def _compared(r: Result, base: Result, ratio: Ratio) -> str:
    cost = "an unknown share of" if ratio.cost is None else f"{_percent(ratio.cost)} of"
    workers = f"{_number(r.average_workers)} against {_number(base.average_workers)} workers on average"
    latency = f"{_seconds(r.latency_average)} against {_seconds(base.latency_average)}"
    share = "" if ratio.latency is None else f", {times(ratio.latency)}"
    return (
        f"On {r.load}, {r.policy} used {cost} the worker-seconds of {base.policy} ({workers}); "
        f"average latency {latency}{share}; {r.rescales} rescales against {base.rescales}."
    )


def _alarms(results: Sequence[Result], missing: Sequence[str]) -> list[str]:
    said = []
    for r in results:
        name = f"{r.load}-{r.policy}"
        if not r.equal:
            said.append(f"**{name}: the recount is not equal: {r.recount}**")
        if not r.drained:
            said.append(f"**{name}: the load was not worked off in time.**")
        if r.pauses:
            often = "once" if r.pauses == 1 else f"{r.pauses} times"
            said.append(
                f"**{name} was stopped and went on {often}**: the pause is no cost, but records that waited through it "
                "have it in their latency."
            )
    if missing:
        said.append(f"Not run, or not finished: {', '.join(missing)}.")
    return said


def _row(r: Result) -> list[str]:
    counted = f"{r.records_in:,}" if r.equal else f"**{r.records_in:,} ≠ {r.records_out:,}**"
    if r.equal and r.records_in != r.records_out:  # a job may well make more or fewer records than it reads
        counted = f"{r.records_in:,} in, {r.records_out:,} out, as recounted"
    if not r.drained:
        counted += " **not drained**"
    return [
        r.policy,
        _number(r.average_workers, 2),
        _number(r.worker_seconds, 0),
        _percent(r.share_of_static),
        *(_seconds(value) for value in (r.latency_average, r.latency_p50, r.latency_p95, r.latency_p99)),
        _percent(r.latency_known),
        f"{r.rescales_out} / {r.rescales_in}",
        counted,
        f"{r.failed_tasks}" if not r.failed_tasks else f"**{r.failed_tasks}**",
    ]


def _legend(results: Sequence[Result]) -> str:
    unrun = [load for load, group in _by_load(results) if all(r.policy != STATIC for r in group)]
    static = "*Of static* is against the worker-seconds of the static run on the same load"
    if unrun:
        static += f"; on {', '.join(unrun)}, where there is none, against its workers for as long as the run took"
    return (
        "Every run counts from its first observation to its last, draining included; nothing is left out. *Latency* is "
        "the 95th percentile from event to result as observed, weighted by time: its average, and what it did not "
        "exceed for 50, 95 and 99 % of the time; *known* is the share of the time in which there was a measurement. "
        f"{static}. *Rescales* are those that were carried out."
    )


def _by_load(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    order = list(dict.fromkeys(r.load for r in results))
    ranked = sorted(results, key=lambda r: order.index(r.load))
    return [(load, list(group)) for load, group in groupby(ranked, key=lambda r: r.load)]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _kept(check: Check) -> str:
    return "unknown" if check.kept is None else "yes" if check.kept else "**no**"


def _number(value: float | None, digits: int = 1) -> str:
    return "unknown" if value is None else f"{value:,.{digits}f}"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}".replace("%", " %")


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} s"
