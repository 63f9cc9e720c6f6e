"""A recorded run and the simulated one over time: throughput, backlog, latency and CPU, as one figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from penstock.report.colours import BLACK, BLUE, GREY, Style
from penstock.report.figures import decades, draft, legend, plainly, svg

POINTS = 400  # of a line: more are not seen
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Lines:
    """One quantity over time, as it was recorded and as it was simulated; NaN where unknown.

    least: what is drawn for less, on a logarithmic axis; None for a linear axis from 0.
    """

    name: str
    label: str
    recorded: Sequence[float]
    simulated: Sequence[float]
    least: float | None = None


@dataclass(frozen=True, slots=True)
class Beside:
    """What is drawn: load and workers, which went in, and the quantities that came out; `every` is in seconds."""

    title: str
    every: float
    load: Sequence[float]
    workers: Sequence[float]
    quantities: tuple[Lines, ...]


@plainly
def draw(beside: Beside, name: str) -> str:
    """As SVG, called `name` on its page. What was not recorded has no panel."""
    known = [lines for lines in beside.quantities if any(isfinite(value) for value in lines.recorded)]
    rows = (len(known) + 2) // 2
    figure, grid = draft(12, 2.6 * rows + 0.8, rows, 2)
    panels = list(grid.flat)
    step = max(1, -(-len(beside.load) // POINTS))
    hours = [place * beside.every / HOUR for place in range(0, len(beside.load), step)]
    _given(panels[0], beside, hours, step)
    for axes, lines in zip(panels[1:], known, strict=False):
        for values, colour, width in ((lines.recorded, BLACK, 1.6), (lines.simulated, BLUE, 1.1)):
            kept = [max(value, lines.least) if lines.least is not None else value for value in values[::step]]
            axes.plot(hours, kept, color=colour, linewidth=width)
        axes.set_title(lines.name, loc="left", fontsize=11, fontweight="bold")
        axes.set_ylabel(lines.label)
        axes.set_xlabel("hours")
        if lines.least is None:
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        else:
            axes.set_yscale("log")
            decades(axes.yaxis)
    for axes in panels[len(known) + 1 :]:
        axes.set_visible(False)
    figure.suptitle(beside.title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    legend(figure, {"recorded": Style(BLACK), "simulated": Style(BLUE)})
    return svg(figure, name)


def _given(axes: Any, beside: Beside, hours: Sequence[float], step: int) -> None:
    axes.set_title("given: load and workers", loc="left", fontsize=11, fontweight="bold")
    axes.plot(hours, list(beside.load[::step]), color=BLACK, linewidth=1.2)
    axes.set_ylabel("load (records/s)")
    axes.set_xlabel("hours")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    other = axes.twinx()
    other.fill_between(hours, list(beside.workers[::step]), step="post", color=GREY, alpha=0.5, linewidth=0)
    other.set_ylabel("workers (shaded)")
    other.set_ylim(bottom=0)
    other.spines[["top"]].set_visible(False)
    axes.set_zorder(other.get_zorder() + 1)
    axes.patch.set_visible(False)
