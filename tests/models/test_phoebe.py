"""Algorithm 1 row by row, the projected rate, and what is learned while the job runs."""

from __future__ import annotations

from dataclasses import replace
from math import sin

import pytest

from penstock.core import Observation, Reason
from penstock.models.forecast import Forecast
from penstock.models.outage import Outage
from penstock.models.phoebe import Experience, Situation, behind, plan, projected
from penstock.models.profiling import Limit, ObservedRecovery, Point, ProfilingData

PER_WORKER = 1000.0
LOST = Reason("worker.lost", "worker-3 was lost")


def profile() -> ProfilingData:
    """A job whose workers do 1000/s each, are a second late while they keep up, and stop for 50 s, seen 20 s late."""
    points, limits, known = [], [], []
    for n in (2, 4, 6, 8):
        limits.append(Limit(n, PER_WORKER * n))
        for step in range(1, 18):
            rate = 500.0 * step
            fits = rate <= PER_WORKER * n
            points.append(Point(n, rate, 1.0 if fits else 40.0, min(rate, PER_WORKER * n)))
            if not fits:
                break
        for share in (0.2, 0.4, 0.6):
            seconds = Outage(50.0, 20.0).recovery(share, 1.0, 10.0)
            assert seconds is not None
            known.append(ObservedRecovery(n, share * PER_WORKER * n, seconds, silent=15.0))
    return ProfilingData(tuple(points), tuple(limits), tuple(known), 1e5, 1e4)


PROFILE = profile()


@pytest.mark.parametrize(
    ("path", "rate"),
    [
        ((1.0, 2.0, 3.0, 4.0, 5.0), 5.0),  # rising: the furthest bin (Fig. 5)
        ((5.0, 4.0, 3.0, 2.0, 1.0), 5.0),  # falling: the nearest
        ((1.0, 1.0, 9.0, 1.0, 1.0), 9.0),
        ((2.0, 4.0, 2.0, 4.0, 2.0, 4.0, 2.0, 4.0, 2.0, 4.0), 3.0),  # the means of bins, not peaks
    ],
)
def test_the_projected_rate_is_the_highest_mean_of_five_bins(path: tuple[float, ...], rate: float) -> None:
    assert projected(Forecast(at=0.0, step=600 / len(path), path=path, by="last"), 600.0) == pytest.approx(rate)


def situation(rate: float, current: int = 4, **known: object) -> Situation:
    """With closed-form recoveries of a stop of 50 s."""
    base = Situation(
        current=current,
        least=1,
        most=8,
        rate=rate,
        capacity=lambda n: PER_WORKER * n,
        recovery=lambda n: Outage(50.0).recovery(rate, PER_WORKER * n, 10.0),
        latency=lambda n: 1.0 if rate < PER_WORKER * n else 40.0,
        valid=lambda n: rate < PER_WORKER * n,
    )
    return replace(base, **known)  # type: ignore[arg-type]


# 50 + 60 w / (T - w) <= 180 asks for T of at least 1.4615 w.
PLANS: dict[str, tuple[Situation, int, str]] = {
    "out": (situation(3500.0), 6, "phoebe.out"),
    "in": (situation(1000.0), 2, "phoebe.in"),
    "stay": (situation(2700.0), 4, "phoebe.fits"),
    "recovery asks for more than the load": (situation(2900.0), 5, "phoebe.out"),
    "a longer target asks for less": (situation(2900.0, target=600.0), 4, "phoebe.fits"),
    "no load": (situation(0.0), 1, "phoebe.in"),
    "none recovers: the largest": (situation(7500.0), 8, "phoebe.none_fits"),
    "none keeps up: the largest": (situation(9000.0), 8, "phoebe.none_fits"),
    "none has normal latency: the largest": (situation(1000.0, valid=lambda _: False), 8, "phoebe.none_fits"),
    "latency asks for more than recovery": (situation(1000.0, valid=lambda n: n >= 6), 6, "phoebe.out"),
    "a step of one is enough": (situation(2000.0), 3, "phoebe.in"),
    "a step of one is not worth it": (situation(2000.0, least_step_in=3), 4, "phoebe.small_step"),
    "one of three is": (situation(600.0, least_step_in=3), 1, "phoebe.in"),
    "out is never too small": (situation(2900.0, least_step_in=3), 5, "phoebe.out"),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_smallest_that_recovers_in_time_with_normal_latency(name: str) -> None:
    now, workers, code = PLANS[name]
    decision = plan(now)
    assert (decision.workers, decision.reasons[-1].code) == (workers, code)
    assert decision.expects is not None
    assert decision.expects.capacity == PER_WORKER * workers


def test_the_walk_is_recovery_first_then_latency() -> None:
    options = plan(situation(2000.0, valid=lambda n: n > 3)).options
    assert [(option.workers, option.reason.code) for option in options] == [
        (1, "recovery.above_target"),
        (2, "recovery.above_target"),
        (3, "latency.invalid"),
        (4, "phoebe.fits"),
    ]
    assert options[0].reason.sentence == "would never recover from a failure"


def seen(at: float, load: float = 2000.0, workers: int = 4, **known: object) -> Observation:
    base = Observation(
        at=at,
        workers=workers,
        requested=workers,
        uptime=at,
        input_rate=load * (1 + 0.01 * sin(at)),
        processed_rate=load,
        backlog=10.0,
        latency=1.0,
    )
    return replace(base, **known)  # type: ignore[arg-type]


def learned(*observations: Observation) -> Experience:
    known = Experience(PROFILE)
    for observation in observations:
        known.learn(observation)
    known.refit()
    return known


def test_the_profile_alone() -> None:
    known = Experience(PROFILE)
    assert known.capacities.at(5) == pytest.approx(5000, rel=0.01)
    assert (known.outage.down, known.outage.lag) == pytest.approx((50.0, 20.0), abs=1)
    assert known.latencies.valid(5, 3000.0)
    assert not known.latencies.valid(3, 6000.0)


def test_a_job_at_its_limit_moves_the_capacity_half_way() -> None:
    known = learned(
        *(seen(float(t), load=6000.0, processed_rate=3000.0, backlog=1e6, latency=30.0) for t in range(300, 500))
    )
    assert known.capacities.at(4) < Experience(PROFILE).capacities.at(4) - 50
    assert [(note.code, note.facts["observed"]) for note in known.notes] == [("capacity.observed", 3000.0)]


@pytest.mark.parametrize(
    "known",
    [
        {"uptime": 100.0},
        {"last_rescale_at": 350.0},
        {"requested": 5},
        {"processed_rate": None},
        {"backlog": None},
    ],
    ids=lambda known: "-".join(known),
)
def test_a_job_that_settles_or_cannot_be_seen_teaches_no_capacity(known: dict[str, object]) -> None:
    found = learned(
        *(
            seen(float(t), **{"load": 6000.0, "processed_rate": 3000.0, "backlog": 1e6, **known})  # type: ignore[arg-type]
            for t in range(300, 500)
        )
    )
    assert found.capacities.at(4) == Experience(PROFILE).capacities.at(4)
    assert not found.notes


def failure(down: int, late: int) -> Experience:
    """After ten calm minutes a stop of `down` s, then `late` s of high latency."""
    known = learned(*(seen(float(t)) for t in range(300, 901)))
    for t in range(901, 901 + down):
        blank = {"uptime": None, "processed_rate": None, "backlog": None, "latency": None}
        known.learn(seen(float(t), **blank, events=(LOST,) if t == 910 else ()))  # type: ignore[arg-type]
    for t in range(901 + down, 901 + down + late + 60):
        over = t >= 901 + down + late
        known.learn(
            seen(float(t), uptime=float(t - 901 - down), latency=1.0 if over else 30.0, backlog=10.0 if over else 5e4)
        )
    return known


def test_a_recovery_is_watched_from_when_it_was_last_well() -> None:
    known = failure(down=50, late=80)
    assert [note.code for note in known.notes] == ["recovery.observed"]
    # 131 s from the last good second, and the 15 s that a failure was not to be seen in the profile.
    assert known.notes[0].facts["observed"] == pytest.approx(131 + 15)


def test_watched_recoveries_change_what_is_expected() -> None:
    known = failure(down=200, late=200)
    before = known.outage
    known.refit()
    assert known.outage.down + known.outage.lag > before.down + before.lag


def test_a_rescale_ends_the_watch() -> None:
    known = learned(*(seen(float(t)) for t in range(300, 901)))
    known.learn(seen(901.0, events=(LOST,), latency=50.0))
    known.learn(seen(902.0, workers=6, last_rescale_at=902.0, uptime=1.0))
    for t in range(903, 1100):
        known.learn(seen(float(t), workers=6, last_rescale_at=902.0, uptime=float(t - 902)))
    assert not known.notes


@pytest.mark.parametrize(
    ("known", "expected"),
    [({}, False), ({"backlog": 1e5}, True), ({"backlog": None}, None), ({"input_rate": None}, None)],
)
def test_behind_is_known_or_not(known: dict[str, object], expected: bool | None) -> None:
    assert behind(seen(0.0, **known)) is expected  # type: ignore[arg-type]
