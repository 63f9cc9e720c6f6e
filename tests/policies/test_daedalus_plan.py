"""Algorithm 1, branch by branch: each row is a situation, the number it must give, and the reason's code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.models.daedalus import Rules, Situation, Waste, plan, walk


def rising(low: float, high: float, seconds: float = 900) -> Callable[[float], float]:
    """A load forecast to rise evenly."""
    return lambda until: low + (high - low) * min(until, seconds) / seconds


BASE = Situation(
    current=4,
    least=1,
    most=6,
    load=2500,
    backlog=0,
    since_rescale=None,
    capacity=lambda n: 1000.0 * n,
    recovery=lambda n: 60.0,
    failure=lambda _: 60.0,
    peak=lambda _: 2600.0,
)

TABLE = {
    "recent rescale, enough capacity: long-lived": ({"since_rescale": 300.0}, 4, "daedalus.long_lived"),
    "recent rescale, as old as the window: examined": ({"since_rescale": 600.0}, 3, "daedalus.in"),
    "recent rescale, load above capacity": (
        {"since_rescale": 300.0, "load": 4500.0, "peak": lambda _: 4600.0},
        5,
        "daedalus.out",
    ),
    "recent rescale, load just at capacity": (
        {"since_rescale": 300.0, "load": 4000.0, "peak": lambda _: 3000.0},
        5,
        "daedalus.out",
    ),
    "recent rescale, forecast until the next loop above capacity": (
        {"since_rescale": 300.0, "load": 3900.0, "peak": lambda _: 4100.0},
        5,
        "daedalus.out",
    ),
    "recent rescale, forecast above capacity only after the next loop": (
        {"since_rescale": 300.0, "load": 3000.0, "peak": rising(3000, 5500)},
        4,
        "daedalus.long_lived",
    ),
    "no rescale so far: examined": ({}, 3, "daedalus.in"),
    "load above the current capacity: out": ({"load": 4100.0, "peak": lambda _: 4200.0}, 5, "daedalus.out"),
    "the current one fits: stay": ({"load": 3500.0, "peak": lambda _: 3600.0}, 4, "daedalus.fits"),
    "the current one recovers too slowly: out": (
        {"load": 3500.0, "peak": lambda _: 3600.0, "recovery": lambda n: 700.0 if n < 5 else 500.0},
        5,
        "daedalus.out",
    ),
    "recovery exactly at the target is in time": (
        {"load": 3500.0, "peak": lambda _: 3600.0, "recovery": lambda _: 600.0},
        4,
        "daedalus.fits",
    ),
    "never recovers anywhere: all of them": ({"recovery": lambda _: None}, 6, "daedalus.none_fits"),
    "the load outgrows the current one while it recovers: out": (
        {"load": 3500.0, "peak": rising(3500, 5000), "recovery": lambda _: 400.0},
        6,
        "daedalus.out",
    ),
    "the load outgrows the current one only after its recovery: stay": (
        {"load": 3500.0, "peak": rising(3500, 5000), "recovery": lambda _: 60.0},
        4,
        "daedalus.fits",
    ),
    "fewer could do it, but would not survive a failure": (
        {"failure": lambda n: 700.0 if n < 4 else 60.0},
        4,
        "daedalus.fits",
    ),
    "fewer could do it, but the backlog is not worked off": ({"backlog": 3500.0}, 4, "daedalus.fits"),
    "fewer could do it, the backlog is within their second": ({"backlog": 3000.0}, 3, "daedalus.in"),
    "fewer could do it now, but not later": ({"peak": rising(2500, 3400)}, 4, "daedalus.fits"),
    "capacity just at the peak is not above it": (
        {"peak": lambda s: 3000.0 if s > 60 else 2600.0},
        4,
        "daedalus.fits",
    ),
    "out skips those that the peak would outgrow": (
        {"load": 4500.0, "peak": rising(4500, 5400)},
        6,
        "daedalus.out",
    ),
    "nothing fits: all of them": ({"load": 7000.0, "peak": lambda _: 8000.0}, 6, "daedalus.none_fits"),
    "no load: one": ({"load": 0.0, "peak": lambda _: 0.0}, 1, "daedalus.in"),
    "never below the least": ({"load": 0.0, "peak": lambda _: 0.0, "least": 2}, 2, "daedalus.in"),
}


@pytest.mark.parametrize(("change", "workers", "code"), TABLE.values(), ids=TABLE.keys())
def test_every_branch(change: dict[str, object], workers: int, code: str) -> None:
    decision = plan(replace(BASE, **change), Rules())  # type: ignore[arg-type]
    assert (decision.workers, decision.reason.code) == (workers, code)
    assert decision.expects is not None
    assert decision.expects.capacity == 1000.0 * workers


# Four workers, a price of 2700 worker-seconds and a horizon of 900 s: each spare one is worth 900 from the start.
WORTH = {
    "one to spare since now": ({}, 4, "daedalus.put_off"),
    "one to spare for nearly half an hour": ({"wasted": 1799.0}, 4, "daedalus.put_off"),
    "one to spare for half an hour": ({"wasted": 1800.0}, 3, "daedalus.in"),
    "two to spare": ({"load": 1500.0, "peak": lambda _: 1600.0}, 4, "daedalus.put_off"),
    "two to spare, and some waste": ({"load": 1500.0, "peak": lambda _: 1600.0, "wasted": 900.0}, 2, "daedalus.in"),
    "three to spare": ({"load": 500.0, "peak": lambda _: 600.0}, 1, "daedalus.in"),
    "out has no price": ({"load": 4100.0, "peak": lambda _: 4200.0}, 5, "daedalus.out"),
    "they fit": ({"load": 3500.0, "peak": lambda _: 3600.0}, 4, "daedalus.fits"),
    "recent rescale": ({"since_rescale": 300.0, "wasted": 9000.0}, 4, "daedalus.long_lived"),
}


@pytest.mark.parametrize(("change", "workers", "code"), WORTH.values(), ids=WORTH.keys())
def test_a_scale_in_must_be_worth_it(change: dict[str, object], workers: int, code: str) -> None:
    decision = plan(replace(BASE, **change), Rules(worth=2700))  # type: ignore[arg-type]
    assert (decision.workers, decision.reason.code) == (workers, code)
    assert decision.expects is not None
    assert decision.expects.capacity == 1000.0 * workers


# Four workers do what arrives, but would not recover in time if one were lost, as the load is thought to rise.
FORESEEN: dict[str, object] = {
    "load": 3500.0,
    "peak": lambda _: 3600.0,
    "recovery": lambda n: 700.0 if n < 5 else 500.0,
}
CONFIRMED = {
    "foreseen for the first time": ({"foreseen": 1}, 4, "daedalus.unconfirmed"),
    "and again": ({"foreseen": 2}, 4, "daedalus.unconfirmed"),
    "three times in a row": ({"foreseen": 3}, 5, "daedalus.out"),
    "due: more arrives than they can do": ({"load": 4100.0, "foreseen": 0}, 5, "daedalus.out"),
    "due: as much arrives as they can do": ({"load": 4000.0, "foreseen": 0}, 5, "daedalus.out"),
    "due until the next loop": ({"peak": lambda _: 4000.0, "foreseen": 0}, 5, "daedalus.out"),
    "due: more waits than they do in a second": ({"backlog": 4001.0, "foreseen": 0}, 5, "daedalus.out"),
    "in flight": ({"backlog": 4000.0, "foreseen": 1}, 4, "daedalus.unconfirmed"),
    "none fits, some day": ({"recovery": lambda _: None, "foreseen": 1}, 4, "daedalus.unconfirmed"),
    "none fits, confirmed": ({"recovery": lambda _: None, "foreseen": 3}, 6, "daedalus.none_fits"),
    "fewer need no confirmation": (
        {"load": 500.0, "peak": lambda _: 600.0, "recovery": lambda _: 60.0},
        1,
        "daedalus.in",
    ),
    "those that run fit": ({"recovery": lambda _: 60.0, "foreseen": 1}, 4, "daedalus.fits"),
}

NONE_CHOSEN = ("daedalus.unconfirmed", "daedalus.none_fits")


@pytest.mark.parametrize(("change", "workers", "code"), CONFIRMED.values(), ids=CONFIRMED.keys())
def test_what_is_only_foreseen_is_followed_once_confirmed(change: dict[str, object], workers: int, code: str) -> None:
    situation = replace(BASE, **(FORESEEN | change))  # type: ignore[arg-type]
    decision = plan(situation, Rules(confirmations=3))
    assert (decision.workers, decision.reason.code) == (workers, code)
    assert any(option.chosen for option in decision.options) == (code not in NONE_CHOSEN)
    at_once = plan(situation, Rules())
    assert at_once.workers == (workers if code != "daedalus.unconfirmed" else walk(situation, Rules()).workers)


def test_what_is_not_confirmed_is_told() -> None:
    decision = plan(replace(BASE, **FORESEEN, foreseen=2), Rules(confirmations=3))  # type: ignore[arg-type]
    assert decision.reason.facts == {"workers": 5, "foreseen": 2, "confirmations": 3}
    assert decision.reason.sentence == (
        "5 workers may be needed, by 2 of the 3 loops in a row that it takes; until the next one 4 workers will do"
    )
    assert [option.workers for option in decision.options] == [1, 2, 3, 4, 5]
    assert decision.options[-1].reason.code == "daedalus.unconfirmed"


def test_what_is_put_off_is_told() -> None:
    decision = plan(replace(BASE, wasted=600), Rules(worth=2700))
    assert decision.reason.facts == {"workers": 3, "wasted": 600, "worth": 1500, "price": 2700}
    assert "3 workers would do, which is worth 1,500 worker-seconds" in decision.reason.sentence
    assert [(o.workers, o.chosen) for o in decision.options] == [(1, False), (2, False), (3, False)]
    assert decision.options[-1].reason.code == "daedalus.put_off"


# Four workers, of 1000 records/s each; what the load is on its way to after the forecast counts only on the way out.
TREND = {
    "five are needed, and a sixth soon after": ({"load": 4100.0, "peak": lambda _: 4900.0, "trend": 5500.0}, 6),
    "five are needed, and do afterwards": ({"load": 4100.0, "peak": lambda _: 4800.0, "trend": 4999.0}, 5),
    "just as much as five can do is too much for them": (
        {"load": 4100.0, "peak": lambda _: 4800.0, "trend": 5000.0},
        6,
    ),
    "more than all can do: all": ({"load": 4100.0, "peak": lambda _: 4800.0, "trend": 9000.0}, 6),
    "a peak that is passed before the end": ({"load": 4100.0, "peak": lambda _: 5200.0, "trend": 1000.0}, 6),
    "a fall takes nobody away before it comes": ({"load": 3500.0, "peak": lambda _: 3600.0, "trend": -500.0}, 4),
    "nobody is added for a trend alone": ({"load": 3500.0, "peak": lambda _: 3600.0, "trend": 5500.0}, 4),
    "nor kept": ({"load": 2500.0, "peak": lambda _: 2900.0, "trend": 5500.0}, 3),
}


@pytest.mark.parametrize(("change", "workers"), TREND.values(), ids=TREND.keys())
def test_those_that_are_needed_soon_come_along(change: dict[str, object], workers: int) -> None:
    assert plan(replace(BASE, **change), Rules()).workers == workers  # type: ignore[arg-type]


def test_who_comes_along_is_told() -> None:
    decision = plan(replace(BASE, load=4100.0, peak=lambda _: 4900.0, trend=5500.0), Rules())
    five, six = decision.options[-2:]
    assert (five.reason.code, six.reason.code) == ("capacity.below_trend", "daedalus.out")
    assert five.reason.facts["trend"] == 5500.0
    assert "the 4,900 expected within 900 s, and the 5,500 that it is on its way to" in decision.reason.sentence


def test_waste_is_of_one_scale_out_and_ends_when_all_are_needed() -> None:
    waste = Waste()
    assert [waste.add(4, 1, 60), waste.add(4, 2, 60)] == [60, 180]
    assert waste.add(4, 0, 60) == 0, "all were needed"
    assert [waste.add(4, 1, 60), waste.add(3, 1, 60)] == [60, 60], "another scale-out"


def test_the_walk_is_visible() -> None:
    """Each scale-out up to the chosen one, and why not."""
    situation = replace(BASE, current=6, load=1500, backlog=3500, peak=rising(1500, 3100), recovery=lambda n: 900 / n)
    decision = plan(situation, Rules(recovery_target=400))
    assert [(o.workers, o.chosen, o.reason.code) for o in decision.options] == [
        (1, False, "capacity.below_load"),
        (2, False, "recovery.above_target"),
        (3, False, "backlog.above_capacity"),
        (4, True, "daedalus.in"),
    ]
    assert decision.options[-1].reason.facts["recovery"] == 225.0
    low = plan(replace(situation, backlog=0, peak=rising(1500, 3100)), Rules(recovery_target=400))
    assert [o.reason.code for o in low.options][2:] == ["capacity.below_peak", "daedalus.in"]
    steep = plan(replace(situation, backlog=0, peak=rising(1500, 8000)), Rules(recovery_target=400))
    assert steep.options[2].reason.code == "capacity.below_recovery_peak"


@given(
    current=st.integers(1, 12),
    load=st.floats(0, 20_000),
    factor=st.floats(1, 3),
    growth=st.floats(0.2, 3),
    backlog=st.floats(0, 50_000),
    since=st.one_of(st.none(), st.floats(0, 1200)),
    spread=st.lists(st.floats(100, 1500), min_size=12, max_size=12),
    worth=st.sampled_from([0.0, 2700.0]),
    wasted=st.floats(0, 3000),
    onward=st.floats(0, 5),
    foreseen=st.integers(0, 4),
)
def test_more_load_never_means_fewer_workers(
    current: int,
    load: float,
    factor: float,
    growth: float,
    backlog: float,
    since: float | None,
    spread: list[float],
    worth: float,
    wasted: float,
    onward: float,
    foreseen: int,
) -> None:
    """Monotone in load, for any capacities that grow with the workers, with recovery reckoned from spare capacity."""

    def at(load: float) -> int | None:
        def capacity(n: int) -> float:
            return sum(spread[:n])

        def recovery(n: int) -> float | None:
            spare = capacity(n) - load
            return None if spare <= 0 else 30 + (backlog + 40 * load) / spare

        situation = Situation(
            current,
            1,
            12,
            load,
            backlog,
            since,
            capacity,
            recovery,
            recovery,
            peak=rising(load, load * growth),
            trend=load * onward,
            wasted=wasted,
            foreseen=foreseen,
        )
        return plan(situation, Rules(worth=worth, confirmations=3)).workers

    low, high = at(load), at(load * factor)
    assert low is not None
    assert high is not None
    assert low <= high
