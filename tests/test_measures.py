from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.core import Observation, Reason
from penstock.errors import ConfigError
from penstock.journal import Event, Record, Rescale, Sample, Setting, Start, Stop
from penstock.measures import spans, summarise
from penstock.testing import sample

LOST = Reason("worker.lost", "worker 3 was lost: killed")


def start(at: float, resumed: bool = False) -> Start:
    return Start(at=at, policy=Setting("hpa"), resumed=resumed)


def seen(at: float, **known: object) -> Sample:
    return Sample(observation=sample(at, **known))  # type: ignore[arg-type]


def stop(at: float) -> Stop:
    return Stop(at=at, reason=Reason("loop.stopped", "The loop was asked to stop"))


def rescale(before: int | None, after: int, outcome: str = "done") -> Rescale:
    return Rescale(at=0, before=before, after=after, outcome=outcome, sentence="…")  # type: ignore[arg-type]


def test_every_number_by_hand() -> None:
    records: list[Record] = [
        start(100),
        seen(100, workers=2, processed_rate=100.0, backlog=0.0, latency=1.0),  # 10 s
        rescale(2, 4),
        seen(110, workers=4, processed_rate=300.0, backlog=50.0, latency=4.0, events=(LOST,)),  # 10 s
        Sample(observation=Observation(at=120, requested=4)),  # blind for 10 s, the 4 workers run on
        rescale(4, 3),
        rescale(3, 2, "refused"),
        seen(130, workers=3, processed_rate=200.0, backlog=20.0),  # 5 s, and no latency
        stop(135),
    ]
    measures = summarise(records, max_workers=8)
    assert measures.duration == 35
    assert measures.worker_seconds == 2 * 10 + 4 * 10 + 4 * 10 + 3 * 5
    assert measures.average_workers == pytest.approx(115 / 35)
    assert measures.share_of_max == pytest.approx(115 / 35 / 8)
    assert (measures.processed, measures.processed_known) == (1000 + 3000 + 1000, 25)
    assert (measures.latency_p50, measures.latency_p95, measures.latency_max) == (1.0, 4.0, 4.0)
    assert measures.latency_known == 20
    assert (measures.rescales_up, measures.rescales_down) == (1, 1)
    assert (measures.max_backlog, measures.workers_lost) == (50.0, 1)
    assert (measures.blind_seconds, measures.gap_seconds) == (10, 0)


def test_a_gap_costs_what_ran_before_it_and_measures_nothing() -> None:
    records: list[Record] = [start(0), *(seen(t, workers=5, processed_rate=10.0, latency=1.0) for t in (0, 1, 2, 3))]
    records += [start(103, resumed=True), seen(103, workers=2, processed_rate=10.0, latency=9.0), stop(104)]
    measures = summarise(records, max_workers=5)
    assert (measures.duration, measures.gap_seconds) == (104, 100)
    assert measures.worker_seconds == 5 * 103 + 2
    assert (measures.processed, measures.processed_known, measures.latency_known) == (40, 4, 4)
    assert measures.latency_p50 == 1.0


UNKNOWN: dict[str, Sequence[Record]] = {
    "no observation": [start(0), stop(9)],
    "blind all the time": [start(0), *(Sample(observation=Observation(at=t, requested=3)) for t in (0, 1, 2)), stop(3)],
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_unknown_is_none(name: str) -> None:
    measures = summarise(UNKNOWN[name], max_workers=3)
    assert measures.average_workers is measures.worker_seconds is measures.share_of_max is None
    assert measures.processed is measures.latency_p50 is measures.latency_p95 is measures.latency_max is None
    assert measures.max_backlog is None


def test_workers_unknown_at_first_are_left_out_of_the_average_only() -> None:
    records: list[Record] = [start(0), Sample(observation=Observation(at=0)), seen(10, workers=4), stop(20)]
    measures = summarise(records, max_workers=4)
    assert (measures.duration, measures.worker_seconds, measures.average_workers) == (20, 40, 4)


def test_one_look_is_a_measurement_though_no_time_passed() -> None:
    measures = summarise([start(0), seen(0, workers=2, latency=3.0)], max_workers=2)
    assert (measures.duration, measures.latency_p50, measures.average_workers) == (0, 3.0, None)


def test_a_clock_that_goes_back_takes_no_time() -> None:
    assert [s.seconds for s in spans([start(10), seen(10), seen(5), seen(6), stop(7)])] == [0, 1, 1]


def test_the_last_observation_holds_to_the_last_line() -> None:
    event = Event(at=4, reason=Reason("loop.unfinished", "…"))
    assert [s.seconds for s in spans([start(0), seen(0), seen(1), event])] == [1, 3]


def test_compared_with_at_least_one_worker() -> None:
    with pytest.raises(ConfigError, match="max_workers must be at least 1, got 0"):
        summarise([start(0)], max_workers=0)
