"""Recoveries: after a rescale, a failure, both at once; with blind times, a gap, a restart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from penstock.core import Decision, Expectation, Reason
from penstock.errors import ConfigError
from penstock.journal import Decided, Record, Rescale, Sample, Setting, Start
from penstock.measures import Disturbance, Recovery, Series, assess, disturbances, mean_recovery, recoveries
from penstock.testing import sample

LOST = Reason("worker.lost", "worker 3 was lost: killed")
GREW = Disturbance(100, "rescale")


def latencies(*stretches: tuple[int, float]) -> Series:
    """Second by second: so many at this latency, and as many seconds of a load of 10/s in backlog."""
    values = np.concatenate([np.full(seconds, value) for seconds, value in stretches])
    return Series.ticks(1, latency=values, backlog=10 * values, input_rate=np.full(len(values), 10.0))


CASES: dict[str, tuple[Series, Sequence[Disturbance], list[Recovery]]] = {
    "back to normal after 40 s": (
        latencies((100, 2), (40, 30), (200, 2)),
        [GREW],
        [Recovery(100, "rescale", 40, 240, False)],
    ),
    "a little above is normal: 2 x 1.2 + 1": (
        latencies((100, 2), (40, 30), (200, 3.4)),
        [GREW],
        [Recovery(100, "rescale", 40, 240, False)],
    ),
    "more above is not": (
        latencies((100, 2), (40, 30), (200, 3.5)),
        [GREW],
        [Recovery(100, "rescale", None, 240, False)],
    ),
    "quiet at first, for longer than it has to stay normal": (
        latencies((150, 2), (40, 30), (200, 2)),
        [Disturbance(100, "failure", quiet=50)],
        [Recovery(100, "failure", 90, 290, False)],
    ),
    "never disturbed": (latencies((300, 2)), [GREW], [Recovery(100, "rescale", 0, 200, False)]),
    "it takes a while until it shows": (
        latencies((120, 2), (40, 30), (200, 2)),
        [GREW],
        [Recovery(100, "rescale", 60, 260, False)],
    ),
    "a relapse within the while does not count": (
        latencies((100, 2), (40, 30), (20, 2), (10, 30), (100, 2)),
        [GREW],
        [Recovery(100, "rescale", 70, 170, False)],
    ),
    "not yet seen to stay": (
        latencies((100, 2), (40, 30), (20, 2)),
        [GREW],
        [Recovery(100, "rescale", None, 60, False)],
    ),
    "what is not known is not normal": (
        latencies((100, 2), (40, 30), (50, np.nan), (100, 2)),
        [GREW],
        [Recovery(100, "rescale", 90, 190, False)],
    ),
    "another one before the end of the first": (
        latencies((100, 2), (100, 30), (200, 2)),
        [GREW, Disturbance(150, "rescale")],
        [Recovery(100, "rescale", 100, 50, True), Recovery(150, "rescale", 50, 250, False)],
    ),
    "one after another": (
        latencies((100, 2), (40, 30), (200, 2), (20, 30), (200, 2)),
        [Disturbance(340, "rescale"), GREW],
        [Recovery(100, "rescale", 40, 240, False), Recovery(340, "rescale", 20, 220, False)],
    ),
    "a failure begins before it is told": (
        latencies((400, 2), (100, 30), (200, 2)),
        [Disturbance(450, "failure")],
        [Recovery(400, "failure", 100, 300, False)],
    ),
    "a failure that shows only once it is told": (
        latencies((400, 2), (100, 30), (200, 2)),
        [Disturbance(400, "failure")],
        [Recovery(400, "failure", 100, 300, False)],
    ),
    "what stays is normal in the end": (
        latencies((100, 2), (400, 10), (40, 30), (100, 10)),
        [GREW, Disturbance(500, "rescale")],
        [Recovery(100, "rescale", None, 400, True), Recovery(500, "rescale", 40, 140, False)],
    ),
    "one at the very beginning hides no other": (
        latencies((100, 2), (40, 30), (100, 2)),
        [Disturbance(0, "rescale"), GREW],
        [Recovery(0, "rescale", None, 100, True), Recovery(100, "rescale", 40, 140, False)],
    ),
    "nothing known before it": (
        latencies((100, np.nan), (100, 2)),
        [GREW],
        [Recovery(100, "rescale", None, 100, False)],
    ),
}


def test_a_job_that_was_behind_before_is_not_normal_where_normal_is_given() -> None:
    series = latencies((200, 50), (300, 55), (100, 2))
    failed = [Disturbance(200, "failure")]
    assert recoveries(series, failed)[0].seconds == 0
    assert recoveries(series, failed, normal_latency=2.0)[0].seconds == pytest.approx(360)
    with pytest.raises(ConfigError, match=r"normal_latency must be above 0 seconds, got 0"):
        recoveries(series, failed, normal_latency=0.0)


@pytest.mark.parametrize(("series", "causes", "ended"), CASES.values(), ids=CASES)
def test_recoveries(series: Series, causes: Sequence[Disturbance], ended: list[Recovery]) -> None:
    assert recoveries(series, causes) == ended


def test_backlog_tells_where_latency_stands_still() -> None:
    """While a job is down, nothing comes out of it whose latency could be measured."""
    down = np.array([0.0] * 100 + [10.0 * second for second in range(40)] + [0.0] * 100)
    series = Series.ticks(1, latency=np.full(240, 2.0), backlog=down, input_rate=np.full(240, 10.0))
    assert recoveries(series, [GREW]) == [Recovery(100, "rescale", 40, 140, False)]


def test_backlog_alone_grows_with_the_load_that_is_normal() -> None:
    load = np.array([10.0] * 100 + [100.0] * 100)
    series = Series.ticks(1, backlog=0.9 * load, input_rate=load)
    assert recoveries(series, [GREW])[0].seconds == 0


def test_mean_of_those_that_ended() -> None:
    ended = [
        Recovery(0, "rescale", 10, 99, False),
        Recovery(1, "failure", 50, 99, False),
        Recovery(2, "rescale", None, 99, False),
    ]
    assert (mean_recovery(ended), mean_recovery(ended, "rescale"), mean_recovery([])) == (30, 10, None)


def journal() -> list[Record]:
    """A rescale at 100 s that takes 30 s, a failure told at 205, a controller that is away from 300 to 400."""
    records: list[Record] = [Start(at=0, policy=Setting("daedalus"))]
    for at in (*range(0, 300, 5), *range(400, 500, 5)):
        bad = 100 < at < 130 or 200 <= at < 240
        events = (LOST,) if at == 205 else ()
        seen = sample(at, workers=3, input_rate=10.0, latency=20.0 if bad else 1.0, events=events)
        if at == 100:
            why = (Reason("capacity.below_load", "more is needed"),)
            decision = Decision(4, why, expects=Expectation(recovery=33.0))
            records.append(
                Decided(at=at, by="daedalus", role="control", proposed=4, decision=decision, observation=seen)
            )
            records.append(Rescale(at=at + 1, before=3, after=4, outcome="done", sentence="…"))
            records.append(Rescale(at=at + 2, before=4, after=5, outcome="refused", sentence="…"))
            continue
        if at == 400:
            records.append(Start(at=400, policy=Setting("daedalus"), resumed=True))
        records.append(Sample(observation=seen))
    return records


def test_a_journal_tells_its_disturbances() -> None:
    causes = disturbances(journal())
    assert causes == [Disturbance(101, "rescale"), Disturbance(205, "failure")]
    assert recoveries(Series.of(journal()), causes) == [
        Recovery(101, "rescale", 29, 104, False),
        Recovery(200, "failure", 40, 295, False),
    ]


def test_a_recovery_is_not_seen_through_a_gap() -> None:
    series = Series.of(journal())
    late = Disturbance(280, "rescale")
    assert recoveries(series, [late], hold=30)[0].seconds == 400 - 280
    assert recoveries(series, [late], hold=10)[0].seconds == 0


def test_assess_has_it_all() -> None:
    records = journal()
    run = assess(
        Series.of(records), disturbances(records), capacity=lambda n: 4.0 * n, max_workers=6, latency_target=5, price=1
    )
    assert (run.rescales, run.failures, len(run.recoveries)) == (1, 1, 2)
    assert run.duration == 495
    assert run.cost.worker_seconds == 3 * 495
    assert run.latency.over_target == pytest.approx((25 + 40) / (295 + 95))
    assert run.elasticity is not None
    assert run.elasticity.timeshare_over == run.elasticity.timeshare_under == 0
    assert run.excess_time is None  # no backlog was measured
    plain = assess(Series.of(records), max_workers=6)
    assert plain.elasticity is None
    assert plain.excess_time is plain.latency.over_target is plain.cost.money is None


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="hold must be 0 or more, got -1"):
        recoveries(latencies((1, 1)), [], hold=-1)
