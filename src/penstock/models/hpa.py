"""The arithmetic of Kubernetes' HorizontalPodAutoscaler, autoscaling/v2.

Behaviour follows kubernetes/kubernetes, pkg/controller/podautoscaler: replica_calculator.go (GetResourceReplicas) for
the proposal, horizontal.go (stabilizeRecommendationWithBehaviors, calculateScaleUpLimitWithScalingRules and
calculateScaleDownLimitWithBehaviors) for the rest. Percentages are whole numbers, as there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Literal

from penstock.core import Observation

ALLOWANCE = 1000  # millicores: every worker has the same allowance here, so its size cancels out


class Verdict(StrEnum):
    """Why a proposal is what it is."""

    ABOVE = "above"
    BELOW = "below"
    IN_TOLERANCE = "in tolerance"
    UNSURE_IN_TOLERANCE = "in tolerance once the unready and silent are counted"
    UNSURE_REVERSES = "other side of the target once the unready and silent are counted"
    COUNT_REVERSES = "the count of workers would turn the direction"


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of the workers' CPU.

    ready: millicores of each ready worker that reports.
    unready: workers that are pending or still cold; what they report is not looked at.
    missing: workers that run but report nothing.
    """

    ready: tuple[int, ...]
    unready: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far off the target, as a ratio, is still near enough."""

    up: float = 0.1
    down: float = 0.1

    def holds(self, ratio: float) -> bool:
        return 1 - self.down <= ratio <= 1 + self.up


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the CPU alone asks for. `utilisation` is what was measured, `adjusted` what was reckoned with; percent."""

    workers: int
    verdict: Verdict
    utilisation: int
    adjusted: int
    counted: int


def propose(current: int, reading: Reading, target: int, tolerance: Tolerance) -> Proposal | None:
    """How many workers bring CPU to `target` percent; None when no ready worker reports.

    >>> propose(4, Reading((930, 930, 930, 930)), target=80, tolerance=Tolerance()).workers
    5
    """
    if not reading.ready:
        return None
    used = _percent(reading.ready)
    ratio = used / target
    # On the way up the unready count as idle, on the way down not at all. Those that should report and do not count
    # as idle on the way up and as fully used on the way down: either way against the change.
    doubtful = [0] * reading.unready if ratio > 1 else []
    if ratio != 1:
        doubtful += [0 if ratio > 1 else ALLOWANCE * max(100, target) // 100] * reading.missing
    adjusted = _percent((*reading.ready, *doubtful))
    counted = len(reading.ready) + len(doubtful)

    def proposal(workers: int, verdict: Verdict) -> Proposal:
        return Proposal(workers, verdict, used, adjusted, counted)

    new = adjusted / target
    unsure = reading.missing > 0 or bool(doubtful)
    if tolerance.holds(new):
        return proposal(current, Verdict.UNSURE_IN_TOLERANCE if unsure else Verdict.IN_TOLERANCE)
    if ratio < 1 < new or new < 1 < ratio:
        return proposal(current, Verdict.UNSURE_REVERSES)
    workers = ceil(new * counted)  # in floats as Kubernetes does, so 0.07 * 100 is 8 here too
    if unsure and (workers > current if new < 1 else workers < current):
        return proposal(current, Verdict.COUNT_REVERSES)
    return proposal(workers, Verdict.ABOVE if new > 1 else Verdict.BELOW)


def _percent(millicores: Sequence[int]) -> int:
    return sum(millicores) * 100 // (ALLOWANCE * len(millicores))


@dataclass(frozen=True, slots=True)
class Moment:
    """A number at a time: a recommendation made, or a change of the worker count."""

    at: float
    workers: int


def since(moments: Iterable[Moment], cutoff: float) -> tuple[Moment, ...]:
    """Those after `cutoff`; one exactly at it is out, as in Kubernetes."""
    return tuple(moment for moment in moments if moment.at > cutoff)


def stabilise(
    current: int, desired: int, recent: Sequence[Moment], now: float, *, up_window: float, down_window: float
) -> int:
    """Up to no more than the lowest, down to no less than the highest recommendation of its window."""
    lowest = min([desired, *(m.workers for m in since(recent, now - up_window))])
    highest = max([desired, *(m.workers for m in since(recent, now - down_window))])
    return min(max(current, lowest), highest)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the worker count may change in one direction, over `period` seconds.

    pods, percent: the most per period; 0 leaves the rule out.
    select: which rule counts when there are two: the one that allows most, least, or no change at all.
    """

    pods: int
    percent: int
    period: float
    select: Literal["max", "min", "disabled"]

    def ceiling(self, current: int, changes: Iterable[Moment], now: float) -> int:
        """The most workers allowed now, never fewer than there are."""
        start = self._start(current, changes, now)
        limits = [start + self.pods] * (self.pods > 0) + [ceil(start * (1 + self.percent / 100))] * (self.percent > 0)
        return current if self.select == "disabled" else max(current, (max if self.select == "max" else min)(limits))

    def floor(self, current: int, changes: Iterable[Moment], now: float) -> int:
        """The fewest workers allowed now, never more than there are."""
        start = self._start(current, changes, now)
        limits = [start - self.pods] * (self.pods > 0) + [int(start * (1 - self.percent / 100))] * (self.percent > 0)
        return current if self.select == "disabled" else min(current, (min if self.select == "max" else max)(limits))

    def _start(self, current: int, changes: Iterable[Moment], now: float) -> int:
        return current - sum(change.workers for change in since(changes, now - self.period))


UP = Pace(pods=4, percent=100, period=15.0, select="max")  # Kubernetes' defaults
DOWN = Pace(pods=0, percent=100, period=15.0, select="max")


@dataclass(slots=True)
class Behaviour:
    """What damps the proposals: their windows and paces, and what was recommended and changed lately.

    up_window, down_window: seconds over which the lowest, or the highest recommendation counts.
    """

    up_window: float = 0.0
    down_window: float = 300.0
    up: Pace = UP
    down: Pace = DOWN
    recommended: tuple[Moment, ...] = ()
    changes: tuple[Moment, ...] = ()
    requested: int | None = None

    def learn(self, observation: Observation) -> None:
        """Note a change of the worker count: what was only advised, or refused, never shows up in `requested`."""
        now, requested = observation.at, observation.requested
        self.recommended = tuple(m for m in self.recommended if m.at <= now)  # the clock may go back
        if requested is None:
            return
        if self.requested is not None and requested != self.requested:
            at = now if observation.last_rescale_at is None else observation.last_rescale_at
            kept = since(self.changes, now - max(self.up.period, self.down.period))
            self.changes = (*kept, Moment(at, requested - self.requested))
        self.requested = requested

    def begin(self, current: int, now: float) -> None:
        """What runs at first counts as recommended, so that it is not scaled down before a window has passed."""
        self.recommended = self.recommended or (Moment(now, current),)

    def stabilised(self, current: int, desired: int, now: float) -> int:
        """`desired`, or the best recommendation of its window; and remember it."""
        self.begin(current, now)
        up, down = self.up_window, self.down_window
        workers = stabilise(current, desired, self.recommended, now, up_window=up, down_window=down)
        self.recommended = (*since(self.recommended, now - max(up, down)), Moment(now, desired))
        return workers

    def ceiling(self, current: int, now: float) -> int:
        return self.up.ceiling(current, self.changes, now)

    def floor(self, current: int, now: float) -> int:
        return self.down.floor(current, self.changes, now)
