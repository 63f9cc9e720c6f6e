from __future__ import annotations

import pytest

from penstock.core import Observation, Operator, Worker
from penstock.models.operators import JOB, Measures, Snapshots, seen
from penstock.models.topology import sources


def test_snapshots_do_not_mix_parallelisms() -> None:
    assert Snapshots(60).mean == ()
    snapshots = Snapshots(60)
    snapshots.add(0, (Operator("a", 1, rate_in=10, busy=1.0),))
    snapshots.add(1, (Operator("a", 2, rate_in=30, busy=0.5, downstream=("b",)), Operator("b", 1)))
    snapshots.add(2, ())
    snapshots.add(3, (Operator("a", 2, rate_in=50, busy=None, queue=4, downstream=("b",)), Operator("b", 1)))
    a, b = snapshots.mean
    assert (a.rate_in, a.busy, a.queue, a.downstream) == (40, 0.5, 4, ("b",))
    assert b.rate_in is None
    snapshots.add(1, (Operator("c", 1),))
    assert [o.name for o in snapshots.mean] == ["c"], "the clock went back"


def whole(at: float = 0.0, workers: int | None = 2) -> Observation:
    per_worker = (Worker("w0", cpu=0.4), Worker("w1", cpu=0.6))
    return Observation(at, workers, 2, input_rate=90, processed_rate=100, backlog=7, per_worker=per_worker)


def test_a_job_without_operators_is_one() -> None:
    assert seen(whole()) == (Operator(JOB, 2, 100, 100, busy=0.5, idle=0.5, queue=7),)
    assert seen(Observation(0, 2, operators=(Operator("a", 1),))) == (Operator("a", 1),)
    assert seen(whole(workers=0)) == ()
    assert seen(whole(workers=None)) == ()
    assert sources(seen(whole())) == seen(whole())


def test_a_gap_in_operators_does_not_make_the_job_whole() -> None:
    measures = Measures(60)
    measures.add(whole(0))
    assert measures.whole
    operators = (Operator("a", 1, rate_in=5.0),)
    measures.add(Observation(1, operators=operators, input_rate=100, processed_rate=50))
    assert not measures.whole
    measures.add(whole(2))
    assert measures.operators == operators
    assert (measures.input_rate, measures.processed_rate) == (pytest.approx(280 / 3), pytest.approx(250 / 3))
    measures.add(whole(100))
    assert measures.operators == (), "too old"
