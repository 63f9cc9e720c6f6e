"""One run in numbers, from its journal alone.

Every observation holds until the next one, the last until the journal's last line, and all is weighted by that time.
Nothing is left out of the cost: while nobody looked (a controller that was killed and came back), the workers last
seen are taken to run on, and the seconds are reported as `gap_seconds`. What was not measured is never made up: rates
and latency count only where they are known, and for how long that was is said next to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from penstock.core import Observation
from penstock.errors import check
from penstock.journal import Decided, Record, Rescale, Sample

GAP = 3.0  # how many times the usual interval make a gap: a slow sample is none, a restart is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """One run in numbers; None is unknown.

    duration: seconds from the first observation to the last line.
    gap_seconds: of these, seconds in which nobody looked; blind_seconds: in which somebody did and saw nothing.
    worker_seconds: the cost; average_workers: the same per second; share_of_max: the same against always-max.
    processed: records, over the processed_known seconds in which their rate was known.
    latency_mean, latency_p50, latency_p95, latency_p99, latency_max: of the p95 latency, over the latency_known seconds
        in which it was known.
    max_backlog: records.
    rescales_up, rescales_down: that were carried out.
    workers_lost: that the target reported as lost.
    """

    duration: float
    gap_seconds: float
    blind_seconds: float
    worker_seconds: float | None
    average_workers: float | None
    share_of_max: float | None
    processed: float | None
    processed_known: float
    latency_mean: float | None
    latency_p50: float | None
    latency_p95: float | None
    latency_p99: float | None
    latency_max: float | None
    latency_known: float
    max_backlog: float | None
    rescales_up: int
    rescales_down: int
    workers_lost: int


@dataclass(frozen=True, slots=True)
class Span:
    """An observation, and the seconds for which it is the last one; `gap` if that is unusually long."""

    observation: Observation
    seconds: float
    gap: bool

    @property
    def seen(self) -> float:
        """Seconds for which what was measured may be taken to hold."""
        return 0.0 if self.gap else self.seconds


def summarise(records: Iterable[Record], max_workers: int) -> Measures:
    """The measures of a journal; `max_workers` is what it is compared with."""
    check(max_workers >= 1, "max_workers", "be at least 1", max_workers)
    records = list(records)
    held = spans(records)
    rescales = [r for r in records if isinstance(r, Rescale) and r.outcome == "done" and r.before is not None]
    workers = _workers(held)
    staffed = sum(seconds for seconds, _ in workers)
    worker_seconds = sum(seconds * count for seconds, count in workers) if workers else None
    average = worker_seconds / staffed if worker_seconds is not None and staffed else None
    rates = [(s.seen, s.observation.processed_rate) for s in held if s.observation.processed_rate is not None]
    latencies = [(s.seen, s.observation.latency) for s in held if s.observation.latency is not None]
    return Measures(
        duration=sum(s.seconds for s in held),
        gap_seconds=sum(s.seconds for s in held if s.gap),
        blind_seconds=sum(s.seen for s in held if s.observation.blind),
        worker_seconds=worker_seconds,
        average_workers=average,
        share_of_max=None if average is None else average / max_workers,
        processed=sum(seconds * rate for seconds, rate in rates) if rates else None,
        processed_known=sum(seconds for seconds, _ in rates),
        latency_mean=_mean(latencies),
        latency_p50=_quantile(latencies, 0.50),
        latency_p95=_quantile(latencies, 0.95),
        latency_p99=_quantile(latencies, 0.99),
        latency_max=max((latency for _, latency in latencies), default=None),
        latency_known=sum(seconds for seconds, _ in latencies),
        max_backlog=max((s.observation.backlog for s in held if s.observation.backlog is not None), default=None),
        rescales_up=sum(r.after > (r.before or 0) for r in rescales),
        rescales_down=sum(r.after < (r.before or 0) for r in rescales),
        workers_lost=sum(event.code == "worker.lost" for s in held for event in s.observation.events),
    )


def spans(records: Sequence[Record]) -> list[Span]:
    """The observations of a journal, each with its time. A clock that goes back takes no time."""
    seen = [r.observation for r in records if isinstance(r, Sample | Decided) and r.observation is not None]
    if not seen:
        return []
    last = records[-1]
    times = [*(o.at for o in seen), last.observation.at if isinstance(last, Sample) else last.at]
    lengths = [max(0.0, later - at) for at, later in pairwise(times)]
    usual = median(lengths[:-1]) if len(seen) > 1 else lengths[0]
    return [Span(o, length, length > GAP * usual) for o, length in zip(seen, lengths, strict=True)]


def _workers(held: Sequence[Span]) -> list[tuple[float, int]]:
    """Seconds and workers; one who is not seen now is taken to be where it was seen last."""
    known: list[tuple[float, int]] = []
    for span in held:
        count = span.observation.workers
        if count is None and known:
            count = known[-1][1]
        if count is not None:
            known.append((span.seconds, count))
    return known


def _mean(weighted: Sequence[tuple[float, float]]) -> float | None:
    """The mean over time; of the values alone if no time passed."""
    total = sum(seconds for seconds, _ in weighted)
    if not total:
        return fmean(value for _, value in weighted) if weighted else None
    return sum(seconds * value for seconds, value in weighted) / total


def _quantile(weighted: Sequence[tuple[float, float]], share: float) -> float | None:
    """The smallest value that is not exceeded for `share` of the time.

    >>> _quantile([(9, 1.0), (1, 5.0)], 0.9), _quantile([(9, 1.0), (1, 5.0)], 0.95), _quantile([], 0.5)
    (1.0, 5.0, None)
    """
    total = sum(seconds for seconds, _ in weighted)
    if not total:  # a single look: no time passed, but it was measured
        weighted, total = [(1.0, value) for _, value in weighted], float(len(weighted))
    passed = 0.0
    for seconds, value in sorted(weighted, key=lambda pair: pair[1]):
        passed += seconds
        if passed >= share * total * (1 - 1e-12):  # 0.95 x 20 must not lose to its own rounding
            return value
    return None
