"""Who is the root of backpressure: the operator that does not have it while all that feed it do.

Gesscale (Arkian et al., ICCCN 2021), sec. II-B and algorithm 1. What feeds a source is the log it reads, and a log
shows backpressure as records that wait: the share of time in which more than some seconds of input do. So a source can
be the root, and a job whose operators do not show backpressure (Spark) is one operator behind its log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.core import Observation
from penstock.models.operators import JOB, reads
from penstock.models.topology import chained, upstream
from penstock.models.window import SlidingMeans

AHEAD = 1.02  # reading so much more than comes is working off what has waited


@dataclass(frozen=True, slots=True)
class Flow:
    """One operator: share of time in which all that feed it, and it itself, are backpressured; records/s.

    throughput: what it reads; demand: what it would have to read to keep up with the job's input.
    selectivity: records it reads per record that the job reads, where that is known.
    catching_up: the job reads more than comes: it is busy with what has waited.
    """

    name: str
    above: float
    itself: float
    throughput: float
    demand: float
    selectivity: float | None = None
    catching_up: bool = False

    def is_root(self, high: float) -> bool:
        """Algorithm 1, line 7."""
        return self.above > high >= self.itself


def readings(observation: Observation, late: float) -> Iterator[tuple[str, float | None]]:
    """What to average over: rates, backpressure, and whether more than `late` seconds of input wait in the log."""
    load = observation.input_rate if observation.input_rate is not None else observation.processed_rate
    yield "input", observation.input_rate
    yield "processed", observation.processed_rate
    if observation.backlog is not None and load is not None:
        yield "late", float(observation.backlog > late * load)
    for operator in observation.operators:
        yield f"{operator.name} rate", reads(operator)
        yield f"{operator.name} backpressure", operator.backpressure


def flows(observation: Observation, means: SlidingMeans) -> list[Flow]:
    """The operators whose backpressure and rate are known, else the whole job as one; none if not even that."""
    now = observation.at
    late = means.mean("late", now)
    wanted, done = means.mean("input", now), means.mean("processed", now)
    behind = 1.0 if wanted is None or not done else wanted / done
    ahead = wanted is not None and done is not None and done > AHEAD * wanted

    def flow(name: str, above: list[float | None], itself: float | None, rate: float | None) -> Iterator[Flow]:
        if itself is not None and rate is not None and all(share is not None for share in above):
            lowest = min(share or 0.0 for share in above)
            yield Flow(name, lowest, itself, rate, max(rate, rate * behind), rate / done if done else None, ahead)

    found: list[Flow] = []
    pressure = {o.name: means.mean(f"{o.name} backpressure", now) for o in observation.operators}
    for name, feeds in upstream(chained(observation.operators)).items():
        above = [pressure.get(feed) for feed in feeds] or [late]
        found += flow(name, above, pressure[name], means.mean(f"{name} rate", now))
    return found or list(flow(JOB, [late], 0.0, done))
