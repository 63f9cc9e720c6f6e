"""Spark's dynamic allocation for DStreams: how much of the batch interval the batches take.

Behaviour follows apache/spark, streaming/.../scheduler/ExecutorAllocationManager.scala: the mean processing time of the
batches that ended since the last look, against the batch interval. Cold batches count, as there.

Deviations: Spark adds to the executors that run; here to those last asked for, so that a slow start is not asked for
twice and never makes the job smaller. On an engine without batches the workers' mean CPU, which is the share of time
they work, stands for the ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, isfinite
from typing import ClassVar

from penstock.core import Decision, Fact, Observation, Policy, Reason
from penstock.errors import check
from penstock.models.limits import bounded


@dataclass
class SparkDstreams(Policy):
    """More workers when batches take most of their interval, one fewer when they take little of it.

    interval: seconds between decisions, and that batches are averaged over (scalingInterval).
    batch_interval: seconds between the starts of two batches; a job's trigger.
    scaling_up_ratio, scaling_down_ratio: processing time / batch interval from which on to add, or to which to remove.
    """

    name: ClassVar[str] = "spark-dstreams"
    paper: ClassVar[str] = "https://issues.apache.org/jira/browse/SPARK-12133"
    inputs: ClassVar[tuple[str, ...]] = ("requested", "batch.seconds", "per_worker.cpu")

    interval: float = 60.0
    batch_interval: float = 3.0
    scaling_up_ratio: float = 0.9
    scaling_down_ratio: float = 0.3
    _number: int | None = field(default=None, init=False, repr=False)
    _seconds: float = field(default=0.0, init=False, repr=False)
    _batches: int = field(default=0, init=False, repr=False)
    _used: float = field(default=0.0, init=False, repr=False)
    _samples: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.batch_interval > 0, "batch_interval", "be above 0 seconds", self.batch_interval)
        check(self.scaling_down_ratio > 0, "scaling_down_ratio", "be above 0", self.scaling_down_ratio)
        check(
            self.scaling_up_ratio > self.scaling_down_ratio,
            "scaling_up_ratio",
            f"be above scaling_down_ratio ({self.scaling_down_ratio:g})",
            self.scaling_up_ratio,
        )

    def learn(self, observation: Observation) -> None:
        batch, cpu = observation.batch, observation.cpu
        if batch is not None and batch.number != self._number:
            if self._number is not None or observation.at - batch.ended_at <= self.interval:  # else from long ago
                self._seconds, self._batches = self._seconds + batch.seconds, self._batches + 1
            self._number = batch.number
        silent = any(worker.cpu is None for worker in observation.per_worker)
        if cpu is not None and isfinite(cpu) and not silent:
            self._used, self._samples = self._used + cpu, self._samples + 1

    def decide(self, observation: Observation) -> Decision:
        current = observation.requested
        seconds, batches, used, samples = self._seconds, self._batches, self._used, self._samples
        self._seconds, self._batches, self._used, self._samples = 0.0, 0, 0.0, 0
        if current is None or observation.blind:
            return Decision.hold(current, Reason("batch.unknown", "Nothing is known of the job: no change"))
        if batches:
            mean = seconds / batches
            ratio = mean / self.batch_interval
            seen = f"{batches} batch{'es' * (batches != 1)} took {mean:.2f} s of {self.batch_interval:g} s"
        elif self._number is None and samples:
            ratio = used / samples
            seen = f"Without batches, the workers' CPU of {ratio:.0%} stands for them"
        else:
            sentence = f"No batch ended in the last {self.interval:g} s: no change"
            return Decision.hold(current, Reason("batch.unknown", sentence))
        return bounded(self._wish(current, ratio, seen), self.min_workers, self.max_workers)

    def _wish(self, current: int, ratio: float, seen: str) -> Decision:
        up, down = self.scaling_up_ratio, self.scaling_down_ratio
        facts: dict[str, Fact] = {"ratio": ratio, "scaling_up_ratio": up, "scaling_down_ratio": down}
        if ratio >= up:
            more = max(floor(ratio + 0.5), 1)  # halves go up, as in Java
            sentence = f"{seen}: a ratio of {ratio:.2f} is at least {up:g}, so {more} more, {current + more}"
            return Decision(current + more, (Reason("batch.above_ratio", sentence, facts),))
        if ratio <= down:
            sentence = f"{seen}: a ratio of {ratio:.2f} is at most {down:g}, so one fewer, {current - 1}"
            return Decision(current - 1, (Reason("batch.below_ratio", sentence, facts),))
        sentence = f"{seen}: a ratio of {ratio:.2f} is between {down:g} and {up:g}, so {current} stay"
        return Decision.hold(current, Reason("batch.in_ratio", sentence, facts))
