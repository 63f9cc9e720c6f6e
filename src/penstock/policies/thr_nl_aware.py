"""THR-NLaware, a baseline of Gesscale: CPU thresholds, one worker at a time, on the node nearest to the others.

Arkian et al., ICCCN 2021, sec. V-A. CPU is looked at with the paper's granularity of a minute (sec. IV-B). A worker
that reports nothing counts as idle on the way up and as fully used on the way down: either way against the change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from penstock.core import Decision, Fact, Observation, Policy, Reason
from penstock.errors import check
from penstock.models.limits import Steadiness, bounded
from penstock.models.placement import ByLatency, Choice, place
from penstock.models.window import SlidingMeans


@dataclass
class ThrNlAware(Policy):
    """One worker more above a CPU threshold, one fewer below another; nodes by network latency.

    up_cpu, down_cpu: mean CPU above which a worker is added, or below which one is removed.
    window: seconds that CPU is averaged over; after a rescale it has to fill anew.
    warm_up: seconds after a rescale or (re)start that are not looked at.
    """

    name: ClassVar[str] = "thr-nl-aware"
    paper: ClassVar[str] = "https://inria.hal.science/hal-03206689"
    inputs: ClassVar[tuple[str, ...]] = ("requested", "workers", "per_worker.cpu", "nodes")

    interval: float = 60.0
    up_cpu: float = 0.9
    down_cpu: float = 0.5
    window: float = 60.0
    warm_up: float = 120.0
    _means: SlidingMeans = field(init=False, repr=False)
    _steadiness: Steadiness = field(default_factory=Steadiness, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(0 < self.up_cpu <= 1, "up_cpu", "be in (0, 1]", self.up_cpu)
        check(0 <= self.down_cpu < self.up_cpu, "down_cpu", f"be in [0, up_cpu ({self.up_cpu:g}))", self.down_cpu)
        check(self.window > 0, "window", "be above 0 seconds", self.window)
        check(self.warm_up >= 0, "warm_up", "be 0 seconds or more", self.warm_up)
        self._means = SlidingMeans(self.window)

    def learn(self, observation: Observation) -> None:
        if self._steadiness.disturbed(observation):
            self._means.clear()
        if (
            observation.requested is not None
            and observation.cpu is not None
            and self._steadiness.counts(observation, self.warm_up)
        ):
            known = [w.cpu for w in observation.per_worker if w.cpu is not None]
            workers = max(observation.requested, len(observation.per_worker))
            used = sum(known)
            at_most = used + workers - len(known)
            self._means.add(observation.at, {"at least": used / workers, "at most": at_most / workers})

    def decide(self, observation: Observation) -> Decision:
        current, now = observation.requested, observation.at
        if current is None or observation.blind:
            return Decision.hold(current, Reason("cpu.unknown", "The CPU of the workers is not known: no change"))
        decision = bounded(self._wish(current, now), self.min_workers, self.max_workers)
        return place(decision, observation, self._choice())

    def _wish(self, current: int, now: float) -> Decision:
        least, most = self._means.mean("at least", now), self._means.mean("at most", now)
        if least is None or most is None:
            sentence = f"No CPU was reported by the whole job in the last {self.window:g} s: no change"
            return Decision.hold(current, Reason("cpu.unknown", sentence))
        if not self._means.covers(now):
            sentence = f"CPU has not been seen for {self.window:g} s since the last change: {current} stay"
            return Decision.hold(current, Reason("cpu.unsettled", sentence, {"window": self.window}))
        least, most = round(least, 6), round(most, 6)  # a mean of 90 % is not above 90 %
        facts: dict[str, Fact] = {"cpu": least, "up_cpu": self.up_cpu, "down_cpu": self.down_cpu}
        if least > self.up_cpu:
            sentence = f"CPU {least:.0%} is above {self.up_cpu:.0%}: one more worker, {current + 1}"
            return Decision(current + 1, (Reason("cpu.above_threshold", sentence, facts),))
        facts |= {"cpu": most}
        if most < self.down_cpu:
            sentence = f"CPU {most:.0%} is below {self.down_cpu:.0%}: one worker fewer, {current - 1}"
            return Decision(current - 1, (Reason("cpu.below_threshold", sentence, facts),))
        sentence = f"CPU {most:.0%} is between {self.down_cpu:.0%} and {self.up_cpu:.0%}: {current} stay"
        return Decision.hold(current, Reason("cpu.between_thresholds", sentence, facts))

    def _choice(self) -> Choice:
        return ByLatency()
