from __future__ import annotations

from penstock.core import Decision, Observation, Operator, Reason
from penstock.models.limits import LastChange, Steadiness, bounded
from penstock.testing import sample


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


def test_a_rescale_or_restart_disturbs() -> None:
    steadiness = Steadiness()
    assert steadiness.disturbed(sample(100, (0.5, 0.5), uptime=90.0))
    assert steadiness.since == 10, "what is seen first began before"
    assert not steadiness.disturbed(sample(101, (0.5, 0.5), uptime=91.2))
    assert steadiness.disturbed(sample(102, (0.5, 0.5, 0.5), uptime=92.0)), "rescaled"
    assert steadiness.since == 102
    assert steadiness.disturbed(sample(110, (0.5, 0.5, 0.5), uptime=3.0)), "restarted"
    assert not steadiness.disturbed(sample(111, (0.5, 0.5, 0.5), requested=None, uptime=4.0))
    assert not steadiness.disturbed(sample(112, (0.5, 0.5, 0.5), uptime=5.0)), "a gap in what is known is no change"
    steadiness.disturbed(sample(50, (0.5, 0.5, 0.5)))
    assert steadiness.since == 50, "never in the future"


def test_what_counts() -> None:
    counts = Steadiness().counts
    assert counts(sample(0, (0.5, 0.5)))
    assert not counts(sample(0, (0.5, 0.5), requested=3)), "one is not there yet"
    assert not counts(sample(0, (0.0, 0.0), processed_rate=0.0, input_rate=10.0)), "it stands still"
    assert counts(sample(0, (0.0, 0.0), processed_rate=0.0, input_rate=0.0)), "nothing to do is known"
    assert not counts(Observation(0.0, 1, 1)), "blind"
    restarting = Steadiness()
    restarting.disturbed(sample(0, (0.5, 0.5), uptime=60.0))
    assert not restarting.counts(sample(1, (0.1, 0.1))), "down: it has no uptime any more"
