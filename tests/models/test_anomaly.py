"""Series walked by hand: a load of 1000/s, a capacity of 1500/s, a sample per second unless said otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from penstock.errors import ConfigError
from penstock.models.anomaly import Detector, Recoveries, Recovery

LOAD = 1000.0
Sample = tuple[float | None, float | None, float | None]  # workload, throughput, backlog


def _quiet(watch: Recoveries, until: int = 100, backlog: float | None = None) -> Recoveries:
    for at in range(until + 1):
        assert watch.learn(at, LOAD, LOAD, backlog) == ()
    return watch


def _feed(watch: Recoveries, samples: Iterable[Sample], first: int = 101) -> list[tuple[int, Recovery]]:
    ended = []
    for at, (workload, throughput, backlog) in enumerate(samples, start=first):
        ended += [(at, recovery) for recovery in watch.learn(at, workload, throughput, backlog)]
    return ended


def _at(throughput: float | None, count: int) -> list[Sample]:
    return [(LOAD, throughput, None)] * count


STOP_30 = _at(0, 30) + _at(1500, 60)  # 30 000 records left behind, 500/s caught up


def test_a_restart_is_over_when_it_has_caught_up_and_stays_calm() -> None:
    watch = _quiet(Recoveries())
    watch.begin(100, "out", 2, 3, predicted=80.0)
    assert watch.watching
    ended = _feed(watch, STOP_30 + _at(LOAD, 30))
    assert ended == [(206, Recovery("out", 2, 3, 100, hurt_at=101, over_at=191, observed=91, predicted=80.0, lag=1.0))]
    assert not watch.watching


def test_the_moment_between_stop_and_catching_up_is_not_the_end() -> None:
    """Throughput on its way from below the load to above it passes the load."""
    watch = _quiet(Recoveries())
    watch.begin(100, "out", 2, 3)
    ended = _feed(watch, _at(0, 30) + _at(LOAD, 14) + _at(1500, 60) + _at(LOAD, 30))
    assert [(at, e.over_at) for at, e in ended] == [(220, 205)]


def test_fifteen_calm_seconds_are_the_end_without_a_backlog_to_tell() -> None:
    watch = _quiet(Recoveries())
    watch.begin(100, "out", 2, 3)
    ended = _feed(watch, _at(0, 30) + _at(LOAD, 16))
    assert [(at, e.over_at, e.observed) for at, e in ended] == [(146, 131, 31)]


def test_a_backlog_keeps_it_open() -> None:
    watch = _quiet(Recoveries(), backlog=500.0)
    watch.begin(100, "out", 2, 3)
    stopped: list[Sample] = [(LOAD, 0.0, 500 + 1000.0 * i) for i in range(1, 31)]
    level: list[Sample] = [(LOAD, LOAD, 30_500.0)] * 40  # looks normal, works nothing off
    ended = _feed(watch, [*stopped, *level, (LOAD, LOAD, 510.0), *[(LOAD, LOAD, 600.0)] * 15])
    assert [(at, e.over_at, e.observed) for at, e in ended] == [(186, 171, 71)]


def test_more_in_flight_is_normal_at_more_load() -> None:
    watch = _quiet(Recoveries(), backlog=500.0)
    watch.begin(100, "out", 2, 3)
    ended = _feed(watch, [(2000.0, 0.0, 9000.0)] * 10 + [(2000.0, 2000.0, 1000.0)] * 20)
    assert [e.over_at for _, e in ended] == [111]


def test_the_backlog_it_began_with_is_no_part_of_it() -> None:
    watch = _quiet(Recoveries(), backlog=0.0)
    watch.learn(101, LOAD, LOAD, 7000.0)
    watch.begin(101, "in", 3, 2)
    ended = _feed(watch, [(LOAD, 0.0, 9000.0)] * 2 + [(LOAD, LOAD, 7001.0)] * 5 + [(LOAD, LOAD, 7000.0)] * 16, 102)
    assert [e.over_at for _, e in ended] == [109]


def test_what_meters_tell_before_it_shows_and_after_all_is_caught_up_is_lag() -> None:
    """Asked for at 100, down from 110 to 130, caught up at 170; rates are means that tell of it for 40 s more."""
    watch = _quiet(Recoveries(), backlog=500.0)
    watch.begin(100, "out", 2, 3)
    runs_on: list[Sample] = [(LOAD, LOAD, 500.0)] * 9
    down: list[Sample] = [(LOAD, 0.0, 500 + 1000.0 * i) for i in range(1, 21)]
    catching_up: list[Sample] = [(LOAD, 1500.0, 20_500 - 500.0 * i) for i in range(1, 41)]
    tail: list[Sample] = [(LOAD, 1200.0, 500.0)] * 40
    ended = _feed(watch, [*runs_on, *down, *catching_up, *tail, *[(LOAD, LOAD, 500.0)] * 16])
    (recovery,) = [e for _, e in ended]
    assert (recovery.hurt_at, recovery.over_at, recovery.observed) == (110, 210, 110)
    assert recovery.lag == 10 + (210 - 169)  # hurt after 10 s; the last 500 records were gone at 169


def test_a_backlog_that_rises_again_was_not_caught_up() -> None:
    watch = _quiet(Recoveries(), backlog=500.0)
    watch.begin(100, "out", 2, 3)
    waits: list[Sample] = [(LOAD, 0.0, 9000.0)] * 10
    ended = _feed(watch, [*waits, *[(LOAD, 1500.0, 500.0)] * 5, *waits, *[(LOAD, LOAD, 500.0)] * 16])
    assert [(e.over_at, e.lag) for _, e in ended] == [(126, 1.0)]


def test_lag_is_never_more_than_all_of_it_however_times_are_rounded() -> None:
    """Nothing ever waits here, so all of it is lag; summed up from its parts, some of these would be an ulp more."""
    for sevenths in range(1, 60):
        watch, began = Recoveries(Detector(enough=3)), sevenths / 7
        for part in range(4):
            assert watch.learn(began * part / 4, LOAD, LOAD, 500.0) == ()
        watch.begin(began, "out", 2, 3)
        samples = [(0.0, 500.0)] * 9 + [(LOAD, 500.0)] * 20
        at = (began + 0.3 + 1.1 * i for i in range(len(samples)))
        ended = [r for when, sample in zip(at, samples, strict=True) for r in watch.learn(when, LOAD, *sample)]
        assert [r.lag for r in ended] == [r.observed for r in ended]
        assert len(ended) == 1


def test_a_live_rescale_does_not_hurt() -> None:
    watch = _quiet(Recoveries())
    watch.begin(100, "in", 3, 2, predicted=40.0)
    ended = _feed(watch, _at(LOAD, 100))
    assert ended == [(161, Recovery("in", 3, 2, 100, hurt_at=None, over_at=100, observed=0.0, predicted=40.0))]


def test_it_may_begin_to_hurt_up_to_the_onset_and_not_after() -> None:
    late = _quiet(Recoveries())
    late.begin(100, "out", 2, 3)
    ended = _feed(late, _at(LOAD, 59) + _at(0, 5) + _at(LOAD, 30))
    assert [(e.hurt_at, e.observed) for _, e in ended] == [(160, 65)]
    too_late = _quiet(Recoveries())
    too_late.begin(100, "out", 2, 3)
    ended = _feed(too_late, _at(LOAD, 60) + _at(0, 20) + _at(LOAD, 30))
    assert [(at, e.way, e.hurt_at, e.observed) for at, e in ended] == [
        (161, "out", None, 0.0),
        (196, "failure", 161, 20),
    ]


def test_a_failure_nobody_told_of() -> None:
    watch = _quiet(Recoveries())
    watch.begin(100, "out", 2, 3)
    _feed(watch, _at(LOAD, 100))
    ended = _feed(watch, STOP_30 + _at(LOAD, 30), first=201)
    assert ended == [(306, Recovery("failure", 3, 3, 201, hurt_at=201, over_at=291, observed=90, predicted=None))]


def test_a_short_dip_is_no_failure_and_is_learned() -> None:
    watch = _quiet(Recoveries())
    assert _feed(watch, _at(800, 16) + _at(LOAD, 60)) == []
    assert watch.detector.mean == pytest.approx(200 * 16 / 177, rel=0.05)
    assert watch.detector.strays == pytest.approx(16 / 147, rel=0.05)
    longer = _quiet(Recoveries())
    assert [e.observed for _, e in _feed(longer, _at(800, 17) + _at(LOAD, 60))] == [17]


def test_what_is_watched_is_not_learned() -> None:
    watch = _quiet(Recoveries())
    before = deepcopy(watch.detector)
    _feed(watch, STOP_30 + _at(LOAD, 14))  # unannounced: the samples before it was opened are not learned either
    assert watch.watching
    watch.begin(205, "out", 2, 3)
    _feed(watch, STOP_30, first=206)
    assert watch.detector == before


def test_a_gap_starts_the_calm_anew() -> None:
    watch = _quiet(Recoveries())
    watch.begin(100, "out", 2, 3)
    gap: list[Sample] = [(None, None, None)]
    ended = _feed(watch, _at(0, 30) + _at(LOAD, 10) + gap + _at(LOAD, 30))
    assert [(at, e.over_at) for at, e in ended] == [(157, 142)]


def test_a_stop_that_reports_nothing_is_seen_by_its_catching_up() -> None:
    watch = _quiet(Recoveries())
    watch.begin(100, "out", 2, 3)
    ended = _feed(watch, _at(None, 30) + _at(1500, 60) + _at(LOAD, 30))
    assert [(e.hurt_at, e.over_at, e.observed) for _, e in ended] == [(131, 191, 91)]


# name: the samples after a rescale at 100 -> observed
BLIND: dict[str, tuple[list[Sample], float | None]] = {
    "a missing sample now and then": ((_at(LOAD, 9) + _at(None, 1)) * 10, 0.0),
    "a gap that could hide a stop": (_at(LOAD, 10) + _at(None, 30) + _at(LOAD, 60), None),
    "nothing seen at all, then normal": (_at(None, 90) + _at(LOAD, 10), None),
    "nothing seen at all, then catching up": (_at(None, 90) + _at(1500, 10) + _at(LOAD, 30), 101),
}


@pytest.mark.parametrize(("samples", "observed"), BLIND.values(), ids=BLIND)
def test_what_was_not_seen_is_not_known(samples: list[Sample], observed: float | None) -> None:
    watch = _quiet(Recoveries())
    watch.begin(100, "out", 2, 3)
    ended = _feed(watch, samples)
    assert [e.observed for _, e in ended] == [observed]


def test_the_next_rescale_cuts_it_short() -> None:
    watch = _quiet(Recoveries())
    watch.begin(100, "out", 2, 3, predicted=80.0)
    _feed(watch, _at(0, 10))
    watch.begin(110, "out", 3, 4)
    ended = _feed(watch, _at(0, 10) + _at(LOAD, 20), first=111)
    assert ended == [
        (111, Recovery("out", 2, 3, 100, hurt_at=101, over_at=None, observed=None, predicted=80.0)),
        (136, Recovery("out", 3, 4, 110, hurt_at=111, over_at=121, observed=11, predicted=None, lag=1.0)),
    ]


def test_what_never_ends_is_given_up_and_becomes_normal() -> None:
    watch = _quiet(Recoveries(longest=300))
    watch.begin(100, "out", 2, 3)
    ended = _feed(watch, _at(700, 2000))
    assert [(at, e.hurt_at, e.over_at, e.observed) for at, e in ended] == [(401, 101, None, None)]
    assert watch.detector.mean == pytest.approx(300)
    assert watch.detector.abnormal(300) is False


def test_before_normal_is_known_nothing_is_concluded() -> None:
    watch = _quiet(Recoveries(), until=10)
    watch.begin(10, "out", 2, 3)
    ended = _feed(watch, _at(0, 10) + _at(LOAD, 80), first=11)
    assert [(at, e.hurt_at, e.observed) for at, e in ended] == [(71, None, None)]


def test_durations_scale() -> None:
    watch = Recoveries(Detector(half_life=360), onset=6, calm=1.5, longest=180)
    for i in range(101):
        watch.learn(i / 10, LOAD, LOAD)
    watch.begin(10.0, "out", 2, 3)
    ended: list[Recovery] = []
    for i, (workload, throughput, _) in enumerate(STOP_30 + _at(LOAD, 30), start=101):
        ended += watch.learn(i / 10, workload, throughput)
    assert [e.observed for e in ended] == [pytest.approx(9.1)]


def _noisy(rng: np.random.Generator, throughput: float, count: int, sigma: float) -> list[Sample]:
    return [(LOAD, max(0.0, throughput + e), None) for e in rng.normal(0, sigma, count).tolist()]


@pytest.mark.parametrize("sigma", [5.0, 20.0, 60.0])
def test_noise_alone_is_neither_failure_nor_recovery(sigma: float) -> None:
    """With one standard deviation a third of the samples is abnormal; live rescales must still come out as 0."""
    rng, watch, observed = np.random.default_rng(7), Recoveries(), []
    assert _feed(watch, _noisy(rng, LOAD, 600, sigma), 0) == []
    for i in range(40):
        watch.begin(600 + 100 * i - 1, "out", 2, 3)
        observed += [e.observed for _, e in _feed(watch, _noisy(rng, LOAD, 100, sigma), 600 + 100 * i)]
    assert len(observed) == 40
    assert observed.count(0.0) >= 38


@pytest.mark.parametrize("sigma", [5.0, 20.0, 60.0])
def test_a_recovery_in_noise_is_seen_within_seconds(sigma: float) -> None:
    rng, watch, observed = np.random.default_rng(8), Recoveries(), []
    _feed(watch, _noisy(rng, LOAD, 600, sigma), 0)
    for i in range(20):
        at = 600 + 300 * i
        watch.begin(at - 1, "out", 2, 3)
        series = _noisy(rng, -1e6, 30, sigma) + _noisy(rng, 1500, 60, sigma) + _noisy(rng, LOAD, 210, sigma)
        observed += [e.observed for _, e in _feed(watch, series, at)]
    assert len(observed) == 20
    seen = np.array([np.nan if o is None else o for o in observed])
    assert np.median(seen) == pytest.approx(91, abs=2)
    assert np.mean(np.abs(seen - 91) <= 10) >= 0.9


def test_the_mean_may_drift() -> None:
    """What is read and what is processed slowly drift apart by a fifth of the load: the new normal, not a failure."""
    watch, ended = Recoveries(), []
    for at in range(40_000):
        ended += list(watch.learn(at, LOAD, LOAD - 200 * min(1.0, at / 30_000) + (30 if at % 2 else -30)))
    assert ended == []
    assert watch.detector.mean == pytest.approx(200, abs=35)
    assert watch.detector.abnormal(200, LOAD) is False
    assert watch.detector.abnormal(100, LOAD) is True
    assert watch.detector.abnormal(0, LOAD) is False, "what processes all that arrives is itself"


def test_a_job_that_was_overloaded_from_the_start_is_itself_once_it_keeps_up() -> None:
    """All that is known is falling behind by half; after a live rescale nothing is abnormal any more."""
    watch, ended = Recoveries(), []
    for at in range(60):
        ended += list(watch.learn(at, LOAD, LOAD / 2))
    watch.begin(60, "out", 1, 2)
    for at in range(60, 200):
        ended += list(watch.learn(at, LOAD, LOAD))
    assert [e.observed for e in ended] == [0.0]
    assert not watch.watching


def test_a_clock_that_steps_back_ends_it_unknown() -> None:
    watch = Recoveries()
    for at in range(1000, 1060):
        watch.learn(at, LOAD, LOAD)
    watch.begin(1060, "out", 1, 2)
    watch.learn(1061, LOAD, 0)
    (ended,) = watch.learn(100, LOAD, LOAD)
    assert ended.observed is None


def test_the_detector_needs_enough() -> None:
    detector = Detector(enough=5)
    for at in range(4):
        detector.learn(at, LOAD, LOAD)
        assert detector.abnormal(500) is None
    detector.learn(4, LOAD, LOAD)
    assert detector.abnormal(500) is True


def test_the_floor_is_a_share_of_the_load() -> None:
    detector = Detector()
    for at in range(30):
        detector.learn(at, LOAD, LOAD - 5)
    assert (detector.mean, detector.deviation) == (5, 0)
    assert [detector.abnormal(d) for d in (25, 25.1, -20, -20.1)] == [False, True, False, True]
    assert [detector.abnormal(d, workload=2000) for d in (45, 45.1)] == [False, True]
    assert Detector(least=0.0).abnormal(1) is None


def test_one_standard_deviation_as_in_the_paper() -> None:
    detector = Detector(half_life=1e12)
    for at in range(100):
        detector.learn(at, LOAD, LOAD + (100 if at % 2 else -100))
    assert detector.deviation == pytest.approx(100)
    assert [detector.abnormal(d) for d in (99, 101, -99, -101)] == [False, True, False, True]


def test_the_old_counts_for_half_after_a_half_life() -> None:
    detector = Detector(half_life=100)
    detector.learn(0, LOAD, LOAD)
    detector.learn(100, LOAD, LOAD - 90)
    assert detector.mean == pytest.approx(60)
    detector.learn(1e9, LOAD, LOAD + 7)
    assert detector.mean == pytest.approx(-7)


def test_copies_go_their_own_way_and_agree() -> None:
    watch = _quiet(Recoveries())
    watch.begin(100, "out", 2, 3)
    _feed(watch, STOP_30)
    other = deepcopy(watch)
    assert _feed(watch, _at(LOAD, 30), 191) == _feed(other, _at(LOAD, 30), 191) != []
    assert watch == other


@pytest.mark.parametrize(
    ("what", "settings", "match"),
    [
        (Detector, {"threshold": 0}, "threshold"),
        (Detector, {"half_life": 0}, "half_life"),
        (Detector, {"least": -0.1}, "least"),
        (Detector, {"enough": 0}, "enough"),
        (Recoveries, {"onset": -1}, "onset"),
        (Recoveries, {"calm": -1}, "calm"),
        (Recoveries, {"longest": 60}, "longest must be above onset"),
    ],
)
def test_settings_have_rules(what: Any, settings: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        what(**settings)
