"""Rows of a simulation made into what people and machines read: page, figures, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from penstock.experiment.cell import ORACLE, Cell, Row
from penstock.experiment.suites.base import WORDS, Comparison, Finding, Missing, Sheet, Suite, Summary
from penstock.measures import Interval
from penstock.report import figures, page

MEASURED = (
    "average_workers",
    "worker_seconds",
    "money",
    "latency_mean",
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "latency_max",
    "over_target",
    "rescales",
    "downtime",
    "backlog_max",
    "accuracy_over",
    "accuracy_under",
    "workers_over",
    "workers_under",
    "timeshare_over",
    "timeshare_under",
    "excess_time",
    "recovery_rescale",
    "recovery_failure",
    "capacity_error",
    "forecast_error",
    "recovery_error",
    "profiling_seconds",
    "ideal_workers",
)
LEGEND = (
    "Means over seeds ± 95 % intervals. Of static: worker-seconds against the static run of the group, or else "
    "against the most workers. Of ideal: against rescaling that is instant and free. Of oracle: against the least "
    "worker-seconds with which no record waits longer than the target, planned with the whole load known and then run "
    "like any policy, with as little capacity in reserve as keeps the target for 99 % of the time; below 1 means that "
    "a policy let records wait longer than the target, or did without that reserve. Latency is the 95th percentile "
    "over time, downtime and catching up included: its average, and what it did not exceed for 95 and 99 % of the "
    "time. Too many and too few: workers on average above and below what the load needed (SPEC accuracy), and the "
    "share of time with too many or too few (SPEC timeshare). Capacity and forecast off by: what decisions expected "
    "against what was true, as a share of it. Lines over time are of the first seed."
)


@dataclass(frozen=True, slots=True)
class Told:
    """Where a report comes from."""

    title: str
    source: str
    command: str
    settings: tuple[str, ...]
    suite: Suite | None = None
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A policy in a group, over all seeds."""

    group: str
    policy: str
    name: str
    means: dict[str, Interval | None]
    of_static: float | None
    of_ideal: float | None
    of_oracle: float | None
    note: str


def write(rows: Sequence[Row], cells: Sequence[Cell], directory: Path, told: Told) -> dict[str, Any]:
    """Write report.html, the figures, results.csv and results.json; the latter's document."""
    summary = Summary(rows)
    entries = _entries(rows, summary)
    suite = told.suite
    compared = _within(told, [] if suite is None else suite.compare(suite, summary))
    judged = _within(told, [] if suite is None else suite.judge(suite, summary))
    missing = () if suite is None else suite.missing(told.only)
    sheets = [] if suite is None else suite.sheets(rows)
    sections = []
    for place, group in enumerate(dict.fromkeys(row.group for row in rows)):
        sections.append(_section(group, rows, entries, compared, directory / _file(group, place), told))
    made = page.Page(
        title=told.title,
        source=told.source,
        words=_words(entries, judged),
        alarms=_alarms(missing, entries),
        sections=(
            *([_findings(judged)] if judged else []),
            *([page.Section("Tables of the paper", tables=tuple(_sheet(sheet) for sheet in sheets))] if sheets else []),
            *sections,
            page.Section("How it was made", (f"Command: {told.command}", *told.settings), notes=(LEGEND,)),
        ),
    )
    document = {
        "title": told.title,
        "source": told.source,
        "command": told.command,
        "settings": list(told.settings),
        "seeds": len({cell.seed for cell in cells}),
        "missing": [asdict(m) for m in missing],
        "results": [_plain(entry) for entry in entries],
        "published": [{**asdict(c), "ratio": c.ratio} for c in compared],
        "findings": [asdict(f) for f in judged],
        "tables": [asdict(sheet) for sheet in sheets],
    }
    (directory / "report.html").write_text(page.html(made), encoding="utf-8")
    (directory / "results.csv").write_text(_csv(rows), encoding="utf-8")
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    (directory / "results.json").write_text(text + "\n", encoding="utf-8")
    return document


def _file(group: str, place: int) -> str:
    """What the figures of a group are called: its own name where that can be part of a file's and of a link's."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", group).strip("-")
    return plain if plain == group else f"{place + 1}-{plain}".strip("-")


def _within(told: Told, found: Sequence[Any]) -> list[Any]:
    """Only of the groups that were asked for."""
    return [each for each in found if not told.only or each.group in told.only]


def _entries(rows: Sequence[Row], summary: Summary) -> list[_Entry]:
    entries = []
    for group, policy in summary.keys():  # noqa: SIM118 - a method of its own
        here = summary.rows(group, policy)
        means = {measure: summary.interval(group, policy, measure) for measure in MEASURED}
        cost, ideal = summary.mean(group, policy, "average_workers"), summary.mean(group, policy, "ideal_workers")
        base, _ = _base(rows, group, summary)
        best = summary.mean(group, ORACLE, "average_workers")
        entries.append(
            _Entry(
                group,
                policy,
                here[0].name,
                means,
                _over(cost, base),
                _over(cost, ideal),
                _over(cost, best),
                here[0].note,
            )
        )
    return entries


def _base(rows: Sequence[Row], group: str, summary: Summary) -> tuple[float, str]:
    """What resource use is a share of: the first static run of a group, else the most workers."""
    for row in rows:
        if row.group == group and row.name == "static":
            return summary.mean(group, row.policy, "average_workers") or float(row.max_workers), row.policy
    most = next(row.max_workers for row in rows if row.group == group)
    return float(most), f"always {most}"


def _over(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def _section(
    group: str,
    rows: Sequence[Row],
    entries: Sequence[_Entry],
    compared: Sequence[Comparison],
    path: Path,
    told: Told,
) -> page.Section:
    summary = Summary(rows)
    here = [entry for entry in entries if entry.group == group]
    picture = _picture(group, rows, summary, here, told)
    drawn = (
        figures.panels(picture, path.with_name(f"{path.name}.png")),
        figures.scatter(picture, path.with_name(f"{path.name}-cost.png")),
    )
    published = tuple(
        (c.policy, WORDS.get(c.measure, c.measure), f"{c.published:g}", page.mean(c.measured), page.times(c.ratio))
        for c in compared
        if c.group == group
    )
    ideal, best = picture.ideal_workers, summary.mean(group, ORACLE, "average_workers")
    target = next(row.latency_target for row in rows if row.group == group)
    words = [f"Instant and free rescaling would need {ideal:.2f} workers on average (ideal)."]
    if best is not None:
        words.append(f"Knowing the whole load, {best:.2f} keep every record's wait within {target:g} s (oracle).")
    columns = ("policy", "measure", "published", "measured", "measured / published")
    return page.Section(
        group,
        tuple(words),
        drawn,
        (_results(here), _conduct(here), page.Table("Measured beside published", columns, published, words=2)),
        tuple(f"{entry.policy}: {entry.note}" for entry in here if entry.note),
    )


def _picture(group: str, rows: Sequence[Row], summary: Summary, here: Sequence[_Entry], told: Told) -> figures.Picture:
    title, suite = told.title, told.suite
    featured = () if suite is None else suite.featured
    tracks = []
    for entry in here:
        made = summary.rows(group, entry.policy)
        lines = [json.loads(row.lines) for row in made]
        pooled = [value for each in lines for value in each.get("quantiles", []) if value is not None]
        tracks.append(
            figures.Track(
                policy=entry.policy,
                name=entry.name,
                every=lines[0].get("every", 1),
                load=lines[0].get("load", []),
                workers=lines[0].get("workers", []),
                quantiles=pooled,
                average_workers=entry.means["average_workers"],
                latency=entry.means["latency_mean"],
                featured=not featured or entry.policy in featured,
            )
        )
    base, based_on = _base(rows, group, summary)
    ideal = summary.mean(group, here[0].policy, "ideal_workers") or 0.0
    return figures.Picture(f"{title}: {group}", tuple(tracks), base, based_on, ideal)


def _results(entries: Sequence[_Entry]) -> page.Table:
    paid = any(e.means["money"] is not None for e in entries)
    columns = (
        "policy",
        "average workers",
        *(("cost",) if paid else ()),
        "of static",
        "of ideal",
        "of oracle",
        "average latency (s)",
        "p95 (s)",
        "p99 (s)",
        "over target",
    )
    rows = []
    for e in entries:
        m = e.means
        rows.append(
            (
                e.policy,
                page.mean(m["average_workers"]),
                *((page.mean(m["money"]),) if paid else ()),
                page.share(e.of_static),
                page.times(e.of_ideal),
                page.times(e.of_oracle),
                page.mean(m["latency_mean"]),
                page.mean(m["latency_p95"], 1),
                page.mean(m["latency_p99"], 1),
                _share(m["over_target"]),
            )
        )
    return page.Table("Cost and latency", columns, tuple(rows))


def _conduct(entries: Sequence[_Entry]) -> page.Table:
    columns = (
        "policy",
        "rescales",
        "down (s)",
        "recovery (s)",
        "too many",
        "of the time",
        "too few",
        "of the time",
        "capacity off by",
        "forecast off by",
    )
    rows = []
    for e in entries:
        m = e.means
        rows.append(
            (
                e.policy,
                page.mean(m["rescales"], 1),
                page.mean(m["downtime"], 0),
                "none" if m["recovery_rescale"] is None else page.mean(m["recovery_rescale"], 0),
                page.mean(m["workers_over"]),
                _share(m["timeshare_over"]),
                page.mean(m["workers_under"]),
                _share(m["timeshare_under"]),
                *("none made" if m[name] is None else _share(m[name]) for name in ("capacity_error", "forecast_error")),
            )
        )
    return page.Table("Rescales, elasticity, and how right the models were", columns, tuple(rows))


def _share(found: Interval | None) -> str:
    return page.share(None if found is None else found.mean)


def _findings(judged: Sequence[Finding]) -> page.Section:
    rows = tuple((f.group, f.claim, f.measured, page.verdict(f.kept)) for f in judged)
    table = page.Table(
        "Published statements and goals", ("load", "statement", "measured", "found again"), rows, words=3
    )
    return page.Section("What of the paper is found again", tables=(table,))


def _sheet(sheet: Sheet) -> page.Table:
    return page.Table(sheet.title, sheet.columns, sheet.rows, words=len(sheet.columns))


def _alarms(missing: Sequence[Missing], entries: Sequence[_Entry]) -> tuple[str, ...]:
    said = [f"Missing: {m.policy} on {m.group}; this Penstock has no policy {m.name!r}." for m in missing]
    said += [f"{e.policy} on {e.group} has no result: {e.note}" for e in entries if e.means["average_workers"] is None]
    return tuple(said)


def _words(entries: Sequence[_Entry], judged: Sequence[Finding]) -> tuple[str, ...]:
    said = []
    if judged:
        kept, known = sum(f.kept is True for f in judged), sum(f.kept is not None for f in judged)
        said.append(f"Of {known} statements of the paper or goals that could be checked, {kept} are found again.")
    for group in dict.fromkeys(e.group for e in entries):
        real = [
            e for e in entries if e.group == group and e.policy != ORACLE and e.means["average_workers"] is not None
        ]
        if real:
            said.append(_sentence(group, real))
    return tuple(said)


def _sentence(group: str, entries: Sequence[_Entry]) -> str:
    def cost(e: _Entry) -> float:
        found = e.means["average_workers"]
        return float("inf") if found is None else found.mean

    def late(e: _Entry) -> float:
        found = e.means["latency_mean"]
        return float("inf") if found is None else found.mean

    cheap, quick = min(entries, key=cost), min(entries, key=late)
    few = f"{cost(cheap):.2f} on average, latency {late(cheap):.1f} s"
    text = f"On {group}, {cheap.policy} needs the fewest workers ({few})"
    if quick.policy == cheap.policy:
        return f"{text}, and has the lowest latency, too."
    return f"{text}; {quick.policy} has the lowest latency ({late(quick):.1f} s, with {cost(quick):.2f} workers)."


def _plain(entry: _Entry) -> dict[str, Any]:
    means = {name: None if found is None else asdict(found) for name, found in entry.means.items()}
    rest = {"of_static": entry.of_static, "of_ideal": entry.of_ideal, "of_oracle": entry.of_oracle, "note": entry.note}
    return {"group": entry.group, "policy": entry.policy, "name": entry.name, **means, **rest}


def _csv(rows: Sequence[Row]) -> str:
    """One line per cell; what is not known is empty."""
    text = io.StringIO()
    names = [each.name for each in fields(Row) if each.name != "lines"]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if (value := getattr(row, name)) is None else value for name in names])
    return text.getvalue()
