"""Sources that make their own records, as DS2's on Flink and Heron: nothing waits in a log, queues are bounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.core import Decision, Operator, Reason
from penstock.errors import ConfigError
from penstock.targets.simulated import Profile, SimulatedTarget, Stage
from penstock.workloads import Constant

WHY = (Reason("test.why", "because"),)
FLOW = (Stage("read", 0.0, downstream=("work",)), Stage("work", 1.0))
PLAIN = Profile(
    "continuous",
    100.0,
    feed="generator",
    scaling="operators",
    operators=FLOW,
    cpu_noise=0.0,
    downtime_spread=0.0,
    downtime_out=30.0,
    rate_window=1.0,
    savepoint=True,
)
QUEUED = replace(PLAIN, operators=(FLOW[0], replace(FLOW[1], buffer=1000.0)))


def started(profile: Profile, level: float, work: int = 1, seconds: float = 0.0) -> SimulatedTarget:
    target = SimulatedTarget(
        profile, Constant(level=level, duration=9999), parallelism={"read": 1, "work": work}, seed=3
    )
    target.clock.sleep(seconds)
    return target


def work(target: SimulatedTarget) -> Operator:
    return target.observe().operators[1]


def test_what_cannot_be_sent_is_never_made() -> None:
    target = started(PLAIN, 250.0, seconds=60)
    seen = target.observe()
    assert (seen.input_rate, seen.processed_rate, seen.backlog) == (250.0, 100.0, 0.0)
    assert seen.operators[0].backpressure == pytest.approx(1.0), "the source costs nothing: it only waits"
    target.reconfigure(Decision(4, WHY, parallelism={"work": 3}))
    target.clock.sleep(60)
    after = target.observe()
    assert (after.processed_rate, after.backlog) == (250.0, 0.0), "half a minute of standing still left nothing"
    truth = target.series()
    assert truth.processed_rate[60:90].sum() == 0
    assert truth.backlog.max() == 0
    assert float(np.nanmax(truth.p95)) == pytest.approx(PLAIN.latency_base)


def test_a_queue_fills_stops_the_source_and_lets_it_go_on_when_it_is_half_empty() -> None:
    target = started(QUEUED, 200.0, seconds=9)
    assert work(target).queue == 900.0
    assert target.observe().operators[0].backpressure == 0.0, "twice too much comes, and nothing shows it yet"
    target.clock.sleep(6)
    stopped = target.observe()
    assert stopped.operators[0].backpressure == 1.0
    assert stopped.operators[1].backpressure == 0.0
    assert stopped.operators[1].queue == 500.0
    assert stopped.processed_rate == 100.0, "it works off what has waited"
    target.clock.sleep(1)
    assert target.observe().operators[0].backpressure == 0.0
    target.clock.sleep(400)
    truth = target.series()
    assert truth.processed_rate.sum() == pytest.approx(100.0 * len(truth.at))
    assert truth.backlog.max() <= 1000.0
    assert float(np.nanmax(truth.p95)) == pytest.approx(10.0 + QUEUED.latency_base), "1000 records at 100 a second"


def test_more_instances_have_more_room() -> None:
    target = started(QUEUED, 200.0, seconds=12)
    target.reconfigure(Decision(3, WHY, parallelism={"work": 2}))
    target.clock.sleep(31)
    assert target.observe().operators[0].backpressure == 0.0
    assert work(target).queue is not None


def test_nothing_depends_on_who_looks() -> None:
    once, often = started(QUEUED, 170.0), started(QUEUED, 170.0)
    for _ in range(300):
        often.clock.sleep(1)
        often.observe()
    once.clock.sleep(300)
    for target in (once, often):
        target.reconfigure(Decision(3, WHY, parallelism={"work": 2}))
        target.clock.sleep(200)
    for one, other in zip(vars(once.series()).values(), vars(often.series()).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_failure_does_not_bring_lost_records_back() -> None:
    target = started(PLAIN, 80.0)
    target.fail(50)
    target.clock.sleep(200)
    assert target.observe().backlog == 0.0
    assert target.series().processed_rate.sum() < 80.0 * 200


def test_records_cost_less_while_instances_have_time_to_spare() -> None:
    """Four instances at a quarter of what they can do: busy for a ninth of the time if busy time goes by its power."""
    shared = replace(PLAIN, busy_power=1.5)
    full, idle = started(shared, 900.0, work=4, seconds=60), started(shared, 100.0, work=4, seconds=60)
    assert work(full).busy == pytest.approx(1.0)
    assert work(idle).busy == pytest.approx(0.25**1.5)


WRONG = {
    "another feed": ({"feed": "kafka"}, "feed must be log or generator, got 'kafka'"),
    "less than proportional": ({"busy_power": 0.5}, "busy_power must be 1 or more, got 0.5"),
    "micro-batches": (
        {"engine": "microbatch", "scaling": "workers", "rescaling": "live", "trigger": 1.0},
        "feed must be log with micro-batches, got 'generator'",
    ),
}


@pytest.mark.parametrize(("fields", "message"), WRONG.values(), ids=WRONG)
def test_profiles_are_checked(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(PLAIN, **fields)  # type: ignore[arg-type]
