"""Gesscale's performance model: the maximum sustainable throughput of an operator, by workers and network delay.

Arkian et al., ICCCN 2021, sec. IV-C, equations 1 to 3: MST = alpha n^beta - gamma NDmax. One measurement fits alpha,
two fit alpha and gamma, three or more fit all. Measurements of the same workers and delay count as one.

Deviations: gamma is kept at 0 or more, since distance does not speed up work; and where the measurements cannot tell
gamma (no delay among them) or beta (always as many workers), it keeps its default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

BETAS = (0.05, 1.5)  # beyond these a fit is about noise, not about parallelisation
STEPS = 58  # of 0.025: fine enough that no valley of the error is missed
EXACT = 1e-12  # share of the squares left over that is rounding, not error
ALIKE = 0.01  # delays that grow so nearly as the workers do say nothing of their own: 1 - correlation squared
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Measurement:
    """Throughput in records/s of an operator at its limit, with so many workers at most `delay` seconds apart."""

    workers: int
    delay: float
    throughput: float


@dataclass(frozen=True, slots=True)
class ScalingLaw:
    """What one worker does, how well more share the work, and what each second of network delay costs.

    >>> law = ScalingLaw(alpha=1000.0, beta=0.9, gamma=2000.0)
    >>> round(law.throughput(4, delay=0.1))
    3282
    """

    alpha: float
    beta: float = 1.0
    gamma: float = 0.0

    def throughput(self, workers: int, delay: float = 0.0) -> float:
        """Equation 1, in records/s."""
        return float(self.alpha * workers**self.beta - self.gamma * delay)


def linear(measurements: Sequence[Measurement]) -> ScalingLaw | None:
    """Equation 2, alpha n, by least squares; None without a measurement."""
    found = _solve(_newest(measurements), 1.0, delays=False)
    return None if found is None or found.law.alpha <= 0 else found.law


def fit(measurements: Sequence[Measurement]) -> ScalingLaw | None:
    """The law that the measurements allow: equation 2, 3 or 1 for one, two or more of them.

    >>> fit([Measurement(2, 0.0, 1800.0)])
    ScalingLaw(alpha=900.0, beta=1.0, gamma=0.0)
    >>> law = fit([Measurement(1, 0.0, 1000.0), Measurement(2, 0.1, 1800.0)])
    >>> round(law.alpha), law.beta, round(law.gamma)
    (1000, 1.0, 2000)
    """
    distinct = _newest(measurements)
    if len(distinct) < 2:
        return linear(distinct)
    if len(distinct) == 2 or len({m.workers for m in distinct}) == 1:
        found = _solve(distinct, 1.0)
    else:
        found = _search(distinct)
    return linear(distinct) if found is None or found.law.alpha <= 0 else found.law


@dataclass(frozen=True, slots=True)
class _Fit:
    law: ScalingLaw
    error: float


def _newest(measurements: Sequence[Measurement]) -> list[Measurement]:
    return list({(m.workers, m.delay): m for m in measurements}.values())


def _solve(measurements: Sequence[Measurement], beta: float, *, delays: bool = True) -> _Fit | None:
    """Least squares for alpha and gamma >= 0 at this beta."""
    if not measurements:
        return None
    rows = [(m.workers**beta, -m.delay, m.throughput) for m in measurements]
    xx, yy, xy = sum(x * x for x, _, _ in rows), sum(y * y for _, y, _ in rows), sum(x * y for x, y, _ in rows)
    xt, yt = sum(x * t for x, _, t in rows), sum(y * t for _, y, t in rows)
    determinant = xx * yy - xy * xy
    alpha, gamma = xt / xx, 0.0
    if delays and determinant > ALIKE * xx * yy:
        joint = (xx * yt - xy * xt) / determinant
        if joint > 0:
            alpha, gamma = (yy * xt - xy * yt) / determinant, joint
    return _Fit(ScalingLaw(alpha, beta, gamma), sum((alpha * x + gamma * y - t) ** 2 for x, y, t in rows))


def _search(measurements: Sequence[Measurement]) -> _Fit | None:
    """The beta of the least error. Three points can allow two exact laws: then the tamer one, which claims less for a
    single worker and less for the distance, is taken."""

    def at(beta: float) -> _Fit:
        found = _solve(measurements, beta)
        assert found is not None  # noqa: S101 - there are measurements
        return found

    low, high = BETAS
    grid = [low + (high - low) * i / STEPS for i in range(STEPS + 1)]
    errors = [at(beta).error for beta in grid]
    valleys = [
        i
        for i, error in enumerate(errors)
        if (i == 0 or error <= errors[i - 1]) and (i == STEPS or error <= errors[i + 1])
    ]
    found = [at(_lowest(at, grid[max(0, i - 1)], grid[min(STEPS, i + 1)])) for i in valleys]
    found = [f for f in found if f.law.alpha > 0]
    if not found:
        return None
    rounding = EXACT * sum(m.throughput**2 for m in measurements)
    least = min(f.error for f in found) + rounding
    return min((f for f in found if f.error <= least), key=lambda f: f.law.alpha)


def _lowest(at: Callable[[float], _Fit], low: float, high: float) -> float:
    """Golden-section search."""
    for _ in range(40):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if at(left).error <= at(right).error:
            high = right
        else:
            low = left
    return (low + high) / 2
