"""Operators as the dataflow policies need them: what they could do, averaged over a window, or the job as one operator.

Where the target sees no operators, the job counts as a single one named "job": its parallelism is the number of
workers, its rates are the job's throughput, its busy share is the workers' mean CPU and its queue is the backlog. It is
source and sink at once. So it does where operators share their workers (Spark's stages), unless a policy adds them up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from penstock.core import Observation, Operator
from penstock.models.window import Recent, Window

JOB = "job"


def seen(observation: Observation) -> tuple[Operator, ...]:
    """The operators of the observation, or the job as one; none when nothing runs, or nobody knows how many run."""
    if observation.operators:
        return observation.operators
    return (job(observation, observation.workers),) if observation.workers else ()


def job(observation: Observation, workers: int) -> Operator:
    """The whole job as one operator on so many workers."""
    cpu, rate = observation.cpu, observation.processed_rate
    idle = None if cpu is None else max(0.0, 1.0 - cpu)
    return Operator(JOB, workers, rate, rate, busy=cpu, idle=idle, queue=observation.backlog)


def shared(operators: Iterable[Operator]) -> bool:
    """Whether they take turns on the same workers, so that their busy shares, and their needs, add up."""
    return any(operator.shared for operator in operators)


def waiting(observation: Observation) -> float | None:
    """Seconds that records wait; a job to which nothing comes and which has nothing left has no latency to measure.

    >>> waiting(Observation(at=0, latency=2.5)), waiting(Observation(at=0, backlog=0, input_rate=0))
    (2.5, 0.0)
    """
    idle = observation.backlog == 0 and observation.input_rate == 0
    return 0.0 if observation.latency is None and idle else observation.latency


def reads(operator: Operator) -> float | None:
    """Records/s that it takes in; of a source that only tells what it emits, that."""
    return operator.rate_out if operator.rate_in is None else operator.rate_in


def true_rate(operator: Operator) -> float | None:
    """Records/s that one instance could process if it never waited (DS2, Eq. 1, 5 and the quotient of Eq. 7); None
    where that is not known, or it had nothing to do.

    >>> true_rate(Operator("o1", parallelism=2, rate_in=100, busy=0.25))
    200.0
    """
    if operator.rate_in is None or operator.busy is None or operator.parallelism < 1:
        return None
    useful = operator.busy * operator.parallelism
    return operator.rate_in / useful if useful > 0 and operator.rate_in > 0 else None


def selectivity(operator: Operator) -> float | None:
    """Records out per record in; as true as observed, since both rates share their useful time (DS2, Eq. 8)."""
    if operator.rate_in is None or operator.rate_out is None or operator.rate_in <= 0:
        return None
    return operator.rate_out / operator.rate_in


def sink_rate(operators: Iterable[Operator]) -> float | None:
    """Records/s that reach those with nothing downstream."""
    known = [operator.rate_in for operator in operators if not operator.downstream and operator.rate_in is not None]
    return sum(known) if known else None


class Snapshots(Recent[tuple[Operator, ...]]):
    """The operators of the last seconds; none at all is no sample."""

    __slots__ = ()

    @property
    def mean(self) -> tuple[Operator, ...]:
        """The latest topology, with the means of what was measured at the latest parallelism: an operator that was
        rescaled within the window is not mixed with what it was before."""
        kept = [operators for _, operators in self._samples if operators]
        if not kept:
            return ()
        rows: dict[tuple[str, int], list[Operator]] = {(o.name, o.parallelism): [] for o in kept[-1]}
        for operators in kept:
            for operator in operators:
                if (operator.name, operator.parallelism) in rows:
                    rows[operator.name, operator.parallelism].append(operator)
        return tuple(_mean(operator, rows[operator.name, operator.parallelism]) for operator in kept[-1])


@dataclass(slots=True)
class Measures:
    """A job over the last `span` seconds: its operators, what arrives and what it reads.

    parts: look at operators that share their workers one by one, as only who adds them up again should.
    whole: the job is seen as one, as its operators never were; a gap in their metrics does not make it so.
    """

    span: float
    parts: bool = False
    whole: bool = True
    _operators: Snapshots = field(init=False)
    _input_rate: Window = field(init=False)
    _processed_rate: Window = field(init=False)

    def __post_init__(self) -> None:
        self.clear()

    def add(self, observation: Observation) -> None:
        operators = observation.operators
        if shared(operators) and not self.parts:
            operators = ()
        if self.whole and operators:
            self.whole = False
            self._operators = Snapshots(self.span)
        if self.whole and observation.workers:
            operators = (job(observation, observation.workers),)
        self._operators.add(observation.at, operators)
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
