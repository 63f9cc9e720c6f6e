"""What a job can do: its throughput with more waiting than it can take, at one scale-out after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, pstdev

from penstock.core import Batch, Observation
from penstock.errors import Refused, Unavailable
from penstock.experiment.pipeline import Pipeline

TICK = 0.2  # seconds of records in one piece of the log, as a load has them: reading many small pieces costs more
LEAST_PIECE = 1_000
SETTLE = 10.0  # seconds after the last worker became ready that are not counted: compilers are still at work
PATIENCE = 300.0  # seconds for the workers to come up and warm up


@dataclass(frozen=True, slots=True)
class Capacity:
    """Throughput at one scale-out.

    rate: records/s over all counted batches; spread: standard deviation over batches as a share of their mean.
    """

    workers: int
    rate: float
    spread: float
    batches: int

    @property
    def per_worker(self) -> float:
        return self.rate / self.workers


def measure(
    pipeline: Pipeline,
    workers: int,
    *,
    batches: int = 3,
    seconds: float = 20.0,
    stop: Callable[[], bool] = lambda: False,
    on_sample: Callable[[Observation, int], None] = lambda _o, _n: None,
) -> Capacity:
    """Saturate the job with `workers` workers and count at least `batches` batches and `seconds` seconds.

    The log is topped up as it is read, so it always holds more than the next two batches can take.
    """
    if pipeline.target.requested != workers:
        pipeline.target.rescale(workers)
    plenty = 3 * pipeline.max_records_per_worker * workers
    counted: list[Batch] = []
    warm_since: float | None = None
    deadline = time.time() + PATIENCE
    with pipeline.log.writer(durable=False) as writer:  # thousands of small pieces, which nobody has to keep
        turn = 0
        while True:
            if stop():
                raise KeyboardInterrupt
            with suppress(Unavailable):
                seen = pipeline.target.observe()
                lacking = plenty - (seen.backlog or 0)
                piece = max(LEAST_PIECE, int(TICK * (seen.processed_rate or 0)))
                while lacking > 0:
                    writer.append(turn, pipeline.generate_now(piece))
                    turn = (turn + 1) % pipeline.log.partitions
                    lacking -= piece
                if seen.workers != workers or any(w.ready_at is None for w in seen.per_worker):
                    warm_since, counted = None, []  # also when a worker was lost and replaced: start over
                elif warm_since is None:
                    warm_since = seen.at
                elif seen.batch is not None and seen.batch.ended_at > warm_since + SETTLE:
                    counted += [seen.batch] if not counted or seen.batch.number > counted[-1].number else []
                on_sample(seen, max(0, len(counted) - 1))
                if len(counted) > batches and counted[-1].ended_at - counted[0].ended_at >= seconds:
                    break
            if len(counted) < 2 and time.time() > deadline:
                raise Refused(f"{workers} workers were not warm after {PATIENCE:.0f} s")
            time.sleep(pipeline.experiment.head.sample_every)
    return _capacity(workers, counted)


def _capacity(workers: int, counted: list[Batch]) -> Capacity:
    """From batch ends: the first batch only starts the watch."""
    if len(counted) < 2:
        raise Unavailable(f"no batch was measured with {workers} workers")
    # A batch that fell between two looks took time that nobody counted records for.
    spans = [(b.records, b.ended_at - a.ended_at) for a, b in pairwise(counted) if b.number == a.number + 1]
    if not spans:
        raise Unavailable(f"no two batches in a row were seen with {workers} workers")
    rates = [records / seconds for records, seconds in spans]
    rate = sum(records for records, _ in spans) / sum(seconds for _, seconds in spans)
    return Capacity(workers, rate, pstdev(rates) / mean(rates), len(rates))


def linear(capacities: list[Capacity]) -> float:
    """Records/s per worker of the line through the origin that fits best."""
    return sum(c.rate * c.workers for c in capacities) / sum(c.workers**2 for c in capacities)
