"""A journal's story for a terminal: when, what, and why, one row an entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.core import Observation, Reason
from penstock.journal import Setting
from penstock.measures import Measures
from penstock.report.again import Comparison
from penstock.report.story import Begun, Entry, Happened, Judged

ROWS = 20  # of a table, before it is too long to read
_OUTCOMES = {"done": "green", "dry-run": "cyan", "refused": "red", "unavailable": "red"}


def story(entries: Sequence[Entry], began: float) -> Table:
    """The entries, with the time since `began`."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column()
    for entry in entries:
        what, text = _row(entry, began)
        grid.add_row(seconds(entry.at - began), what, text)
    return grid


def summary(measures: Measures, max_workers: object) -> str:
    """What the story comes to, in a sentence."""
    average, share = measures.average_workers, measures.share_of_max
    parts = [f"{seconds(measures.duration)} observed: {number(average)} workers on average"]
    if isinstance(max_workers, int) and share is not None:
        parts[0] += f" ({share * 100:.0f} % of always {max_workers})"
    parts.append(f"rescaled {measures.rescales_up} times up and {measures.rescales_down} down")
    if measures.latency_p95 is not None:
        known = seconds(measures.latency_known)
        parts.append(f"latency at most {number(measures.latency_p95, ' s')} for 95 % of the {known} it was known")
    parts.append(f"backlog at most {number(measures.max_backlog)}")
    if measures.workers_lost:
        parts.append(f"{measures.workers_lost} worker{'s' * (measures.workers_lost > 1)} lost")
    unseen = {"blind": measures.blind_seconds, "with nobody looking": measures.gap_seconds}
    parts += [f"{number(length)} s {how}" for how, length in unseen.items() if length]
    return ", ".join(parts) + "."


def differences(comparison: Comparison, other: str, began: float) -> Group:
    """Where another policy wants other numbers than the journal's."""
    lines: list[RenderableType] = [
        f"{other}: another number of workers in {comparison.differing} of {comparison.decisions} decisions.",
        f"Wanted on average: {number(comparison.average_then)} workers by the journal, "
        f"{number(comparison.average_now)} by {other}.\n",
    ]
    if comparison.differences:
        table = Table("from", "to", "decisions", "journal", "other", "why, at first", box=None, padding=(0, 2, 0, 0))
        for row in comparison.differences[:ROWS]:
            when = seconds(row.at - began), seconds(row.until - began)
            table.add_row(*when, str(row.count), str(row.then), str(row.now), _reason(row.reason))
        more = len(comparison.differences) - ROWS
        lines += [table, Text(f"{more} more; --json has them all\n" if more > 0 else "", "dim")]
    return Group(*lines, Text("Load and workers are as recorded: what would have come of it is not known.", "dim"))


def seconds(value: float) -> str:
    """Seconds as a clock shows them.

    >>> seconds(62.4), seconds(3723), seconds(-5)
    ('1:02', '1:02:03', '-0:05')
    """
    whole = round(abs(value))
    hours, minutes = divmod(whole // 60, 60)
    sign = "-" if value < 0 and whole else ""
    return sign + (f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}")


def number(value: float | None, unit: str = "") -> str:
    """A number for people; what is not known is called so.

    >>> number(12345.6, "/s"), number(2.34, " s"), number(None)
    ('12,346/s', '2.3 s', 'unknown')
    """
    if value is None:
        return "unknown"
    return f"{value:,.1f}{unit}" if 0 < abs(value) < 10 and value != round(value) else f"{value:,.0f}{unit}"


def seen(observation: Observation) -> str:
    """What a decision was looking at, in one line."""
    cpu = None if observation.cpu is None else observation.cpu * 100
    parts = [
        f"load {number(observation.input_rate, '/s')}",
        f"CPU {number(cpu, ' %')}",
        f"backlog {number(observation.backlog)}",
    ]
    if observation.latency is not None:
        parts.append(f"latency {number(observation.latency, ' s')}")
    if observation.workers != observation.requested:
        parts.append(f"{number(observation.workers)} of {number(observation.requested)} workers up")
    return ", ".join(parts)


def _row(entry: Entry, began: float) -> tuple[Text, RenderableType]:
    if isinstance(entry, Begun):
        return Text("restart" if entry.again else "start", "bold blue"), _begun(entry)
    if isinstance(entry, Happened):
        bad = entry.reason.code in ("worker.lost", "metrics.unavailable", "loop.unfinished")
        name = "stop" if entry.reason.code.startswith("loop.") and not bad else "event"
        return Text(name, "bold red" if bad else "bold blue"), _repeated(entry, began) + _reason(entry.reason)
    if entry.decided.role == "shadow":
        return Text("shadow", "dim"), _shadow(entry, began)
    if entry.change:
        up = (entry.decided.decision.workers or 0) > (entry.requested or 0)
        return Text(f"{entry.requested} → {entry.decided.decision.workers}", "bold yellow" if up else "bold green"), (
            _change(entry, began)
        )
    return Text(f"hold {_count(entry.decided.decision.workers)}", "dim"), _hold(entry, began)


def _begun(entry: Begun) -> Text:
    start = entry.start
    text = Text(f"{_setting(start.policy)} in control")
    if start.guards:
        text.append(f"; guards {', '.join(guard.name for guard in start.guards)}")
    if start.shadows:
        text.append(f"; in its shadow {', '.join(shadow.label for shadow in start.shadows)}")
    if start.mode == "dry-run":
        text.append("; dry run: nothing is carried out")
    if entry.again:
        known = "with all that was learned before" if start.resumed else "from nothing: what was learned is forgotten"
        text.append(f"; {number(entry.away)} s after the last sample, {known}")
    return text


def _change(entry: Judged, began: float) -> Group:
    lines: list[RenderableType] = []
    if entry.decided.observation is not None:
        lines.append(Text(seen(entry.decided.observation)))
    lines.append(_repeated(entry, began) + Text(_proposal(entry)))
    why = Table.grid(padding=(0, 1, 0, 0))
    for reason in entry.decided.decision.reasons:
        why.add_row("-", _reason(reason))
    lines.append(why)
    lines += _options(entry)
    if entry.rescale is None:
        lines.append(Text("The journal does not say how it went", "red"))
    else:
        lines.append(Text(f"{entry.rescale.sentence} ({entry.rescale.outcome})", _OUTCOMES[entry.rescale.outcome]))
    return Group(*lines)


def _hold(entry: Judged, began: float) -> Group:
    decision = entry.decided.decision
    first, *others = (_reason(reason) for reason in decision.reasons)
    corrected = Text("" if entry.decided.proposed == decision.workers else f"{_proposal(entry)} ")
    return Group(_repeated(entry, began) + corrected + first, *others, *_options(entry))


def _shadow(entry: Judged, began: float) -> Group:
    wanted = entry.decided.decision.workers
    verb = f"would go from {_count(entry.requested)} to {_count(wanted)}" if entry.change else f"holds {_count(wanted)}"
    head = _repeated(entry, began) + Text(f"{entry.decided.by} {verb}: ") + _reason(entry.decided.decision.reason)
    head.stylize("dim")
    return Group(head, *_options(entry))


def _proposal(entry: Judged) -> str:
    proposed, made = entry.decided.proposed, entry.decided.decision.workers
    guards = "and the guards agree" if proposed == made else f"but the guards make it {_count(made)}"
    return f"{entry.decided.by} wants {_count(proposed)}, {guards}:"


def _options(entry: Judged) -> list[RenderableType]:
    """What else was examined; of many decisions alike, `--all` shows it for each."""
    if entry.count > 1 or not entry.decided.decision.options:
        return []
    options = entry.decided.decision.options
    # What every policy puts in the facts of an option, such as its capacity, is a column; words are in the verdict.
    columns = list(dict.fromkeys(k for o in options for k, v in o.reason.facts.items() if isinstance(v, float | int)))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("workers", *columns):
        table.add_column(name.replace("_", " "), justify="right")
    for name in ("", "verdict"):
        table.add_column(name)
    for option in options:
        facts = [number(value) if _is_number(value := option.reason.facts.get(name)) else "" for name in columns]
        table.add_row(str(option.workers), *facts, "chosen" if option.chosen else "", _reason(option.reason))
    return [table]


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _repeated(entry: Judged | Happened, began: float) -> Text:
    what = "decisions" if isinstance(entry, Judged) else "times"
    return Text(f"{entry.count} {what} until {seconds(entry.until - began)}, the last: " if entry.count > 1 else "")


def _reason(reason: Reason) -> Text:
    return Text.assemble(reason.sentence, (f" [{reason.code}]", "dim"))


def _setting(setting: Setting) -> str:
    bounds = [setting.config.get(key) for key in ("min_workers", "max_workers")]
    return setting.name if None in bounds else f"{setting.name} ({bounds[0]} to {bounds[1]} workers)"


def _count(workers: int | None) -> str:
    return "?" if workers is None else str(workers)
