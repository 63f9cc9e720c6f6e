"""What a summary says of latency besides its p50, p95 and maximum."""

from __future__ import annotations

import pytest

from penstock.core import Reason
from penstock.journal import Record, Sample, Setting, Start, Stop
from penstock.measures import Series, latency, summarise
from penstock.testing import sample


def run(*latencies: float | None) -> list[Record]:
    """A look every ten seconds."""
    looks = [Sample(observation=sample(10.0 * i, workers=1, latency=value)) for i, value in enumerate(latencies)]
    end = Stop(at=10.0 * len(latencies), reason=Reason("loop.stopped", "…"))
    return [Start(at=0, policy=Setting("hpa")), *looks, end]


@pytest.mark.parametrize(
    ("latencies", "mean", "p99"),
    [((1.0, 3.0, None, 5.0), 3.0, 5.0), ((1.0,) * 99 + (9.0,), 1.08, 1.0), ((None, None), None, None)],
    ids=["blind times do not count", "one in a hundred", "never known"],
)
def test_mean_and_p99(latencies: tuple[float | None, ...], mean: float | None, p99: float | None) -> None:
    measures = summarise(run(*latencies), max_workers=1)
    assert measures.latency_mean == (None if mean is None else pytest.approx(mean))
    assert measures.latency_p99 == p99


def test_a_journal_and_its_arrays_agree() -> None:
    records = run(1.0, 4.0, None, 2.0, 2.0, 8.0)
    summary, arrays = summarise(records, max_workers=1), latency(Series.of(records))
    assert (summary.latency_p50, summary.latency_p95, summary.latency_p99) == (arrays.p50, arrays.p95, arrays.p99)
    assert (summary.latency_mean, summary.latency_max, summary.latency_known) == (arrays.mean, arrays.max, arrays.known)
