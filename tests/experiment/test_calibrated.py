"""A profile from what was measured: the arithmetic, on a simulated cluster whose quantities are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from penstock.cli import call
from penstock.core import Batch, Operator
from penstock.errors import ConfigError
from penstock.experiment.calibrated import MEASURED, base, operators_from, profile_from, toml
from penstock.targets.simulated import Profile, SimulatedTarget, Stage, load
from penstock.workloads import Constant

BATCH = 100_000.0


@dataclass(frozen=True)
class Seen:
    workers: int
    rate: float
    spread: float = 0.0


def saturated(profile: Profile, workers: int) -> Seen:
    """The throughput of full batches, one after the other: from the end of one to the end of another."""
    plenty = replace(profile, batch_limit=BATCH, trigger=1.0, batch_noise=0.0)
    target = SimulatedTarget(plenty, Constant(level=1e6, duration=900), workers=workers)
    ends: list[Batch] = []
    for _ in range(900):
        target.clock.sleep(1)
        batch = target.observe().batch
        if batch is not None and (not ends or batch.number > ends[-1].number):
            ends.append(batch)
    counted = [batch for batch in ends if batch.records == BATCH * workers]
    assert len(counted) > 5
    seconds = counted[-1].ended_at - counted[0].ended_at
    return Seen(workers, sum(batch.records for batch in counted[1:]) / seconds, 0.04)


@pytest.mark.parametrize(("capacity", "exponent"), [(12_000.0, 0.9), (20_000.0, 1.0)], ids=["sublinear", "linear"])
def test_the_quantities_that_made_the_throughput_are_found_again(capacity: float, exponent: float) -> None:
    truth = replace(load("spark-wordcount"), capacity=capacity, exponent=exponent)
    found = profile_from("wordcount", [saturated(truth, n) for n in (1, 2, 4, 6)], batch=BATCH)
    assert found.capacity == pytest.approx(capacity, rel=0.01)
    assert found.exponent == pytest.approx(exponent, abs=0.01)
    assert (found.max_workers, found.batch_noise) == (6, 0.04)
    unchanged = dict.fromkeys((*MEASURED, "description"))
    assert replace(found, **{name: getattr(truth, name) for name in unchanged}) == truth


def test_one_scale_out_says_nothing_about_losses() -> None:
    found = profile_from("wordcount", [Seen(3, 30_000.0)], batch=BATCH)
    assert found.exponent == 1
    assert found.max_workers == 3


def test_workers_never_make_each_other_faster() -> None:
    assert profile_from("wordcount", [Seen(1, 9_000.0), Seen(2, 20_000.0)], batch=BATCH).exponent == 1


def test_a_job_without_a_profile_takes_the_usual_one() -> None:
    assert base("wordcount") == base("sessions") == "spark-wordcount"


def test_a_rate_that_fixed_costs_alone_forbid_is_refused() -> None:
    with pytest.raises(ConfigError, match="rate of 1 workers must leave time for the records of a batch"):
        profile_from("wordcount", [Seen(1, 1e9)], batch=BATCH)
    with pytest.raises(ConfigError, match="rate must be above 0 records/s with 2 workers, got 0"):
        profile_from("wordcount", [Seen(2, 0.0)], batch=BATCH)
    with pytest.raises(ConfigError, match="measured must have at least one scale-out"):
        profile_from("wordcount", [], batch=BATCH)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    made = profile_from("wordcount", [Seen(1, 9_876.5), Seen(2, 18_000.0)], batch=BATCH, description='a "quick" look')
    path = tmp_path / "mine.toml"
    path.write_text(toml(made, dict.fromkeys(MEASURED, "measured"), "Written by a test."))
    read = load(str(path))
    assert read.capacity == pytest.approx(made.capacity, rel=1e-5)
    assert replace(read, capacity=1, exponent=1) == replace(made, capacity=1, exponent=1)
    assert path.read_text().count("# measured") == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--profile", "mine.json"], "profile must be a file whose name ends with .toml, got 'mine.json'"),
        (["--profile", "nowhere/mine.toml"], "profile must be in a directory that exists, got 'nowhere/mine.toml'"),
    ],
    ids=["not TOML", "no directory"],
)
def test_calibrate_refuses_a_profile_before_it_measures(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["calibrate", "wordcount", *words]) == 2
    assert message in capsys.readouterr().err


def test_calibrate_refuses_a_scale_out_beyond_the_most(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["calibrate", "ysb", "--max", "4", "--at", "2", "--at", "6"]) == 2
    assert "at must be from 1 to 4, the most, got 6" in capsys.readouterr().err


def operator(name: str, busy: float | None, taken: float, given: float, *to: str) -> Operator:
    return Operator(name, 2, rate_in=taken, rate_out=given, busy=busy, downstream=to, shared=True)


def test_operators_share_the_time_they_were_busy() -> None:
    early = (operator("read", 0.9, 1000, 1000),)  # before the second stage was known
    unknown = (operator("read", None, 0, 0, "count"), operator("count", 0.5, 0, 0))
    first = (operator("read", 0.6, 1000, 100, "count"), operator("count", 0.2, 100, 10))
    second = (operator("read", 0.6, 1000, 300, "count"), operator("count", 0.2, 300, 30))
    read, count = operators_from([early, unknown, first, (), second])
    assert (read.name, read.partitioning, read.downstream) == ("read", "even", ("count",))
    assert (count.name, count.partitioning, count.downstream) == ("count", "key", ())
    assert [read.cost, count.cost] == pytest.approx([0.75, 0.25])
    assert [read.selectivity, count.selectivity] == [0.2, 1.0]  # what goes to the sink, nobody counts


def test_operators_that_nobody_saw_are_those_of_the_usual_profile() -> None:
    assert operators_from([]) == operators_from([(), ()]) == ()
    known = load("spark-wordcount").operators
    assert profile_from("wordcount", [Seen(1, 9_000.0)], batch=BATCH).operators == known
    own = (Stage("parse", 1.0),)
    assert profile_from("taxi", [Seen(1, 9_000.0)], batch=BATCH, operators=own).operators == own
