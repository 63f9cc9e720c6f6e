"""The suite of Phoebe's paper, small: one load, one seed, and what it makes of given rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from penstock.experiment.cell import Row, execute
from penstock.experiment.suites.base import Summary
from penstock.experiment.suites.phoebe import FAILURES, RECOVERIES, SUITE

GROUP = "top-speed-windowing"


def run(policy: str, hours: float = 1.5) -> Row:
    """The beginning of a run: two failures."""
    cell = next(c for c in SUITE.cells(1, (GROUP,)) if c.policy == policy)
    failures = tuple(at for at in FAILURES if at < hours * 3600 - 600)
    plan = None if cell.profiling is None else {**cell.profiling, "count": 4, "step": 40_000.0, "failures": 4}
    return execute(
        replace(
            cell,
            workload={"kind": "constant", "level": 80_000.0, "duration": hours * 3600},
            failures=failures,
            profiling=plan,
        )
    )


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {policy: run(policy) for policy in ("static-24", "phoebe", "twres")}


def ended(row: Row) -> list[float]:
    return [seconds for _, seconds, _ in json.loads(row.lines)["failures"]]


def test_phoebe_decides_and_saves_and_recovers_in_time(rows: dict[str, Row]) -> None:
    row = rows["phoebe"]
    assert row.rescales is not None
    assert row.rescales >= 1
    assert row.average_workers is not None
    assert 12 < row.average_workers < 22
    assert all(seconds < 240 for seconds in ended(row))
    assert row.recovery_error is not None
    assert row.recovery_error < 0.15


def test_twres_gets_by_with_fewer_and_does_not_recover(rows: dict[str, Row]) -> None:
    assert (rows["twres"].average_workers or 24) < (rows["phoebe"].average_workers or 0) / 1.5
    assert max(ended(rows["twres"])) > max(ended(rows["phoebe"]))


def test_static_24_recovers_as_the_paper_says(rows: dict[str, Row]) -> None:
    assert ended(rows["static-24"]) == pytest.approx([155.0, 155.0], rel=0.15)  # table II at 84 K


def test_profiling_is_paid_for_by_those_who_need_it(rows: dict[str, Row]) -> None:
    assert rows["static-24"].profiling_seconds is None
    assert rows["phoebe"].profiling_seconds == rows["twres"].profiling_seconds
    assert (rows["phoebe"].profiling_seconds or 0) > 0


def as_published(policy: str, *, workers: float = 17.88, error: float = 0.045) -> Row:
    failures = [[at, seconds, False] for at, seconds in zip(FAILURES, RECOVERIES[GROUP][policy], strict=True)]
    return Row(
        number=0,
        group=GROUP,
        policy=policy,
        name=policy,
        profile=GROUP,
        seed=0,
        duration=21600.0,
        max_workers=24,
        latency_target=60.0,
        ideal_workers=5.0,
        average_workers=workers,
        rescales=20,
        recovery_error=error,
        profiling_seconds=120_000.0,
        lines=json.dumps({"failures": failures}),
    )


def test_the_paper_s_own_figures_keep_every_finding() -> None:
    summary = Summary([as_published(policy) for policy in RECOVERIES[GROUP]])
    found = [finding for finding in SUITE.judge(SUITE, summary) if finding.group == GROUP]
    assert [finding.claim for finding in found if finding.kept is not True] == []
    assert len(found) == 10
    others = [finding.kept for finding in SUITE.judge(SUITE, summary) if finding.group != GROUP]
    assert set(others) == {None}  # not run


@pytest.mark.parametrize(
    ("row", "claim"),
    [
        (as_published("phoebe", workers=21.0), "phoebe saves 25.5 %"),
        (as_published("phoebe", error=0.11), "phoebe's expected recoveries"),
        (replace(as_published("twres"), policy="phoebe"), "phoebe recovers from all eight failures"),
    ],
)
def test_a_finding_that_is_not_kept(row: Row, claim: str) -> None:
    found = [f for f in SUITE.judge(SUITE, Summary([row])) if f.group == GROUP and f.claim.startswith(claim)]
    assert [finding.kept for finding in found] == [False]


def test_the_tables_have_every_failure_and_what_profiling_costs() -> None:
    failures, costs = SUITE.sheets([as_published("phoebe"), as_published("static-24")])
    assert ("static-24", "published", "140", "150", "200", "165", "155", "185", "240", "160") in failures.rows
    assert ("static-24", "measured", "140", "150", "200", "165", "155", "185", "240", "160") in failures.rows
    # 120,000 worker-seconds are what the paper's 2.5 % after six hours say.
    assert costs.rows[1] == (GROUP, "measured", "33 h", "25.5 %", "2.4 %", "19.7 %", "24.7 %")
