"""Arrays of a run: from a journal with a gap, a restart and blind times, and from a simulator's ticks."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core import Observation, Reason
from penstock.errors import ConfigError
from penstock.journal import Record, Sample, Setting, Start, Stop
from penstock.measures import Series, cost, downtime, latency
from penstock.measures import backlog as backlog_of
from penstock.testing import sample


def start(at: float, resumed: bool = False) -> Start:
    return Start(at=at, policy=Setting("hpa"), resumed=resumed)


def seen(at: float, **known: object) -> Sample:
    return Sample(observation=sample(at, **known))  # type: ignore[arg-type]


def stop(at: float) -> Stop:
    return Stop(at=at, reason=Reason("loop.stopped", "The loop was asked to stop"))


# Ten seconds at a time: two looks, one blind, then 100 s in which nobody looks, a restart, one look more.
RECORDS: list[Record] = [
    start(0),
    seen(0, workers=2, input_rate=100.0, processed_rate=100.0, backlog=0.0, latency=1.0),
    seen(10, workers=4, input_rate=300.0, processed_rate=0.0, backlog=50.0, latency=9.0),
    Sample(observation=Observation(at=20, requested=4)),
    seen(30, workers=3, input_rate=200.0, processed_rate=200.0, backlog=80.0, latency=30.0),
    start(130, resumed=True),
    seen(130, workers=1, input_rate=50.0, processed_rate=50.0, backlog=20.0, latency=2.0),
    stop(140),
]


def test_a_journal_becomes_rows_and_a_gap_a_row_of_its_own() -> None:
    series = Series.of(RECORDS)
    assert series.at.tolist() == [0, 10, 20, 30, 30, 130]
    assert series.seconds.tolist() == [10, 10, 10, 0, 100, 10]
    assert series.workers.tolist() == [2, 4, 4, 3, 3, 1]
    assert np.isnan(series.latency).tolist() == [False, False, True, False, True, False]
    assert (series.duration, series.end) == (140, 140)


def test_cost_counts_blind_time_and_gaps() -> None:
    paid = cost(Series.of(RECORDS), price=3.6)
    assert paid.worker_seconds == 2 * 10 + 4 * 20 + 3 * 100 + 10
    assert paid.average_workers == pytest.approx(410 / 140)
    assert paid.money == pytest.approx(0.41)
    assert cost(Series.of(RECORDS)).money is None


def test_latency_counts_where_it_was_known() -> None:
    measured = latency(Series.of(RECORDS), target=5)
    assert (measured.known, measured.mean) == (30, 4.0)
    assert (measured.p50, measured.p95, measured.p99) == (2.0, 9.0, 9.0)
    assert measured.max == 30.0  # it was seen, if nobody knows for how long
    assert measured.over_target == pytest.approx(1 / 3)
    assert latency(Series.of(RECORDS)).over_target is None


def test_backlog_and_downtime() -> None:
    series = Series.of(RECORDS)
    waited = backlog_of(series)
    assert waited.mean == pytest.approx((0 + 500 + 200) / 30)
    assert (waited.max, waited.end) == (80, 20)
    assert downtime(series) == 10


def test_nothing_seen_is_nothing_known() -> None:
    series = Series.of([start(0), stop(9)])
    assert series.duration == series.end == downtime(series) == 0
    assert cost(series).worker_seconds is cost(series).average_workers is None
    assert latency(series, target=1).mean is latency(series, target=1).over_target is None
    assert backlog_of(series).max is backlog_of(series).end is None


def test_one_look_is_a_measurement() -> None:
    measured = latency(Series.of([start(0), seen(0, workers=2, latency=3.0)]), target=2)
    assert (measured.mean, measured.p99, measured.max, measured.over_target, measured.known) == (3, 3, 3, 1, 0)


def test_a_clock_that_goes_back_stands_still() -> None:
    series = Series.of([start(10), seen(10), seen(5), seen(6), stop(7)])
    assert (series.at.tolist(), series.seconds.tolist()) == ([10, 10, 10], [0, 1, 1])


def test_ticks() -> None:
    series = Series.ticks(2, start=100, workers=[1, 2], latency=[0.5, 0.5])
    assert (series.at.tolist(), series.end) == ([100, 102], 104)
    assert np.isnan(series.backlog).all()


REFUSED = {
    "lengths differ": (lambda: Series.ticks(1, workers=[1, 2], latency=[1]), "latency must have 2 values, as `at`"),
    "another name": (lambda: Series.ticks(1, cpu=[1]), "series must be some of workers, input_rate, processed_rate"),
    "no tick": (lambda: Series.ticks(0, workers=[1]), "tick must be above 0 seconds, got 0"),
    "a target below zero": (lambda: latency(Series.ticks(1, latency=[1]), -1), "latency_target must be 0 seconds or"),
    "a price below zero": (lambda: cost(Series.ticks(1, workers=[1]), -1), "price must be 0 or more per worker and h"),
}


@pytest.mark.parametrize(("wrong", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(wrong: object, message: str) -> None:
    assert callable(wrong)
    with pytest.raises(ConfigError) as refusal:
        wrong()
    assert message in str(refusal.value)
