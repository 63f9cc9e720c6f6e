"""A micro-batch job on a machine so fast that how large a batch may be is the limit, not CPU."""

from __future__ import annotations

from dataclasses import replace

from penstock import guards, workloads
from penstock.core import Decision, Observation
from penstock.policies.daedalus import Daedalus
from penstock.targets.simulated import SimulatedTarget, load, run

LIMIT = 20_000.0  # records/s of each worker: 60,000 at most in a batch, every three seconds
SECONDS = 720.0


def test_workers_are_added_before_batches_are_as_large_and_as_frequent_as_they_may_be() -> None:
    """On Spark it stayed with three workers at 75 % CPU, thought to do 80,000, while half a million records waited."""
    profile = replace(load("spark-wordcount"), capacity=30_000.0)
    sine = workloads.make("sine", low=6_500.0, high=65_000.0, periods=2, duration=SECONDS)
    target = SimulatedTarget(profile, sine, workers=2, seed=1)
    told: list[Decision] = []

    def note(_: Observation, decision: Decision) -> None:
        told.append(decision)

    run(
        target,
        Daedalus(max_workers=6, time_scale=15),
        guards.default(1, 6, settle=10),
        duration=SECONDS,
        on_decision=note,
    )
    series = target.series()
    peak = series.input_rate > 3 * LIMIT
    assert peak.sum() > 100
    assert series.workers[peak].min() >= 4
    assert series.backlog[peak].max() < 65_000.0 * 9, "two batches and what comes meanwhile"
    views = [reason for decision in told for reason in decision.reasons if reason.code == "daedalus.view"]
    held = [reason for reason in views if "held_to" in reason.facts]
    assert held
    assert all(reason.facts["held_to"] in [n * LIMIT for n in range(1, 7)] for reason in held)
    assert "not by CPU" in held[0].sentence
