"""The capacity model of a micro-batch engine: larger batches cost less, and full ones tell what can be done."""

from __future__ import annotations

import pytest

from penstock.core import Batch, Worker
from penstock.models.capacity import Capacity
from penstock.models.line import Line
from penstock.models.pace import Pace, telling


def capacity(model: Capacity, workers: int) -> float:
    estimate = model.at(workers)
    assert estimate is not None
    return estimate.capacity


def test_larger_batches_cost_less() -> None:
    """Every three seconds a batch that costs 0.6 of them whatever its size; in full batches that counts less."""
    model, pace = Capacity(), Pace(interval=3.0, limit=60_000.0)
    for second in range(40):
        rate = 3000.0 + 50 * second
        model.learn(second, [Worker(f"w{i}", 0.2 + 5e-5 * rate, rate) for i in range(2)], pace=pace)
    for workers in (2, 4):
        found = model.at(workers)
        assert found is not None
        assert found.capacity == pytest.approx(workers / (5e-5 + 0.2 * 3 / 60_000), rel=0.01), "in full batches"
    now = model.at(2)
    assert now is not None
    assert now.sure == pytest.approx(2 * 0.8 / 5e-5, rel=0.01), (
        "plans are for batches as of now: all wait for full ones"
    )


def test_what_full_batches_do_comes_first() -> None:
    """CPU per record falls while a JVM compiles, and a line through that promises too much; a full batch cannot."""
    model = Capacity(memory=10.0)

    def run(first: int, last: int, pace: Pace, workers: int = 2) -> None:
        for second in range(first, last):
            rate = min(3000.0 + 200 * second, 9000.0)
            cpu = 0.7 + 2.5e-5 * rate
            model.learn(second, [Worker(f"w{i}", cpu, rate) for i in range(workers)], pace=pace)

    run(0, 30, Pace(interval=3.0, limit=40_000.0, workers=2))
    promised = capacity(model, 2)
    assert promised > 22_000
    run(30, 31, Pace(interval=4.0, limit=40_000.0, records=80_000.0, workers=2))
    assert capacity(model, 2) > 22_000, "one batch may be noise"
    run(31, 32, Pace(interval=4.0, limit=40_000.0, records=80_000.0, workers=2))
    assert capacity(model, 2) == pytest.approx(20_000), "two in ten seconds are not"
    assert capacity(model, 3) == pytest.approx(30_000)
    run(32, 33, Pace(interval=4.0, limit=40_000.0, records=80_000.0, workers=2))
    run(33, 60, Pace(interval=3.0, limit=40_000.0, workers=2))
    assert capacity(model, 2) == pytest.approx(promised, rel=0.15), "not for ever"
    run(60, 62, Pace(interval=4.0, limit=40_000.0, records=80_000.0, workers=2))
    run(62, 66, Pace(interval=3.0, limit=40_000.0, workers=3), workers=3)
    assert capacity(model, 3) == pytest.approx(1.5 * promised, rel=0.15), "nor where others run"


def test_full_batches_tell_where_cpu_ends_also_while_a_worker_is_young() -> None:
    """Seen on Spark: six did 61,900 records/s in full batches at 91 % CPU, one of them half a minute old, and were
    thought to be capable of 82,000: three of them were sent away."""

    def learned(*paces: Pace) -> Capacity:
        model = Capacity(memory=8.0)
        for second in range(20):
            rate = 4000.0 + 200 * second
            model.learn(second, [Worker(f"w{i}", 0.4 + 5e-5 * rate, rate) for i in range(5)])
        for number, pace in enumerate(paces):
            workers = [Worker(f"w{i}", 0.9, 10_000.0) for i in range(5)]
            model.learn(20.0 + 6 * number, workers, whole=False, pace=pace)
        return model

    room, full = (Pace(6.0, 60_000.0, records, workers=6) for records in (None, 360_000.0))
    large = Pace(6.0, 60_000.0, large=True, workers=6)
    assert learned(*[room] * 5).ceiling == 1.0, "there was room for more"
    assert learned(*[large] * 5).ceiling == pytest.approx(0.9), "half of a full one, and the next followed at once"
    assert learned(full, room, full, room, full).ceiling == 1.0, "one may have begun before all took part"
    assert learned(*[full] * 5).ceiling == pytest.approx(0.9)
    assert capacity(learned(*[full] * 5), 5) == pytest.approx(5 * 10_000, rel=0.02)
    assert capacity(learned(*[room] * 5), 5) == pytest.approx(5 * 12_000, rel=0.02)


def test_what_passes_with_time_is_not_saved_by_larger_batches() -> None:
    """Seen on Spark on a slow day: most of the CPU besides records was not of batches, and three workers were thought
    to do 31,000 records/s in full batches, where they did 21,000."""

    def learned(of_batches: float) -> Capacity:
        model, at = Capacity(), 0.0
        for number in range(120):
            interval = 3.0 + number % 5
            rate = 2000.0 + 700 * (number % 7)
            at += interval
            cpu = 0.45 * (1 - of_batches) + 7e-5 * rate + 0.45 * of_batches * 3.0 / interval
            model.learn(at, [Worker(f"w{i}", cpu, rate) for i in range(3)], pace=Pace(interval, 60_000.0, workers=3))
        return model

    assert capacity(learned(0.0), 3) == pytest.approx(3 * (1 - 0.45) / 7e-5, rel=0.05), "as at any pace"
    assert capacity(learned(1.0), 3) == pytest.approx(3 / (7e-5 + 0.45 * 3 / 60_000), rel=0.05), "only records cost"
    assert capacity(learned(0.3), 3) < capacity(learned(0.6), 3) < capacity(learned(0.9), 3)


def test_full_batches_are_believed_where_each_takes_longer_than_a_loop() -> None:
    """Loops of 4 s, batches of 7: what was seen fades by nearly half from one to the next."""
    model, measured = Capacity(memory=8.0), []
    for batch in range(6):
        pace = Pace(interval=7.0, limit=60_000.0, records=120_000.0, workers=2)
        rate = 7000.0 + 300 * batch
        model.learn(7.0 * batch, [Worker(f"w{i}", 0.3 + 5e-5 * rate, rate) for i in range(2)], pace=pace)
        measured.append(capacity(model, 2) == pytest.approx(120_000 / 7))
    assert measured == [False, True, True, True, True, True]


@pytest.mark.parametrize(
    ("limit", "rate"),
    [
        pytest.param(48_000, 0.8 / 5e-5, id="as many as come in three seconds at full CPU: nothing to gain"),
        pytest.param(20_000, 0.8 / 5e-5, id="less than that"),
        pytest.param(10**9, 1 / 5e-5, id="hardly any limit: only the records cost"),
    ],
)
def test_what_a_batch_may_have(limit: float, rate: float) -> None:
    assert Line(0.2, 5e-5).full(1.0, Pace(3.0, limit)) == pytest.approx(rate, rel=0.01)
    assert Line(0.2, 5e-5).full(1.0, None) == pytest.approx(0.8 / 5e-5)


@pytest.mark.parametrize(
    ("limit", "trigger", "held", "most"),
    [
        pytest.param(60_000.0, 3.0, True, 20_000.0, id="CPU would allow more than full batches bring"),
        pytest.param(60_000.0, 1.0, False, 26_667.0, id="full batches would bring more than CPU allows"),
        pytest.param(60_000.0, None, False, 26_667.0, id="none is waited for"),
    ],
)
def test_no_more_than_a_full_batch_at_every_trigger(
    limit: float, trigger: float | None, held: bool, most: float
) -> None:
    """Seen on Spark, on a fast machine: three workers at 75 % CPU did 60,000 records/s; 80,000 were expected."""
    model = Capacity()
    for second in range(60):
        rate = 5_000.0 + 200 * second
        workers = [Worker(f"w{i}", 0.1 + rate / 30_000, rate) for i in range(3)]
        model.learn(second, workers, pace=Pace(interval=3.0, limit=limit, workers=3, trigger=trigger))
    for workers_then in (2, 3, 4):
        found = model.at(workers_then)
        assert found is not None
        assert found.held is held
        assert found.sure <= found.capacity
        if held:
            assert (found.capacity, found.sure) == (workers_then * most, workers_then * most)
        else:
            assert found.capacity >= workers_then * most


@pytest.mark.parametrize(
    ("before", "now", "workers", "pace"),
    [
        pytest.param(Batch(1, 10.0, 2, 9), Batch(2, 13.0, 2, 9, limit=90), 3, Pace(3.0, 30.0), id="two in a row"),
        pytest.param(
            Batch(1, 10.0, 2, 9), Batch(2, 13.0, 3, 90, limit=90), 3, Pace(3.0, 30.0, 90, True), id="a full one"
        ),
        pytest.param(
            Batch(1, 10.0, 2, 9), Batch(2, 13.0, 3, 88, limit=90), 3, Pace(3.0, 30.0, None, True), id="not quite full"
        ),
        pytest.param(
            Batch(1, 10.0, 2, 9), Batch(2, 13.0, 3, 45, limit=90), 3, Pace(3.0, 30.0, None, True), id="half full"
        ),
        pytest.param(Batch(1, 10.0, 2, 9), Batch(2, 13.0, 3, 44, limit=90), 3, Pace(3.0, 30.0), id="less than half"),
        pytest.param(Batch(1, 10.0, 2, 9), Batch(2, 13.0, 2, 90, limit=90), 3, Pace(3.0, 30.0), id="full, then idle"),
        pytest.param(
            Batch(1, 10.0, 2, 9),
            Batch(2, 13.0, 2, 90, limit=90, trigger=3.0),
            3,
            Pace(3.0, 30.0, trigger=3.0),
            id="full, and the trigger is waited for",
        ),
        pytest.param(Batch(1, 10.0, 2, 9), Batch(3, 16.0, 2, 9, limit=90), 3, None, id="one was missed"),
        pytest.param(Batch(1, 10.0, 2, 9), Batch(2, 13.0, 2, 9), 3, None, id="no limit"),
        pytest.param(None, Batch(2, 13.0, 2, 9, limit=90), 3, None, id="the first"),
        pytest.param(Batch(1, 10.0, 2, 9), None, 3, None, id="none"),
        pytest.param(Batch(1, 10.0, 2, 9), Batch(2, 13.0, 2, 9, limit=90), None, None, id="workers not known"),
        pytest.param(Batch(1, 10.0, 2, 9), Batch(2, 9.0, 2, 9, limit=90), 3, None, id="the clock stepped back"),
    ],
)
def test_pace(before: Batch | None, now: Batch | None, workers: int | None, pace: Pace | None) -> None:
    assert Pace.between(before, now, workers) == pace


def test_where_cpu_ends_is_remembered_as_long_as_skew() -> None:
    def ceiling(skew_half_life: float | None) -> float:
        model = Capacity(half_life=60.0, skew_half_life=skew_half_life)
        full = Pace(6.0, 60_000.0, records=120_000.0, large=True, workers=2)
        for number in range(6):
            model.learn(6.0 * number, [Worker(f"w{i}", 0.9, 10_000.0) for i in range(2)], pace=full)
        for second in range(36, 400, 4):
            model.learn(float(second), [Worker(f"w{i}", 0.5, 5_000.0) for i in range(2)])
        return model.ceiling

    assert ceiling(None) == 1.0, "forgotten with the rest"
    assert ceiling(3600.0) == pytest.approx(0.9)


def test_what_larger_batches_gain_is_reckoned_anew_while_workers_come_and_go() -> None:
    model = Capacity(half_life=10.0)
    workers = [Worker(f"w{i}", 0.4 + 5e-5 * 6000, 6000.0) for i in range(2)]
    for second in range(60):
        load = 3000.0 + 60 * second
        seen = [Worker(f"w{i}", 0.4 + 5e-5 * load, load) for i in range(2)]
        model.learn(second, seen, pace=Pace(30.0, 60_000.0, workers=2))
    assert capacity(model, 2) == pytest.approx(2 * 0.6 / 5e-5, rel=0.01), "batches so long have nothing to gain"
    for second in range(60, 160):
        model.learn(second, workers[:1], whole=False, pace=Pace(3.0, 60_000.0, workers=3))
    assert capacity(model, 2) == pytest.approx(2 / (5e-5 + 0.4 * 3 / 60_000), rel=0.01), "short ones have"


@pytest.mark.parametrize(
    ("batch", "weight"),
    [
        pytest.param(None, 1.0, id="no batches"),
        pytest.param(Batch(1, 10.0, 2, 9), 1.0, id="no limit"),
        pytest.param(Batch(1, 10.0, 2, 100, limit=100), 1.0, id="full"),
        pytest.param(Batch(1, 10.0, 2, 20, limit=100), 1.0, id="a fifth"),
        pytest.param(Batch(1, 10.0, 2, 10, limit=100), 0.125, id="a tenth"),
        pytest.param(Batch(1, 10.0, 2, 0, limit=100), 0.05, id="empty"),
    ],
)
def test_small_batches_say_little_about_records(batch: Batch | None, weight: float) -> None:
    assert telling(batch) == pytest.approx(weight)


def test_small_batches_do_not_acquaint_soon() -> None:
    """Seen on a slow machine: they took three quarters of the CPU, and two workers seemed to do a third of it all."""
    model = Capacity()
    for number in range(15):
        workers = [Worker(f"w{i}", 0.5 + 0.02 * number, 600.0 + 100 * number) for i in range(2)]
        model.learn(3.0 * number, workers, batch=Batch(number, 3.0 * number, 3.0, 8_000, limit=120_000))
    assert not model.acquainted, "though load and CPU have moved"
    for number in range(15, 19):
        rate = 4_000.0 + 50 * number
        workers = [Worker(f"w{i}", 0.3 + 9e-5 * rate, rate) for i in range(2)]
        model.learn(3.0 * number, workers, batch=Batch(number, 3.0 * number, 3.0, 28_000, limit=120_000))
    assert model.acquainted
