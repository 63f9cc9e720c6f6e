"""M_L and T_max: what a profile says of scale-outs and rates that were not in it."""

from __future__ import annotations

import pytest

from penstock.models.latency import Capacities, LatencyModel
from penstock.models.profiling import Limit, Point

SCALE_OUTS = (2, 5, 8, 11, 15, 18, 21, 24)
LIMITS = [Limit(n, 16_000.0 * n) for n in SCALE_OUTS]


def profile() -> list[Point]:
    """As a profiling phase makes it: every scale-out at rising rates up to the one that it cannot keep up with."""
    points = []
    for n in SCALE_OUTS:
        for rate in range(20_000, 500_000, 20_000):
            fits = rate <= 16_000 * n
            points.append(Point(n, float(rate), 1.0 + rate / 1e6 if fits else 30.0, min(rate, 16_000.0 * n)))
            if not fits:
                break
    return points


POINTS = profile()
MODEL = LatencyModel.fit(POINTS, Capacities.fit(LIMITS))


@pytest.mark.parametrize("workers", [1, 3, 12, 24])
def test_capacity_between_and_beyond_what_was_profiled(workers: int) -> None:
    assert Capacities.fit(LIMITS).at(workers) == pytest.approx(16_000 * workers, rel=0.05, abs=2000)


def test_with_fewer_than_three_scale_outs_capacity_is_a_share_per_worker() -> None:
    assert Capacities.fit([Limit(2, 3000.0), Limit(4, 5000.0)]).at(6) == pytest.approx(8000.0)


def test_capacity_is_never_negative() -> None:
    assert Capacities.fit([Limit(4, 100.0), Limit(8, 1000.0), Limit(12, 1900.0)]).at(1) == 0


@pytest.mark.parametrize(
    ("workers", "rate", "valid"),
    [
        (24, 20_000.0, True),
        (24, 340_000.0, True),
        (12, 100_000.0, True),  # no deployment of 12 was profiled
        (4, 100_000.0, False),
        (12, 250_000.0, False),
        (2, 340_000.0, False),  # long gone at that rate
    ],
)
def test_valid_is_what_can_keep_up(workers: int, rate: float, valid: bool) -> None:
    assert MODEL.valid(workers, rate) is valid


def test_latency_rises_with_the_rate_and_falls_with_workers() -> None:
    assert MODEL.latency(8, 60_000.0) <= MODEL.latency(8, 160_000.0)
    assert MODEL.latency(24, 160_000.0) < MODEL.latency(8, 160_000.0)


def test_latency_is_never_beyond_what_was_measured() -> None:
    latencies = [point.latency for point in POINTS]
    for workers in range(1, 40):
        for rate in (0.0, 1e5, 1e7):
            assert min(latencies) * 0.999 <= MODEL.latency(workers, rate) <= max(latencies) * 1.001
