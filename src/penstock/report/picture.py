"""A run as one picture: load, workers, CPU, backlog and latency over time.

What was not known is a gap in a line, never a zero; so is the time in which nobody looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import nan
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.core import Observation
from penstock.errors import ConfigError, check
from penstock.journal import Record, Rescale
from penstock.measures import Span, spans

# Okabe and Ito's colours, which also the colour-blind tell apart.
BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7"
BLACK, GREY = "#000000", "#DDDDDD"
DPI, WIDTH, HEIGHT = 150, 1600, 1400
PANELS = (1.5, 1.4, 1.0, 1.0, 1.0)  # heights of load, workers, CPU, backlog, latency

Axes = Any  # matplotlib's own stubs say no more than this about most of what is called here
Value = Callable[[Observation], float | None]


def draw(
    records: Iterable[Record],
    path: Path | str,
    *,
    title: str,
    max_workers: int,
    capacity_per_worker: float | None = None,
) -> None:
    """Draw a journal into a PNG file; with `capacity_per_worker` (records/s), also what the workers could do."""
    check(max_workers >= 1, "max_workers", "be at least 1", max_workers)
    records = list(records)
    run = Run(records)
    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    load, workers, cpu, backlog, latency = figure.subplots(5, 1, sharex=True, height_ratios=PANELS)
    _load(load, run, capacity_per_worker)
    _workers(workers, run, max_workers)
    _cpu(cpu, run)
    _line(backlog, run, lambda o: o.backlog, VERMILION, "backlog\n(records)")
    _line(latency, run, lambda o: o.latency, PURPLE, "p95 latency\n(s)")
    _finish(figure, run, title)
    try:
        figure.savefig(path, dpi=DPI, format="png")
    except OSError as error:
        raise ConfigError(f"picture must be a file that can be written, got {str(path)!r}: {error.strerror}") from None


class Run:
    """The observations of a journal as lines: minutes since the first, with a break wherever nobody looked."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.spans = spans(records)
        if not self.spans:
            raise ConfigError("journal must have at least one observation to draw, got none")
        self._began = self.spans[0].observation.at
        self.rescales = [r for r in records if isinstance(r, Rescale) and r.outcome == "done" and r.before is not None]
        self.end = self.minutes(self.spans[-1].observation.at + self.spans[-1].seconds)

    def minutes(self, at: float) -> float:
        return (at - self._began) / 60

    @property
    def times(self) -> list[float]:
        return [minute for span in self.spans for minute in self._instants(span)]

    def values(self, of: Value) -> list[float]:
        """One number for each of `times`; NaN, which draws nothing, where it is not known."""
        return [
            number
            for span in self.spans
            for number in ([_number(of(span.observation)), nan] if span.gap else [_number(of(span.observation))])
        ]

    def _instants(self, span: Span) -> list[float]:
        at = self.minutes(span.observation.at)
        return [at, at] if span.gap else [at]

    @property
    def blind(self) -> list[tuple[float, float]]:
        """From when to when nothing was measured, though somebody looked."""
        found: list[tuple[float, float]] = []
        for span in self.spans:
            if span.observation.blind:
                begin = self.minutes(span.observation.at)
                end = begin + span.seen / 60
                if found and found[-1][1] >= begin - 1e-9:
                    begin = found.pop()[0]
                found.append((begin, end))
        return found


def _load(axes: Axes, run: Run, capacity: float | None) -> None:
    if capacity is not None:
        able = run.values(lambda o: None if o.workers is None else o.workers * capacity)
        axes.step(run.times, able, where="post", color=GREEN, linewidth=1.4, label="capacity of the running workers")
    axes.plot(run.times, run.values(lambda o: o.input_rate), color=BLACK, linewidth=2.2, label="arriving")
    axes.plot(run.times, run.values(lambda o: o.processed_rate), color=SKY, linewidth=1.0, label="processed")
    axes.set_ylabel("load\n(records/s)")
    axes.set_ylim(bottom=0)
    _legend(axes)


def _workers(axes: Axes, run: Run, max_workers: int) -> None:
    axes.axhline(max_workers, color=BLACK, linewidth=1, linestyle="--", label=f"always {max_workers}")
    axes.step(
        run.times, run.values(lambda o: o.requested), where="post", color=ORANGE, linewidth=2.6, label="requested"
    )
    axes.step(run.times, run.values(lambda o: o.workers), where="post", color=BLUE, linewidth=1.4, label="running")
    for rescale in run.rescales:
        at = run.minutes(rescale.at)
        arrow = {"arrowstyle": "-|>", "color": VERMILION, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (at, rescale.after), (at, rescale.before), arrowprops=arrow, zorder=4)
    if run.rescales:
        axes.plot([], [], color=VERMILION, marker="^", linestyle="", markersize=5, label="rescale")
    lost = [span.observation for span in run.spans if any(e.code == "worker.lost" for e in span.observation.events)]
    if lost:
        seen = [_number(o.workers if o.workers is not None else o.requested) for o in lost]
        axes.plot(
            [run.minutes(o.at) for o in lost],
            seen,
            color=BLACK,
            marker="x",
            linestyle="",
            markersize=8,
            markeredgewidth=2,
            zorder=5,
            label="worker lost",
        )
    axes.set_ylabel("workers")
    axes.set_ylim(0, max_workers * 1.08 + 0.3)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    _legend(axes)


def _cpu(axes: Axes, run: Run) -> None:
    low = run.values(lambda o: _percent(min((w.cpu for w in o.per_worker if w.cpu is not None), default=None)))
    high = run.values(lambda o: _percent(max((w.cpu for w in o.per_worker if w.cpu is not None), default=None)))
    axes.fill_between(run.times, low, high, color=SKY, alpha=0.5, linewidth=0, label="least to most busy worker")
    axes.plot(run.times, run.values(lambda o: _percent(o.cpu)), color=BLUE, linewidth=1.2, label="mean")
    axes.set_ylabel("CPU\n(% of a worker)")
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 25, 50, 75, 100])
    _legend(axes)


def _line(axes: Axes, run: Run, of: Value, color: str, name: str) -> None:
    values = run.values(of)
    axes.plot(run.times, values, color=color, linewidth=1.2)
    highest = max((value for value in values if value == value), default=None)
    if highest is None:
        axes.text(0.5, 0.5, "not known", transform=axes.transAxes, ha="center", va="center", color="#666666")
    top = highest or 1.0
    axes.set_ylim(-0.03 * top, 1.08 * top)  # so that a line at zero is seen
    axes.set_ylabel(name)


def _finish(figure: Figure, run: Run, title: str) -> None:
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    for axes in figure.axes:
        for begin, end in run.blind:
            axes.axvspan(begin, end, color=GREY, linewidth=0, zorder=0)
        axes.grid(color="#EEEEEE", linewidth=0.6, zorder=0)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    figure.align_ylabels()
    last = figure.axes[-1]
    last.set_xlabel("minutes since the first observation")
    last.set_xlim(0, run.end or 1)
    if run.blind:
        shade = Patch(color=GREY, label="blind: nothing measured")
        figure.legend(handles=[shade], loc="outside upper right", frameon=False, fontsize=8)


def _legend(axes: Axes) -> None:
    """Above the panel, where it hides nothing."""
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=6, frameon=False, fontsize=8, borderaxespad=0)


def _number(value: float | None) -> float:
    return nan if value is None else float(value)


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100
