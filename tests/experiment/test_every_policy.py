"""Every policy runs a whole simulated experiment: three hours of a sine on Flink's word count."""

from __future__ import annotations

import pytest

from penstock.experiment.cell import Cell, execute
from penstock.policies import POLICIES

PROFILED = ("phoebe", "twres")
# Every worker of this job runs every operator, so that one count is for all of them.
SETTINGS = {"dhalion": {"combine": "highest"}, "ds2": {"combine": "highest", "sources": "sized"}}


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_through_a_whole_simulated_experiment(name: str) -> None:
    cell = Cell(
        group="sine",
        policy=name,
        settings={"name": name, **SETTINGS.get(name, {})},
        profile="flink-wordcount",
        workload={"kind": "sine", "low": 0.2, "high": 1.0, "periods": 1, "duration": 10_800.0},
        seed=1,
        min_workers=1,
        max_workers=12,
        initial_workers=6,
        peak_share=0.9,
        guards={"settle": 30.0},
        profiling={"step": 5_000.0, "count": 4} if name in PROFILED else None,
    )
    row = execute(cell)
    assert row.note == ""
    assert row.average_workers is not None
    assert 1 <= row.average_workers <= 12
    assert row.records_in is not None
    assert row.backlog_end is not None
    assert row.backlog_end < row.records_in, "most of the load was worked off"
    assert row.latency_known is not None
    assert row.latency_known > 0.5
    if name not in ("static", *PROFILED):
        assert row.rescales, "a load that rises fivefold and falls again moves every one of them"
