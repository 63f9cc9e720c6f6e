from __future__ import annotations

from penstock.core import Observation
from penstock.models.means import SLICES, SlidingMeans, Steadiness
from penstock.testing import sample


def filled(seconds: float, step: float = 1.0, start: float = 0.0, window: float = 60.0) -> SlidingMeans:
    means = SlidingMeans(window)
    at = start
    while at <= start + seconds:
        means.add(at, {"x": 1.0})
        at += step
    return means


def test_memory_does_not_grow_with_the_pace() -> None:
    means = filled(300, step=0.01)
    assert len(means._slices) <= SLICES + 2


def test_it_forgets() -> None:
    means = SlidingMeans(60.0)
    means.add(0, {"x": 100.0})
    means.add(50, {"x": 2.0})
    assert means.mean("x", 50) == 51.0
    assert means.mean("x", 60) == 2.0
    assert means.mean("x", 200) is None
    assert not means.covers(200), "an outage longer than the window leaves nothing"


def test_what_is_no_number_is_unknown() -> None:
    means = SlidingMeans(60.0)
    means.add(0, {"x": None, "y": float("nan"), "z": 3.0})
    assert (means.mean("x", 0), means.mean("y", 0), means.mean("z", 0)) == (None, None, 3.0)


def test_covers_only_a_whole_window() -> None:
    assert not filled(59).covers(59)
    assert filled(60).covers(60)
    assert filled(60, step=5).covers(60)


def test_the_clock_may_step_back() -> None:
    means = filled(100)
    means.add(20, {"x": 7.0})
    assert means.mean("x", 20) == 7.0, "what is in the future is forgotten"
    assert means.since == 20
    for at in range(21, 101):
        means.add(at, {"x": 1.0})
    assert means.mean("x", 100) == 1.0
    assert means.covers(100)


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
