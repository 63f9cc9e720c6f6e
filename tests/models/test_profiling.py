"""The profile of a job: its scale-outs and rates, which deployments fell behind, and its text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.errors import ConfigError
from penstock.models.profiling import (
    Limit,
    ObservedRecovery,
    Point,
    ProfilingData,
    groups,
    judge,
    profile_from,
    rising,
    scale_outs,
)

DATA = ProfilingData(
    (Point(2, 1000.0, 1.0, 1000.0), Point(4, 1000.0, 1.1, 1000.0)),
    (Limit(2, 1500.0), Limit(4, 2900.0)),
    (ObservedRecovery(4, 800.0, 120.0, 20.0),),
    9000.0,
    1000.0,
)


@pytest.mark.parametrize(
    ("least", "most", "count", "expected"),
    [
        (2, 24, 8, (2, 5, 8, 11, 15, 18, 21, 24)),  # sec. IV-B
        (1, 4, 8, (1, 2, 3, 4)),
        (2, 6, 3, (2, 4, 6)),
        (3, 3, 8, (3,)),
        (2, 6, 1, (6,)),
    ],
)
def test_scale_outs_are_evenly_spaced_with_both_ends(
    least: int, most: int, count: int, expected: tuple[int, ...]
) -> None:
    assert scale_outs(least, most, count) == expected


@pytest.mark.parametrize(
    ("least", "most", "count", "field"), [(0, 4, 2, "least"), (4, 2, 2, "most"), (1, 2, 0, "count")]
)
def test_scale_outs_that_cannot_be(least: int, most: int, count: int, field: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{field} must be at least"):
        scale_outs(least, most, count)


def test_rates_rise_from_the_first() -> None:
    assert rising()[:3] == (20_000.0, 40_000.0, 60_000.0)
    assert rising(500.0, 100.0, 2) == (500.0, 600.0)
    with pytest.raises(ConfigError, match=r"step must be above 0 records/s, got 0"):
        rising(1.0, 0.0)


def at(rate: float, **latencies: float) -> list[Point]:
    """Deployments at one rate: w2=1.0 is one of two workers with a second of latency."""
    return [Point(int(name[1:]), rate, latency, rate) for name, latency in latencies.items()]


CASES: dict[str, tuple[list[Point], list[Point], list[int]]] = {
    "all alike": (at(20, w2=1.08, w5=1.04, w8=1.04), [], []),
    "one fell behind": (at(40, w2=36.3, w5=1.03, w8=1.04, w11=1.03), [], [2]),
    "two fell behind, by far and by little": (at(140, w5=400.0, w8=46.0, w11=1.2, w14=1.1, w17=1.2), [], [5, 8]),
    "noise is not two groups": (at(60, w5=1.0, w8=0.8, w11=1.3, w14=0.9), [], []),
    "all of three at once: each by its own past": (
        at(80, w2=40.0, w5=41.0, w8=39.0),
        [*at(40, w2=1.0, w5=1.0, w8=1.0), *at(60, w2=1.1, w5=1.0, w8=1.0)],
        [2, 5, 8],
    ),
    "two are left: one by its own past": (
        at(290, w20=19.7, w23=1.4),
        [*at(240, w20=1.45, w23=1.46), *at(260, w20=1.54, w23=1.54)],
        [20],
    ),
    "one is left and keeps up": (at(310, w23=1.5), at(290, w23=1.4), []),
    "a line may not foretell more than was ever seen": (
        at(80, w8=9.0),
        [*at(20, w8=0.5), *at(40, w8=2.5)],
        [8],
    ),
    "one is left and leaves much undone, not yet late": ([Point(8, 100.0, 1.2, 80.0)], at(80, w8=1.1), [8]),
    "no past: by what it leaves undone": ([Point(2, 100.0, 30.0, 60.0), Point(4, 100.0, 1.0, 100.0)], [], [2]),
}


@pytest.mark.parametrize("name", CASES)
def test_who_fell_behind(name: str) -> None:
    measured, before, expected = CASES[name]
    assert [point.workers for point in judge(measured, before)] == expected


def test_groups_are_cut_where_latencies_are_far_apart() -> None:
    two = groups([1.0, 1.1, 0.9, 40.0, 50.0])
    assert two.boundary is not None
    assert 1.1 < two.boundary < 40
    assert (two.valid(2.0), two.valid(45.0)) == (True, False)
    one = groups([1.0, 1.1, 0.9])
    assert one.boundary is None
    assert one.valid(1.3)


def test_text_comes_back_as_it_was() -> None:
    assert profile_from(DATA.text()) == DATA


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(DATA.text()).items() if name != key}


BAD: dict[str, tuple[str, str]] = {
    "no JSON": ("a profile", "profile must be what `penstock profile` wrote, got 'a profile'"),
    "a list": ("[1]", "profile must be what `penstock profile` wrote"),
    "a later format": (json.dumps({**without("format"), "format": 2}), "profile.format must be 1, got 2"),
    "no limits": (json.dumps(without("limits")), "profile must be what `penstock profile` wrote"),
    "no points": (json.dumps({**without("points"), "points": []}), "profile must have points and the limit of"),
    "a text for a number": (
        json.dumps({**without("limits"), "limits": [{"workers": 2, "rate": "much"}]}),
        "profile must be what `penstock profile` wrote",
    ),
    "below zero": (
        json.dumps({**without("limits"), "limits": [{"workers": 2, "rate": -1.0}]}),
        "profile.rate must be a number that can be, got -1.0",
    ),
    "half a worker": (
        json.dumps({**without("limits"), "limits": [{"workers": 0.5, "rate": 1.0}]}),
        "profile.workers must be a number that can be, got 0.5",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_text_that_is_no_profile(name: str) -> None:
    text, said = BAD[name]
    with pytest.raises(ConfigError) as caught:
        profile_from(text)
    assert str(caught.value).startswith(said)
