"""Policies on one load as one picture of four panels, as in Daedalus (ICPE 2024, Fig. 7).

a: the load over time; b: workers over time; c: the share of time with at most a latency, on a logarithmic axis;
d: worker-seconds as a share of static's. A policy looks the same in all of them (penstock.report.colours).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10, nan
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from penstock.core import Observation
from penstock.errors import ConfigError
from penstock.report.colours import BLACK, style
from penstock.report.results import STATIC, Look, Ran, collect, latencies, looks

DPI, WIDTH, HEIGHT = 150, 1800, 1200
SHORTEST = 0.001  # seconds: a logarithmic axis has no place for 0

Axes = Any  # matplotlib's own stubs say no more than this about most of what is called here
Value = Callable[[Observation], float | None]


def draw(
    runs: Sequence[Ran],
    path: Path | str,
    *,
    title: str,
    static: int,
    planned: Sequence[tuple[float, float]] = (),
    capacity: float | None = None,
) -> None:
    """Draw the runs on one load into a PNG file.

    planned: the load as it was asked for, in seconds and records/s.
    static: workers that resource use is a share of, where no run is static; capacity: records/s that they can do.
    """
    if not runs:
        raise ConfigError("runs must be at least one to draw, got none")
    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    (load, workers), (latency, resources) = figure.subplots(2, 2)
    seen = {run.policy: looks(run.records) for run in runs}
    end = max((_minutes(look.t + look.span.seconds) for line in seen.values() for look in line), default=1.0) or 1.0
    _load(load, seen, planned, None if capacity is None else (capacity, f"what {static} workers can do"), end)
    _workers(workers, seen, max(int(run.summary["max_workers"]) for run in runs), end)
    _latency(latency, runs)
    _resources(resources, runs, static)
    for axes in figure.axes:
        axes.grid(color="#EEEEEE", linewidth=0.6, zorder=0)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    handles = [
        Line2D([], [], color=style(policy).colour, linestyle=style(policy).line, linewidth=2.4, label=policy)
        for policy in seen
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), frameon=False)
    try:
        figure.savefig(path, dpi=DPI, format="png")
    except OSError as error:
        raise ConfigError(f"picture must be a file that can be written, got {str(path)!r}: {error.strerror}") from None


def _load(
    axes: Axes,
    seen: dict[str, list[Look]],
    planned: Sequence[tuple[float, float]],
    capacity: tuple[float, str] | None,
    end: float,
) -> None:
    _name(axes, "a  load", "load (records/s)")
    for policy, line in seen.items():
        times, values = _line(line, lambda o: o.input_rate)
        axes.plot(times, values, color=style(policy).colour, linewidth=0.9, alpha=0.8)
    notes = []
    if planned:
        minutes, rates = [_minutes(t) for t, _ in planned], [rate for _, rate in planned]
        notes += axes.plot(minutes, rates, color=BLACK, linewidth=1.8, linestyle=":", zorder=3, label="as planned")
    if capacity is not None:
        level, label = capacity
        notes.append(axes.axhline(level, color="#777777", linewidth=1, linestyle="-.", label=label))
    if notes:
        axes.legend(handles=notes, loc="lower right", bbox_to_anchor=(1, 0.98), ncols=2, frameon=False, fontsize=8)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    _over_time(axes, end)


def _workers(axes: Axes, seen: dict[str, list[Look]], most: int, end: float) -> None:
    _name(axes, "b  workers", "workers")
    width = 3.6
    for policy, line in seen.items():
        times, values = _line(line, lambda o: o.workers)
        # Thinner and thinner, so that where lines lie on each other every one is seen.
        axes.step(
            times, values, where="post", color=style(policy).colour, linestyle=style(policy).line, linewidth=width
        )
        width = max(1.2, width - 0.8)
    seen_most = max((look.span.observation.workers or 0 for line in seen.values() for look in line), default=0)
    axes.set_ylim(0, max(most, seen_most) * 1.08 + 0.2)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    _over_time(axes, end)


def _latency(axes: Axes, runs: Sequence[Ran]) -> None:
    _name(axes, "c  latency", "share of time with at most this latency")
    known = {run.policy: latencies(run.records) for run in runs}
    longest = max((steps[-1][0] for steps in known.values() if steps), default=None)
    if longest is None:
        axes.text(0.5, 0.5, "not known", transform=axes.transAxes, ha="center", va="center", color="#666666")
        axes.set_axis_off()
        return
    longest = max(longest, SHORTEST)
    for policy, steps in known.items():
        if steps:
            values = [max(latency, SHORTEST) for latency, _ in steps]
            shares = [share for _, share in steps]
            axes.step(
                [values[0], *values, longest],
                [0.0, *shares, 1.0],
                where="post",
                color=style(policy).colour,
                linestyle=style(policy).line,
                linewidth=1.8,
            )
    shortest = max(SHORTEST, min(steps[0][0] for steps in known.values() if steps))
    axes.set_xscale("log")
    low = floor(log10(shortest))
    axes.set_xlim(10**low, 10 ** max(ceil(log10(longest)), low + 1))  # whole decades: latencies often stay within one
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("p95 latency from event to result (s)")


def _resources(axes: Axes, runs: Sequence[Ran], static: int) -> None:
    _name(axes, "d  resource use", "worker-seconds, share of static")
    results = collect(runs, static)
    for place, r in enumerate(results):
        share = r.share_of_static
        axes.bar(place, 0.0 if share is None else share, width=0.62, color=style(r.policy).colour, zorder=2)
        text = "not known" if share is None else f"{share:.0%}".replace("%", " %")
        axes.annotate(text, (place, share or 0.0), (0, 3), textcoords="offset points", ha="center")
    label = "static" if any(r.policy == STATIC for r in results) else f"always {static} workers"
    axes.axhline(1, color="#777777", linewidth=1, linestyle="--", zorder=1)
    # The bar of a policy that is dearer than static lies behind the words.
    white = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
    corner = (len(results) - 0.45, 1)
    axes.annotate(label, corner, (0, 4), textcoords="offset points", ha="right", fontsize=8, bbox=white)
    axes.set_xticks(range(len(results)), [r.policy for r in results])
    axes.set_xlim(-0.6, len(results) - 0.4)
    axes.set_ylim(0, max(1.15, *(1.1 * (r.share_of_static or 0.0) for r in results)))


def _line(line: Sequence[Look], of: Value) -> tuple[list[float], list[float]]:
    """Minutes and values; what is not known, and the time in which nobody looked, is a gap."""
    times: list[float] = []
    values: list[float] = []
    for look in line:
        value = of(look.span.observation)
        times.append(_minutes(look.t))
        values.append(nan if value is None else float(value))
        if look.span.gap:
            times.append(_minutes(look.t))
            values.append(nan)
    return times, values


def _name(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_ylabel(label)


def _over_time(axes: Axes, end: float) -> None:
    axes.set_xlim(0, end)
    axes.set_xlabel("minutes")


def _minutes(seconds: float) -> float:
    return seconds / 60
