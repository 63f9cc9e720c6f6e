"""The profiling phase: rising rates, deployments that go, what it costs, side by side and one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from penstock.core import Observation, Target
from penstock.errors import ConfigError, Refused, Unavailable
from penstock.experiment.profiling import Plan, SimulatedRig, point_of, profile, profiled
from penstock.experiment.serial_rig import SerialRig
from penstock.experiment.spark_rig import newest_executor
from penstock.models.latency import Capacities
from penstock.models.outage import outage
from penstock.models.profiling import ObservedRecovery, Point
from penstock.targets.simulated import load
from penstock.testing import FakeClock, FakeTarget, sample

JOB = load("top-speed-windowing")


class Counting:
    """A rig of workers that do 1000/s each: what it was asked for, and at a price of 10 s per measurement."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, tuple[int, ...]]] = []
        self.failed: list[tuple[float, int]] = []
        self.worker_seconds = 0.0

    def measure(self, rate: float, scale_outs: Sequence[int]) -> tuple[Point, ...]:
        self.asked.append((rate, tuple(scale_outs)))
        self.worker_seconds += 10.0 * sum(scale_outs)
        return tuple(Point(n, rate, 1.0 if rate <= 1000 * n else 60.0, min(rate, 1000.0 * n)) for n in scale_outs)

    def recover(self, rate: float, workers: int) -> ObservedRecovery | None:
        self.failed.append((rate, workers))
        self.worker_seconds += workers
        return None if workers == 2 else ObservedRecovery(workers, rate, 100.0, 5.0)


def test_a_deployment_goes_when_it_cannot_keep_up() -> None:
    rig, said = Counting(), list[str]()
    found = profile(rig, (2, 4, 6), (1000.0, 2000.0, 3000.0, 5000.0, 7000.0, 9000.0), failures=3, tell=said.append)
    assert rig.asked == [
        (1000.0, (2, 4, 6)),
        (2000.0, (2, 4, 6)),
        (3000.0, (2, 4, 6)),
        (5000.0, (4, 6)),
        (7000.0, (6,)),
    ]
    assert [(limit.workers, limit.rate) for limit in found.limits] == [(2, 2000.0), (4, 4000.0), (6, 6000.0)]
    assert len(found.points) == 12
    assert "4 workers: at their limit with 4,000 records/s" in said


def test_failures_are_injected_below_the_limits_and_cost_extra() -> None:
    rig = Counting()
    found = profile(rig, (2, 4, 6), (1000.0, 3000.0, 5000.0, 7000.0), failures=3)
    assert [workers for _, workers in rig.failed] == [6, 4, 2]
    assert [rate for rate, _ in rig.failed] == pytest.approx([0.2 * 6000, 0.4 * 4000, 0.6 * 2000])
    assert [each.workers for each in found.recoveries] == [6, 4]  # of two none was seen
    assert (found.worker_seconds, found.failure_seconds) == (10.0 * (12 + 12 + 10 + 6) + 12, 12)


def test_rates_that_are_too_low_find_nothing() -> None:
    with pytest.raises(Refused, match="no scale-out got to its limit"):
        profile(Counting(), (2, 4, 6), (100.0, 200.0))


def test_nothing_measured_is_no_point() -> None:
    with pytest.raises(Unavailable, match="2 workers at 1,000 records/s showed no latency or no throughput"):
        point_of(2, 1000.0, [sample(1.0, latency=1.0)])


PLANS: dict[str, tuple[dict[str, object], str]] = {
    "min": ({"least": 0}, "min must be at least 1 worker, got 0"),
    "max": ({"least": 4, "most": 3}, "max must be at least min (4), got 3"),
    "count": ({"count": 0}, "count must be at least 1, got 0"),
    "first": ({"first": 0.0}, "first must be above 0 records/s, got 0.0"),
    "step": ({"step": float("nan")}, "step must be above 0 records/s, got nan"),
    "settle": ({"settle": -1.0}, "settle must be 0 seconds or more, got -1.0"),
    "measure": ({"measure": 0.5}, "measure must be at least 1 second, got 0.5"),
    "failures": ({"failures": -1}, "failures must be 0 or more, got -1"),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_cannot_be(name: str) -> None:
    settings, said = PLANS[name]
    with pytest.raises(ConfigError) as caught:
        Plan(**settings)  # type: ignore[arg-type]
    assert str(caught.value) == said


QUICK = Plan(count=4, step=40_000.0, settle=60.0, measure=30.0, failures=4)


def test_a_simulated_job_is_known_by_its_profile() -> None:
    found = profiled(JOB, 24, 0, QUICK)
    capacities = Capacities.fit(found.limits)
    for limit in found.limits:
        assert limit.rate == pytest.approx(JOB.capacity * limit.workers**JOB.exponent, rel=0.15)
    stop = outage(found.recoveries, capacities.at, 10.0, 0.0)
    for each in found.recoveries:
        assert stop.recovery(each.rate, capacities.at(each.workers), 10.0) == pytest.approx(each.seconds, rel=0.15)
        # Heartbeats are lost for 28 s before anything shows.
        assert each.silent == pytest.approx(JOB.detection, abs=2)


def test_a_profile_is_made_once_for_a_seed() -> None:
    assert profiled(JOB, 24, 0, QUICK) is profiled(JOB, 24, 0, QUICK)
    again = QUICK.run(SimulatedRig(JOB, settle=60.0, measure=30.0, seed=0), 24)
    assert again == profiled(JOB, 24, 0, QUICK)


def test_stops_are_drawn_anew_for_every_failure() -> None:
    rig = SimulatedRig(JOB, settle=60.0, measure=30.0)
    once, again = rig.recover(50_000.0, 12), rig.recover(50_000.0, 12)
    assert once is not None
    assert again is not None
    assert once.seconds != again.seconds


class Job(FakeTarget):
    """Late by what waits, and ten seconds to bring a worker up."""

    def observe(self) -> Observation:
        seen = super().observe()
        return replace(seen, latency=1.0 + (seen.backlog or 0.0) / 1000)


class Cluster:
    """A site in memory: its feed turns the rate of a toy job."""

    def __init__(self, most: int = 6) -> None:
        self.clock = FakeClock(1000.0)
        self.rate, self.most, self.nudges, self.fed = 0.0, most, 0, list[float]()
        self.job = Job(self.clock, workers=most, rate=lambda _: self.rate, startup=10.0)

    @property
    def target(self) -> Target:
        return self.job

    @contextmanager
    def feed(self, rate: float, seconds: float) -> Iterator[None]:
        assert seconds > 0
        self.rate = rate
        self.fed.append(rate)
        try:
            yield
        finally:
            self.rate = 0.0

    def nudge(self) -> None:
        self.nudges += 1

    def kill(self) -> None:
        self.job.lose()

    def rig(self) -> SerialRig:
        return SerialRig(self, self.clock, settle=20.0, measure=10.0)


def test_one_after_the_other_from_the_largest() -> None:
    site = Cluster()
    points = site.rig().measure(2500.0, (2, 6, 4))
    assert [(p.workers, p.throughput) for p in points] == [(6, 2500.0), (4, 2500.0), (2, 2000.0)]
    assert points[2].latency > 5 * points[0].latency
    assert site.job.rescales == [4, 2]
    assert site.job.observe().backlog == 0  # nothing is left for the next rate


def test_what_the_smallest_leaves_behind_is_worked_off_by_all() -> None:
    site = Cluster()
    site.rig().measure(20_000.0, (2,))
    assert site.job.rescales == [2, 6]
    assert site.job.observe().backlog == 0


def test_a_whole_profile_one_after_the_other() -> None:
    site = Cluster()
    rig = site.rig()
    found = Plan(least=2, count=3, step=1000.0, failures=2).run(rig, 6)
    assert [(limit.workers, limit.rate) for limit in found.limits] == [(2, 2000.0), (4, 4000.0), (6, 6000.0)]
    assert found.worker_seconds == rig.worker_seconds > 0
    # A fifth and two fifths of the limit: those that are left do it without being late.
    assert [(each.workers, each.seconds) for each in found.recoveries] == [(6, 0.0), (4, 0.0)]


def test_a_recovery_is_watched_from_the_kill() -> None:
    found = Cluster().rig().recover(3500.0, 4)
    assert found is not None
    # One of four is away for ten seconds, so that 500/s stay undone; the spare 500/s take as long to do them.
    assert found.seconds == pytest.approx(18, abs=3)
    assert found.workers == 4


def test_new_workers_are_given_work_until_they_are_warm() -> None:
    site = Cluster()
    site.job.rescale(2)
    site.clock.sleep(30.0)
    site.rig().measure(100.0, (5,))
    assert site.nudges > 0


def test_a_job_that_never_catches_up_is_said() -> None:
    site = Cluster(most=1)
    site.job.rescale(1)
    rig = site.rig()
    with pytest.raises(Unavailable, match="did not catch up within 900 s"):
        rig.measure(200_000.0, (1,))


def test_workers_that_never_come_are_said() -> None:
    site = Cluster()
    site.job.rescale(1)
    site.job._startup = 1e9
    with pytest.raises(Unavailable, match="4 workers were not ready after 900 s"):
        site.rig().measure(100.0, (4,))


def test_whoever_stops_it_stops_it_at_once() -> None:
    site = Cluster()
    rig = SerialRig(site, site.clock, settle=20.0, measure=10.0, stop=lambda: site.clock.now() > 1010)
    with pytest.raises(KeyboardInterrupt):
        rig.measure(100.0, (6,))
    assert site.rate == 0


def test_only_an_executor_is_killed() -> None:
    assert newest_executor([]) is None
    assert newest_executor([1, 2**22 + 1]) is None  # not ours, and no process at all
