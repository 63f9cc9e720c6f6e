"""A run as it happens, in the terminal: load, capacity, workers, backlog, latency, and the last reason."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from penstock.core import Observation
from penstock.experiment.live import Moment

BARS = " ▁▂▃▄▅▆▇█"
HISTORY = 60


class View:
    """Shows what a run tells, and each of its moments. Without a terminal it prints lines instead of repainting."""

    def __init__(self, console: Console, title: str, max_workers: int) -> None:
        self._console = console
        self._title = title
        self._max_workers = max_workers
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._loads: deque[float] = deque(maxlen=HISTORY)
        self._workers: deque[float] = deque(maxlen=HISTORY)
        self._log: deque[Text] = deque(maxlen=6)
        self._reason = Text("no decision yet", style="dim")
        self._said_at: float | None = None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def tell(self, text: str) -> None:
        """A stage of the run."""
        self._console.print(f"[bold cyan]·[/] {text}")
        if self._live is not None:
            self._live.update(Spinner("dots", text=Text(f" {text}")))

    def show(self, moment: Moment) -> None:
        """One step of the loop."""
        seen = moment.step.observation
        self._loads.append(seen.input_rate or 0.0)
        self._workers.append(float(seen.workers or 0))
        clock = f"{int(moment.t // 60)}:{int(moment.t % 60):02}"
        for event in seen.events:
            self._note(clock, event.sentence, "yellow")
        if moment.step.decided is not None:
            decision = moment.step.decided.decision
            self._reason = Text(" → ".join(reason.sentence for reason in decision.reasons))
        if moment.step.rescale is not None and moment.step.decided is not None:
            change = moment.step.rescale
            why = moment.step.decided.decision.reason.sentence
            first = moment.step.decided.decision.reasons[0].sentence
            style = "green" if change.outcome == "done" else "red"
            text = f"{change.before} → {change.after} workers ({change.outcome}): {first}"
            self._note(clock, text if why == first else f"{text}; {why}", style)
        if self._live is not None:
            self._live.update(self._panel(moment, seen, clock))
        elif self._said_at is None or seen.at - self._said_at >= 15:
            self._said_at = seen.at
            self._console.print(
                f"  {clock}  load {_count(seen.input_rate)}/s  workers {seen.workers}  "
                f"backlog {_count(seen.backlog)}  p95 {_seconds(seen.latency)}"
            )

    def _note(self, clock: str, text: str, style: str) -> None:
        line = Text(f"{clock}  {text}", style=style)
        self._log.append(line)
        if self._live is None:
            self._console.print(Text("  ").append_text(line))

    def _panel(self, moment: Moment, seen: Observation, clock: str) -> Panel:
        capacity = None
        if moment.capacity_per_worker is not None and seen.workers is not None:
            capacity = moment.capacity_per_worker * seen.workers
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", width=9)
        table.add_column(width=26)
        table.add_column(no_wrap=True)
        peak = max([*self._loads, capacity or 0.0, 1.0])
        table.add_row("load", f"{_count(seen.input_rate)} records/s", Text(_spark(self._loads, peak), style="blue"))
        table.add_row("capacity", f"{_count(capacity)} records/s", Text(f"processed {_count(seen.processed_rate)}/s"))
        asked = "" if seen.requested == seen.workers else f" (asked for {seen.requested})"
        table.add_row(
            "workers",
            f"{seen.workers if seen.workers is not None else '?'} of {self._max_workers}{asked}",
            Text(_spark(self._workers, float(self._max_workers)), style="green"),
        )
        table.add_row("CPU", "unknown" if seen.cpu is None else f"{seen.cpu:.0%} of each worker's share", "")
        table.add_row("backlog", f"{_count(seen.backlog)} records", "")
        table.add_row("latency", f"p95 {_seconds(seen.latency)}", "")
        late = moment.feed.behind if moment.feed else 0
        if late > 0.01 * (seen.input_rate or 0) * 10 and late > 100:
            table.add_row("feed", f"{late:,} records late", "")
        width = max(20, self._console.width - 30)
        done = Table.grid(padding=(0, 2))
        done.add_row(
            f"{clock} of {int(moment.duration // 60)}:{int(moment.duration % 60):02}",
            ProgressBar(total=moment.duration, completed=moment.t, width=width),
        )
        body = Group(done, table, Text(), Text("why  ", style="dim").append_text(self._reason), Text(), *self._log)
        return Panel(body, title=self._title, border_style="cyan")


def _spark(values: deque[float], most: float) -> str:
    return "".join(BARS[round(min(max(v / most, 0.0), 1.0) * (len(BARS) - 1))] for v in values)


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} s"
