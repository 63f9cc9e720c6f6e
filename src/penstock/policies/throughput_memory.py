"""The next-generation autoscaler that Koper sketches (TU Delft 2022, sec. 6.3): lag says when, a memory says how much.

The thesis gives the idea and no numbers. Thresholds and cooldown here are those of its DS2-modern-adapted; lag is in
seconds of input, the mean over a window. Two additions fill gaps of the sketch: a job that never had lag has taught
nothing, so workers are taken away one by one until it does; and growing lag adds a worker even if the memory says that
there are enough, since the job itself disagrees.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from penstock.core import Decision, Expectation, Fact, Observation, Option, Policy, Reason
from penstock.errors import check
from penstock.models.limits import LastChange, bounded
from penstock.models.throughput import Memory
from penstock.models.window import Window


@dataclass
class ThroughputMemory(Policy):
    """As many workers as the load needs by the best throughput seen, when the queue calls for it.

    scale_up_lag: seconds of input waiting above which, if it grows, workers are added.
    scale_down_lag: seconds of input waiting below which workers may be removed; above it, throughput is remembered.
    over_provisioning: share of the load to be ready for on top of it.
    cooldown: seconds after a change of the worker count without another.
    explore: workers to remove when there is no lag and nothing is remembered yet; 0: none.
    window: seconds over which rates and lag are averaged, and lag has to last before throughput is remembered.
    """

    name: ClassVar[str] = "throughput-memory"
    paper: ClassVar[str] = "Koper 2022, TU Delft, section 6.3"
    inputs: ClassVar[tuple[str, ...]] = ("requested", "workers", "backlog", "input_rate", "processed_rate")

    max_workers: int = 16
    interval: float = 15.0
    scale_up_lag: float = 5.0
    scale_down_lag: float = 1.0
    over_provisioning: float = 0.2
    cooldown: float = 240.0
    explore: int = 1
    window: float = 60.0
    _memory: Memory = field(default_factory=Memory, init=False, repr=False)
    _change: LastChange = field(default_factory=LastChange, init=False, repr=False)
    _load: Window = field(init=False, repr=False)
    _throughput: Window = field(init=False, repr=False)
    _backlog: Window = field(init=False, repr=False)
    _lagging_since: float | None = field(default=None, init=False, repr=False)
    _seen_at: float | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.scale_down_lag > 0, "scale_down_lag", "be above 0 seconds", self.scale_down_lag)
        rule = f"be at least scale_down_lag ({self.scale_down_lag:g})"
        check(self.scale_up_lag >= self.scale_down_lag, "scale_up_lag", rule, self.scale_up_lag)
        for name in ("over_provisioning", "cooldown", "explore"):
            check(getattr(self, name) >= 0, name, "be 0 or more", getattr(self, name))
        check(self.window > 0, "window", "be above 0 seconds", self.window)
        self._load, self._throughput, self._backlog = (Window(self.window) for _ in range(3))

    def learn(self, observation: Observation) -> None:
        changed_at, at = self._change.at, observation.at
        self._change.learn(observation)
        self._load.add(at, observation.input_rate)
        self._throughput.add(at, observation.processed_rate)
        self._backlog.add(at, observation.backlog)
        gap = self._seen_at is not None and not 0 <= at - self._seen_at <= self.window
        self._seen_at = at
        lag = _seconds(observation.backlog, self._load.mean)
        if lag is None or lag <= self.scale_down_lag or self._change.at != changed_at or gap:
            self._lagging_since = None if lag is None or lag <= self.scale_down_lag else at
        elif self._lagging_since is None:
            self._lagging_since = at
        throughput, workers = self._throughput.mean, observation.workers
        lasted = self._lagging_since is not None and at - self._lagging_since >= self.window
        if lasted and workers and throughput is not None:
            self._memory.note(workers, throughput)

    def decide(self, observation: Observation) -> Decision:
        current = observation.requested
        if current is None or observation.blind:
            return Decision.hold(current, Reason("throughput.unknown", "Nothing is measured now: no change"))
        rest = self._change.rest(observation, self.cooldown)
        if rest is not None:
            return bounded(Decision.hold(current, rest), self.min_workers, self.max_workers)
        load, growth, lag = self._load.mean, self._backlog.slope, _seconds(self._backlog.mean, self._load.mean)
        if load is None or growth is None or lag is None:
            sentence = "How much waits, or how much arrives, is not known: no change"
            return Decision.hold(current, Reason("throughput.unknown", sentence))
        if lag > self.scale_up_lag and growth > 0:
            decision = self._up(current, load, lag)
        elif lag < self.scale_down_lag:
            decision = self._down(current, load, lag)
        else:
            state = "shrinks" if growth <= 0 else f"is below {self.scale_up_lag:g} s"
            reason = Reason("throughput.waiting", f"The lag of {lag:.1f} s {state}: no change", {"lag": lag})
            decision = Decision.hold(current, reason)
        return bounded(decision, self.min_workers, self.max_workers)

    def _up(self, current: int, load: float, lag: float) -> Decision:
        enough = self._memory.smallest(load * (1 + self.over_provisioning), self.min_workers, self.max_workers)
        if enough is None:
            sentence = f"The lag of {lag:.1f} s grows, but what {current} workers manage is not known yet: no change"
            return Decision.hold(current, Reason("throughput.learning", sentence, {"lag": lag}))
        wanted = max(enough, current + 1)
        return self._explained(wanted, "lagging", f"The lag of {lag:.1f} s grows", current, load, lag)

    def _down(self, current: int, load: float, lag: float) -> Decision:
        enough = self._memory.smallest(load * (1 + self.over_provisioning), self.min_workers, self.max_workers)
        if enough is None and self.explore > 0 and current > self.min_workers:
            wanted = max(self.min_workers, current - self.explore)
            sentence = f"There is no lag, and what fewer workers manage is to be found out: {current} -> {wanted}"
            return Decision(wanted, (Reason("throughput.exploring", sentence, {"lag": lag}),))
        if enough is None or enough >= current:
            return self._explained(current, "fits", "There is no lag", current, load, lag)
        return self._explained(enough, "spare", "There is no lag", current, load, lag)

    def _explained(self, wanted: int, code: str, why: str, current: int, load: float, lag: float) -> Decision:
        needed = load * (1 + self.over_provisioning)
        capacity = self._memory.capacity(wanted)
        facts: dict[str, Fact] = {"lag": lag, "input_rate": load, "needed": needed, "capacity": capacity}
        said = "" if capacity is None else f", and by what was seen {wanted} workers manage {capacity:,.0f}"
        change = f"{current} stay" if wanted == current else f"{current} -> {wanted}"
        sentence = f"{why}; the load with its reserve is {needed:,.0f} records/s{said}: {change}"
        options = tuple(self._option(n, wanted, needed) for n in range(self.min_workers, self.max_workers + 1))
        decision = Decision(wanted, (Reason(f"throughput.{code}", sentence, facts),), expects=Expectation(capacity))
        return decision if capacity is None else replace(decision, options=options)

    def _option(self, workers: int, wanted: int, needed: float) -> Option:
        capacity = self._memory.capacity(workers) or 0.0
        code, word = ("throughput.enough", "enough") if capacity >= needed else ("throughput.too_little", "too little")
        sentence = f"{workers} workers manage {capacity:,.0f} records/s: {word} for {needed:,.0f}"
        return Option(workers, workers == wanted, Reason(code, sentence, {"capacity": capacity, "needed": needed}))


def _seconds(backlog: float | None, load: float | None) -> float | None:
    """Backlog as seconds of input; with nothing arriving, no backlog is no lag, and any other is a lot."""
    if backlog is None or load is None:
        return None
    if load <= 0:
        return 0.0 if backlog <= 0 else backlog
    return backlog / load
