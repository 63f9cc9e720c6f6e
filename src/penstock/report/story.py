"""A journal as a story: what happened, in order, with what repeats told once.

A decision and its outcome become one entry. Decisions that say the same thing one after another (same number, same
reason, same outcome) fold into one, and so does an event that every sample repeats, such as an outage.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from penstock.core import Observation, Reason
from penstock.journal import Decided, Event, Record, Rescale, Sample, Start, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A loop started, for the first time or again; `away` is how long nobody looked before."""

    at: float
    start: Start
    again: bool = False
    away: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Something that was seen, `count` times from `at` to `until`."""

    at: float
    until: float
    count: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A decision, or `count` like it from `at` to `until`, of which this is the last.

    requested: how many were asked for then.
    rescale: how carrying it out went, if anything was to be done.
    """

    at: float
    until: float
    count: int
    decided: Decided
    requested: int | None
    rescale: Rescale | None = None

    @property
    def change(self) -> bool:
        """Whether another number than before was wanted."""
        wanted = self.decided.decision.workers
        return wanted is not None and self.requested is not None and wanted != self.requested


Entry = Begun | Happened | Judged
Key = tuple[Hashable, ...]  # entries that say the same have the same


def tell(records: Iterable[Record], *, fold: bool = True) -> list[Entry]:
    """The entries of a journal; without `fold`, every decision and event on its own."""
    entries: list[Entry] = []
    running: dict[Key, int] = {}  # what may go on, and where its entry is
    for entry, continues in _entries(records):
        key = _key(entry)
        place = running.get(key) if fold and continues else None
        if place is not None:
            entries[place] = _joined(entries[place], entry)
            continue
        if not isinstance(entry, Judged) or (entry.change and entry.decided.role == "control"):
            running.clear()  # after something happened, even the same decision is worth a line of its own
        else:  # what this one thought before is over
            running = {k: p for k, p in running.items() if k[:2] != _voice(entry)}
        running[key] = len(entries)
        entries.append(entry)
    return entries


def _entries(records: Iterable[Record]) -> Iterator[tuple[Entry, bool]]:
    """Each entry on its own, and whether it may continue an earlier one like it."""
    last: Observation | None = None
    pending: Judged | None = None  # a decision that waits for its outcome
    for record in records:
        if isinstance(record, Rescale) and pending is not None:
            pending = replace(pending, rescale=record)
            continue
        if pending is not None:
            yield pending, True
            pending = None
        if isinstance(record, Start):
            away = 0.0 if last is None else max(0.0, record.at - last.at)
            yield Begun(at=record.at, start=record, again=last is not None, away=away), False
        elif isinstance(record, Event | Stop):
            yield Happened(at=record.at, until=record.at, count=1, reason=record.reason), False
        elif isinstance(record, Sample | Decided) and record.observation is not None:
            before, last = last, record.observation
            for event in last.events:
                goes_on = before is not None and event in before.events
                yield Happened(at=last.at, until=last.at, count=1, reason=event), goes_on
        if isinstance(record, Decided):
            requested = None if last is None else last.requested
            pending = Judged(at=record.at, until=record.at, count=1, decided=record, requested=requested)
    if pending is not None:
        yield pending, True


def _key(entry: Entry) -> Key:
    if isinstance(entry, Judged):
        decided, outcome = entry.decided, entry.rescale and entry.rescale.outcome
        return (
            decided.role,
            decided.by,
            entry.requested,
            decided.decision.workers,
            decided.decision.reason.code,
            outcome,
        )
    return (entry.reason.code, entry.reason.sentence) if isinstance(entry, Happened) else ()


def _joined(first: Entry, entry: Entry) -> Entry:
    if isinstance(first, Begun) or isinstance(entry, Begun):
        raise TypeError("a start is never folded")
    return replace(entry, at=first.at, count=first.count + 1)


def _voice(entry: Judged) -> tuple[str, str]:
    return entry.decided.role, entry.decided.by
