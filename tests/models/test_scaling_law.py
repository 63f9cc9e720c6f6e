"""Arkian et al., ICCCN 2021, equations 1 to 3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.models.scaling_law import Measurement, ScalingLaw, fit, linear

M = Measurement
# name: measurements -> alpha, beta, gamma
FITS: dict[str, tuple[list[Measurement], tuple[float, float, float]]] = {
    "one: equation 2": ([M(3, 0.2, 2700.0)], (900.0, 1.0, 0.0)),
    "one, seen again: the newest": ([M(3, 0.2, 2700.0), M(3, 0.2, 3000.0)], (1000.0, 1.0, 0.0)),
    "two: equation 3": ([M(1, 0.0, 1000.0), M(3, 0.2, 2600.0)], (1000.0, 1.0, 2000.0)),
    "two, distance would help: it does not": ([M(1, 0.0, 1000.0), M(2, 0.1, 2500.0)], (1200.0, 1.0, 0.0)),
    "two without delays: alpha only": ([M(1, 0.0, 1000.0), M(2, 0.0, 1800.0)], (920.0, 1.0, 0.0)),
    "three: equation 1": ([M(1, 0.0, 1000.0), M(4, 0.0, 2000.0), M(4, 0.1, 1800.0)], (1000.0, 0.5, 2000.0)),
    "three without delays": ([M(1, 0.0, 1000.0), M(4, 0.0, 2000.0), M(9, 0.0, 3000.0)], (1000.0, 0.5, 0.0)),
    "delays that grow as the workers do": ([M(2, 0.1, 2000.0), M(4, 0.2, 4000.0)], (1000.0, 1.0, 0.0)),
    "always as many workers: beta stays 1": (
        [M(2, 0.0, 2000.0), M(2, 0.1, 1900.0), M(2, 0.3, 1700.0)],
        (1000.0, 1.0, 1000.0),
    ),
}


@pytest.mark.parametrize(("measurements", "expected"), FITS.values(), ids=FITS)
def test_fit(measurements: list[Measurement], expected: tuple[float, float, float]) -> None:
    law = fit(measurements)
    assert law is not None
    assert (law.alpha, law.beta, law.gamma) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_nothing_measured_is_no_law() -> None:
    assert fit([]) is None
    assert linear([]) is None
    assert fit([M(2, 0.0, 0.0)]) is None, "a law of zero would say that any worker is one too many"


def test_the_linear_model_takes_no_delay_into_account() -> None:
    law = linear([M(2, 0.1, 1800.0), M(3, 0.3, 2400.0)])
    assert law is not None
    assert (law.beta, law.gamma) == (1.0, 0.0)
    assert law.alpha == pytest.approx((2 * 1800 + 3 * 2400) / 13)


def test_three_points_that_allow_two_laws_give_the_tame_one() -> None:
    """Delay nearly as the workers: beta near 1 would fit as well, with a single worker a thousand times as fast."""
    law = fit([M(1, 0.05, 935.0), M(2, 0.1, 1735.0), M(3, 0.15, 2492.0)])
    assert law is not None
    assert 900 < law.alpha < 2000
    assert law.throughput(2, 0.1) == pytest.approx(1735, rel=0.02)


laws = st.builds(ScalingLaw, alpha=st.floats(10, 50_000), beta=st.floats(0.4, 1.2), gamma=st.floats(0, 3000))
# Workers one to four near each other, and two of those counts far apart: enough to tell all three parameters.
delays = st.tuples(st.floats(0.0, 0.02), st.floats(0.05, 0.3), st.floats(0.05, 0.3))


@given(laws, delays)
def test_a_fitted_law_reproduces_the_one_it_was_sampled_from(
    law: ScalingLaw, delays: tuple[float, float, float]
) -> None:
    near, far, farther = delays
    places = [(1, 0.0), (2, near), (3, near), (4, near), (2, far), (4, farther)]
    fitted = fit([M(n, delay, law.throughput(n, delay)) for n, delay in places])
    assert fitted is not None
    scale = law.throughput(8, 0.0)
    for workers in range(1, 13):
        for delay in (0.0, 0.1, 0.3):
            expected = law.throughput(workers, delay)
            if expected > 0:
                assert fitted.throughput(workers, delay) == pytest.approx(expected, rel=1e-4, abs=1e-4 * scale)


@given(laws, st.floats(0.01, 0.3))
def test_two_exact_measurements_are_met(law: ScalingLaw, delay: float) -> None:
    line = ScalingLaw(law.alpha, 1.0, law.gamma)
    seen = [M(1, 0.0, line.throughput(1)), M(3, delay, line.throughput(3, delay))]
    fitted = fit(seen)
    assert fitted is not None
    if line.throughput(3, delay) > 0:
        assert [fitted.throughput(m.workers, m.delay) for m in seen] == pytest.approx([m.throughput for m in seen])


@given(laws, st.floats(0.9, 1.1))
def test_noise_stays_noise(law: ScalingLaw, factor: float) -> None:
    """One measurement that is off by a tenth moves no prediction within the measured range by more than a third."""
    flat = ScalingLaw(law.alpha, law.beta, 0.0)
    seen = [M(n, 0.0, flat.throughput(n) * (factor if n == 3 else 1.0)) for n in range(1, 7)]
    fitted = fit(seen)
    assert fitted is not None
    for workers in range(1, 7):
        assert fitted.throughput(workers) == pytest.approx(flat.throughput(workers), rel=1 / 3)
