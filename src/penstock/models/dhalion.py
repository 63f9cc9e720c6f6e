"""Dhalion's symptoms, diagnoses and memory of actions: Floratou et al., "Dhalion: self-regulating stream processing in
Heron", VLDB 2017, as DS2 (OSDI 2018, sec. 2 and 5.2) and Koper (TU Delft 2022, sec. 2.5 and 3.4) describe them.

Backpressure has a root: the operator that is not held back itself while those before it are. The share of time in which
they could not send is what it lacks: 20 % suspended and 80 % normal ask for a quarter more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Literal

from penstock.core import Operator
from penstock.models.dataflow import ROUNDING
from penstock.models.topology import sources

MOST_SUSPENDED = 0.99  # suspended all the time, it would ask for infinitely many

Way = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A symptom: an operator that holds back what is before it, for this share of time."""

    operator: Operator
    suspended: float


@dataclass(frozen=True, slots=True)
class Action:
    """What was done to an operator, and how it stood before: records/s that it handled."""

    operator: str
    way: Way
    rate: float | None


def bottlenecks(operators: Sequence[Operator], threshold: float) -> tuple[Bottleneck, ...] | None:
    """Roots of backpressure, the worst first; None while no operator tells its own.

    >>> flow = [Operator("source", 1, backpressure=0.2, downstream=("map",)), Operator("map", 4, backpressure=0.0)]
    >>> [(b.operator.name, b.suspended) for b in bottlenecks(flow, 0.05)]
    [('map', 0.2)]
    """
    if all(operator.backpressure is None for operator in operators):
        return None
    suspended: dict[str, float] = {}
    for operator in operators:
        for name in operator.downstream:
            suspended[name] = max(suspended.get(name, 0.0), operator.backpressure or 0.0)
    roots = [
        Bottleneck(operator, suspended[operator.name])
        for operator in operators
        if suspended.get(operator.name, 0.0) > threshold and (operator.backpressure or 0.0) <= threshold
    ]
    return tuple(sorted(roots, key=lambda root: -root.suspended))


def as_source(job: Operator, input_rate: float | None, processed_rate: float | None) -> tuple[Operator, ...]:
    """A job seen as one operator, behind the queue that feeds it: the queue is held back by what is not read."""
    if input_rate is None or processed_rate is None:
        return (job,)
    behind = bool(job.queue) and input_rate > processed_rate
    share = 1 - processed_rate / input_rate if behind else 0.0
    queue = Operator("queue", 1, input_rate, processed_rate, backpressure=share, downstream=(job.name,))
    return (queue, replace(job, backpressure=0.0))


def spare(operators: Sequence[Operator], queue_threshold: float) -> tuple[Operator, ...]:
    """Operators that are over-provisioned if nothing is held back: next to nothing waits before them. The least busy
    comes first. Sources have nothing before them and are left alone."""
    first = {source.name for source in sources(operators)}
    idle = [
        operator
        for operator in operators
        if operator.name not in first
        and operator.parallelism > 1
        and operator.queue is not None
        and operator.queue / operator.parallelism <= queue_threshold
    ]
    return tuple(sorted(idle, key=lambda operator: 1.0 if operator.busy is None else operator.busy))


def scaled_up(parallelism: int, suspended: float) -> int:
    """Grown by suspended time over normal time, and by at least one.

    >>> scaled_up(4, 0.2), scaled_up(1, 0.9)
    (5, 10)
    """
    normal = 1 - min(suspended, MOST_SUSPENDED)
    return max(parallelism + 1, ceil(parallelism / normal * (1 - ROUNDING)))


def scaled_down(parallelism: int, share: float) -> int:
    """Fewer by a share, by at least one, and one at the least.

    >>> scaled_down(10, 0.2), scaled_down(2, 0.2), scaled_down(1, 0.2)
    (8, 1, 1)
    """
    return max(1, floor(parallelism * (1 - share) * (1 + ROUNDING)))


@dataclass(slots=True)
class Blacklist:
    """Actions that did not bring what was expected of them, by operator and direction.

    share: of its uses that have to fail; after: seconds since the last failure when all is forgiven, None: never.
    """

    share: float
    after: float | None = None
    uses: dict[tuple[str, Way], int] = field(default_factory=dict)
    failures: dict[tuple[str, Way], int] = field(default_factory=dict)
    failed_at: dict[tuple[str, Way], float] = field(default_factory=dict)

    def note(self, action: Action, helped: bool, now: float) -> None:
        key = (action.operator, action.way)
        if not helped:
            self.failed_at[key] = now
        self.uses[key] = self.uses.get(key, 0) + 1
        self.failures[key] = self.failures.get(key, 0) + (not helped)

    def has(self, operator: str, way: Way, now: float) -> bool:
        """Whether at least `share` of its uses failed, and that is not long ago."""
        key = (operator, way)
        if key not in self.failed_at:
            return False
        if self.after is not None and abs(now - self.failed_at[key]) >= self.after:
            for known in (self.uses, self.failures, self.failed_at):
                known.pop(key)
            return False
        return self.failures[key] >= self.share * self.uses[key]


def helped(action: Action, operators: Sequence[Operator], roots: Sequence[Bottleneck], improvement: float) -> bool:
    """Fewer instances helped if nothing is held back now; more did if the operator is no bottleneck any more, or
    handles more than it did."""
    if action.way == "down":
        return not roots
    if all(root.operator.name != action.operator for root in roots):
        return True
    now = next((o.rate_in for o in operators if o.name == action.operator), None)
    return now is None or action.rate is None or now > action.rate * (1 + improvement)
