"""Simulated policies on one load as figures: the four panels of Daedalus (ICPE 2024, Fig. 7), and cost against latency.

Each is given as PNG, to paste, and as SVG for a page of any background, where black takes the colour of the text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10, nan
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from penstock.errors import ConfigError
from penstock.measures import Interval
from penstock.report.colours import STYLES, Style, style

DPI = 150
SHORTEST = 0.001  # seconds: a logarithmic axis has no place for 0
ORACLE = "oracle"
LIMIT = Style("#777777", "-")
GREY = "#808080"  # is seen on white and on black
MARKERS = "osD^vPX<>"

plainly = mpl.rc_context({"text.parse_math": False})  # a policy may be called a $
Axes = Any  # matplotlib's own stubs say no more than this about most of what is called here


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A policy's runs on a load: lines of the first seed, means over all.

    policy, name: what it is called here, and which policy it is.
    every: seconds between two points of load and workers; quantiles: latencies at equal steps of share, of all seeds.
    featured: its line is drawn over time.
    """

    policy: str
    name: str
    every: float
    load: Sequence[float]
    workers: Sequence[float]
    quantiles: Sequence[float]
    average_workers: Interval | None
    latency: Interval | None
    featured: bool = True


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn together.

    base, based_on: worker count that resource use is a share of, and what it is called.
    ideal_workers: the fewest on average if rescaling were instant and free.
    """

    title: str
    tracks: tuple[Track, ...]
    base: float
    based_on: str
    ideal_workers: float


def look(track: Track) -> Style:
    """A policy's style: of its label if that has one, else of the policy."""
    if track.policy == ORACLE:
        return LIMIT
    return style(track.policy if track.policy in STYLES else track.name)


@plainly
def panels(picture: Picture, path: Path) -> str:
    """Load, workers, latency and resource use: written as PNG, returned as SVG."""
    figure, axes = draft(12, 8, 2, 2)
    (load, workers), (latency, resources) = axes
    shown = [track for track in picture.tracks if track.featured and track.workers]
    _load(load, picture.tracks)
    _workers(workers, shown)
    _latency(latency, shown)
    _resources(resources, picture)
    figure.suptitle(picture.title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    legend(figure, {track.policy: look(track) for track in shown})
    return write(figure, path)


@plainly
def scatter(picture: Picture, path: Path) -> str:
    """Average workers against average latency, with the front that no policy beats: written as PNG, returned as SVG."""
    figure, axes = draft(12, 5.5, 1, 1)
    known = [track for track in picture.tracks if track.average_workers is not None and track.latency is not None]
    marks: dict[str, int] = {}
    places: list[tuple[float, float]] = []
    for track in known:
        workers, late = track.average_workers, track.latency
        if workers is None or late is None:
            continue
        marks[track.name] = marks.get(track.name, -1) + 1
        x, y = workers.mean, max(late.mean, SHORTEST)
        limit = track.policy == ORACLE
        axes.errorbar(
            x,
            y,
            xerr=_half(workers),
            yerr=[[min(_half(late), 0.99 * y)], [_half(late)]],
            fmt="*" if limit else MARKERS[marks[track.name] % len(MARKERS)],
            color=look(track).colour,
            markersize=15 if limit else 8,
            linewidth=1,
            capsize=2,
            zorder=4,
        )
        near = sum(abs(a - x) < 0.4 and abs(log10(b / y)) < 0.06 for a, b in places)
        places.append((x, y))
        axes.annotate(track.policy, (x, y), (7, 4 + 10 * near), textcoords="offset points", fontsize=8)
    best = front([(t.average_workers.mean, max(t.latency.mean, SHORTEST)) for t in known if _competes(t)])  # type: ignore[union-attr]
    if len(best) > 1:
        axes.step([x for x, _ in best], [y for _, y in best], where="post", color=GREY, linewidth=1, zorder=2)
    axes.axvline(picture.ideal_workers, color=GREY, linestyle="--", linewidth=1)
    axes.annotate(
        "ideal: instant, free",
        (picture.ideal_workers, 1.0),
        (3, -10),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
    )
    axes.set_yscale("log")
    decades(axes.yaxis)
    _name(axes, "", "average p95 latency from event to result (s)")
    axes.set_xlabel("average workers (means over seeds, bars: 95 % intervals)")
    axes.set_xlim(left=0)
    figure.suptitle(f"{picture.title}: cost against latency", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return write(figure, path)


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those that no other beats in both coordinates, in order (the Pareto front of least cost and latency).

    >>> front([(3, 1), (1, 5), (2, 2), (2.5, 4)])
    [(1, 5), (2, 2), (3, 1)]
    """
    best: list[tuple[float, float]] = []
    for point in sorted(points):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def _competes(track: Track) -> bool:
    return track.policy != ORACLE


def _half(interval: Interval) -> float:
    return 0.0 if interval.high is None else interval.high - interval.mean


def draft(width: float, height: float, rows: int, columns: int) -> tuple[Figure, Any]:
    """A figure with its axes, in the look of all figures."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns)
    for each in figure.axes:
        each.grid(color=GREY, alpha=0.25, linewidth=0.6, zorder=0)
        each.set_axisbelow(True)
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _load(axes: Axes, tracks: Sequence[Track]) -> None:
    _name(axes, "a  load", "load (records/s)")
    for track in tracks[:1]:
        axes.plot(_hours(track, len(track.load)), track.load, color="#000000", linewidth=1.4)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.set_xlabel("hours")


def _workers(axes: Axes, tracks: Sequence[Track]) -> None:
    _name(axes, "b  workers", "workers")
    for track in tracks:
        s = look(track)
        axes.step(
            _hours(track, len(track.workers)),
            track.workers,
            where="post",
            color=s.colour,
            linestyle=s.line,
            linewidth=1.5,
            alpha=0.9,
        )
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.set_xlabel("hours")


def _latency(axes: Axes, tracks: Sequence[Track]) -> None:
    _name(axes, "c  latency", "share of time with at most this latency")
    known = [track for track in tracks if track.quantiles]
    for track in known:
        values = [max(value, SHORTEST) for value in sorted(track.quantiles)]
        shares = [(place + 1) / len(values) for place in range(len(values))]
        s = look(track)
        axes.step(values, shares, where="post", color=s.colour, linestyle=s.line, linewidth=1.6)
    if known:
        axes.set_xscale("log")
        low = floor(log10(max(SHORTEST, min(min(track.quantiles) for track in known))))
        high = ceil(log10(max(SHORTEST, *(max(track.quantiles) for track in known))))
        axes.set_xlim(10.0**low, 10.0 ** max(high, low + 1))
        decades(axes.xaxis)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("p95 latency from event to result (s)")


def _resources(axes: Axes, picture: Picture) -> None:
    _name(axes, "d  resource use", f"worker-seconds, share of {picture.based_on}")
    many = len(picture.tracks) > 8
    for place, track in enumerate(picture.tracks):
        share = nan if track.average_workers is None else track.average_workers.mean / picture.base
        axes.bar(place, 0.0 if share != share else share, width=0.7, color=look(track).colour, zorder=2)
        text = "none" if share != share else f"{100 * share:.0f}"
        axes.annotate(text if many else f"{text} %", (place, share if share == share else 0.0), (0, 2), ha="center",
                      textcoords="offset points", fontsize=7 if many else 9)  # fmt: skip
    axes.axhline(picture.ideal_workers / picture.base, color=GREY, linewidth=1, linestyle="--", zorder=3)
    axes.annotate(
        "ideal",
        (1.0, picture.ideal_workers / picture.base),
        (2, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=8,
    )
    axes.set_xticks(range(len(picture.tracks)), [track.policy for track in picture.tracks], rotation=60 if many else 15)
    for label in axes.get_xticklabels():
        label.set(ha="right", rotation_mode="anchor", fontsize=7 if many else 9)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))


def _hours(track: Track, count: int) -> list[float]:
    return [place * track.every / 3600 for place in range(count)]


def _name(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_ylabel(label)


def decades(axis: Any) -> None:
    """Ticks of a logarithmic axis, written out: powers of ten, and what is between where there are few of them."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 300 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def legend(figure: Figure, looks: Mapping[str, Style]) -> None:
    """What is drawn in which colour and kind of line, below all panels."""
    handles = [Line2D([], [], color=s.colour, linestyle=s.line, linewidth=2.4) for s in looks.values()]
    columns = min(len(looks), 7) or 1
    figure.legend(handles, list(looks), loc="outside lower center", ncols=columns, frameon=False)


def write(figure: Figure, path: Path) -> str:
    """Written as PNG, returned as SVG that is part of a page."""
    try:
        figure.savefig(path, dpi=DPI, format="png", facecolor="white")
    except OSError as error:
        raise ConfigError(f"picture must be a file that can be written, got {str(path)!r}: {error.strerror}") from None
    return svg(figure, path.stem)


def svg(figure: Figure, name: str) -> str:
    """As part of a page, on which no other figure has this name."""
    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return inline(text.getvalue(), name)


def inline(svg: str, prefix: str) -> str:
    """An SVG document as part of a page: its own names, no header, black in the colour of the text."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    # What is black has no fill of its own in matplotlib's SVG: it takes that of the document.
    return svg.replace("<svg ", '<svg fill="currentColor" ', 1).replace("#000000", "currentColor").strip()
