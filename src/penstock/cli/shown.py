"""The results of a simulation in the terminal, load by load, so that names have room."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from penstock.cli import render
from penstock.experiment.suites.base import WORDS
from penstock.measures import Interval
from penstock.report import page


def show(console: Console, document: dict[str, Any], report: Path) -> None:
    """The results in the terminal, load by load."""
    console.print(f"[bold]{escape(document['title'])}[/]\n")
    for group in dict.fromkeys(r["group"] for r in document["results"]):
        columns = ("policy", "workers", "of ideal", "of oracle", "latency (s)", "p95 (s)", "rescales")
        table = render.table(*columns, title=escape(group))
        for r in document["results"]:
            if r["group"] == group:
                latencies = (_mean(r["latency_mean"]), _mean(r["latency_p95"], 1))
                shares = (page.times(r["of_ideal"]), page.times(r["of_oracle"]))
                table.add_row(
                    escape(r["policy"]), _mean(r["average_workers"]), *shares, *latencies, _mean(r["rescales"], 0)
                )
        console.print(table)
        _show_published(console, [c for c in document["published"] if c["group"] == group])
        console.print()
    if document["findings"]:
        kept = sum(f["kept"] is True for f in document["findings"])
        console.print(
            f"Found again: {kept} of {len(document['findings'])} statements; the report has each with its figure."
        )
    for m in document["missing"]:
        console.print(f"[bold]Missing:[/] {m['policy']} on {m['group']}: this Penstock has no policy {m['name']!r}")
    console.print(f"Report: {report}")


def _show_published(console: Console, compared: Sequence[dict[str, Any]]) -> None:
    if not compared:
        return
    table = render.table("beside the paper", "measure", "published", "measured", "ratio")
    for c in compared:
        ratio = "not run" if c["ratio"] is None else f"{c['ratio']:.2f} ×"
        word = WORDS.get(c["measure"], c["measure"])
        table.add_row(escape(c["policy"]), word, f"{c['published']:g}", _mean(c["measured"]), ratio)
    console.print(table)


def _mean(found: dict[str, Any] | None, digits: int = 2) -> str:
    return "unknown" if found is None else page.mean(Interval(**found), digits)
