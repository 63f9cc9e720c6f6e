"""DS2's experiments on the simulator, one seed: what the paper found must be found again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from penstock.experiment.cell import ORACLE, Row, execute
from penstock.experiment.suites.base import Summary
from penstock.experiment.suites.ds2 import HERON, QUERIES, SUITE, changes, steps


def rows(group: str) -> Iterator[Row]:
    return (execute(cell) for cell in SUITE.cells(1, [group]) if cell.policy != ORACLE)


@pytest.fixture(scope="module")
def heron() -> dict[str, Row]:
    return {row.policy: row for row in rows(HERON)}


def test_ds2_takes_one_step_on_heron(heron: dict[str, Row]) -> None:
    assert changes(heron["ds2"]) == [(60.0, {"source": 1, "flatmap": 10, "count": 20})]


def test_dhalion_takes_several_one_operator_at_a_time_and_ends_with_too_many(heron: dict[str, Row]) -> None:
    made = [{"source": 1, "flatmap": 1, "count": 1}, *(dict(sizes) for _, sizes in changes(heron["dhalion"]))]
    assert 4 <= len(made) - 1 <= 8, "published: 6"
    for before, after in pairwise(made):
        assert sum(before[name] != after[name] for name in before) == 1
    assert made[-1]["flatmap"] == pytest.approx(22, rel=0.25)
    assert made[-1]["count"] == pytest.approx(30, rel=0.25)
    assert changes(heron["dhalion"])[-1][0] == pytest.approx(2000, rel=0.25)


@pytest.mark.parametrize("query", QUERIES)
def test_table_4(query: str) -> None:
    """The last value from every start, in three steps at most, with one profile."""
    main, published = QUERIES[query][1:]
    found = list(rows(query))
    for row in found:
        start = int(row.policy.rsplit("-", 1)[1])
        made = steps(row, main, start)
        assert len(made) <= 3, (start, made)
        assert [start, *made][-1] == published[start][-1], (start, made)
    judged = [finding for finding in SUITE.judge(SUITE, Summary(found)) if finding.group == query]
    assert len(judged) == 2
    assert all(finding.kept for finding in judged)


def test_a_start_that_is_right_counts_as_converged() -> None:
    cell = next(cell for cell in SUITE.cells(1, ["q5"]) if cell.policy == "ds2-from-16")
    row = execute(cell)
    assert steps(row, "window", 16) == []
    compared = {c.policy: c.measured for c in SUITE.compare(SUITE, Summary([row])) if c.group == "q5"}
    measured = compared["ds2-from-16"]
    assert measured is not None
    assert measured.mean == 16
