"""Dhalion's own example (20 % suspended, 80 % normal: a quarter more), and DS2's word count on Heron (sec. 5.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from penstock.core import Decision, Observation, Operator, Policy, Worker
from penstock.errors import ConfigError
from penstock.models.dhalion import Action, Blacklist, bottlenecks, scaled_down, scaled_up, spare
from penstock.policies.dhalion import Dhalion
from penstock.testing import PolicyContract, history

# name: parallelism, suspended -> parallelism
UP: dict[str, tuple[int, float, int]] = {
    "20 % suspended: a quarter more": (4, 0.2, 5),
    "rounded up": (5, 0.2, 7),
    "half suspended: twice": (3, 0.5, 6),
    "at least one more": (1, 0.06, 2),
    "always suspended": (1, 1.0, 100),
}


@pytest.mark.parametrize(("parallelism", "suspended", "after"), UP.values(), ids=UP)
def test_scaled_up(parallelism: int, suspended: float, after: int) -> None:
    assert scaled_up(parallelism, suspended) == after


def test_scaled_down() -> None:
    assert [scaled_down(n, 0.2) for n in (1, 2, 5, 9, 10)] == [1, 1, 4, 7, 8]


def test_the_root_of_backpressure() -> None:
    chain = (
        Operator("s", 1, backpressure=0.6, downstream=("a", "x")),
        Operator("a", 1, backpressure=0.3, downstream=("b",)),
        Operator("b", 1, backpressure=0.0),
        Operator("x", 1, backpressure=0.0),
    )
    found = bottlenecks(chain, 0.05)
    assert found is not None
    assert [(root.operator.name, root.suspended) for root in found] == [("x", 0.6), ("b", 0.3)]
    assert bottlenecks([replace(o, backpressure=0.01) for o in chain], 0.05) == ()
    assert bottlenecks([replace(o, backpressure=None) for o in chain], 0.05) is None


def test_spare_operators() -> None:
    chain = (
        Operator("s", 9, queue=0, busy=0.0, downstream=("a", "b", "c", "d", "e")),
        Operator("a", 4, queue=40, busy=0.5),
        Operator("b", 4, queue=41, busy=0.1),
        Operator("c", 1, queue=0, busy=0.1),
        Operator("d", 4, queue=None, busy=0.1),
        Operator("e", 4, queue=0, busy=0.2),
    )
    assert [o.name for o in spare(chain, 10)] == ["e", "a"], (
        "few waiting, more than one, not a source; least busy first"
    )


def test_blacklist_by_share_of_failures() -> None:
    blacklist, up = Blacklist(0.5), Action("a", "up", None)
    assert not blacklist.has("a", "up", 9.0)
    blacklist.note(up, helped=True, now=1.0)
    blacklist.note(up, helped=True, now=1.0)
    blacklist.note(up, helped=False, now=9.0)
    assert not blacklist.has("a", "up", 9.0), "one of three"
    blacklist.note(up, helped=False, now=9.0)
    assert blacklist.has("a", "up", 9.0)
    assert not blacklist.has("a", "down", 9.0)
    assert not blacklist.has("b", "up", 9.0)


def test_what_failed_long_ago_may_be_forgiven() -> None:
    blacklist = Blacklist(0.5, after=100.0)
    blacklist.note(Action("a", "down", None), helped=False, now=1000.0)
    assert blacklist.has("a", "down", 1099.0)
    assert not blacklist.has("a", "down", 1100.0)
    assert not blacklist.has("a", "down", 1000.0), "and forgotten"


def heron(at: float, flatmap: int = 1, count: int = 1, target: float = 1e6, **known: Any) -> Observation:
    """The word count of DS2's sec. 5.2, rates per minute: FlatMap splits 100 K, Count counts 1 M per instance."""
    read = min(target, flatmap * 1e5, count * 1e6 / 20)
    held = 1 - read / target
    by_count = count * 1e6 / 20 < min(target, flatmap * 1e5)
    full = 1000.0
    operators = (
        Operator("source", 1, rate_out=read, backpressure=held, downstream=("flatmap",)),
        Operator(
            "flatmap",
            flatmap,
            read,
            20 * read,
            busy=read / (flatmap * 1e5),
            backpressure=held if by_count else 0.0,
            queue=full if held > 0 else 0.0,
            downstream=("count",),
        ),
        Operator("count", count, 20 * read, 0.0, 20 * read / (count * 1e6), 0.0, queue=full if by_count else 0.0),
    )
    workers = 1 + flatmap + count
    fields: dict[str, Any] = {"input_rate": target, "processed_rate": read, "operators": operators} | known
    return Observation(at, workers, fields.pop("requested", workers), **fields)


MANY: dict[str, Any] = {"max_workers": 64}


def test_word_count_takes_more_than_one_step_one_operator_at_a_time() -> None:
    policy, at, flatmap, count, steps = Dhalion(**MANY), 0.0, 1, 1, []
    for _ in range(10):
        decision = run(policy, [heron(at, flatmap, count), heron(at + 300, flatmap, count)])
        at += 600
        if decision.reason.code != "dhalion.under_provisioned":
            break
        changed = {name: n for name, n in decision.parallelism.items() if n not in (1, flatmap, count)}
        assert len(changed) == 1
        flatmap, count = decision.parallelism["flatmap"], decision.parallelism["count"]
        steps.append((flatmap, count))
    assert len(steps) > 1
    assert flatmap >= 10
    assert count >= 20


def quiet(at: float, flatmap: int = 12, count: int = 24, **known: Any) -> Observation:
    return heron(at, flatmap, count, **known)


def job(at: float, load: float, read: float, backlog: float | None = 0.0, workers: int = 4) -> Observation:
    per_worker = tuple(Worker(f"w{n}", cpu=0.5) for n in range(workers))
    return Observation(at, workers, workers, None, None, load, read, backlog, per_worker=per_worker)


def without(observation: Observation, field: Literal["queue", "backpressure"]) -> Observation:
    missing: dict[str, Any] = {field: None}
    return replace(observation, operators=tuple(replace(o, **missing) for o in observation.operators))


LOOP = (
    Operator("a", 2, backpressure=0.5, downstream=("b",)),
    Operator("b", 2, backpressure=0.5, downstream=("a",)),
)
# name: settings, observations (learned and decided on one by one) -> workers, code of the last decision
DECISIONS: dict[str, tuple[dict[str, Any], list[Observation], int | None, str]] = {
    "the bottleneck first: count to 20": (MANY, [heron(0)], 22, "dhalion.under_provisioned"),
    "then the next: flatmap to 10": (MANY, [heron(0, 1, 20)], 31, "dhalion.under_provisioned"),
    "nothing held back, nothing waits: the least busy": (MANY, [quiet(0)], 34, "dhalion.over_provisioned"),
    "never, as in Heron's public code": ({**MANY, "scale_down_share": 0.0}, [quiet(0)], 37, "dhalion.fits"),
    "by a larger share": ({**MANY, "scale_down_share": 0.5}, [quiet(0)], 31, "dhalion.over_provisioned"),
    "one of each is not spared": (MANY, [heron(0, 1, 1, target=1e4)], 3, "dhalion.fits"),
    "queues not known: not down": (MANY, [without(quiet(0), "queue")], 37, "dhalion.fits"),
    "a little backpressure is none": (MANY, [heron(0, 10, 20, target=1.04e6)], 27, "dhalion.over_provisioned"),
    "settling": (MANY, [heron(59, last_rescale_at=0.0)], 3, "dhalion.settling"),
    "settled": (MANY, [heron(60, last_rescale_at=0.0)], 22, "dhalion.under_provisioned"),
    "means over the interval": (MANY, [heron(0, 10, 20), heron(299, 10, 20, 2e6)], 35, "dhalion.under_provisioned"),
    "one count for all": (
        {"combine": "highest", "max_workers": 40},
        [heron(0, 4, 20, requested=20)],
        10,
        "dhalion.under_provisioned",
    ),
    "backpressure without a root": (MANY, [heron(0, operators=LOOP)], 3, "dhalion.no_root"),
    "a job behind its queue: 200 arrive, 100 are read": (
        {},
        [job(0, 200, 100, backlog=500)],
        8,
        "dhalion.under_provisioned",
    ),
    "a job that reads all": ({}, [job(0, 200, 200, backlog=40)], 3, "dhalion.over_provisioned"),
    "a job with some backlog": ({}, [job(0, 200, 200, backlog=400)], 4, "dhalion.fits"),
    "a job, its backlog not known": ({}, [job(0, 200, 100, backlog=None)], 4, "dhalion.fits"),
    "backpressure not known": (MANY, [without(heron(0), "backpressure")], 3, "dhalion.unknown"),
    "operators gone": (MANY, [quiet(0), job(400, 9, 9, workers=37)], 37, "dhalion.unknown"),
    "blind": (MANY, [quiet(0), Observation(1, requested=37)], 37, "dhalion.unknown"),
    "requested not known": (MANY, [Observation(0, 4, None, backlog=1.0)], None, "dhalion.unknown"),
    "up to the bound": ({"max_workers": 8}, [heron(0)], 8, "bounds.max"),
    "at the bound": ({"max_workers": 3}, [heron(0)], 3, "bounds.max"),
    "down to the bound": ({**MANY, "min_workers": 36}, [quiet(0)], 36, "bounds.min"),
    "from above the bound, settling": ({"max_workers": 2}, [heron(9, last_rescale_at=0.0)], 2, "bounds.max"),
}


@pytest.mark.parametrize(("settings", "observations", "workers", "code"), DECISIONS.values(), ids=DECISIONS)
def test_decision(settings: dict[str, Any], observations: list[Observation], workers: int | None, code: str) -> None:
    decision = run(Dhalion(**settings), observations)
    assert (decision.workers, decision.reason.code) == (workers, code)
    if decision.parallelism:
        assert sum(decision.parallelism.values()) == decision.workers


def run(policy: Policy, observations: list[Observation]) -> Decision:
    for observation in observations:
        policy.learn(observation)
        decision = policy.decide(observation)
    return decision


def test_more_that_did_not_help_is_not_tried_again() -> None:
    policy = Dhalion(**MANY)
    assert run(policy, [heron(0, 1, 40)]).parallelism["flatmap"] == 10
    # All ten are there and no more is read than before: it is not instances that flatmap lacks.
    stuck = heron(300, 10, 40).operators
    slow = (
        replace(stuck[0], backpressure=0.9),
        replace(stuck[1], rate_in=1e5, backpressure=0.0, busy=1.0),
        replace(stuck[2], backpressure=0.0, queue=0.0),
    )
    first = run(policy, [heron(at, 10, 40, operators=slow, processed_rate=1e5) for at in (300, 600)])
    assert (first.workers, first.reason.code) == (51, "dhalion.blacklisted")
    assert first.reason.sentence == "More of flatmap did not help before: it is not tried again"


def test_more_that_helped_may_be_tried_again() -> None:
    policy = Dhalion(**MANY)
    run(policy, [heron(0, 2, 40)])
    again = run(policy, [heron(at, 5, 40) for at in (300, 600)])
    assert (again.reason.code, again.parallelism["flatmap"]) == ("dhalion.under_provisioned", 10)


def test_fewer_that_led_to_backpressure_is_not_tried_again() -> None:
    policy = Dhalion(**MANY)
    down = run(policy, [quiet(0, 12, 22)])
    assert (down.parallelism["flatmap"], down.parallelism["count"]) == (9, 22)
    up = run(policy, [quiet(at, 9, 22) for at in (300, 600)])
    assert (up.parallelism["flatmap"], up.reason.code) == (10, "dhalion.under_provisioned")
    other = run(policy, [quiet(at, 12, 22, last_rescale_at=700.0) for at in (900, 1200)])
    assert (other.parallelism["flatmap"], other.parallelism["count"]) == (12, 17), "count may still be tried"
    run(policy, [quiet(at, 12, 17) for at in (1500, 1800)])
    end = run(policy, [quiet(at, 12, 22, last_rescale_at=1900.0) for at in (2100, 2400)])
    assert (end.workers, end.reason.code) == (35, "dhalion.blacklisted")


def test_what_was_only_advised_is_no_action() -> None:
    policy = Dhalion(**MANY)
    for at in range(0, 3000, 300):
        assert run(policy, [heron(at)]).reason.code == "dhalion.under_provisioned"


def test_what_somebody_else_did_is_no_action() -> None:
    """More was advised, fewer were made: that more did not help is not known by that."""
    policy = Dhalion(**MANY)
    assert run(policy, [heron(0, 5, 40)]).parallelism["flatmap"] == 10
    then = run(policy, [heron(at, 4, 40) for at in (300, 600)])
    assert (then.parallelism["flatmap"], then.reason.code) == (10, "dhalion.under_provisioned")


def test_a_person_can_read_it() -> None:
    assert run(Dhalion(**MANY), [heron(0)]).reason.sentence == (
        "count holds back what is before it 95 % of the time: 1 x (1 + 95/5) -> 20"
    )
    assert run(Dhalion(**MANY), [quiet(0)]).reason.sentence == (
        "Nothing is held back and nothing waits before flatmap: 12 -> 9"
    )


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "percent": ({"backpressure_threshold": 5}, r"backpressure_threshold must be in \(0, 1\), got 5"),
    "all of them": ({"scale_down_share": 1.0}, r"scale_down_share must be in \[0, 1\), got 1.0"),
    "never blacklisted": ({"blacklist_share": 1.5}, r"blacklist_share must be in \(0, 1\], got 1.5"),
    "forgiven at once": ({"forgive_after": 0}, "forgive_after must be above 0 seconds, or unset, got 0"),
    "negative": ({"settle": -1}, "settle must be 0 or more, got -1"),
    "no such way": ({"combine": "sum"}, "combine must be each or highest, got 'sum'"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Dhalion(**settings)


class TestContract(PolicyContract):
    def make(self) -> Policy:
        return Dhalion(min_workers=2, max_workers=9, interval=30)


class TestContractWithOperators(PolicyContract):
    def make(self) -> Policy:
        return Dhalion(min_workers=4, max_workers=20, interval=30, settle=10)

    def history(self) -> list[Observation]:
        def apart(observation: Observation) -> Observation:
            if observation.blind:
                return observation
            flatmap, load = (observation.workers or 2) // 2, observation.input_rate
            count = (observation.workers or 2) - 1 - flatmap
            return replace(observation, operators=heron(0, flatmap, count, 200 * (load or 1)).operators)

        return [apart(o) for o in (*history(4), *history(20, start=1_002_000), *history(4, start=1_004_000))]
