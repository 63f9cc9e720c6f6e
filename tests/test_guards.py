from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import guards
from penstock.core import Decision, Guard, Observation, Reason, Worker
from penstock.errors import ConfigError
from penstock.guards import GUARDS, Bounds, Cooldown, HoldWhenBlind, Stabilisation, StepLimit
from penstock.policies import POLICIES, make

WISH = Reason("test.wish", "The policy wants this")


def seen(at: float = 1000.0, requested: int | None = 4, workers: int | None = 4, **known: Any) -> Observation:
    full = {"input_rate": 100.0, "backlog": 0.0, "uptime": 500.0}
    return Observation(at=at, requested=requested, workers=workers, **(full | known))


STEADY_NOW = seen()


@dataclass
class Row:
    guard: Guard
    wanted: int | None
    workers: int | None
    code: str = "test.wish"
    now: Observation = STEADY_NOW
    past: Sequence[Observation] = ()


STEADY = [seen(at) for at in (960.0, 980.0)]  # sight for longer than the 30 s that HoldWhenBlind wants
CPUS = (Worker("a", cpu=0.5), Worker("b", cpu=0.5))
ONE_SILENT = (Worker("a", cpu=0.5), Worker("b"))
ROWS = {
    "bounds: within": Row(Bounds(1, 5), 5, 5),
    "bounds: above": Row(Bounds(1, 5), 6, 5, "bounds.max"),
    "bounds: below": Row(Bounds(2, 5), 1, 2, "bounds.min"),
    "bounds: a hold outside is corrected": Row(Bounds(1, 3), 4, 3, "bounds.max"),
    "bounds: also blind": Row(Bounds(1, 3), 4, 3, "bounds.max", Observation(at=0, requested=4)),
    "bounds: nothing known": Row(Bounds(1, 3), None, None),
    "cooldown: up too soon": Row(Cooldown(up=60), 5, 4, "cooldown.up", seen(last_rescale_at=941.0)),
    "cooldown: up in time": Row(Cooldown(up=60), 5, 5, now=seen(last_rescale_at=940.0)),
    "cooldown: down too soon": Row(Cooldown(down=60), 3, 4, "cooldown.down", seen(last_rescale_at=990.0)),
    "cooldown: down is not up": Row(Cooldown(down=60), 5, 5, now=seen(last_rescale_at=990.0)),
    "cooldown: never rescaled": Row(Cooldown(60, 60), 5, 5),
    "cooldown: no change": Row(Cooldown(60, 60), 4, 4, now=seen(last_rescale_at=990.0)),
    "stabilisation: first wish is what runs": Row(Stabilisation(), 2, 4, "stabilisation.down"),
    "stabilisation: up at once": Row(Stabilisation(), 9, 9),
    "stabilisation: up waits": Row(Stabilisation(up=60), 9, 4, "stabilisation.up"),
    "step limit: up": Row(StepLimit(up=2), 9, 6, "step_limit.up"),
    "step limit: down": Row(StepLimit(down=1), 1, 3, "step_limit.down"),
    "step limit: within": Row(StepLimit(2, 2), 2, 2),
    "step limit: unset": Row(StepLimit(), 90, 90),
    "blind: nothing measured, up": Row(HoldWhenBlind(), 9, 4, "blind.metrics", Observation(at=1000, requested=4)),
    "blind: nothing measured, down": Row(HoldWhenBlind(), 1, 4, "blind.metrics", Observation(at=1000, requested=4)),
    "blind: requested unknown": Row(HoldWhenBlind(), 1, None, "blind.requested", seen(requested=None)),
    "blind: all is seen": Row(HoldWhenBlind(), 1, 1, past=STEADY),
    "blind: up is free": Row(HoldWhenBlind(), 9, 9),
    "blind: workers unknown": Row(HoldWhenBlind(), 1, 4, "blind.workers", seen(workers=None), STEADY),
    "blind: no input rate": Row(HoldWhenBlind(), 1, 4, "blind.missing", seen(input_rate=None), STEADY),
    "blind: no backlog": Row(HoldWhenBlind(), 1, 4, "blind.missing", seen(backlog=None), STEADY),
    "blind: one worker silent": Row(
        HoldWhenBlind(),
        1,
        4,
        "blind.missing",
        seen(per_worker=ONE_SILENT),
        [replace(o, per_worker=CPUS) for o in STEADY],
    ),
    "blind: never measured is not missing": Row(
        HoldWhenBlind(), 1, 1, now=seen(backlog=None), past=[replace(o, backlog=None) for o in STEADY]
    ),
    "blind: idle has no latency": Row(HoldWhenBlind(), 1, 1, past=[replace(o, latency=1.0) for o in STEADY]),
    "blind: just restarted": Row(HoldWhenBlind(), 1, 4, "blind.restarted", seen(uptime=29.0), STEADY),
    "blind: first look": Row(HoldWhenBlind(), 1, 4, "blind.settling"),
    "blind: after an outage": Row(
        HoldWhenBlind(), 1, 4, "blind.settling", past=[*STEADY, Observation(at=985, requested=4), seen(990)]
    ),
    "blind: after a gap": Row(HoldWhenBlind(), 1, 4, "blind.settling", past=[seen(900), seen(910)]),
    "blind: a worker was lost": Row(
        HoldWhenBlind(), 1, 4, "blind.worker_lost", seen(workers=3), [*STEADY, seen(990, workers=3)]
    ),
    "blind: the lost is back": Row(HoldWhenBlind(), 1, 1, past=[*STEADY, seen(990, workers=3)]),
    "blind: the lost is given up": Row(
        HoldWhenBlind(patience=5), 1, 1, now=seen(workers=3), past=[*STEADY, seen(990, workers=3)]
    ),
    "blind: pending is not lost": Row(
        HoldWhenBlind(), 3, 3, now=seen(workers=2), past=[seen(t, workers=2) for t in (960.0, 980.0)]
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_guard(row: Row) -> None:
    for observation in (*row.past, row.now):
        row.guard.learn(observation)
    decision = row.guard.check(row.now, Decision(row.wanted, (WISH,)))
    assert (decision.workers, decision.reason.code) == (row.workers, row.code)
    assert decision.reasons[0] == WISH


def test_stabilisation_takes_the_highest_wish_of_its_window() -> None:
    guard = Stabilisation(down=60)
    wishes = [(0, 8, 8), (20, 3, 8), (40, 6, 8), (60, 3, 6), (80, 3, 6), (100, 3, 3)]
    for at, wish, workers in wishes:
        assert guard.check(seen(at, requested=8), Decision(wish, (WISH,))).workers == workers, at


def test_guards_are_made_by_name_and_make_themselves_again() -> None:
    assert list(GUARDS) == sorted(GUARDS)
    for name, cls in GUARDS.items():
        assert guards.make(name, **cls().config()) == cls()
    with pytest.raises(ConfigError, match=r"guard must be one of bounds, .*, got 'bound'; did you mean 'bounds'"):
        guards.make("bound")
    with pytest.raises(ConfigError, match=r"bounds.max_workers must be at least min_workers \(3\), got 2"):
        guards.make("bounds", min_workers=3, max_workers=2)


share = st.none() | st.floats(0, 1)
number = st.none() | st.floats(0, 1e6)
worker = st.builds(
    Worker,
    name=st.sampled_from("abcdefgh"),
    cpu=share,
    rate=number,
    started_at=st.none() | st.just(0.0),
    ready_at=st.none() | st.floats(0, 2000),
)
observation = st.builds(
    Observation,
    at=st.just(0.0),
    workers=st.none() | st.integers(0, 20),
    requested=st.none() | st.integers(1, 20),
    uptime=st.none() | st.floats(0, 1000),
    last_rescale_at=st.none() | st.just(0.0),
    input_rate=number,
    processed_rate=number,
    backlog=number,
    latency=number,
    per_worker=st.lists(worker, max_size=8).map(tuple),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Observation]:
    """Any observations, at least a third of them blind, with steps of up to two minutes in between."""
    at, history = 0.0, []
    for seen_now in draw(st.lists(observation, min_size=1, max_size=25)):
        at += draw(st.sampled_from([1.0, 15.0, 40.0, 120.0]))
        blind = Observation(at=at, requested=seen_now.requested, workers=seen_now.workers)
        history.append(blind if draw(st.integers(0, 2)) == 0 else replace(seen_now, at=at))
    return history


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=150, deadline=None)
@given(history=histories())
def test_nothing_missing_ever_scales_a_job_down(name: str, history: list[Observation]) -> None:
    policy = make(name, min_workers=2, max_workers=10)
    chain = guards.default(2, 10)
    restarted = True
    for o in history:
        policy.learn(o)
        for guard in chain:
            guard.learn(o)
        decision = policy.decide(o)
        for guard in chain:
            decision = guard.check(o, decision)
        if o.requested is None:
            assert decision.workers is None
            continue
        assert decision.workers is not None
        assert 2 <= decision.workers <= 10
        asked_for = min(10, o.requested)  # only the bound itself may take workers away
        if o.blind or o.workers is None or restarted or (o.uptime is not None and o.uptime < 30):
            assert decision.workers >= asked_for
        if o.blind:
            assert decision.workers == max(2, asked_for)
        restarted = o.blind
