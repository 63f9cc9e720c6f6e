from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.models.recovery import Downtimes, Stop, Way, recovery_time

rates = st.floats(0, 1e5)
loads = st.lists(rates, min_size=1, max_size=30)
seconds = st.floats(0, 300)
steps = st.floats(0.5, 60)

# name: load, step, the rest -> seconds, all by hand
WALKS: dict[str, tuple[list[float], float, dict[str, float], float | None]] = {
    "nothing to do": ([100.0], 1, {"capacity": 200}, 0.0),
    "nothing to do, and no room either": ([100.0], 1, {"capacity": 50}, 0.0),
    "a stop in which nothing arrives": ([0.0], 1, {"capacity": 50, "downtime": 30, "replay": 10}, 30.0),
    "backlog alone": ([100.0], 1, {"capacity": 150, "backlog": 500}, 10.0),
    "replay at the load of now": ([100.0], 1, {"capacity": 150, "replay": 10}, 20.0),
    "replay at the load of before": ([100.0], 1, {"capacity": 150, "replay": 10, "recent_rate": 50}, 10.0),
    "replay of a silent past": ([100.0], 1, {"capacity": 150, "replay": 10, "recent_rate": 0}, 0.0),
    "within a step": ([100.0, 0.0], 10, {"capacity": 200, "backlog": 1500}, 12.5),
    "on the edge of a step": ([100.0, 0.0], 10, {"capacity": 200, "backlog": 1000}, 10.0),
    "downtime ends within a step": ([100.0, 50.0], 10, {"capacity": 150, "downtime": 15}, 15 + 1250 / 100),
    "downtime ends on an edge": ([100.0, 50.0], 10, {"capacity": 150, "downtime": 10}, 20.0),
    "downtime outlasts the forecast": ([100.0, 50.0], 10, {"capacity": 150, "downtime": 30}, 30 + 2000 / 100),
    "a deficit grows first": ([100.0, 300.0, 100.0], 10, {"capacity": 200, "backlog": 500}, 5.0),
    "a deficit is worked off later": ([300.0, 100.0], 10, {"capacity": 200, "backlog": 500}, 10 + 1500 / 100),
    "caught up before the load rises": ([100.0, 900.0], 10, {"capacity": 200, "backlog": 999}, 9.99),
    "never: the load rises first": ([100.0, 900.0], 10, {"capacity": 200, "backlog": 1001}, None),
    "never: as much comes as goes": ([100.0], 10, {"capacity": 100, "backlog": 1}, None),
    "as much comes as goes, at first": ([200.0, 100.0], 10, {"capacity": 200, "backlog": 100}, 11.0),
    "a line projected below 0": ([100.0, -100.0], 10, {"capacity": 200, "backlog": 2000}, 15.0),
}


@pytest.mark.parametrize(("load", "step", "rest", "expected"), WALKS.values(), ids=WALKS)
def test_walk(load: list[float], step: float, rest: dict[str, Any], expected: float | None) -> None:
    got = recovery_time(load, step, **rest)
    assert got == (expected if expected is None else pytest.approx(expected, rel=1e-12))


@given(st.floats(1, 1e5), st.floats(1.01, 10), st.floats(0, 1e6), seconds, st.floats(0, 60), steps, st.integers(1, 900))
def test_constant_rate_is_the_closed_form(
    w: float, ratio: float, backlog: float, downtime: float, replay: float, step: float, count: int
) -> None:
    c = w * ratio
    got = recovery_time([w] * count, step, capacity=c, backlog=backlog, downtime=downtime, replay=replay)
    assert got == pytest.approx(downtime + (backlog + w * (replay + downtime)) / (c - w), rel=1e-7)


@given(loads, steps, st.floats(1, 2e5), st.floats(0, 1e7), seconds, seconds)
def test_it_is_where_a_fine_walk_ends(
    load: list[float], step: float, capacity: float, backlog: float, downtime: float, replay: float
) -> None:
    """Against the balance at that very time: all worked off there, and something left at every edge before."""
    got = recovery_time(load, step, capacity=capacity, backlog=backlog, downtime=downtime, replay=replay)

    def left(t: float) -> float:
        whole = int(t / step)
        past = sum((load[min(i, len(load) - 1)] for i in range(whole)), 0.0) * step
        arrived = past + load[min(whole, len(load) - 1)] * (t - whole * step)
        return backlog + replay * load[0] + arrived - capacity * (t - downtime)

    scale = backlog + (replay + downtime + step * len(load) + 1) * (max(load) + capacity)
    if got is None:
        assert load[-1] >= capacity or min(load) >= capacity * (1 - 1e-9)
        return
    if got < 20_000 * step:
        assert left(got) == pytest.approx(0, abs=1e-9 * (scale + got * capacity)) or (
            got == pytest.approx(downtime) and left(got) <= 1e-9 * scale
        )
    for edge in np.linspace(downtime, min(got, step * len(load) + downtime), 7)[:-1].tolist():
        assert left(edge) >= -1e-9 * scale


def _order(low: float | None, high: float | None) -> None:
    if high is not None:
        assert low is not None
        assert low <= high * (1 + 1e-6) + 1e-6


@given(loads, steps, st.floats(1, 2e5), st.floats(0, 1e6), seconds, seconds, st.floats(0, 1e5), st.integers(0, 29))
def test_what_makes_it_longer(
    load: list[float],
    step: float,
    capacity: float,
    backlog: float,
    downtime: float,
    replay: float,
    more: float,
    which: int,
) -> None:
    base: dict[str, float] = {"capacity": capacity, "backlog": backlog, "downtime": downtime, "replay": replay}
    got = recovery_time(load, step, **base)
    for name, by in (("backlog", more), ("downtime", more / 1e3), ("replay", more / 1e3)):
        _order(got, recovery_time(load, step, **(base | {name: base[name] + by})))
    higher = list(load)
    higher[which % len(load)] += more
    _order(got, recovery_time(higher, step, **base))
    _order(recovery_time(load, step, **(base | {"capacity": capacity + more})), got)


@pytest.mark.parametrize(
    ("load", "step", "rest", "match"),
    [
        ([], 1, {}, "at least one rate"),
        ([1.0], 0, {}, "step above 0"),
        ([1.0, nan], 1, {}, "finite"),
        ([inf, 1.0], 1, {}, "finite"),
        ([1.0], 1, {"downtime": -1.0}, "0 or more"),
        ([1.0], 1, {"backlog": -1.0}, "0 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(load: list[float], step: float, rest: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        recovery_time(load, step, capacity=10, **rest)


def test_arrays_and_sequences_alike() -> None:
    load = np.linspace(100, 140, 900)
    got = recovery_time(load, 1, capacity=150, downtime=30, replay=10)
    assert got == recovery_time(load.tolist(), 1, capacity=150, downtime=30, replay=10)
    assert type(got) is float


def test_what_is_anticipated_at_first() -> None:
    stops = Downtimes()
    assert stops.anticipated("out") == Stop(30.0, 10.0)
    assert stops.anticipated("in") == Stop(15.0, 10.0)
    assert stops.anticipated("failure") == Stop(30.0, 10.0)
    assert Downtimes(failure=60.0, replay=5.0).anticipated("failure") == Stop(60.0, 5.0)


@pytest.mark.parametrize("way", ["out", "in", "failure"])
def test_a_live_engine_loses_its_downtimes_in_five_rescales(way: Way) -> None:
    stops, path = Downtimes(), [Downtimes().anticipated(way)]
    for _ in range(5):
        assert stops.observed(way, 0.0, load=[800.0] * 900, step=1, capacity=1000) == Stop(0.0, 0.0)
        path.append(stops.anticipated(way))
    assert all(b.downtime < a.downtime and b.replay < a.replay for a, b in pairwise(path))
    assert path[-1].downtime < 1
    assert path[-1].replay < 0.5
    # A failure nobody has seen yet is taken to be what scaling out was.
    others = {"out", "in", "failure"} - ({"out", "failure"} if way == "out" else {way})
    assert all(stops.anticipated(other) == Downtimes().anticipated(other) for other in others)  # type: ignore[arg-type]


def test_a_failure_is_like_scaling_out_until_one_was_seen() -> None:
    stops = Downtimes()
    stops.observed("out", 0.0, load=[800.0], step=60, capacity=1000)
    assert stops.anticipated("failure") == stops.anticipated("out") == Stop(15.0, 5.0)
    stops.observed("failure", 100.0, load=[500.0], step=60, capacity=1000)
    seen = stops.anticipated("failure")
    stops.observed("out", 0.0, load=[800.0], step=60, capacity=1000)
    assert stops.anticipated("failure") == seen


def _near(stop: Stop | None, downtime: float, replay: float) -> bool:
    assert stop is not None
    return stop.downtime == pytest.approx(downtime) and stop.replay == pytest.approx(replay)


def test_a_short_recovery_is_a_shorter_replay() -> None:
    stops = Downtimes()
    # w / (C - w) = 4: 20 s of recovery without a stop are 5 s of replay.
    stop = stops.observed("out", 20.0, load=[800.0], step=1, capacity=1000)
    assert _near(stop, 0.0, 5.0)
    assert _near(stops.anticipated("out"), 15.0, 7.5)


def test_a_long_recovery_is_a_longer_downtime() -> None:
    stops = Downtimes()
    seen = recovery_time([500.0], 1, capacity=1000, downtime=50, replay=10, backlog=700)
    assert seen is not None
    stop = stops.observed("out", seen, load=[500.0], step=1, capacity=1000, backlog=700)
    assert _near(stop, 50.0, 10.0)
    assert _near(stops.anticipated("out"), 40.0, 10.0)


def test_replay_comes_back_when_stops_do() -> None:
    stops = Downtimes(weight=1.0)
    stops.observed("in", 0.0, load=[500.0], step=1, capacity=1000)
    assert stops.anticipated("in") == Stop(0.0, 0.0)
    stops.observed("in", 50.0, load=[500.0], step=1, capacity=1000)
    assert _near(stops.anticipated("in"), 20.0, 10.0)


def test_lag_is_no_downtime() -> None:
    """At half its capacity a stop of 20 s and a replay of 10 s take 50 s; meters that lag by 70 s make that 120."""
    stops = Downtimes(weight=1.0)
    assert stops.observed("in", 120.0, load=[500.0], step=1, capacity=1000, lag=70.0) == stops.anticipated("in")
    assert _near(stops.anticipated("in"), 20.0, 10.0)
    assert stops.anticipated("in").lag == 70.0
    assert stops.anticipated("out") == Stop(30.0, 10.0, 0.0), "each way has its own"


def test_lag_is_learned_as_downtime_is() -> None:
    stops = Downtimes()
    for expected in (40.0, 60.0, 70.0):
        stops.observed("out", 80.0, load=[500.0], step=1, capacity=1000, lag=80.0)
        assert stops.anticipated("out").lag == expected
    assert stops.anticipated("out").downtime < 4
    assert stops.anticipated("failure") == stops.anticipated("out")


@pytest.mark.parametrize("lag", [-1.0, 21.0, nan])
def test_a_lag_that_cannot_be_is_refused(lag: float) -> None:
    with pytest.raises(ValueError, match="lag must be"):
        Downtimes().observed("out", 20.0, load=[1.0], step=1, capacity=2, lag=lag)


def test_backlog_alone_explains_it() -> None:
    assert Downtimes().observed("out", 5.0, load=[500.0], step=1, capacity=1000, backlog=9000) == Stop(0.0, 0.0)


def test_a_downtime_is_never_believed_longer_than_the_longest() -> None:
    stops = Downtimes(out=10, inward=10, longest=20)
    for _ in range(30):
        stops.observed("out", 5000.0, load=[500.0], step=1, capacity=1000)
    assert _near(stops.anticipated("out"), 20.0, 10.0)
    assert stops.anticipated("out").downtime <= 20


UNSOLVED: dict[str, tuple[list[float], float]] = {
    "as much comes as goes": ([1000.0], 0.0),
    "more comes than goes": ([2000.0], 0.0),
    "more comes than goes, with a backlog": ([2000.0], 10.0),
    "it should have drowned before that": ([500.0] * 10 + [2000.0], 0.0),
}


@pytest.mark.parametrize(("load", "backlog"), UNSOLVED.values(), ids=UNSOLVED)
def test_what_cannot_be_solved_teaches_nothing(load: list[float], backlog: float) -> None:
    stops = Downtimes()
    assert stops.observed("out", 120.0, load=load, step=1, capacity=1000, backlog=backlog) is None
    assert stops == Downtimes()


@given(
    st.floats(1, 120),
    st.floats(0, 10),
    st.lists(st.floats(0.2, 0.9), min_size=1, max_size=30),
    st.floats(1, 60),
    st.floats(0, 20),
)
def test_what_is_seen_again_and_again_is_predicted(
    downtime: float, replay: float, shares: list[float], step: float, backlog_seconds: float
) -> None:
    """Whatever the true stop is, the anticipated one comes to give the same recovery."""
    load, stops, capacity = [1000 * share for share in shares], Downtimes(), 1000.0
    known = {"capacity": capacity, "backlog": capacity * backlog_seconds}
    seen = recovery_time(load, step, downtime=downtime, replay=replay, **known)
    assert seen is not None
    for _ in range(15):
        stops.observed("out", seen, load=load, step=step, **known)
    stop = stops.anticipated("out")
    again = recovery_time(load, step, downtime=stop.downtime, replay=stop.replay, **known)
    assert again == pytest.approx(seen, rel=0.05)


@pytest.mark.parametrize("seen", [-1.0, nan, inf])
def test_a_recovery_that_is_none_is_refused(seen: float) -> None:
    with pytest.raises(ValueError, match="recovery_seconds"):
        Downtimes().observed("out", seen, load=[1.0], step=1, capacity=2)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"out": -1.0}, "out must be in"),
        ({"inward": 601.0}, "inward must be in"),
        ({"failure": 601.0}, "failure must be in"),
        ({"weight": 0.0}, "weight"),
        ({"replay": -1.0}, "replay"),
        ({"longest": 0.0}, "longest"),
    ],
)
def test_settings_have_rules(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        Downtimes(**settings)


def test_copies_go_their_own_way() -> None:
    stops = Downtimes()
    other = deepcopy(stops)
    other.observed("out", 0.0, load=[1.0], step=1, capacity=2)
    assert stops.anticipated("out") == Stop(30.0, 10.0)
    assert other.anticipated("out") == Stop(15.0, 5.0)
