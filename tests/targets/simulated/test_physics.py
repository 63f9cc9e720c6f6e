"""What must hold whatever happens: nothing is lost, nothing is made up, and nothing depends on who looks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.targets.simulated import Profile, SimulatedTarget, Stage, capacity, load
from penstock.workloads import Constant, Ramp, Sine

PLAIN = Profile("continuous", 1000.0, cpu_noise=0.0, downtime_spread=0.0, rate_window=1.0, cpu_window=1.0)
BATCHES = replace(
    PLAIN,
    engine="microbatch",
    rescaling="live",
    trigger=3.0,
    batch_fixed=0.3,
    startup=4.0,
    warmup=15.0,
    warmup_speed=0.4,
)
KEYED = (Stage("read", 0.5, downstream=("count",)), Stage("count", 0.5, partitioning="key"))


@dataclass(frozen=True)
class Steps:
    """A load that changes every so often."""

    levels: tuple[float, ...]
    every: float = 20.0

    def rate(self, t: float) -> float:
        return self.levels[min(int(t / self.every), len(self.levels) - 1)]


def watch(target: SimulatedTarget, seconds: int, changes: dict[int, int] | None = None) -> SimulatedTarget:
    for second in range(seconds):
        if changes and second in changes:
            target.rescale(changes[second])
        target.clock.sleep(1)
    target.observe()
    return target


loads = st.lists(st.floats(0, 20_000), min_size=2, max_size=8).map(lambda levels: Steps(tuple(levels)))
changes = st.dictionaries(st.integers(0, 150), st.integers(1, 12), max_size=4)
jobs = st.builds(
    lambda base, keys, zipf, warmup, noise: replace(
        base, keys=keys, zipf=zipf, warmup=warmup, warmup_speed=0.5, cpu_noise=noise, operators=KEYED
    ),
    st.sampled_from([PLAIN, BATCHES, replace(PLAIN, rescaling="live", startup=5.0), replace(PLAIN, downtime_out=5.0)]),
    st.sampled_from([0, 10, 100]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.0, 20.0]),
    st.sampled_from([0.0, 0.05]),
)


@settings(max_examples=40, deadline=None)
@given(jobs, loads, changes, st.integers(0, 5), st.lists(st.integers(1, 140), max_size=2))
def test_records_in_are_processed_or_waiting(
    profile: Profile, load: Steps, changes: dict[int, int], seed: int, failures: list[int]
) -> None:
    target = SimulatedTarget(profile, load, workers=3, seed=seed)
    for at in failures:
        target.fail(float(at))
    watch(target, 160, changes)
    series = target.series()
    came = np.cumsum([load.rate(second + 0.5) for second in range(160)])
    assert np.allclose(np.cumsum(series.input_rate), came)
    assert (series.backlog >= -1e-6).all()
    progress = came - series.backlog
    assert (progress >= -1e-6).all()
    # What was worked on is never less than what is done: a replay works twice, nobody skips.
    assert (np.cumsum(series.processed_rate) >= progress - 1e-3).all()
    assert target.backlog_by_partition().sum() == pytest.approx(series.backlog[-1], abs=1e-6)
    known = ~np.isnan(series.p95)
    assert (series.p95[known] >= series.p50[known] - 1e-6).all()
    assert (series.p99[known] >= series.p95[known] - 1e-6).all()
    assert np.nanmin(series.cpu) >= 0
    assert np.nanmax(series.cpu) <= 1


@settings(max_examples=25, deadline=None)
@given(loads, st.integers(1, 11), st.sampled_from([PLAIN, replace(BATCHES, batch_limit=2000.0)]))
def test_more_workers_are_never_slower(load: Steps, workers: int, profile: Profile) -> None:
    few, more = (watch(SimulatedTarget(profile, load, workers=n), 160).series() for n in (workers, workers + 1))
    if profile.engine == "continuous":
        assert (more.backlog <= few.backlog + 1e-6).all()
    else:  # batches end at other instants, so only the whole can be compared: no more left than one batch's worth
        assert more.backlog[-1] <= few.backlog[-1] + profile.batch_limit * (workers + 1)


@pytest.mark.parametrize("profile", [PLAIN, BATCHES, load("flink-wordcount")], ids=["plain", "batches", "wordcount"])
def test_a_seed_is_a_run_however_it_is_looked_at(profile: Profile) -> None:
    def lived(step: int) -> SimulatedTarget:
        target = SimulatedTarget(profile, Sine(low=2000, high=9000, periods=1, duration=600), workers=4, seed=3)
        target.fail(400.0)
        for second in range(0, 600, step):
            if second == 120:
                target.rescale(7)
            target.clock.sleep(step)
            target.observe()
        return target

    first, second = lived(1).series(), lived(60).series()
    for name in ("backlog", "processed_rate", "p95", "cpu", "workers"):
        assert np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True), name


@settings(max_examples=20, deadline=None)
@given(jobs, loads, changes, st.integers(0, 5))
def test_the_same_seed_is_the_same_run(profile: Profile, load: Steps, changes: dict[int, int], seed: int) -> None:
    first, second = (
        watch(SimulatedTarget(profile, load, workers=3, seed=seed), 160, changes).series() for _ in range(2)
    )
    for name in ("input_rate", "processed_rate", "backlog", "p50", "p95", "p99", "cpu", "workers", "up"):
        assert np.array_equal(getattr(first, name), getattr(second, name), equal_nan=name != "up"), name


def test_another_seed_is_another_run() -> None:
    profile = load("flink-wordcount")
    one, other = (
        watch(SimulatedTarget(profile, Constant(level=30_000, duration=60), workers=9, seed=s), 60).series()
        for s in (1, 2)
    )
    assert not np.array_equal(one.cpu, other.cpu)


def test_a_restart_stops_replays_and_catches_up() -> None:
    target = SimulatedTarget(replace(PLAIN, downtime_out=20.0), Constant(level=1500, duration=200), workers=2)
    watch(target, 200, {95: 4})
    series = target.series()
    assert (series.processed_rate[95:115] == 0).all()
    assert not series.up[95:115].any()
    assert series.up[:95].all()
    # At 95 s the last checkpoint is 5 s old: what was done since then waits again.
    assert series.backlog[95] == pytest.approx(1500 * (5 + 1))
    assert series.backlog[114] == pytest.approx(1500 * 25)
    # 4000 - 1500 records/s of headroom work off 25 s of load.
    caught_up = 115 + 1500 * 25 / 2500
    assert series.backlog[int(caught_up) - 2] > 0
    assert series.backlog[int(caught_up) + 1] == 0
    assert series.processed_rate.sum() == pytest.approx(1500 * (200 + 5))


def test_a_savepoint_replays_nothing() -> None:
    target = SimulatedTarget(replace(PLAIN, savepoint=True), Constant(level=1500, duration=200), workers=2)
    series = watch(target, 200, {95: 4}).series()
    assert series.processed_rate.sum() == pytest.approx(1500 * 200)


def test_state_makes_a_restart_longer() -> None:
    slow = replace(PLAIN, state_per_record=1e6, state_limit=1.0, downtime_per_gb=40.0, downtime_out=20.0)
    series = watch(SimulatedTarget(slow, Constant(level=100, duration=200), workers=1), 200, {100: 2}).series()
    assert (~series.up).sum() == 60


def test_a_live_rescale_stops_nothing() -> None:
    profile = replace(PLAIN, rescaling="live", startup=10.0, warmup=30.0, warmup_speed=0.5)
    target = SimulatedTarget(profile, Constant(level=1500, duration=200), workers=2)
    series = watch(target, 200, {50: 4, 150: 2}).series()
    assert series.up.all()
    assert (series.processed_rate > 0).all()
    assert series.workers[50] == 2
    assert series.workers[60:149].tolist() == [4] * 89
    assert series.workers[-1] == 2


def test_a_lost_worker_stops_the_job_until_it_is_noticed_and_restarted() -> None:
    profile = replace(PLAIN, detection=15.0, downtime_failure=30.0)
    target = SimulatedTarget(profile, Constant(level=1000, duration=300), workers=2)
    target.fail(100.0)
    watch(target, 110)
    assert target.observe().processed_rate == 0
    watch(target, 5)
    assert [event.code for event in target.observe().events] == []  # told with the observation before
    watch(target, 185)
    series = target.series()
    assert (series.processed_rate[100:145] == 0).all()
    assert (series.processed_rate[145:150] == 2000).all()
    assert series.up[100:115].all()
    assert not series.up[115:145].any()


def test_a_worker_that_only_loses_its_heartbeats_works_on_until_that_is_noticed() -> None:
    profile = replace(PLAIN, detection=15.0, downtime_failure=30.0, works_until_noticed=True)
    target = SimulatedTarget(profile, Constant(level=1000, duration=300), workers=2)
    target.fail(100.0)
    series = watch(target, 300).series()
    assert (series.processed_rate[100:115] == 1000).all()
    assert not series.up[115:145].any()
    assert (series.processed_rate[145:150] == 2000).all()


@pytest.mark.parametrize("rescaled_at", [98, 103, 112])
def test_a_rescale_while_heartbeats_are_lost_is_no_cure(rescaled_at: int) -> None:
    """The worker is missed all the same: while the job runs again, or while it is just being restarted."""
    profile = replace(PLAIN, detection=15.0, downtime_failure=30.0, downtime_out=5.0, works_until_noticed=True)
    target = SimulatedTarget(profile, Constant(level=1000, duration=300), workers=2)
    target.fail(100.0)
    series = watch(target, 300, {rescaled_at: 3}).series()
    assert not series.up[rescaled_at : rescaled_at + 3].any()
    assert not series.up[115:145].any()
    assert series.up[145:].all()
    assert series.workers[-1] == 3


def test_the_latency_of_an_overload_grows_in_a_straight_line() -> None:
    target = watch(SimulatedTarget(PLAIN, Constant(level=2000, duration=600), workers=1), 600)
    p50 = target.series().p50
    # Half of what comes is done, so after t seconds the record at hand is t / 2 seconds old.
    assert p50[99] == pytest.approx(50, abs=1)
    assert p50[599] == pytest.approx(300, abs=1)
    assert np.diff(p50[10:]).max() == pytest.approx(np.diff(p50[10:]).min(), abs=1e-6)


def test_latency_is_exact_after_a_stop() -> None:
    target = SimulatedTarget(
        replace(PLAIN, downtime_out=20.0, savepoint=True), Constant(level=500, duration=200), workers=1
    )
    series = watch(target, 200, {100: 2}).series()
    assert series.p95[99] == pytest.approx(PLAIN.latency_base)
    assert series.p99[120] == pytest.approx(20 + PLAIN.latency_base, abs=0.1)
    assert np.isnan(series.p95[110])


def test_windows_and_low_rates_make_records_wait() -> None:
    profile = replace(PLAIN, window=10.0, fill_records=100.0, fill_timeout=5.0, latency_base=0.0)
    series = watch(SimulatedTarget(profile, Ramp(first=100, last=1000, duration=100), workers=2), 100).series()
    assert series.p95[0] > series.p95[99]
    assert series.p95[99] == pytest.approx(9.5 + 0.2, abs=0.01)


def test_skew_caps_the_job_and_leaves_cpu_unused() -> None:
    """Daedalus fig. 3: twelve saturated workers and 100 keys use 80 % of their CPU on average."""
    stages = (
        Stage("read", 0.6, partitioning="partition", downstream=("count",)),
        Stage("count", 0.4, partitioning="key"),
    )
    profile = replace(load("flink-wordcount"), partitions=12, source_keys=0, keys=100, zipf=0.0, operators=stages)
    means = []
    for seed in range(8):
        target = SimulatedTarget(profile, Constant(level=200_000, duration=300), workers=12, seed=seed)
        observation = watch(target, 300).observe()
        cpus = [worker.cpu for worker in observation.per_worker if worker.cpu is not None]
        assert max(cpus) > 0.95
        means.append(sum(cpus) / len(cpus))
    assert 0.75 <= np.mean(means) <= 0.85


def test_unequal_nodes_and_coordination_cost_throughput() -> None:
    assert capacity(PLAIN, 8) == pytest.approx(8000)
    assert capacity(replace(PLAIN, speed_spread=0.1), 8) < 8000
    assert capacity(replace(PLAIN, exponent=0.9), 8) == pytest.approx(1000 * 8**0.9)
    assert capacity(replace(PLAIN, ceiling=5000.0), 8) == pytest.approx(5000)


def test_few_keys_fill_partitions_unevenly() -> None:
    """35 lines in 18 partitions, as Daedalus' word count has them: some get several, some none, and all is read."""
    reading = replace(PLAIN, partitions=18, operators=(Stage("read", 1.0, partitioning="partition"),))
    assert capacity(reading, 18) == pytest.approx(18_000)
    few = [capacity(replace(reading, source_keys=35), 18, seed) for seed in range(20)]
    many = [capacity(replace(reading, source_keys=100_000), 18, seed) for seed in range(20)]
    # The fullest of 18 partitions has a whole number of the lines, three to seven of them.
    assert {round(35_000 / found) for found in few} <= {3, 4, 5, 6, 7, 8}
    assert np.mean(few) < 9_000 < 17_000 < np.mean(many) < 18_000


def test_workers_beyond_the_partitions_read_nothing() -> None:
    profile = replace(PLAIN, partitions=4, operators=(Stage("read", 1.0, partitioning="partition"),))
    assert capacity(profile, 4) == pytest.approx(capacity(profile, 6)) == pytest.approx(4000)
    assert capacity(profile, 3) == pytest.approx(2000)  # one worker reads two of the four


def test_warming_up_is_slow_and_hot() -> None:
    profile = replace(PLAIN, warmup=60.0, warmup_speed=0.5, warmup_cpu=0.3, downtime_out=10.0, savepoint=True)
    series = watch(SimulatedTarget(profile, Constant(level=900, duration=200), workers=1), 200, {50: 2}).series()
    assert series.processed_rate[60] == pytest.approx(1000, rel=0.02)  # half of two workers
    assert series.cpu[119] > series.cpu[130] + 0.001
    assert series.processed_rate[190] == pytest.approx(900)
