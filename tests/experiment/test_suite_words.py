"""What a suite says of a paper's figures: found again, not found again, not run, impossible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import ConfigError
from penstock.experiment.cell import Cell, Row
from penstock.experiment.suites import SUITES
from penstock.experiment.suites.base import (
    Comparison,
    Published,
    Suite,
    Summary,
    impossible,
    less,
    with_oracle,
    within,
)
from penstock.measures import Interval

CELL = Cell(
    group="q1",
    policy="hpa-80",
    settings={"name": "hpa"},
    profile="flink-wordcount",
    workload={"kind": "constant", "level": 1.0, "duration": 60.0},
    seed=0,
    max_workers=6,
    initial_workers=1,
)


def row(policy: str, workers: float | None, seed: int = 0, group: str = "q1", **more: float) -> Row:
    values = {"latency_mean": 1.0, "worker_seconds": None if workers is None else 60 * workers, **more}
    return Row(
        number=seed,
        group=group,
        policy=policy,
        name=policy,
        profile="flink-wordcount",
        seed=seed,
        duration=60.0,
        max_workers=6,
        latency_target=60.0,
        ideal_workers=2.5,
        average_workers=workers,
        **values,  # type: ignore[arg-type]
    )


def suite(*published: Published) -> Suite:
    plan = (CELL, replace(CELL, policy="next", settings={"name": "next-year"}), replace(CELL, group="q3"))
    return Suite(name="test", title="A test", paper="None", settings=(), plan=with_oracle(plan), published=published)


def test_means_are_over_the_seeds_that_know_a_measure() -> None:
    summary = Summary([row("hpa-80", 3.0), row("hpa-80", 5.0, 1), row("oracle", None)])
    found = summary.interval("q1", "hpa-80", "average_workers")
    assert found is not None
    assert (found.mean, found.n) == (4, 2)
    assert summary.mean("q1", "hpa-80", "worker_minutes") == 4
    assert summary.interval("q1", "oracle", "average_workers") is None
    assert summary.mean("q3", "hpa-80", "average_workers") is None
    assert list(summary.keys()) == [("q1", "hpa-80"), ("q1", "oracle")]


WITHIN: dict[str, tuple[float | None, bool | None]] = {
    "just so": (4.0, True),
    "at the edge": (4.6, True),
    "beyond": (4.7, False),
    "below": (3.3, False),
    "not run": (None, None),
}


@pytest.mark.parametrize(("mean", "kept"), WITHIN.values(), ids=WITHIN)
def test_within_a_share_of_what_was_published(mean: float | None, kept: bool | None) -> None:
    measured = None if mean is None else Interval(mean, None, None, 1)
    found = within(Comparison("q1", "hpa-80", "average_workers", "workers", 4.0, measured), 0.15)
    assert found.kept is kept
    assert "hpa-80: average workers within 15 % of 4" in found.claim


def test_one_has_less_than_another() -> None:
    summary = Summary([row("a", 3.0), row("b", 4.0)])
    assert less(summary, "q1", "average_workers", "a", "b", "3 against 4").kept is True
    assert less(summary, "q1", "average_workers", "b", "a", "?").kept is False
    assert less(summary, "q1", "average_workers", "a", "nobody", "?").kept is None


def test_a_figure_below_the_limit_is_called_impossible() -> None:
    published = (Published("q1", "hpa-80", "average_workers", 1.5), Published("q1", "hpa-80", "latency_mean", 0.1))
    rows = [row("hpa-80", 3.0), row("oracle", 2.0)]
    (found,) = impossible(suite(*published), Summary(rows))
    assert found.kept is False
    assert "even the limit needs 2.00" in found.measured
    assert impossible(suite(replace(published[0], value=2.1)), Summary(rows)) == []


def test_what_is_not_there_yet_is_missing_and_not_skipped() -> None:
    found = suite()
    assert [(m.group, m.policy, m.name) for m in found.missing()] == [("q1", "next", "next-year")]
    assert found.missing(["q3"]) == ()
    cells = found.cells(2)
    assert [(cell.group, cell.policy, cell.seed) for cell in cells] == [
        (group, policy, seed) for group in ("q1", "q3") for policy in ("hpa-80", "oracle") for seed in (0, 1)
    ]
    assert [cell.number for cell in cells] == list(range(8))
    assert {cell.group for cell in found.cells(1, ["q3"])} == {"q3"}
    with pytest.raises(ConfigError, match="only must be one of q1, q3, got 'q2'"):
        found.cells(1, ["q2"])
    with pytest.raises(ConfigError, match="seeds must be from 1 to 1000, got 0"):
        found.cells(0)


def test_published_and_measured_stand_side_by_side() -> None:
    found = suite(Published("q1", "hpa-80", "average_workers", 4.0), Published("q1", "next", "average_workers", 2.0))
    here, gone = found.compare(found, Summary([row("hpa-80", 5.0)]))
    assert (here.ratio, here.unit) == (1.25, "workers")
    assert (gone.ratio, gone.measured) == (None, None)


@pytest.mark.parametrize("name", SUITES)
def test_every_figure_of_a_paper_belongs_to_a_run(name: str) -> None:
    found = SUITES[name]
    planned = {(cell.group, cell.policy) for cell in found.plan}
    for published in found.published:
        assert (published.group, published.policy) in planned
