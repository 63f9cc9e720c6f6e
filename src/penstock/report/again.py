"""Deciding again on what a journal recorded: the same, to prove that nothing else mattered; or otherwise, to compare.

What is decided again changes nothing of what was observed: the job, its load and its workers stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from penstock.core import Guard, Policy, Reason
from penstock.journal import Decided, Record, Start, encode
from penstock.loop import guards_of, policy_of, replay


@dataclass(frozen=True, slots=True)
class Pair:
    """What was decided on one observation, then and now; None: nothing was."""

    at: float
    then: Decided | None
    now: Decided | None

    @property
    def same(self) -> bool:
        """Byte for byte."""
        return self.then is not None and self.now is not None and encode(self.then) == encode(self.now)


@dataclass(frozen=True, slots=True)
class Difference:
    """From `at` to `until`, in `count` decisions, two numbers of workers were wanted; `reason` is why the new one."""

    at: float
    until: float
    count: int
    then: int
    now: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two policies on the same observations, by what each wanted last at every instant when either decided."""

    decisions: int
    differences: tuple[Difference, ...]
    average_then: float | None
    average_now: float | None

    @property
    def differing(self) -> int:
        return sum(difference.count for difference in self.differences)


def same_again(records: Sequence[Record]) -> list[Pair]:
    """Every decision, by the policy and the guards that the start before it names."""
    now: dict[int, Decided] = {}
    fresh = 0
    for begin, end in _stretches(records):
        start = records[begin]
        if isinstance(start, Start):
            fresh = fresh if start.resumed else begin
            replayed = _replay(records[fresh:end], policy_of(start), guards_of(start))
            now |= {fresh + place: decided for place, decided in replayed if fresh + place >= begin}
    return _pairs(records, now)


def otherwise(records: Sequence[Record], policy: Policy, guards: Sequence[Guard]) -> list[Pair]:
    """Every decision, and what this policy makes of the same observations."""
    return _pairs(records, dict(_replay(records, policy, guards)))


def compare(pairs: Iterable[Pair]) -> Comparison:
    """Where the two want different numbers, and how many workers each wants on average over time."""
    decisions, differences = 0, list[Difference]()
    wanted: list[tuple[float, int, int]] = []
    then: int | None = None
    now: int | None = None
    reason: Reason | None = None
    for pair in pairs:
        then = then if pair.then is None else pair.then.decision.workers
        if pair.now is not None:
            now, reason = pair.now.decision.workers, pair.now.decision.reason
        if then is None or now is None or reason is None:
            continue
        last = differences[-1] if differences and wanted[-1][1:] == (then, now) else None
        wanted.append((pair.at, then, now))
        decisions += 1
        if then != now and last is not None:
            differences[-1] = replace(last, until=pair.at, count=last.count + 1)
        elif then != now:
            differences.append(Difference(pair.at, pair.at, 1, then, now, reason))
    lengths = [(later[0] - one[0], one) for one, later in pairwise(wanted)]
    total = sum(length for length, _ in lengths)
    average_then = sum(length * one[1] for length, one in lengths) / total if total > 0 else None
    average_now = sum(length * one[2] for length, one in lengths) / total if total > 0 else None
    return Comparison(decisions, tuple(differences), average_then, average_now)


def _stretches(records: Sequence[Record]) -> Iterator[tuple[int, int]]:
    """From one start to the next that names another policy or other guards: restarts alone need no second replay."""
    begins: list[int] = []
    last: Start | None = None
    for place, record in enumerate(records):
        if isinstance(record, Start):
            if last is None or (record.policy, record.guards) != (last.policy, last.guards):
                begins.append(place)
            last = record
    return pairwise([*begins, len(records)])


def _replay(records: Sequence[Record], policy: Policy, guards: Sequence[Guard]) -> Iterator[tuple[int, Decided]]:
    """Each decision with the place of the record that it was made on."""
    place = -1

    def counted() -> Iterator[Record]:
        nonlocal place
        for place, record in enumerate(records):  # noqa: B007 - read below, when replay has yielded
            yield record

    for decided in replay(counted(), policy, guards):
        yield place, decided


def _pairs(records: Sequence[Record], now: dict[int, Decided]) -> list[Pair]:
    then = {place: r for place, r in enumerate(records) if isinstance(r, Decided) and r.role == "control"}
    return [
        Pair((then.get(place) or now[place]).at, then.get(place), now.get(place))
        for place in sorted(then.keys() | now.keys())
    ]
