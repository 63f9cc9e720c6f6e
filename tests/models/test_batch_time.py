"""How long larger batches take: by the line of each stage, whatever accident slowed some of them down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core import Batch, Stage, Worker
from penstock.models.batch_time import BatchTime
from penstock.models.capacity import Capacity
from penstock.models.pace import Pace

REST, READ, COUNT = 0.15, 0.3, 0.6  # fixed seconds: between stages, of the one that reads, of the one that counts
COST = 1 / 20_000  # seconds of a record
WORDS = 1_000  # that each worker counts, however many records there are


def batch(number: int, size: int, workers: int = 1, noise: float = 1.0) -> Batch:
    """With so many records per worker."""
    read = Stage(noise * (READ + COST * size), size * workers)
    count = Stage(noise * COUNT, WORDS * workers)
    seconds = noise * REST + read.seconds + count.seconds
    return Batch(number, 3.0 * number, seconds, size * workers, limit=60_000 * workers, stages=(read, count))


def fed(batches: Sequence[Batch], workers: int = 1) -> BatchTime:
    model = BatchTime()
    for each in batches:
        model.learn(each, workers)
    return model


def at(model: BatchTime, size: float) -> float:
    found = model.at(size)
    assert found is not None
    return found


def truth(size: float) -> float:
    return REST + READ + COST * size + COUNT


def test_nothing_is_known_before_a_batch_with_records() -> None:
    model = BatchTime()
    assert model.at(60_000) is None
    model.learn(Batch(1, 3.0, 0.2, 0), workers=2)
    assert model.at(60_000) is None


@given(workers=st.integers(1, 12), size=st.integers(100, 200_000))
def test_only_the_stage_that_gets_more_records_takes_longer(workers: int, size: int) -> None:
    model = fed([batch(n, 5_000 + 300 * n, workers) for n in range(200)], workers)
    assert at(model, size) == pytest.approx(truth(size), rel=0.03)


def test_by_its_stages_a_batch_is_foretold_better_than_as_a_whole() -> None:
    """Few batches of about the same size tell no line; that the merge takes 1,000 records in each is told by one."""
    few = [batch(n, 15_000 + 100 * n) for n in range(4)]
    by_stage, whole = (at(fed(each), 60_000) for each in (few, [replace(b, stages=()) for b in few]))
    assert by_stage == pytest.approx(truth(60_000), rel=0.15)
    assert abs(by_stage - truth(60_000)) < 0.75 * abs(whole - truth(60_000))


@pytest.mark.parametrize("size", [6_000, 15_000, 30_000])
def test_of_one_size_what_is_fixed_is_as_long_as_a_fifth_of_a_full_batch(size: int) -> None:
    """Also where batches are small, and nearly all of their time is fixed: a full one is no ten times as long."""
    fixed = 0.2 * 60_000 * COST
    same = [Batch(n, 3.0 * n, fixed + size * COST, size, limit=60_000) for n in range(30)]
    assert at(fed(same), 60_000) == pytest.approx(fixed + 60_000 * COST)


def test_noise_within_five_percent_after_one_loop() -> None:
    """Loops of 20 batches between a third and two thirds of a full one, each as slow as its neighbours have it."""
    rng, off = np.random.default_rng(2), []
    for _ in range(200):
        sizes = 30_000 + 10_000 * np.sin(np.linspace(0, 2 * np.pi, 20))
        model = fed([batch(n, int(size), noise=rng.normal(1, 0.05)) for n, size in enumerate(sizes)])
        off.append(at(model, 60_000) / truth(60_000) - 1)
    assert np.median(np.abs(off)) < 0.05
    assert abs(np.mean(off)) < 0.02


def test_a_few_batches_that_waited_for_something_are_no_cost_of_records() -> None:
    """Seen on Spark: two of twenty took 0.7 s longer, those at the top of the load: a tenth less capacity was found."""
    sizes = [int(34_000 + 12_000 * np.sin(n / 3)) for n in range(20)]
    plain = [batch(n, size) for n, size in enumerate(sizes)]
    largest = sorted(range(6, 20), key=lambda n: sizes[n])[-2:]
    slow = [batch(n, sizes[n], noise=1.3) if n in largest else each for n, each in enumerate(plain)]
    assert at(fed(plain), 75_000) == pytest.approx(truth(75_000), rel=0.05)
    assert at(fed(slow), 75_000) < 1.05 * at(fed(plain), 75_000)


@pytest.mark.parametrize("times", [0.6, 1.5])
def test_all_batches_that_are_slower_or_faster_are_soon_believed(times: float) -> None:
    sizes = [int(34_000 + 12_000 * np.sin(n / 3)) for n in range(60)]
    before = [batch(n, size) for n, size in enumerate(sizes)]
    since = [batch(n, size, noise=times) for n, size in enumerate(sizes[:20])]
    assert at(fed([*before, *since]), 60_000) == pytest.approx(times * truth(60_000), rel=0.1)


def test_a_batch_with_a_stage_less_now_and_then_is_kept_apart() -> None:
    usual = [batch(n, 5_000 + 300 * n) for n in range(60)]
    odd = [Batch(n, 3.0 * n, 30.0, 9_000, stages=(Stage(29.0, 9_000),)) for n in range(5)]
    assert at(fed([*odd, *usual]), 60_000) == at(fed(usual), 60_000)


def test_stages_that_ran_at_once_are_not_counted_twice() -> None:
    """Both sides of a join, each reading on half of the slots."""
    model = BatchTime()
    for n in range(60):
        size = 5_000 + 300 * n
        side = Stage(COST * size, size // 2)
        model.learn(Batch(n, 3.0 * n, COST * size, size, stages=(side, side)), workers=1)
    assert at(model, 60_000) == pytest.approx(COST * 60_000, rel=0.02)


def test_what_was_fades() -> None:
    model = fed([batch(n, 5_000 + 300 * n, noise=3.0) for n in range(60)])
    model.fade(0.01)
    for n in range(60):
        model.learn(batch(n, 5_000 + 300 * n), workers=1)
    assert at(model, 60_000) == pytest.approx(truth(60_000), rel=0.05)


@given(
    sizes=st.lists(st.integers(0, 10**7), min_size=1, max_size=20),
    seconds=st.lists(st.floats(0, 1e4), min_size=20, max_size=20),
    size=st.floats(1, 1e8),
)
def test_whatever_the_batches_were_time_is_not_negative_and_grows(
    sizes: list[int], seconds: list[float], size: float
) -> None:
    batches = [
        Batch(n, float(n), took, records, stages=(Stage(took / 2, records), Stage(took, 7)))
        for n, (records, took) in enumerate(zip(sizes, seconds, strict=False))
    ]
    model = fed(batches)
    found, larger = model.at(size), model.at(2 * size)
    if found is None or larger is None:
        assert not any(sizes)
    else:
        assert -1e-6 * max(seconds) <= found <= larger * (1 + 1e-9) + 1e-6


@pytest.mark.parametrize("workers", [1, 3, 6])
def test_capacity_in_full_batches_by_their_stages(workers: int) -> None:
    """CPU alone cannot tell the second that each batch takes besides records from what passes with time."""
    model, before = Capacity(), None
    for n in range(40):
        now = batch(n, 20_000 + 400 * n, workers)
        rate = now.records / 3.0 / workers
        seen = [Worker(f"w{i}", 0.2 + rate * COST, rate) for i in range(workers)]
        pace = Pace.between(before, now, workers)
        model.learn(now.ended_at, seen, pace=pace, batch=now)
        before = now
    found = model.at(workers)
    assert found is not None
    assert found.capacity == pytest.approx(workers * 60_000 / truth(60_000), rel=0.05)
    assert found.sure == pytest.approx(workers * 30_000 / truth(30_000), rel=0.05)


def test_a_batch_that_took_no_time_says_nothing() -> None:
    model = Capacity()
    for n in range(10):
        now = Batch(n, 3.0 * n, 0.0, 15_000, limit=60_000)
        model.learn(now.ended_at, [Worker("a", 0.5, 5_000.0)], pace=Pace(3.0, 60_000.0, workers=1), batch=now)
    found = model.at(1)
    assert found is not None
    assert 5_000 <= found.capacity < 20_000
