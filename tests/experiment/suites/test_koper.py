"""Koper's findings that are cheap to check: one seed of query 3, the rest is for `penstock bench koper`."""

from __future__ import annotations

import pytest

from penstock.experiment.cell import execute
from penstock.experiment.suites.base import Finding, Summary
from penstock.experiment.suites.koper import FIGURES, SUITE

FEW = ("hpa", "varga-v1", "varga-v2", "ds2-modern", "ds2-modern-adapted")


@pytest.fixture(scope="module")
def summary() -> Summary:
    cells = [cell for cell in SUITE.plan if cell.group == "q3" and cell.settings["name"] in FEW]
    return Summary(execute(SUITE.vary(cell, 7)) for cell in cells)


@pytest.fixture(scope="module")
def judged(summary: Summary) -> list[Finding]:
    return SUITE.judge(SUITE, summary)


def test_the_plan_has_every_cell_of_the_tables() -> None:
    cells = {(cell.group, cell.policy) for cell in SUITE.plan if cell.policy != "oracle"}
    assert len(cells) == 54
    assert {(p.group, p.policy) for p in SUITE.published} == cells
    assert not SUITE.missing()


CLAIMS = {
    "HPA 50 uses what it used there": "hpa-50: average workers within",
    "HPA 70": "hpa-70: average workers within",
    "HPA 90": "hpa-90: average workers within",
    "HPA 90 sticks": "hpa-90 sticks under backpressure",
    "Varga v1 is over-provisioned": "varga-v1 has too many workers",
    "the cooldown cures it": "varga-v2's cooldown saves",
    "DS2 at 0 % is under-provisioned": "ds2-modern-0 has fewer workers than the load needs",
    "adapted rescales less": "ds2-modern-adapted rescales less",
    "more reserve, less latency": "ds2-modern-66 has less average latency",
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_finding_holds_with_its_figure(judged: list[Finding], claim: str) -> None:
    (finding,) = [f for f in judged if f.group == "q3" and f.claim.startswith(claim)]
    assert finding.kept is True, finding
    assert any(character.isdigit() for character in finding.measured)
    assert any(character.isdigit() for character in finding.claim)


def test_most_of_these_cells_are_near_the_table(summary: Summary) -> None:
    ratios = {}
    for name in FEW:
        for setting, (_, workers, _) in FIGURES["q3"][name].items():
            measured = summary.mean("q3", f"{name}-{setting}", "average_workers")
            assert measured is not None
            ratios[f"{name}-{setting}"] = measured / workers
    assert sum(abs(ratio - 1) <= 0.25 for ratio in ratios.values()) >= 13, ratios


def test_what_was_not_run_is_not_known(judged: list[Finding]) -> None:
    unknown = [f for f in judged if f.group in ("q1", "q11", "all") or "dhalion-adapted alone" in f.claim]
    assert unknown
    assert all(f.kept is None for f in unknown)
    (near,) = [f for f in judged if f.group == "all"]
    assert near.measured.endswith("of 15")
