from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.targets.simulated import Profile, SimulatedTarget, load
from penstock.workloads import Constant, Step

PLAIN = Profile(
    "microbatch", 1000.0, rescaling="live", trigger=3.0, batch_fixed=0.5, cpu_noise=0.0, idle_cpu=0.0, latency_base=0.0,
    rate_window=30.0, cpu_window=30.0,
)  # fmt: skip


def after(profile: Profile, rate: float, workers: int, seconds: float) -> SimulatedTarget:
    target = SimulatedTarget(profile, Constant(level=rate, duration=seconds), workers=workers)
    target.clock.sleep(seconds)
    target.observe()
    return target


def test_a_quiet_job_runs_a_batch_per_trigger() -> None:
    target = after(PLAIN, 500, 2, 300)
    seen = target.observe()
    assert seen.batch is not None
    assert seen.batch.records == 1500
    assert (seen.batch.limit, seen.batch.trigger) == (None, 3.0)
    assert seen.batch.seconds == pytest.approx(0.5 + 1500 / 2000)
    # A record waits for the trigger, up to three seconds, and for the batch.
    assert seen.latency == pytest.approx(0.95 * 3 + 1.25, abs=0.01)
    assert seen.processed_rate == pytest.approx(500, rel=0.11)
    assert seen.cpu == pytest.approx(0.25, abs=0.02)


def test_rates_and_cpu_are_of_whole_batches() -> None:
    """A window of ten seconds holds three batches or four; what is shown must not jump between the two."""
    target = SimulatedTarget(
        replace(PLAIN, rate_window=10.0, cpu_window=10.0), Constant(level=500, duration=300), workers=2
    )
    target.clock.sleep(300)
    seen = target.between(20, 300, 1)
    assert [o.processed_rate for o in seen] == pytest.approx([500.0] * len(seen), rel=0.01)
    assert [o.cpu for o in seen] == pytest.approx([0.25] * len(seen), abs=0.03)
    assert target.between(0, 2, 1)[0].processed_rate is None


def test_when_nothing_comes_nothing_is_processed_and_that_is_known() -> None:
    target = SimulatedTarget(PLAIN, Step(steps=((0, 500), (60, 0)), duration=200), workers=2)
    target.clock.sleep(200)
    assert target.observe().processed_rate == 0


def test_a_busy_job_runs_one_batch_after_another_up_to_its_limit() -> None:
    target = after(replace(PLAIN, batch_limit=4000.0), 3000, 2, 600)
    seen = target.observe()
    assert seen.batch is not None
    assert seen.batch.records == 8000
    assert seen.batch.seconds == pytest.approx(4.5)
    assert target.series().backlog[-1] > 100_000
    assert seen.cpu == pytest.approx(4 / 4.5, abs=0.02)


def test_new_workers_join_late_and_cold_and_nothing_stops() -> None:
    profile = replace(PLAIN, startup=4.0, warmup=20.0, warmup_speed=0.4)
    target = after(profile, 1500, 2, 60)
    target.rescale(4)
    seen = target.observe()
    assert (seen.workers, seen.requested) == (2, 4)
    target.clock.sleep(5)
    seen = target.observe()
    assert seen.workers == 4
    assert [worker.ready_at for worker in seen.per_worker] == [0, 0, None, None]
    assert [event.code for event in seen.events] == ["worker.joined", "worker.joined"]
    target.clock.sleep(4)
    batch = target.observe().batch
    assert batch is not None
    assert batch.cold
    target.clock.sleep(40)
    seen = target.observe()
    assert seen.batch is not None
    assert not seen.batch.cold
    assert [worker.ready_at for worker in seen.per_worker] == [0, 0, 84, 84]
    assert target.series().up.all()


def test_a_lost_worker_makes_one_batch_late_and_comes_back_cold() -> None:
    profile = replace(PLAIN, detection=2.0, startup=4.0, warmup=20.0, warmup_speed=0.4)
    target = SimulatedTarget(profile, Constant(level=1500, duration=200), workers=3)
    target.fail(61.0)
    target.clock.sleep(62)
    seen = target.observe()
    assert [event.code for event in seen.events] == ["worker.lost"]
    assert len(seen.per_worker) == 2
    target.clock.sleep(10)
    assert len(target.observe().per_worker) == 3
    target.clock.sleep(128)
    target.observe()
    series = target.series()
    assert np.cumsum(series.processed_rate)[-1] + series.backlog[-1] == pytest.approx(1500 * 200)


def test_our_own_profile_does_what_was_calibrated() -> None:
    """README: 14,967 records/s with one worker, 97,931 with six."""
    for workers, measured in ((1, 14_967), (3, 45_723), (6, 97_931)):
        target = after(load("spark-wordcount"), 200_000, workers, 600)
        done = target.series().processed_rate[60:].mean()
        assert done == pytest.approx(measured, rel=0.1), workers
