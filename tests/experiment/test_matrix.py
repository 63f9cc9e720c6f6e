"""Cells over processes or as a Spark job: the same rows, to the byte, whatever happens to whoever makes them."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import ConfigError, Unavailable
from penstock.experiment import matrix
from penstock.experiment.cell import Cell, Row, execute
from penstock.experiment.simulation import numbered

HPA = Cell(
    group="wave",
    policy="hpa",
    settings={"name": "hpa"},
    profile="flink-wordcount",
    workload={"kind": "sine", "low": 0.1, "high": 1.0, "duration": 1800.0},
    seed=0,
    max_workers=6,
    initial_workers=3,
    peak_share=0.7,
    failures=(900.0,),
)
CELLS = numbered(
    replace(cell, seed=seed)
    for cell in (
        HPA,
        replace(HPA, policy="static", settings={"name": "static", "workers": 5}),
        replace(HPA, policy="daedalus", settings={"name": "daedalus"}, profile="spark-wordcount", guards={}),
        replace(HPA, policy="oracle", settings={"name": "oracle"}),
        replace(HPA, policy="impossible", settings={"name": "oracle"}, peak_share=2.0),
        replace(
            HPA, policy="ds2", settings={"name": "ds2"}, profile="heron-wordcount", max_workers=24, initial_workers=3
        ),
    )
    for seed in range(2)
)


def written(rows: list[Row], path: Path) -> bytes:
    matrix.write(rows, path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def alone() -> list[Row]:
    """Made one after the other, in this process."""
    return matrix.run(CELLS, processes=1)


def test_a_cell_survives_being_written_down() -> None:
    for cell in CELLS:
        assert Cell.of(cell.to_json()) == cell


def test_rows_are_kept_whole(alone: list[Row], tmp_path: Path) -> None:
    written(alone, tmp_path / "rows.parquet")
    assert matrix.read(tmp_path / "rows.parquet") == alone
    assert not list(tmp_path.glob("*.partial"))


def test_rows_are_in_order_and_of_their_cells(alone: list[Row]) -> None:
    assert [row.number for row in alone] == list(range(len(CELLS)))
    for cell, row in zip(CELLS, alone, strict=True):
        assert (row.group, row.policy, row.seed) == (cell.group, cell.policy, cell.seed)
        if cell.policy != "impossible":
            assert row.average_workers is not None
            assert [failed[0] for failed in json.loads(row.lines)["failures"]] == [900]
    assert alone[0] != replace(alone[1], seed=0, number=0), "another seed, another run"


def test_what_nobody_could_do_is_a_note_and_no_number(alone: list[Row]) -> None:
    for row in alone:
        if row.policy == "impossible":
            assert row.average_workers is None
            assert "none" in row.note


def test_processes_make_the_same_in_any_order(alone: list[Row], tmp_path: Path) -> None:
    told: list[int] = []
    several = matrix.run(tuple(reversed(CELLS)), processes=2, progress=told.append)
    assert sum(told) == len(CELLS)
    assert written(several, tmp_path / "two.parquet") == written(alone, tmp_path / "one.parquet")


def test_a_cell_that_is_wrong_is_said_by_whoever_makes_it() -> None:
    wrong = replace(HPA, settings={"name": "hpaa"})
    with pytest.raises(ConfigError, match="policy must be one of"):
        execute(wrong)
    with pytest.raises(ConfigError, match="policy must be one of"):
        matrix.run(numbered([HPA, wrong]), processes=2)


def test_cells_without_numbers_of_their_own_are_refused() -> None:
    with pytest.raises(ConfigError, match="cells must be numbered, each apart"):
        matrix.run([HPA, HPA], processes=1)


@pytest.mark.spark
def test_on_spark_it_is_the_same_to_the_byte(alone: list[Row], tmp_path: Path) -> None:
    told: list[int] = []
    there = matrix.run(CELLS, master="local[2]", progress=told.append)
    assert sum(told) == len(CELLS)
    assert written(there, tmp_path / "there.parquet") == written(alone, tmp_path / "here.parquet")


@pytest.mark.spark
def test_a_killed_executor_changes_nothing(alone: list[Row], tmp_path: Path) -> None:
    done = 0
    killed: list[int] = []

    def kill_one(more: int) -> None:
        nonlocal done
        done += more
        if not killed and done < len(CELLS):
            killed.append(executors()[0])
            os.kill(killed[0], signal.SIGKILL)

    for _ in range(4):  # the executors may be done between two looks at them
        done = 0
        there = matrix.run(CELLS, master="local-cluster[2,1,1024]", progress=kill_one)
        assert done == len(CELLS)
        assert written(there, tmp_path / "there.parquet") == written(alone, tmp_path / "here.parquet")
        if killed:
            return
    pytest.fail("all cells were made before one was seen to be, four times")


@pytest.mark.spark
def test_a_job_that_fails_on_spark_is_a_sentence() -> None:
    with pytest.raises(Unavailable, match="the Spark job on local\\[1\\] ended without a result: "):
        matrix.run(numbered([replace(HPA, settings={"name": "hpaa"})]), master="local[1]")


@pytest.mark.spark
def test_a_master_that_is_none_is_a_sentence() -> None:
    with pytest.raises(Unavailable, match=r"there is no Spark at local\[two\]: .*Could not parse Master URL"):
        matrix.run(CELLS[:1], master="local[two]")


def executors() -> list[int]:
    """The processes of Spark's executors that this very process, or a child of it, has started."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                commands[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:  # it has just ended
                continue

    def ours(process: int) -> bool:
        while process > 1 and process != os.getpid():
            process = parents.get(process, 0)
        return process == os.getpid()

    return [p for p, command in commands.items() if b"CoarseGrainedExecutorBackend" in command and ours(p)]
