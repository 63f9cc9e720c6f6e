from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import ConfigError
from penstock.targets.simulated import Profile, Run, agree, feed, fit, load

RECORDED = Path(__file__).parents[4] / "shared" / "data" / "koper" / "q1-hpa-50.csv.gz"
TRUTH = Profile(
    "continuous",
    1000.0,
    idle_cpu=0.1,
    full_cpu=0.9,
    cpu_noise=0.01,
    cpu_window=15.0,
    downtime_out=30.0,
    downtime_in=12.0,
    downtime_spread=0.0,
)


def lived(profile: Profile, name: str, seed: int = 1) -> Run:
    """A run of the simulator itself, as if it had been recorded."""
    rows = np.arange(240)
    rates = 3000 + 2200 * np.cos(rows / 20)
    workers = np.where(
        rows < 60, 6.0, np.where(rows < 100, 3.0, np.where(rows < 160, 8.0, np.where(rows < 200, 2.0, 5.0)))
    )
    fed = feed(profile, rates, workers, seed)
    return Run(name, 15.0, rates, workers, fed.throughput, fed.backlog, np.nan_to_num(fed.latency), fed.cpu)


def test_a_run_agrees_with_itself() -> None:
    run = lived(TRUTH, "self")
    found = agree(run, feed(TRUTH, run.load, run.workers, 1))
    assert (found.throughput, found.cpu, found.backlog, found.latency) == (0, 0, 1, 1)


def test_another_machine_does_not_agree() -> None:
    run = lived(TRUTH, "self")
    found = agree(run, feed(replace(TRUTH, capacity=500.0, idle_cpu=0.3), run.load, run.workers, 1))
    assert found.throughput > 0.05
    assert found.cpu is not None
    assert found.cpu > 0.15
    assert found.backlog is not None
    assert found.backlog < 0.9


def test_fitting_finds_the_quantities_that_made_the_runs() -> None:
    guess = replace(TRUTH, capacity=1500.0, idle_cpu=0.3, full_cpu=1.0, downtime_out=10.0, downtime_in=10.0)
    found = fit(guess, [lived(TRUTH, "one", 1)], rounds=1)
    assert found.capacity == pytest.approx(1000, rel=0.1)
    other = lived(TRUTH, "two", 2)
    error = agree(other, feed(found, other.load, other.workers))
    assert error.throughput < 0.03
    assert error.cpu is not None
    assert error.cpu < 0.05


@pytest.mark.parametrize(
    ("rates", "workers", "message"),
    [
        ([1.0, 2.0], [1.0], "worker_series must have as many rows as the load"),
        ([np.nan, np.nan], [1.0, 1.0], "load_series must have a known value"),
        ([1.0, 2.0], [0.0, 0.0], "worker_series must have a count of 1 or more"),
    ],
    ids=["lengths", "no load", "no workers"],
)
def test_what_cannot_be_fed_is_said(rates: list[float], workers: list[float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        feed(TRUTH, rates, workers)


@pytest.mark.skipif(not RECORDED.exists(), reason="recorded runs are not here")
def test_a_recorded_flink_run_is_lived_through_again() -> None:
    with gzip.open(RECORDED, "rt") as file:
        rows = list(csv.DictReader(file))
    data = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    run = Run(
        "q1-hpa-50", 15.0, data["input_rate"], data["workers"], data["throughput"], data["lag"],
        np.maximum(data["latency_s"], 0), data["cpu"],
    )  # fmt: skip
    found = agree(run, feed(load("nexmark-q1-koper"), run.load, run.workers))
    assert found.throughput < 0.1
    assert found.cpu is not None
    assert found.cpu < 0.15
