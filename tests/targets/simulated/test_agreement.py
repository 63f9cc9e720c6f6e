"""Living through a recorded run again: what goes in, what is compared, and what fitting finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import ConfigError
from penstock.experiment.recordings import recorded
from penstock.targets.simulated import Points, Profile, Run, SimulatedTarget, agree, compare, feed, fit, load
from penstock.workloads import Constant

RECORDED = Path(__file__).parents[4] / "shared" / "data"
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


def lived(profile: Profile, name: str, seed: int = 1, backlog: float = 0.0) -> Run:
    """A run of the simulator itself, as if it had been recorded."""
    rows = np.arange(240)
    rates = 3000 + 2200 * np.cos(rows / 20)
    workers = np.where(
        rows < 60, 6.0, np.where(rows < 100, 3.0, np.where(rows < 160, 8.0, np.where(rows < 200, 2.0, 5.0)))
    )
    unknown = np.full(len(rows), np.nan)
    first = np.where(rows == 0, backlog, 0.0)
    fed = feed(profile, Run(name, 15.0, rates, workers, unknown, first, unknown, unknown), seed)
    return Run(name, 15.0, rates, workers, fed.throughput, fed.backlog, np.nan_to_num(fed.latency), fed.cpu)


def test_a_run_agrees_with_itself() -> None:
    run = lived(TRUTH, "self")
    found = agree(compare(run, feed(TRUTH, run, 1)))
    assert (found.throughput, found.cpu, found.backlog, found.latency) == (0, 0, 1, 1)


def test_another_machine_does_not_agree() -> None:
    run = lived(TRUTH, "self")
    found = agree(compare(run, feed(replace(TRUTH, capacity=500.0, idle_cpu=0.3), run, 1)))
    assert found.throughput is not None
    assert found.throughput > 0.05
    assert found.cpu is not None
    assert found.cpu > 0.15
    assert found.backlog is not None
    assert found.backlog < 0.9


def test_what_waited_at_the_start_is_where_the_simulation_begins() -> None:
    run = lived(TRUTH, "late", backlog=40_000.0)
    found = feed(TRUTH, run)
    assert found.backlog[1] > 10_000
    assert found.backlog[59] < 1_000
    assert feed(TRUTH, replace(run, backlog=np.full(240, np.nan))).backlog[1] < 1_000


def test_a_window_that_is_not_full_yet_is_not_believed() -> None:
    run = lived(TRUTH, "early")
    load_so_far = run.load.copy()
    load_so_far[:4] = [0.0, 1300.0, 2600.0, 3900.0]  # a mean of a minute that counts from zero
    found = feed(TRUTH, replace(run, load=load_so_far)).throughput
    assert np.array_equal(found, feed(TRUTH, run).throughput, equal_nan=True)


def test_a_backlog_at_the_start_is_worked_off_and_counted() -> None:
    target = SimulatedTarget(TRUTH, Constant(level=500, duration=100), workers=1, backlog=10_000.0)
    target.clock.sleep(100)
    series = target.series()
    assert series.backlog[0] == pytest.approx(10_000 + 500 - 1000)
    assert series.backlog[-1] == 0
    assert series.processed_rate.sum() == pytest.approx(10_000 + 100 * 500)
    assert series.p95[9] == pytest.approx(10, abs=1)
    with pytest.raises(ConfigError, match="backlog must be 0 records or more, got -1"):
        SimulatedTarget(TRUTH, Constant(level=500, duration=100), backlog=-1.0)


def test_what_was_not_recorded_is_unknown_and_not_compared() -> None:
    run = lived(TRUTH, "half")
    unknown = np.full(240, np.nan)
    found = agree(compare(replace(run, cpu=unknown, backlog=unknown), feed(TRUTH, run)))
    assert found.cpu is None
    assert found.backlog is None
    assert found.throughput is not None
    assert agree().throughput is None


def test_several_runs_are_taken_together_row_by_row() -> None:
    yes, no = np.array([True]), np.array([False])
    one = Points(np.array([0.1]), np.zeros(0), yes, no)
    other = Points(np.array([0.2, 0.4]), np.zeros(0), np.array([False, True]), yes)
    together = agree(one, other)
    assert together.throughput == pytest.approx(0.2)
    assert together.cpu is None
    assert together.backlog == pytest.approx(2 / 3)
    assert together.latency == 0.5


def test_fitting_finds_the_quantities_that_made_the_runs() -> None:
    guess = replace(TRUTH, capacity=1500.0, idle_cpu=0.3, full_cpu=1.0, downtime_out=10.0, downtime_in=10.0)
    found = fit(guess, [lived(TRUTH, "one", 1)], rounds=1)
    assert found.capacity == pytest.approx(1000, rel=0.1)
    other = lived(TRUTH, "two", 2)
    error = agree(compare(other, feed(found, other)))
    assert error.throughput is not None
    assert error.throughput < 0.03
    assert error.cpu is not None
    assert error.cpu < 0.05


@pytest.mark.parametrize(
    ("rates", "workers", "message"),
    [
        ([1.0, 2.0], [1.0], "workers must have as many rows as the load"),
        ([1.0], [1.0], "load must have at least two rows, got 1"),
        ([np.nan, np.nan], [1.0, 1.0], "load must have a known value"),
        ([1.0, 2.0], [0.0, 0.0], "workers must have a count of 1 or more"),
    ],
    ids=["lengths", "one row", "no load", "no workers"],
)
def test_what_cannot_be_fed_is_said(rates: list[float], workers: list[float], message: str) -> None:
    unknown = np.full(len(rates), np.nan)
    with pytest.raises(ConfigError, match=message):
        feed(TRUTH, Run("bad", 15.0, np.array(rates), np.array(workers), unknown, unknown, unknown, unknown))


@pytest.mark.skipif(not RECORDED.is_dir(), reason="recorded runs are not here")
def test_a_recorded_flink_run_is_lived_through_again() -> None:
    (evidence,) = recorded(RECORDED, ["nexmark-q1-koper"])
    run = next(run for run in evidence.calibrate if run.name == "q1-hpa-50")
    found = agree(compare(run, feed(load("nexmark-q1-koper"), run)))
    assert found.throughput is not None
    assert found.throughput < 0.1
    assert found.cpu is not None
    assert found.cpu < 0.15
