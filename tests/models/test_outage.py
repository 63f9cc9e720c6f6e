"""What a failure costs: the closed form, what is fitted to recoveries, and when one is over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.models.outage import Outage, Watch, downtime, outage
from penstock.models.profiling import ObservedRecovery
from penstock.models.recovery import recovery_time

REPLAY = 10.0


def steps(rate: float, capacity: float, down: float) -> float:
    """Phoebe's sequence c(n), sec. III-B, at a constant rate, until a step is negligible."""
    step, total = (REPLAY + down) * rate / capacity, down
    while step > 1e-9:
        total += step
        step *= rate / capacity
    return total


@pytest.mark.parametrize(
    ("rate", "capacity", "down", "seconds"),
    [
        (1000.0, 1500.0, 30.0, 110.0),
        (52_000.0, 380_000.0, 88.0, 88 + 98 * 52 / 328),
        (0.0, 1000.0, 88.0, 88.0),
        (999.0, 1000.0, 0.0, 10 * 999.0),
    ],
)
def test_the_closed_form_at_a_constant_rate(rate: float, capacity: float, down: float, seconds: float) -> None:
    assert Outage(down).recovery(rate, capacity, REPLAY) == pytest.approx(seconds)


@given(st.floats(1, 900), st.floats(1, 300))
def test_closed_form_steps_and_walk_agree(rate: float, down: float) -> None:
    known = Outage(down).recovery(rate, 1000.0, REPLAY)
    assert known == pytest.approx(steps(rate, 1000.0, down), rel=1e-6)
    assert known == pytest.approx(recovery_time([rate], 60.0, capacity=1000.0, downtime=down, replay=REPLAY), rel=1e-6)


@pytest.mark.parametrize("capacity", [900.0, 1000.0])
def test_a_job_without_spare_capacity_never_recovers(capacity: float) -> None:
    assert Outage(30.0).recovery(1000.0, capacity, REPLAY) is None
    assert downtime(ObservedRecovery(4, 1000.0, 500.0), capacity, REPLAY) is None


def test_what_shows_late_adds_the_same_at_any_rate() -> None:
    assert Outage(30.0, lag=60.0).recovery(1000.0, 1500.0, REPLAY) == pytest.approx(170.0)


@given(st.floats(0, 300), st.floats(0, 900))
def test_the_downtime_of_a_recovery_is_found_again(down: float, rate: float) -> None:
    seconds = Outage(down).recovery(rate, 1000.0, REPLAY)
    assert seconds is not None
    assert downtime(ObservedRecovery(4, rate, seconds), 1000.0, REPLAY) == pytest.approx(down, abs=1e-6)


def seen(rates: tuple[float, ...], down: float, lag: float) -> list[ObservedRecovery]:
    return [ObservedRecovery(4, rate, Outage(down, lag).recovery(rate, 1000.0, REPLAY) or 0.0) for rate in rates]


FITS: dict[str, tuple[list[ObservedRecovery], Outage]] = {
    "nothing was seen": ([], Outage(60.0)),
    "one: all of it is downtime": (seen((500.0,), 90.0, 0.0), Outage(90.0)),
    "many alike cannot tell them apart": (seen((500.0, 501.0, 502.0, 503.0), 90.0, 0.0), Outage(90.0)),
    "apart enough": (seen((100.0, 300.0, 500.0, 700.0), 50.0, 90.0), Outage(50.0, 90.0)),
    "nothing shows late": (seen((100.0, 300.0, 500.0, 700.0), 88.0, 0.0), Outage(88.0, 0.0)),
    "those that could not be are left out": (
        [ObservedRecovery(4, 1500.0, 200.0), *seen((500.0,), 90.0, 0.0)],
        Outage(90.0),
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_what_explains_the_recoveries(name: str) -> None:
    recoveries, expected = FITS[name]
    found = outage(recoveries, lambda _: 1000.0, REPLAY, otherwise=60.0)
    assert (found.down, found.lag) == pytest.approx((expected.down, expected.lag), abs=0.5)


def over(*latencies: tuple[float, float | None]) -> float | None:
    watch = Watch(began_at=100.0, normal=1.0, hold=20.0)
    return next((found for at, latency in latencies if (found := watch.learn(at, latency)) is not None), None)


WATCHED: dict[str, tuple[list[tuple[float, float | None]], float | None]] = {
    "normal again, and stays so": ([(150, 40.0), (200, 1.0), (220, 1.0)], 100.0),
    "a little above is normal: 1.2 x 1 + 1": ([(150, 40.0), (200, 2.2), (220, 2.2)], 100.0),
    "more above is not": ([(150, 40.0), (200, 2.3), (240, 2.3)], None),
    "it has not shown yet": ([(101, 1.0), (125, 1.0), (150, 1.0)], None),
    "unknown is not normal": ([(150, None), (200, 1.0), (210, None), (215, 1.0), (235, 1.0)], 115.0),
    "a relapse": ([(150, 40.0), (160, 1.0), (170, 40.0), (180, 1.0), (200, 1.0)], 80.0),
    "not long enough": ([(150, 40.0), (200, 1.0), (219, 1.0)], None),
}


@pytest.mark.parametrize("name", WATCHED)
def test_when_a_recovery_is_over(name: str) -> None:
    latencies, seconds = WATCHED[name]
    assert over(*latencies) == seconds
