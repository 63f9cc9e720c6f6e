from __future__ import annotations

from pathlib import Path

import pytest

from penstock import guards
from penstock.core import Decision, Policy, Reason
from penstock.journal import Decided, Journal, Record, read
from penstock.loop import Loop
from penstock.policies import make
from penstock.report.again import Pair, compare, otherwise, same_again
from penstock.testing import FakeClock, FakeTarget

WHY = Reason("test.reason", "because")


def run(path: Path, clock: FakeClock, policy: Policy, seconds: float, resume: bool = True) -> list[Record]:
    target = FakeTarget(clock, rate=lambda t: 1500 + 10 * t)
    with Journal.open(path) as journal:
        loop = Loop(target, policy, guards=guards.default(1, 8), journal=journal, clock=clock)
        if resume:
            loop.resume(path)
        end = clock.now() + seconds
        loop.run(lambda: clock.now() >= end)
    return list(read(path))


@pytest.mark.parametrize("resume", [True, False], ids=["resumed", "afresh"])
def test_a_journal_of_two_policies_is_replayed_by_both(tmp_path: Path, resume: bool) -> None:
    clock = FakeClock(1000)
    path = tmp_path / "journal.jsonl"
    run(path, clock, make("hpa", max_workers=8), 100)
    run(path, clock, make("static", workers=3, interval=7.0), 50, resume)
    clock.sleep(200)
    records = run(path, clock, make("hpa", target_cpu=0.5, max_workers=8), 100, resume)
    pairs = same_again(records)
    assert {pair.then.by for pair in pairs if pair.then} == {"hpa", "static"}
    assert all(pair.same for pair in pairs)


def test_another_rhythm_leaves_one_side_open(tmp_path: Path) -> None:
    records = run(tmp_path / "journal.jsonl", FakeClock(0), make("static", workers=3, interval=10.0), 60)
    pairs = otherwise(records, make("static", workers=4, interval=15.0), ())
    assert [(p.at, p.then is not None, p.now is not None) for p in pairs[:4]] == [
        (0, True, True),
        (10, True, False),
        (15, False, True),
        (20, True, False),
    ]


def decided(at: float, workers: int | None) -> Decided:
    return Decided(at=at, by="x", role="control", proposed=workers, decision=Decision(workers, (WHY,)))


def pair(at: float, then: int | None, now: int | None) -> Pair:
    return Pair(at, None if then is None else decided(at, then), None if now is None else decided(at, now))


def test_a_comparison_by_hand() -> None:
    pairs = [pair(0, 2, 2), pair(10, 2, 4), pair(20, None, 4), pair(30, 3, None), pair(50, 3, 3)]
    found = compare(pairs)
    assert (found.decisions, found.differing) == (5, 3)
    assert [(d.at, d.until, d.count, d.then, d.now) for d in found.differences] == [
        (10, 20, 2, 2, 4),
        (30, 30, 1, 3, 4),
    ]
    assert found.average_then == pytest.approx((2 * 10 + 2 * 20 + 3 * 20) / 50)
    assert found.average_now == pytest.approx((2 * 10 + 4 * 40) / 50)


def test_a_difference_that_comes_back_is_another() -> None:
    found = compare([pair(0, 2, 3), pair(10, 3, 3), pair(20, 2, 3)])
    assert [(d.at, d.count) for d in found.differences] == [(0, 1), (20, 1)]


def test_nothing_to_compare() -> None:
    found = compare([pair(0, 2, None), Pair(1, None, decided(1, None))])
    assert (found.decisions, found.differing, found.average_then, found.average_now) == (0, 0, None, None)
