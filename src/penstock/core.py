"""The words of the domain: what is seen, what is decided and why, and who does what.

Values here are frozen, times are seconds, rates are records per second, and what is not known is `None`, never 0.
Nothing in this module reads a clock, does I/O or logs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import ClassVar, Protocol, runtime_checkable

from penstock.errors import check

Fact = float | int | str | bool | None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why: a stable code for machines, a sentence for people, and the numbers behind both."""

    code: str
    sentence: str
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.sentence} [{self.code}]"


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker at one instant.

    name: stable for the worker's life.
    cpu: share of *its own* CPU allowance in use, 0..1.
    rate: records/s it reads.
    started_at: when it came up.
    ready_at: since when it does useful work at full speed; None while it is still cold.
    """

    name: str
    cpu: float | None = None
    rate: float | None = None
    started_at: float | None = None
    ready_at: float | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of the dataflow (on Spark: a stage of a batch).

    name, parallelism: what it is called, and how many instances of it run.
    rate_in, rate_out: records/s, over all instances, as observed (busy or not).
    busy, idle, backpressure: mean share of time, 0..1, in which an instance works, waits for input, waits for output.
    queue: records waiting before it.
    downstream: the operators that its output goes to; a source has nothing upstream.
    shared: it takes turns with the others on the same workers, as stages do: their busy shares then are shares of the
        workers' time, and add up.
    """

    name: str
    parallelism: int
    rate_in: float | None = None
    rate_out: float | None = None
    busy: float | None = None
    backpressure: float | None = None
    idle: float | None = None
    queue: float | None = None
    downstream: tuple[str, ...] = ()
    shared: bool | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A place where a worker runs or could run; `distances` are seconds of network latency to other nodes by name."""

    name: str
    used: bool = False
    distances: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a micro-batch: seconds that its busiest worker took for it, and records that all took in for it."""

    seconds: float
    records: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The last finished micro-batch.

    cold: it ran on workers that were not warm, so no model learns from it.
    limit: the most records that it could have had; None: not limited, or not known.
    trigger: seconds from the start of one batch to that of the next, at least; None: none to wait for, or not known.
    stages: what it did one after another, where the target can see it.
    """

    number: int
    ended_at: float
    seconds: float
    records: int
    cold: bool = False
    limit: int | None = None
    trigger: float | None = None
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """All that a policy may know at one instant.

    at: when, in seconds of the target's clock (only differences matter).
    workers: how many run now; requested: how many were last asked for.
    uptime: seconds since the job (re)started; last_rescale_at: when `requested` last changed.
    input_rate, processed_rate: records/s; backlog: records; latency: p95 seconds from event to result.
    per_worker, operators: the same in detail, where the target can see it.
    nodes: where workers run and could run, where it matters which.
    batch: the last micro-batch, where there are batches.
    events: what happened since the last observation (a worker lost, one replaced, metrics gone).
    """

    at: float
    workers: int | None = None
    requested: int | None = None
    uptime: float | None = None
    last_rescale_at: float | None = None
    input_rate: float | None = None
    processed_rate: float | None = None
    backlog: float | None = None
    latency: float | None = None
    per_worker: tuple[Worker, ...] = ()
    operators: tuple[Operator, ...] = ()
    nodes: tuple[Node, ...] = ()
    batch: Batch | None = None
    events: tuple[Reason, ...] = ()

    @property
    def blind(self) -> bool:
        """Nothing about load or use is known: no ground for any change."""
        measured = (self.input_rate, self.processed_rate, self.backlog, self.latency)
        return all(value is None for value in measured) and all(w.cpu is None for w in self.per_worker)

    @property
    def cpu(self) -> float | None:
        """Mean CPU over the workers that report it."""
        known = [w.cpu for w in self.per_worker if w.cpu is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class Option:
    """A scale-out that was examined: chosen, or why not."""

    workers: int
    chosen: bool
    reason: Reason


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a decision expects to happen; compared later with what did."""

    capacity: float | None = None
    recovery: float | None = None
    peak: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """How many workers, why, and what else was considered.

    parallelism: instances per operator, for targets that scale operators apart; `workers` then is their sum.
    nodes: which nodes to use, where it matters which.

    >>> hold = Decision.hold(3, Reason("cpu.in_tolerance", "CPU 78 % is near its target of 80 %"))
    >>> hold.workers, hold.but(2, Reason("bounds.max", "at most 2 workers are allowed")).workers
    (3, 2)
    """

    workers: int | None  # None: nothing is known, not even how many there are; nothing is asked for
    reasons: tuple[Reason, ...]
    options: tuple[Option, ...] = ()
    expects: Expectation | None = None
    parallelism: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(bool(self.reasons), "reasons", "explain the decision", self.reasons)

    @classmethod
    def hold(cls, workers: int | None, reason: Reason) -> Decision:
        """Stay at `workers`, which is what was last requested."""
        return cls(workers, (reason,))

    def but(self, workers: int | None, reason: Reason) -> Decision:
        """The same decision, corrected to `workers` for one more reason.

        With another number the instances and nodes that went with the old one are dropped, and the target chooses.
        """
        if workers == self.workers:
            return replace(self, reasons=(*self.reasons, reason))
        return replace(self, workers=workers, reasons=(*self.reasons, reason), parallelism={}, nodes=())

    def plain(self) -> Decision:
        """The same decision for a number of workers alone."""
        return replace(self, parallelism={}, nodes=())

    def is_placed(self, observation: Observation) -> bool | None:
        """Whether the instances and nodes that it names run just so; None where it names none, or none are seen."""
        running = {operator.name: operator.parallelism for operator in observation.operators}
        used = {node.name for node in observation.nodes if node.used}
        known = []
        if self.parallelism and running:
            known.append(all(running.get(name) == count for name, count in self.parallelism.items()))
        if self.nodes and observation.nodes:
            known.append(set(self.nodes) == used)
        return all(known) if known else None

    def is_change(self, observation: Observation, asked: Decision | None = None) -> bool:
        """Whether it asks for something else than there is; without a number that is known to be there, it does not.

        asked: what was last carried out, which may be on its way and is not asked for twice.

        >>> seen = Observation(0, requested=3, operators=(Operator("map", 1), Operator("count", 2)))
        >>> shift = Decision(3, (Reason("map.slow", "map lacks an instance"),), parallelism={"map": 2, "count": 1})
        >>> shift.is_change(seen), shift.is_change(seen, asked=shift), shift.plain().is_change(seen)
        (True, False, False)
        """
        if self.workers is None or observation.requested is None:
            return False
        if self.workers != observation.requested:
            return True
        repeated = asked is not None and (asked.parallelism, asked.nodes) == (self.parallelism, self.nodes)
        return self.is_placed(observation) is False and not repeated

    @property
    def reason(self) -> Reason:
        """The last word: what made the number what it is."""
        return self.reasons[-1]


@dataclass
class Policy(ABC):
    """An autoscaler. Its dataclass fields are its configuration; what it learns lives in fields with `init=False`.

    It reads no clock, does no I/O and keeps no randomness but a seed, so the same object runs simulated, live, in dry
    run, in shadow and in replay.

    min_workers: the fewest workers to ask for.
    max_workers: the most workers to ask for.
    interval: seconds between decisions.
    """

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    inputs: ClassVar[tuple[str, ...]] = ()

    _: KW_ONLY
    min_workers: int = 1
    max_workers: int = 12
    interval: float = 15.0

    def __post_init__(self) -> None:
        check(self.min_workers >= 1, "min_workers", "be at least 1", self.min_workers)
        check(
            self.max_workers >= self.min_workers,
            "max_workers",
            f"be at least min_workers ({self.min_workers})",
            self.max_workers,
        )
        check(self.interval > 0, "interval", "be above 0 seconds", self.interval)

    @property
    def period(self) -> float:
        """Seconds between decisions as they come; other than `interval` only where a policy compresses time."""
        return self.interval

    def learn(self, observation: Observation) -> None:  # noqa: B027 - most simple policies learn nothing
        """Take in a sample; every one, whoever is in control, also those of history after a restart."""

    @abstractmethod
    def decide(self, observation: Observation) -> Decision:
        """How many workers, given what was learned and what is seen now."""

    def config(self) -> dict[str, object]:
        """The settings that make an equal policy again."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}


class Guard(Protocol):
    """A safety rail around an untouched policy: it may correct a decision, and says why."""

    def learn(self, observation: Observation) -> None: ...

    def check(self, observation: Observation, decision: Decision) -> Decision: ...


class Target(Protocol):
    """A running job that can be watched and rescaled."""

    def observe(self) -> Observation:
        """What is seen now; raises Unavailable when it cannot be."""
        ...

    def rescale(self, workers: int) -> None:
        """Ask for `workers`; idempotent; raises Refused or Unavailable. It need not wait until they run."""
        ...


@runtime_checkable
class Reconfigurable(Target, Protocol):
    """A target that can also be told which operators to scale, or which nodes to use."""

    def reconfigure(self, decision: Decision) -> None:
        """Ask for the instances per operator or the nodes that it names, else for its workers; as `rescale` does."""
        ...


class Clock(Protocol):
    """Time as the loop knows it."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class Workload(Protocol):
    """A load: records per second at t seconds after the start."""

    def rate(self, t: float) -> float: ...
