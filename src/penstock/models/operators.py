"""Operators as the dataflow policies need them: averaged over a window, or the whole job as one operator.

Where the target sees no operators (Spark without its stages), the job counts as a single operator named "job": its
parallelism is the number of workers, its rates are the job's throughput, its busy share is the workers' mean CPU and
its queue is the backlog. It is source and sink at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from penstock.core import Observation, Operator
from penstock.models.window import Window

JOB = "job"


def seen(observation: Observation) -> tuple[Operator, ...]:
    """The operators of the observation, or the job as one; none when nothing runs, or nobody knows how many run."""
    if observation.operators:
        return observation.operators
    if not observation.workers:
        return ()
    cpu, rate = observation.cpu, observation.processed_rate
    idle = None if cpu is None else max(0.0, 1.0 - cpu)
    return (Operator(JOB, observation.workers, rate, rate, busy=cpu, idle=idle, queue=observation.backlog),)


def waiting(observation: Observation) -> float | None:
    """Seconds that records wait; a job to which nothing comes and which has nothing left has no latency to measure.

    >>> waiting(Observation(at=0, latency=2.5)), waiting(Observation(at=0, backlog=0, input_rate=0))
    (2.5, 0.0)
    """
    idle = observation.backlog == 0 and observation.input_rate == 0
    return 0.0 if observation.latency is None and idle else observation.latency


def sources(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """Those that have nothing upstream."""
    operators = tuple(operators)
    fed = {name for operator in operators for name in operator.downstream}
    return tuple(operator for operator in operators if operator.name not in fed)


def sink_rate(operators: Iterable[Operator]) -> float | None:
    """Records/s that reach those with nothing downstream."""
    known = [operator.rate_in for operator in operators if not operator.downstream and operator.rate_in is not None]
    return sum(known) if known else None


@dataclass(slots=True)
class Snapshots:
    """The operators of the last `span` seconds."""

    span: float
    most: int = 600
    _kept: deque[tuple[float, tuple[Operator, ...]]] = field(default_factory=deque)

    def add(self, at: float, operators: tuple[Operator, ...]) -> None:
        """Take in a sample and forget what is too old; none at all is no sample."""
        if self._kept and at < self._kept[-1][0]:
            self._kept.clear()
        while self._kept and (self._kept[0][0] <= at - self.span or len(self._kept) >= self.most):
            self._kept.popleft()
        if operators:
            self._kept.append((at, operators))

    @property
    def mean(self) -> tuple[Operator, ...]:
        """The latest topology, with the means of what was measured at the latest parallelism: an operator that was
        rescaled within the window is not mixed with what it was before."""
        if not self._kept:
            return ()
        latest = self._kept[-1][1]
        rows: dict[tuple[str, int], list[Operator]] = {(o.name, o.parallelism): [] for o in latest}
        for _, operators in self._kept:
            for operator in operators:
                if (operator.name, operator.parallelism) in rows:
                    rows[operator.name, operator.parallelism].append(operator)
        return tuple(_mean(operator, rows[operator.name, operator.parallelism]) for operator in latest)


@dataclass(slots=True)
class Measures:
    """A job over the last `span` seconds: its operators, what arrives and what it reads.

    whole: the job is seen as one, as its operators never were; a gap in their metrics does not make it so.
    """

    span: float
    whole: bool = True
    _operators: Snapshots = field(init=False)
    _input_rate: Window = field(init=False)
    _processed_rate: Window = field(init=False)

    def __post_init__(self) -> None:
        self.clear()

    def add(self, observation: Observation) -> None:
        if self.whole and observation.operators:
            self.whole = False
            self._operators = Snapshots(self.span)
        self._operators.add(observation.at, seen(observation) if self.whole else observation.operators)
        self._input_rate.add(observation.at, observation.input_rate)
        self._processed_rate.add(observation.at, observation.processed_rate)

    def clear(self) -> None:
        self._operators = Snapshots(self.span)
        self._input_rate, self._processed_rate = Window(self.span), Window(self.span)

    @property
    def operators(self) -> tuple[Operator, ...]:
        return self._operators.mean

    @property
    def input_rate(self) -> float | None:
        return self._input_rate.mean

    @property
    def processed_rate(self) -> float | None:
        return self._processed_rate.mean


def _mean(operator: Operator, rows: list[Operator]) -> Operator:
    return replace(
        operator,
        rate_in=_average([row.rate_in for row in rows]),
        rate_out=_average([row.rate_out for row in rows]),
        busy=_average([row.busy for row in rows]),
        backpressure=_average([row.backpressure for row in rows]),
        idle=_average([row.idle for row in rows]),
        queue=_average([row.queue for row in rows]),
    )


def _average(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
