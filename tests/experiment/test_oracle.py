"""The oracle against every policy there is, on a simulated job that is just what its model says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import policies
from penstock.errors import ConfigError
from penstock.experiment import oracle
from penstock.experiment.reach import reach
from penstock.models import limit
from penstock.targets.simulated import Profile, SimulatedTarget, run
from penstock.workloads import Step

MOST, TICK, TICKS = 6, 5, 240
EXACT = Profile(
    "continuous",
    1000.0,
    max_workers=MOST,
    cpu_noise=0.0,
    cpu_window=30.0,
    rate_window=30.0,
    savepoint=True,
    downtime_out=20.0,
    downtime_in=10.0,
    downtime_spread=0.0,
    latency_base=0.0,
)


def usable() -> list[str]:
    """Those that need no profile of their own and decide when the oracle may, too."""
    found = []
    for name in policies.POLICIES:
        try:
            made = policies.make(name, max_workers=MOST)
        except ConfigError:
            continue
        if made.period % TICK == 0:
            found.append(name)
    return found


@dataclass(frozen=True)
class Outcome:
    worker_seconds: float
    longest_wait: float


def lived(name: str, load: Step, seed: int) -> Outcome:
    """A run of 20 minutes, and how long any record waited, those included that still wait at the end."""
    target = SimulatedTarget(EXACT, load, workers=3, seed=seed)
    run(target, policies.make(name, max_workers=MOST), duration=load.duration)
    series = target.series()
    came = np.concatenate(([0.0], np.cumsum(series.input_rate)))
    done = came[1:] - series.backlog
    times = np.arange(len(came), dtype=np.float64)
    # Where nothing came the curve is flat, and a record on it is as old as the end of the flat part.
    since = times[np.searchsorted(came, done, side="right") - 1]
    waits = np.where(series.backlog > 1e-6, times[1:] - since, 0.0)
    return Outcome(float(series.workers.sum()), float(waits.max()))


steps = st.lists(st.integers(0, 5500), min_size=2, max_size=12).map(
    lambda levels: Step(
        steps=tuple((TICK * (i * TICKS // len(levels)), float(level)) for i, level in enumerate(levels)),
        duration=float(TICK * TICKS),
    )
)


@pytest.mark.parametrize("name", usable())
@settings(max_examples=8)
@given(load=steps, seed=st.integers(0, 3))
def test_no_policy_beats_the_oracle_at_its_own_target(name: str, load: Step, seed: int) -> None:
    """With the longest wait of the policy as the target, the oracle needs no more worker-seconds than the policy."""
    policy = lived(name, load, seed)
    rates = load.rates(np.arange(0.5, TICKS, dtype=np.float64) * TICK)
    plan = limit.oracle(
        rates,
        reach(EXACT, MOST, seed).capacities,
        tick=float(TICK),
        max_workers=MOST,
        latency_target=ceil(policy.longest_wait) + 1.0,  # the simulator's tick is a second
        downtime_out=EXACT.downtime_out,
        downtime_in=EXACT.downtime_in,
        replay=0.0,
    )
    assert plan.worker_seconds <= policy.worker_seconds


def test_the_policies_of_all_kinds_are_among_those() -> None:
    assert {"daedalus", "hpa", "static", "keda-lag", "ds2", "dhalion", "gesscale", "varga-v2"} <= set(usable())


def test_a_plan_lived_through_keeps_what_it_promised() -> None:
    load = Step(steps=((0, 900.0), (600, 4500.0), (1500, 2100.0)), duration=2400.0)
    can = reach(EXACT, MOST, 0)
    plan = oracle.plan(EXACT, load, can, fewest=1, most=MOST, latency_target=60.0)
    target = SimulatedTarget(EXACT, load, workers=plan.workers(0.0))
    made = run(target, plan, duration=load.duration)
    assert np.nanmax(target.series().p99) <= 61
    assert float(target.series().workers.sum()) == pytest.approx(plan.tick * sum(plan.plan), rel=0.01)
    assert sum(m.carried_out for m in made) == sum(a != b for a, b in zip(plan.plan, plan.plan[1:], strict=False))


def test_a_reserve_costs_workers_and_buys_time() -> None:
    load = Step(steps=((0, 900.0), (600, 4500.0), (1500, 2100.0)), duration=2400.0)
    can = reach(EXACT, MOST, 0)
    plans = [oracle.plan(EXACT, load, can, fewest=1, most=MOST, latency_target=60.0, reserve=r) for r in (0.0, 0.15)]
    assert sum(plans[0].plan) < sum(plans[1].plan)


def test_a_plan_does_without_a_reserve_only_where_nothing_is_drawn() -> None:
    assert oracle.reserves(EXACT)[0] == 0
    for drawn in ({"downtime_spread": 0.1}, {"speed_spread": 0.01}, {"keys": 100}):
        assert oracle.reserves(replace(EXACT, **drawn))[0] > 0


def test_what_a_rescale_costs_includes_warming_up() -> None:
    cold = replace(EXACT, warmup=20.0, warmup_speed=0.5)
    assert oracle.stop(cold, cold.downtime_out) == 25
    assert oracle.stop(EXACT, EXACT.downtime_in) == 10
