"""Stages as operators: places in the batch, whatever numbers Spark gives them."""

from __future__ import annotations

import pytest

from penstock.core import Stage
from penstock.targets.spark.stages import Stages, Work


def after(batches: list[list[Work]], names: tuple[str, ...] = ()) -> Stages:
    """Batches that end every five seconds."""
    stages = Stages(window=60, names=names)
    for number, works in enumerate(batches):
        stages.add(works)
        stages.ended(number, 5.0 * number)
    return stages


def test_tasks_of_a_stage_add_up_and_shares_are_of_all_slots() -> None:
    batches = [
        [Work(b, 2 * b, 1.0, 400, 40), Work(b, 2 * b, 0.5, 100, 10), Work(b, 2 * b + 1, 0.5, 50, 0)] for b in (0, 1, 2)
    ]
    read, count = after(batches, ("read", "count")).operators(workers=2, slots=1, backlog=7)
    assert (read.name, read.rate_in, read.rate_out, read.queue, read.downstream) == ("read", 100, 10, 7, ("count",))
    assert (count.name, count.rate_in, count.queue) == ("count", 10, None)
    assert [read.busy, count.busy, read.idle] == pytest.approx([0.15, 0.05, 0.8])


def test_a_stage_that_reads_nothing_makes_a_table_ready_and_is_no_operator() -> None:
    batches = [
        [Work(b, 3 * b, 0.2, 0, 30), Work(b, 3 * b + 1, 1.0, 500, 50), Work(b, 3 * b + 2, 0.5, 50, 0)]
        for b in (0, 1, 2)
    ]
    found = after(batches, ("read and join", "count")).operators(workers=1, slots=1, backlog=None)
    assert [operator.name for operator in found] == ["read and join", "count"]
    assert [operator.rate_in for operator in found] == [100, 10]


def test_a_batch_without_records_moves_no_place() -> None:
    batches = [
        [Work(0, 0, 1.0, 500, 50), Work(0, 1, 0.5, 50, 0)],
        [Work(1, 2, 0.1, 0, 0), Work(1, 3, 0.1, 0, 0), Work(1, 4, 0.1, 0, 0)],
        [Work(2, 5, 1.0, 500, 50), Work(2, 6, 0.5, 50, 0)],
    ]
    found = after(batches, ("read", "count")).operators(workers=1, slots=1, backlog=None)
    assert [(operator.name, operator.rate_in) for operator in found] == [("read", 50), ("count", 5)]


def test_nothing_is_known_before_two_batches_or_without_workers() -> None:
    one = [Work(0, 0, 1.0, 500, 50)]
    assert after([one]).operators(workers=1, slots=1, backlog=None) == ()
    both = after([one, [Work(1, 1, 1.0, 500, 50)]])
    assert both.operators(workers=0, slots=1, backlog=None) == ()
    assert [operator.name for operator in both.operators(workers=1, slots=1, backlog=None)] == ["stage 1"]


def test_the_stages_of_the_last_batch_as_its_busiest_worker_had_them() -> None:
    first = [Work(1, 0, 1.0, 500, 50, "a"), Work(1, 0, 2.0, 900, 60, "b"), Work(1, 1, 0.5, 110, 0, "a")]
    stages = after([first])
    assert stages.latest(slots=1) == (), "batch 0 had none"
    stages.ended(1, 5.0)
    assert stages.latest(slots=1) == (Stage(2.0, 1400), Stage(0.5, 110))
    assert stages.latest(slots=2) == (Stage(1.0, 1400), Stage(0.25, 110))
    stages.ended(2, 10.0)
    assert stages.latest(slots=1) == (), "nothing was seen of batch 2"
