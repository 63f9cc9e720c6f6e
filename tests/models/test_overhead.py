"""What the work besides records belongs to: exact, not without evidence, and never more than there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.models.overhead import FEWEST, Overhead


def seen(share: float, *, batches: int = 400, noise: float = 0.0, seed: int = 0) -> Overhead:
    """CPU without records is 0.4 at a batch every three seconds, a share of it of batches."""
    draw, overhead = np.random.default_rng(seed), Overhead()
    for interval, rate, off in zip(
        draw.uniform(2, 9, batches), draw.uniform(500, 6000, batches), draw.normal(0, 1, batches), strict=True
    ):
        cpu = 0.4 * (1 - share) + 6e-5 * rate + 0.4 * share * 3 / interval + noise * off
        overhead.add(float(cpu), float(rate), float(interval))
    return overhead


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_the_share_is_found(share: float) -> None:
    assert seen(share).of_batches(0.4, 3.0) == pytest.approx(share, abs=0.05)
    assert seen(share, noise=0.05).of_batches(0.4, 3.0) == pytest.approx(share, abs=0.1)


def test_least_squares_of_both_exactly_once_there_is_enough() -> None:
    draw = np.random.default_rng(1)
    rate, interval = draw.uniform(500, 6000, 3000), draw.uniform(2, 9, 3000)
    cpu = 0.3 + 6e-5 * rate + 0.5 / interval + draw.normal(0, 0.05, 3000)
    overhead = Overhead()
    for values in zip(cpu.tolist(), rate.tolist(), interval.tolist(), strict=True):
        overhead.add(*values)
    columns = np.c_[np.ones(3000), rate, 1 / interval]
    (_, _, per_batch), *_ = np.linalg.lstsq(columns, cpu, rcond=None)
    assert overhead.of_batches(0.5, 3.0) == pytest.approx(per_batch / (0.5 * 3.0), abs=0.02)


def test_nothing_is_made_of_nothing() -> None:
    assert Overhead().of_batches(0.4, 3.0) == 1.0
    assert seen(0.0, batches=int(FEWEST) - 1).of_batches(0.4, 3.0) == 1.0, "too few"
    even = Overhead()
    for i in range(100):
        even.add(0.4 + 6e-5 * i, float(i), 3.0)
    assert even.of_batches(0.4, 3.0) == 1.0, "always the same pace"
    tied = Overhead()
    for i in range(1, 100):
        tied.add(0.5, 1000.0 / i, float(i))
    assert tied.of_batches(0.4, 3.0) == 1.0, "one follows from the other"
    assert seen(0.0).of_batches(0.0, 3.0) == 1.0, "there is nothing to share"


def test_what_fades_says_less() -> None:
    overhead = seen(0.0)
    overhead.fade(0.01)
    assert overhead.of_batches(0.4, 3.0) == 1.0
    few = seen(0.0, batches=12)
    assert 0.05 < few.of_batches(0.4, 3.0) < 0.95, "little was seen: in between"


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e6), st.floats(0.1, 600)), min_size=int(FEWEST), max_size=40),
    st.floats(0, 1),
    st.floats(0.1, 600),
)
def test_it_is_always_a_share(samples: list[tuple[float, float, float]], idle: float, interval: float) -> None:
    overhead = Overhead()
    for sample in samples:
        overhead.add(*sample)
    assert 0.0 <= overhead.of_batches(idle, interval) <= 1.0
