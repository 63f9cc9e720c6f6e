"""The limit: by hand, against every plan there is on small instances, and against plans at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.models.limit import ideal, oracle


def linear(workers: int) -> float:
    return 100.0 * workers


IDEAL = {
    "covers exactly": ([100, 101, 200], [1, 2, 2]),
    "none needed is the least there is": ([0], [1]),
    "more than all": ([999], [3]),
}


@pytest.mark.parametrize(("load", "workers"), IDEAL.values(), ids=IDEAL)
def test_ideal(load: list[float], workers: list[int]) -> None:
    assert ideal(load, linear, max_workers=3).tolist() == workers
    assert ideal(load, [100, 200, 300]).tolist() == workers


def test_ideal_where_more_workers_do_less() -> None:
    assert ideal([80, 120, 180], [100, 90, 150, 140], min_workers=1).tolist() == [1, 3, 4]
    assert ideal([80], [100, 90], min_workers=2).tolist() == [2]


@dataclass(frozen=True)
class Case:
    """Seconds are whole here, so that looking at every second sees every bend."""

    load: tuple[int, ...]
    capacity: tuple[int, ...]
    tick: int
    target: int
    out: int
    into: int
    replay: int
    start: int | None = None
    every: int = 1

    def solve(self) -> tuple[float, int, list[int]]:
        plan = oracle(
            self.load,
            self.capacity,
            tick=self.tick,
            max_workers=len(self.capacity),
            latency_target=self.target,
            downtime_out=self.out,
            downtime_in=self.into,
            replay=self.replay,
            start=self.start,
            every=self.every,
        )
        return plan.worker_seconds, plan.rescales, plan.workers.tolist()

    def keeps(self, workers: Sequence[int]) -> bool:
        """Second by second: whether each record that came is gone after the target, and no decision during downtime."""
        first = self.load[0]
        arrived = [-first * n for n in range(60, 0, -1)] + [0]  # a minute before the start is at index 0
        for rate in self.load:
            for _ in range(self.tick):
                arrived.append(arrived[-1] + rate)
        gone, up, before = 0, 0, workers[0] if self.start is None else self.start
        for second in range(len(self.load) * self.tick):
            now = workers[second // self.tick]
            if now != before:
                if second < up or second % (self.tick * self.every):
                    return False
                gone = gone - (arrived[60 + second] - arrived[60 + second - self.replay])
                up = second + (self.out if now > before else self.into)
                before = now
                if gone < arrived[60 + second - self.target]:
                    return False
            gone = min(arrived[60 + second + 1], gone + (self.capacity[now - 1] if second >= up else 0))
            if gone < arrived[60 + second + 1 - self.target]:
                return False
        return True

    def rescales(self, workers: Sequence[int]) -> int:
        all_of_it = workers if self.start is None else (self.start, *workers)
        return sum(a != b for a, b in pairwise(all_of_it))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    most = draw(st.integers(1, 3))
    ticks = draw(st.integers(1, 9 if most == 2 else 6))
    small = st.integers(0, 12)
    return Case(
        load=tuple(draw(st.lists(st.integers(0, 30), min_size=ticks, max_size=ticks))),
        capacity=tuple(draw(st.lists(st.integers(1, 40), min_size=most, max_size=most))),
        tick=draw(st.integers(1, 6)),
        target=draw(small),
        out=draw(small),
        into=draw(small),
        replay=draw(st.integers(0, 4)),
        start=draw(st.none() | st.integers(1, most)),
        every=draw(st.integers(1, 3)),
    )


@settings(max_examples=400, deadline=None)
@given(cases())
def test_no_plan_of_all_there_are_is_better(case: Case) -> None:
    plans = product(range(1, len(case.capacity) + 1), repeat=len(case.load))
    kept = [(case.tick * float(sum(plan)), case.rescales(plan)) for plan in plans if case.keeps(plan)]
    if not kept:
        with pytest.raises(ConfigError, match="latency_target must be one that some plan keeps"):
            case.solve()
        return
    cost, rescales, workers = case.solve()
    assert case.keeps(workers)
    assert (cost, rescales) == (case.tick * sum(workers), case.rescales(workers))
    assert (cost, rescales) == min(kept)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(30, 200))
def test_no_plan_at_random_is_better(seed: int, target: int) -> None:
    random = np.random.default_rng(seed)
    load = tuple(int(rate) for rate in random.integers(0, 500, 40))
    case = Case(load, (100, 200, 300, 390, 470, 540), tick=10, target=min(target, 59), out=12, into=6, replay=5)
    cost, _, found = case.solve()
    assert case.keeps(found)
    for _ in range(20):
        held = np.repeat(random.integers(2, 7, 8), 5)
        if case.keeps(held.tolist()):
            assert cost <= 10 * held.sum()
    assert cost <= 10 * 6 * 40


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 600), min_size=1, max_size=20), st.integers(0, 9), st.integers(0, 9))
def test_without_buffering_the_ideal_costs_least(load: list[int], out: int, into: int) -> None:
    case = Case(tuple(load), (100, 200, 300, 400, 500, 600), tick=10, target=0, out=out, into=into, replay=0)
    assert 10 * ideal(load, case.capacity).sum() <= case.solve()[0]


def test_free_rescaling_without_buffering_is_the_ideal() -> None:
    load = [50, 150, 250, 100, 0, 300]
    case = Case(tuple(load), (100, 200, 300), tick=10, target=0, out=0, into=0, replay=0)
    assert case.solve()[2] == ideal(load, case.capacity).tolist() == [1, 2, 3, 1, 1, 3]


BY_HAND = {
    # A step from 100 to 200 records/s after four ticks of 10 s, and a rescale that stops the job for 5 s: with less
    # patience than that no rescale is possible.
    "no time to rescale": (Case((100,) * 4 + (200,) * 4, (100, 200, 300), 10, 4, 5, 5, 0), [2] * 8),
    # At the step, 1000 records gather in 5 s, and from then on all wait for just these 5 s.
    "at the step": (Case((100,) * 4 + (200,) * 4, (100, 200, 300), 10, 5, 5, 5, 0), [1, 1, 1, 1, 2, 2, 2, 2]),
    # With 10 s one worker may stay for another tick, in which 1000 records gather, and 1000 more in the downtime.
    "after the step": (Case((100,) * 4 + (200,) * 4, (100, 200, 300), 10, 10, 5, 5, 0), [1, 1, 1, 1, 1, 2, 2, 2]),
    # What a rescale brings back takes some of that patience: 5 s of replay and 5 s of downtime are 10 s of waiting.
    "with replay": (Case((100,) * 4 + (200,) * 4, (100, 200, 300), 10, 10, 5, 5, 5), [1, 1, 1, 1, 2, 2, 2, 2]),
    "with more replay": (Case((100,) * 4 + (200,) * 4, (100, 200, 300), 10, 10, 5, 5, 6), [2] * 8),
    "starts with too many": (Case((100,) * 4, (100, 200), 10, 5, 5, 5, 0, start=2), [1, 1, 1, 1]),
    "stays with too many": (Case((100,) * 4, (100, 200), 10, 4, 5, 5, 0, start=2), [2, 2, 2, 2]),
    "only every other tick": (Case((100,) * 3 + (200,) * 3, (100, 200), 10, 0, 0, 0, 0, every=2), [1, 1, 2, 2, 2, 2]),
}


@pytest.mark.parametrize(("case", "workers"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand(case: Case, workers: list[int]) -> None:
    assert case.keeps(workers)
    assert case.solve()[2] == workers


def test_backlog_is_told() -> None:
    plan = oracle(
        [100, 100, 100], linear, tick=10, max_workers=2, latency_target=9, downtime_out=9, downtime_in=9, start=2
    )
    assert plan.workers.tolist() == [1, 1, 1]
    assert (plan.backlog.tolist(), plan.worker_seconds, plan.rescales) == ([900, 900, 900], 30, 1)


def test_six_hours_at_a_decision_a_minute_are_within_reach() -> None:
    load = 30_000 - 25_000 * np.cos(np.arange(360) / 360 * 4 * np.pi)
    plan = oracle(
        load,
        lambda n: 5000.0 * n,
        tick=60,
        max_workers=18,
        latency_target=60,
        downtime_out=30,
        downtime_in=15,
        replay=10,
    )
    assert 5.9 * 21600 < plan.worker_seconds < 6.5 * 21600
    assert 10 < plan.rescales < 40


REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "more than all can do": (
        {"load": [100, 900]},
        "with at most 2 workers (200 records/s) and these downtimes none",
    ),
    "no patience": ({"latency_target": -1}, "latency_target must be 0 seconds or more, got -1"),
    "no tick": ({"tick": 0}, "tick must be above 0 seconds, got 0"),
    "no load": ({"load": []}, "load must have at least one tick, got 0"),
    "negative load": ({"load": [-1]}, "load must be a list of records/s, 0 or more each, got [-1]"),
    "unknown load": ({"load": [float("nan")]}, "load must be a list of records/s, 0 or more each, got [nan]"),
    "start out of bounds": ({"start": 3}, "start must be within 1..2, got 3"),
    "bounds the wrong way": ({"min_workers": 3}, "max_workers must be at least min_workers (3), got 2"),
    "capacity of fewer": ({"capacity": [100]}, "capacity must be known for up to max_workers (2), got 1"),
    "negative capacity": ({"capacity": [100, -1]}, "capacity of 2 workers must be 0 records/s or more, got -1"),
    "never": ({"every": 0}, "every must be at least 1 tick, got 0"),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_question_is_refused(change: dict[str, object], message: str) -> None:
    usual: dict[str, object] = {"load": [100, 100], "capacity": linear, "tick": 10, "max_workers": 2}
    usual |= {"latency_target": 0, "downtime_out": 0, "downtime_in": 0}
    asked = usual | change
    with pytest.raises(ConfigError) as refusal:
        oracle(asked.pop("load"), asked.pop("capacity"), **asked)  # type: ignore[arg-type]
    assert message in str(refusal.value)


def test_a_function_of_capacity_needs_an_end() -> None:
    with pytest.raises(ConfigError, match="max_workers must be given with a function of capacity, got None"):
        ideal([1], linear)
