from __future__ import annotations

from penstock.core import Decision, Observation, Operator, Reason
from penstock.models.limits import LastChange, bounded


def test_last_change() -> None:
    change = LastChange()
    first = Observation(100, 2, 2)
    assert not change.learn(first)
    assert change.ago(first) is None
    assert change.ago(Observation(100, last_rescale_at=40.0)) == 60, "the target may know of an earlier one"
    assert change.learn(Observation(110, 2, 3)), "asked for"
    assert not change.learn(Observation(115, 3, 3)), "came"
    assert change.at == 115
    assert not change.learn(Observation(120)), "unknown is no change"
    assert not change.learn(Observation(130, 3, 3, operators=(Operator("a", 1),)))
    assert change.at == 115
    change.learn(Observation(140, 3, 3, operators=(Operator("a", 2),)))
    assert change.at == 140
    rest = change.rest(Observation(150), 30)
    assert rest is not None
    assert rest.sentence == "The worker count changed 10 s ago: no change before 30 s have passed"
    assert change.rest(Observation(170), 30) is None


def test_a_clock_that_goes_back_never_makes_the_rest_longer() -> None:
    change = LastChange()
    change.learn(Observation(1000, 2, 2))
    change.learn(Observation(1001, 2, 3))
    back = Observation(50, 2, 3, last_rescale_at=1001)
    change.learn(back)
    assert change.ago(back) == 0
    assert change.rest(Observation(170, 2, 3, last_rescale_at=1001), 120) is None


def test_bounds() -> None:
    wish = Decision(7, (Reason("load.high", "7 would do"),), parallelism={"a": 7})
    assert bounded(wish, 1, 9) is wish
    assert (bounded(wish, 8, 9).workers, bounded(wish, 8, 9).reason.code) == (8, "bounds.min")
    low = bounded(wish, 1, 6)
    assert (low.workers, low.reason.code, dict(low.parallelism)) == (6, "bounds.max", {})
