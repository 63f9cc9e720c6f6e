"""Spark's own dynamic allocation, as it acts on a streaming job: tasks that wait add executors, idle ones go.

Behaviour follows apache/spark, core/.../ExecutorAllocationManager.scala. Spark sees its tasks; an observation does not
show them, so they are inferred:

- tasks are pending while a batch takes longer than its interval, where both are known, else while there is a backlog;
- an executor is idle while its CPU is at most `idle_cpu`; one that reports nothing is not;
- no more executors are needed than the tasks of a batch fill, where `tasks` says how many those are.

Deviations: Spark looks every 100 ms, this as often as samples come. Nothing is removed while tasks are pending, since
an idle executor would be given one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar

from penstock.core import Decision, Fact, Observation, Policy, Reason
from penstock.errors import check
from penstock.models.limits import bounded

GAP = 30.0  # seconds without a sample after which nobody knows what went on in between


@dataclass
class SparkDra(Policy):
    """1, 2, 4 ... workers more while tasks wait, those that had nothing to do for a minute fewer.

    interval: seconds between decisions.
    backlog_timeout: seconds that tasks have to wait for the first addition (schedulerBacklogTimeout).
    sustained_backlog_timeout: seconds between further additions (sustainedSchedulerBacklogTimeout).
    idle_timeout: seconds that a worker has to be idle to be removed (executorIdleTimeout).
    idle_cpu: share of its CPU up to which a worker counts as idle.
    batch_interval: seconds between two batches' starts; a longer batch has tasks waiting. Unset: a backlog says it.
    tasks: tasks of a batch; more slots than these have no use. Unset: not known, no limit.
    tasks_per_worker: tasks that a worker runs at once; its cores.
    """

    name: ClassVar[str] = "spark-dra"
    paper: ClassVar[str] = "https://spark.apache.org/docs/latest/job-scheduling.html#dynamic-resource-allocation"
    inputs: ClassVar[tuple[str, ...]] = ("requested", "backlog", "batch.seconds", "per_worker.cpu")

    interval: float = 1.0
    backlog_timeout: float = 1.0
    sustained_backlog_timeout: float = 1.0
    idle_timeout: float = 60.0
    idle_cpu: float = 0.02
    batch_interval: float | None = None
    tasks: int | None = None
    tasks_per_worker: int = 1
    _seen_at: float | None = field(default=None, init=False, repr=False)
    _add_at: float | None = field(default=None, init=False, repr=False)
    _to_add: int = field(default=1, init=False, repr=False)
    _asked: int | None = field(default=None, init=False, repr=False)
    _idle_since: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("backlog_timeout", "sustained_backlog_timeout", "idle_timeout"):
            check(getattr(self, name) > 0, name, "be above 0 seconds", getattr(self, name))
        check(0 <= self.idle_cpu < 1, "idle_cpu", "be in [0, 1)", self.idle_cpu)
        known = self.batch_interval
        check(known is None or known > 0, "batch_interval", "be above 0 seconds", known)
        check(self.tasks is None or self.tasks >= 1, "tasks", "be at least 1", self.tasks)
        check(self.tasks_per_worker >= 1, "tasks_per_worker", "be at least 1", self.tasks_per_worker)

    def learn(self, observation: Observation) -> None:
        """Start and stop the timers; after a gap or a step of the clock they start anew."""
        now = observation.at
        if self._seen_at is not None and not self._seen_at <= now <= self._seen_at + GAP:
            self._idle_since, self._add_at = {}, None
        self._seen_at = now
        pending = self._pending(observation)
        if pending and self._add_at is None:
            self._add_at = now + self.backlog_timeout
        elif not pending:
            self._add_at, self._to_add, self._asked = None, 1, None
        idle = [w.name for w in observation.per_worker if w.cpu is not None and w.cpu <= self.idle_cpu]
        self._idle_since = {name: self._idle_since.get(name, now) for name in idle}

    def decide(self, observation: Observation) -> Decision:
        current, now = observation.requested, observation.at
        pending = self._pending(observation)
        if current is None or observation.blind or pending is None:
            sentence = "Neither a backlog nor the time of a batch is known: no change"
            return Decision.hold(current, Reason("tasks.unknown", sentence))
        wish = self._pending_wish(current, now) if pending else self._idle_wish(observation, current)
        return bounded(wish, self.min_workers, self.max_workers)

    def _pending(self, observation: Observation) -> bool | None:
        if self.batch_interval is not None and observation.batch is not None:
            return observation.batch.seconds > self.batch_interval
        return None if observation.backlog is None else observation.backlog > 0

    def _pending_wish(self, current: int, now: float) -> Decision:
        if self._add_at is None or now < self._add_at:
            wait = 0.0 if self._add_at is None else self._add_at - now
            sentence = f"Tasks are waiting; if they still are in {wait:.1f} s, workers are added"
            return Decision.hold(current, Reason("tasks.waiting", sentence, {"seconds": wait}))
        self._add_at = now + self.sustained_backlog_timeout
        if self._asked is not None and current == self._asked:
            self._to_add *= 2  # only what was granted doubles
        most = self.max_workers if self.tasks is None else ceil(self.tasks / self.tasks_per_worker)
        needed = min(most, self.max_workers)
        facts: dict[str, Fact] = {"to_add": self._to_add, "needed": needed}
        if current >= needed:
            self._to_add, self._asked = 1, None
            what = f"the {self.max_workers} allowed" if needed == self.max_workers else f"{needed} have tasks to run"
            sentence = f"Tasks are waiting, but {what}: {current} stay"
            return Decision.hold(current, Reason("tasks.all_placed", sentence, facts))
        workers = min(current + self._to_add, needed)
        sentence = f"Tasks are waiting: {workers - current} more, {workers}"
        if workers - current < self._to_add:
            self._to_add, self._asked = 1, None
        else:
            self._asked = workers
        return Decision(workers, (Reason("tasks.backlogged", sentence, facts),))

    def _idle_wish(self, observation: Observation, current: int) -> Decision:
        idle = [name for name, since in self._idle_since.items() if observation.at - since >= self.idle_timeout]
        facts: dict[str, Fact] = {"idle": len(idle), "idle_timeout": self.idle_timeout, "idle_cpu": self.idle_cpu}
        if not idle:
            sentence = f"No task waits and no worker was idle for {self.idle_timeout:g} s: {current} stay"
            return Decision.hold(current, Reason("tasks.none_waiting", sentence, facts))
        # Those already on their way out are still seen for a while, and must not go twice.
        workers = min(current, max(current, len(observation.per_worker)) - len(idle))
        sentence = f"{len(idle)} of {current} had nothing to do for {self.idle_timeout:g} s: {workers} stay"
        return Decision(workers, (Reason("workers.idle", sentence, facts),))
