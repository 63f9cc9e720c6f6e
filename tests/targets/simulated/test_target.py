from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from penstock import guards
from penstock.core import Decision, Observation, Reason, Target
from penstock.errors import ConfigError, Refused
from penstock.journal import Sample, decode, encode
from penstock.loop import Loop, Step
from penstock.policies import make
from penstock.targets.simulated import Profile, SimulatedClock, SimulatedTarget, Stage, load, run
from penstock.testing import TargetContract
from penstock.workloads import Constant, Sine

WHY = (Reason("test.reason", "Because of the test"),)


class TestContinuousContract(TargetContract):
    def make(self) -> Target:
        self.clock = SimulatedClock(1_000_000)
        return SimulatedTarget("flink-wordcount", Constant(level=20_000, duration=3600), workers=6, clock=self.clock)

    def wait(self) -> None:
        self.clock.sleep(1)


class TestMicrobatchContract(TargetContract):
    def make(self) -> Target:
        self.clock = SimulatedClock()
        return SimulatedTarget("spark-wordcount", Constant(level=20_000, duration=3600), workers=3, clock=self.clock)

    def wait(self) -> None:
        self.clock.sleep(1)


def seen_after(profile: Profile | str, rate: float, workers: int, seconds: float = 200.0) -> Observation:
    target = SimulatedTarget(profile, Constant(level=rate, duration=seconds), workers=workers)
    target.clock.sleep(seconds)
    return target.observe()


def test_an_observation_has_all_that_policies_ask_for() -> None:
    seen = seen_after("flink-wordcount", 30_000, 9)
    assert seen.workers == seen.requested == len(seen.per_worker) == 9
    assert seen.uptime == 200
    assert seen.input_rate == pytest.approx(30_000)
    assert seen.processed_rate == pytest.approx(30_000)
    assert seen.backlog == pytest.approx(0, abs=1e-3)
    assert seen.latency is not None
    assert sum(worker.rate or 0 for worker in seen.per_worker) == pytest.approx(30_000)
    assert [operator.name for operator in seen.operators] == ["source", "split", "count", "sink"]
    assert all(operator.parallelism == 9 for operator in seen.operators)
    assert seen.operators[1].rate_in == pytest.approx(30_000)
    assert seen.operators[2].rate_in == seen.operators[1].rate_out == pytest.approx(246_000)
    assert decode(encode(Sample(observation=seen))) == Sample(observation=seen)


def test_an_overload_shows_as_backpressure_before_the_bottleneck() -> None:
    stages = (Stage("read", 0.2, downstream=("work",)), Stage("work", 0.6, downstream=("write",)), Stage("write", 0.2))
    profile = Profile("continuous", 1000.0, cpu_noise=0.0, operators=stages, busy_ceiling=0.8)
    read, work, write = seen_after(profile, 9000, 4).operators
    assert work.busy == pytest.approx(0.8)  # Koper sec. 5.12: busy tops out below 1
    assert (work.backpressure, write.backpressure) == (0, 0)
    assert read.backpressure == pytest.approx(1 - 0.8 / 3)
    assert write.idle == pytest.approx(1 - 0.8 / 3)
    read, work, write = seen_after(profile, 2000, 4).operators
    assert work.busy == pytest.approx(0.4)
    assert read.backpressure == 0


def test_busy_time_may_fall_faster_than_load_and_with_more_instances() -> None:
    stages = (Stage("read", 0.4, downstream=("work",)), Stage("work", 0.6))
    profile = Profile(
        "continuous",
        1000.0,
        cpu_noise=0.0,
        operators=stages,
        busy_power=2.0,
        busy_decline=0.5,
        backpressure_share=0.3,
    )
    read, work = seen_after(profile, 2000, 4).operators
    assert work.busy == pytest.approx(0.5**2 / 2)
    assert read.busy == pytest.approx(0.5**2 / 2 * 2 / 3)
    read, work = seen_after(profile, 9000, 4).operators
    assert work.busy == pytest.approx(1 / 2)  # the busiest of four is full, on average they are half so
    assert read.backpressure == pytest.approx(0.3 * (1 - 1 / 3))
    assert read.idle == pytest.approx(0.7 * (1 - 1 / 3))


def test_polling_many_partitions_shows_as_backlog() -> None:
    profile = Profile("continuous", 1000.0, cpu_noise=0.0, partitions=16, backlog_wait=0.1, backlog_floor=50.0)
    shown = {workers: seen_after(profile, 800, workers).backlog for workers in (1, 4, 16)}
    assert shown == {1: pytest.approx(800 * 1.5 + 50), 4: pytest.approx(800 * 0.3 + 50), 16: pytest.approx(50)}


def test_a_ceiling_leaves_no_mark_before_it_is_reached() -> None:
    profile = Profile("continuous", 1000.0, cpu_noise=0.0, idle_cpu=0.0, ceiling=2000.0, ceiling_cpu=0.5)
    below, at = seen_after(profile, 1000, 4), seen_after(profile, 3000, 4)
    assert [below.cpu, below.operators[0].busy] == pytest.approx([0.25, 0.25])
    assert at.processed_rate == pytest.approx(2000)
    assert [at.cpu, at.operators[0].busy] == pytest.approx([0.5 + 0.5 * 0.5, 1.0])


@pytest.mark.parametrize(("stays_warm", "speed"), [(False, 0.25), (True, 1.0)])
def test_who_stays_may_stay_warm(stays_warm: bool, speed: float) -> None:
    profile = Profile(
        "continuous",
        1000.0,
        downtime_in=10.0,
        downtime_spread=0.0,
        warmup=3600.0,
        warmup_speed=0.25,
        stays_warm=stays_warm,
        rate_window=1.0,
    )
    target = SimulatedTarget(profile, Constant(level=9000, duration=900), workers=4)
    target.clock.sleep(300)
    target.rescale(2)
    target.clock.sleep(30)
    assert target.observe().processed_rate == pytest.approx(2000 * speed, rel=0.05)
    target.rescale(3)  # the new one is cold in any case, and holds back the others
    target.clock.sleep(60)
    assert target.observe().processed_rate == pytest.approx(3000 * 0.25, rel=0.05)


def test_metrics_are_late_and_smooth() -> None:
    profile = Profile(
        "continuous", 1000.0, cpu_noise=0.0, idle_cpu=0.0, cpu_window=20.0, rate_window=20.0, metric_delay=10.0
    )

    class Jump:
        def rate(self, t: float) -> float:
            return 0.0 if t < 100 else 1000.0

    target = SimulatedTarget(profile, Jump(), workers=2)
    expected = {105: 0.0, 110: 0.0, 120: 0.25, 130: 0.5, 150: 0.5}
    for at, cpu in expected.items():
        target.clock.sleep(at - target.clock.now())
        seen = target.observe()
        assert seen.cpu == pytest.approx(cpu), at
        assert seen.processed_rate == pytest.approx(2000 * cpu), at


def test_nothing_of_the_job_is_known_while_it_restarts() -> None:
    profile = Profile("continuous", 1000.0, downtime_out=20.0, downtime_spread=0.0, cpu_through_restart=False)
    target = SimulatedTarget(profile, Constant(level=1500, duration=900), workers=2)
    target.clock.sleep(300)
    target.rescale(3)
    target.clock.sleep(10)
    seen = target.observe()
    assert (seen.processed_rate, seen.backlog, seen.latency, seen.uptime, seen.cpu) == (None,) * 5
    assert seen.operators == ()
    assert seen.input_rate == pytest.approx(1500)
    assert seen.last_rescale_at == 300
    assert [worker.ready_at for worker in seen.per_worker] == [0, 0, None]
    target.clock.sleep(30)
    seen = target.observe()
    assert seen.uptime == 20
    assert seen.processed_rate == pytest.approx(3000 * 20 / 60)  # counters began anew, their window did not
    assert [worker.ready_at for worker in seen.per_worker] == [0, 0, 320]
    lives_on = SimulatedTarget(
        replace(profile, cpu_through_restart=True), Constant(level=1500, duration=900), workers=2
    )
    lives_on.clock.sleep(300)
    lives_on.rescale(3)
    lives_on.clock.sleep(10)
    assert lives_on.observe().cpu is not None


def test_a_request_overtakes_the_one_before() -> None:
    profile = Profile("continuous", 1000.0, downtime_out=20.0, downtime_in=20.0, downtime_spread=0.0, startup=30.0)
    target = SimulatedTarget(profile, Constant(level=500, duration=900), workers=2)
    target.clock.sleep(100)
    target.rescale(6)
    target.clock.sleep(10)
    target.rescale(3)
    target.clock.sleep(200)
    assert target.observe().workers == 3
    assert target.series().workers.max() == 3


@pytest.mark.parametrize("workers", [19, 1000])
def test_more_than_there_can_be_is_refused(workers: int) -> None:
    target = SimulatedTarget("flink-wordcount", Constant(level=1000, duration=60), workers=2)
    with pytest.raises(Refused, match=f"workers must be between 1 and 18, got {workers}"):
        target.rescale(workers)


def test_a_failure_in_the_past_and_a_bad_load_are_refused() -> None:
    target = SimulatedTarget("flink-wordcount", Constant(level=1000, duration=60), workers=2)
    target.clock.sleep(10)
    with pytest.raises(ConfigError, match=r"at must not be in the past, got 5\.0"):
        target.fail(5.0)

    class Broken:
        def rate(self, t: float) -> float:
            return -1.0

    bad = SimulatedTarget("flink-wordcount", Broken(), workers=2)
    bad.clock.sleep(1)
    with pytest.raises(ConfigError, match="workload must have rates of 0 records/s or more"):
        bad.observe()


def test_operators_scale_apart_on_heron() -> None:
    """DS2 sec. 5.2: 10 FlatMap and 20 Count keep up with a million sentences a minute, one fewer of either does not."""
    rate = 1_000_000 / 60

    def left(flatmap: int, count: int) -> float:
        target = SimulatedTarget(
            "heron-wordcount", Constant(level=rate, duration=1200), parallelism={"flatmap": 1, "count": 1, "source": 1}
        )
        target.clock.sleep(60)
        sizes = {"flatmap": flatmap, "count": count}
        target.reconfigure(Decision(flatmap + count, WHY, parallelism=sizes))
        target.clock.sleep(1140)
        seen = target.observe()
        assert {operator.name: operator.parallelism for operator in seen.operators} == {"source": 1, **sizes}
        return target.capacity

    assert left(10, 20) == pytest.approx(rate, rel=1e-4)
    assert left(9, 20) < rate
    assert left(10, 19) < rate


def test_heron_tells_ds2_its_true_rates() -> None:
    target = SimulatedTarget("heron-wordcount", Constant(level=16_666.7, duration=300), workers=3)
    target.clock.sleep(120)
    _, flatmap, count = target.observe().operators
    assert flatmap.rate_in is not None
    assert count.rate_in is not None
    assert flatmap.rate_in / (flatmap.busy or 1) == pytest.approx(100_000 / 60, rel=0.01)
    assert count.rate_in / (count.busy or 1) == pytest.approx(1_000_000 / 60, rel=0.01)
    assert flatmap.backpressure == 1.0, "its queue filled within a quarter of a minute and is not half empty yet"
    assert count.backpressure == 0.0
    assert count.queue is not None
    assert 2_500_000 < count.queue < 5_000_000


def test_a_bare_number_is_dealt_to_operators_by_their_work() -> None:
    target = SimulatedTarget("heron-wordcount", Constant(level=100, duration=300), workers=3)
    target.rescale(33)
    assert {o.name: o.parallelism for o in target.observe().operators} == {}
    target.clock.sleep(100)
    assert {o.name: o.parallelism for o in target.observe().operators} == {"source": 1, "flatmap": 11, "count": 21}
    with pytest.raises(Refused, match="at least 3, one per operator"):
        target.rescale(2)
    with pytest.raises(Refused, match="must name operators among source, flatmap, count, got 'sink'"):
        target.reconfigure(Decision(4, WHY, parallelism={"sink": 2}))


def test_near_nodes_do_more_than_far_ones() -> None:
    target = SimulatedTarget("fog-taxi", Constant(level=50, duration=3000), workers=1, seed=2)
    nodes = target.observe().nodes
    assert [node.used for node in nodes] == [True] + [False] * 5
    first = nodes[0]
    near, far = (
        min(first.distances, key=first.distances.__getitem__),
        max(first.distances, key=first.distances.__getitem__),
    )
    assert 0 < first.distances[near] < first.distances[far] <= 0.3
    capacities = []
    for other in (near, far):
        target.reconfigure(Decision(2, WHY, nodes=(first.name, other)))
        target.clock.sleep(400)
        assert {node.name for node in target.observe().nodes if node.used} == {first.name, other}
        capacities.append(target.capacity)
    assert capacities[0] > capacities[1]
    with pytest.raises(Refused, match="nodes must be among"):
        target.reconfigure(Decision(1, WHY, nodes=("moon",)))


def test_who_is_stopped_by_a_rescale_is_not_paid_for_meanwhile() -> None:
    """Gesscale sec. IV-E stops every task manager; elsewhere workers live on while the job restarts."""
    for through, paid in ((False, 0.0), (True, 2.0)):
        profile = Profile("continuous", 100.0, downtime_out=30.0, downtime_spread=0.0, cpu_through_restart=through)
        target = SimulatedTarget(profile, Constant(level=50, duration=300), workers=1)
        target.clock.sleep(60)
        target.rescale(2)
        target.clock.sleep(60)
        workers = target.series().workers
        assert set(workers[:60]) == {1.0}
        assert set(workers[60:90]) == {paid}
        assert set(workers[90:]) == {2.0}


def _over(clock: SimulatedClock, end: float) -> bool:
    return clock.now() >= end


def test_hpa_runs_six_hours_in_the_loop_and_in_the_lean_one_alike() -> None:
    """The same object, the same decisions: only the journal's cost is gone."""
    load = Sine(low=5000, high=50_000, periods=2, duration=21_600)
    decided = []
    for lean in (False, True):
        target = SimulatedTarget("flink-wordcount", load, workers=12, seed=4)
        policy, rails = make("hpa", max_workers=18), guards.default(1, 18)
        if lean:
            made = run(target, policy, rails, duration=21_600, sample_every=5)
            decided.append([(m.at, m.decision.workers) for m in made])
        else:
            steps: list[tuple[float, int | None]] = []

            def note(step: Step, steps: list[tuple[float, int | None]] = steps) -> None:
                if step.decided is not None:
                    steps.append((step.decided.at, step.decided.decision.workers))

            loop = Loop(target, policy, guards=rails, clock=target.clock, sample_every=5)
            over = partial(_over, target.clock, 21_600)
            loop.run(over, note)
            decided.append(steps)
        series = target.series()
        assert len(series.at) == 21_600
        assert 3 < series.workers.mean() < 14
        assert series.backlog[-1] < 1e6
    assert decided[0] == decided[1]
    assert len({workers for _, workers in decided[0]}) > 4


def test_a_lean_run_of_a_policy_that_learns_nothing() -> None:
    target = SimulatedTarget("flink-wordcount", Constant(level=20_000, duration=600), workers=12)
    made = run(target, make("static", workers=6), duration=600)
    assert [m.at for m in made if m.carried_out] == [30]  # the first metrics, 15 s late, are seen at 30 s
    assert target.series().workers[-1] == 6
    assert np.isfinite(target.series().p95[-1])
    with pytest.raises(ConfigError, match="sample_every must be whole seconds"):
        run(target, make("static", workers=6), duration=10, sample_every=0.5)


def test_bounds_of_the_profile_end_what_the_policy_wants() -> None:
    target = SimulatedTarget(
        replace(load("flink-wordcount"), max_workers=5), Constant(level=10, duration=60), workers=2
    )
    made = run(target, make("static", workers=9), duration=60)
    assert not any(m.carried_out for m in made)
    assert target.requested == 2
