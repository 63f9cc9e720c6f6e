"""The two measures of Varga et al., "Towards autoscaling of Apache Flink jobs" (2021), as Koper gives them (TU Delft
2022, sec. 3.3), and what Kubernetes' HPA makes of measures that are not CPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, isfinite

from penstock.core import Operator
from penstock.models.dataflow import ROUNDING
from penstock.models.hpa import Tolerance


def utilisation(operators: Iterable[Operator]) -> float | None:
    """Eq. 3.4: one less the mean idle share of all instances; None while no operator tells its own.

    >>> utilisation([Operator("source", 1, idle=0.2), Operator("map", 3, idle=0.6)])
    0.5
    """
    idle = [(operator.parallelism, share) for operator in operators if (share := _idle(operator)) is not None]
    count = sum(parallelism for parallelism, _ in idle)
    return 1 - sum(parallelism * share for parallelism, share in idle) / count if count else None


def relative_lag_change(lag: float, growth: float, consumed: float, threshold: float) -> float | None:
    """Eq. 3.3 and 3.5: what arrives as a multiple of what is consumed; negative, so that it asks for nothing, while the
    lag is not above its threshold. None while nothing is consumed.

    >>> relative_lag_change(lag=80_000, growth=500, consumed=1000, threshold=50_000)
    1.5
    >>> relative_lag_change(lag=20_000, growth=500, consumed=1000, threshold=50_000)
    -1.5
    """
    if consumed <= 0:
        return None
    multiple = 1 + growth / consumed
    return (1 if lag > threshold else -1) * multiple if isfinite(multiple) else None  # next to nothing is nothing


def proposal(requested: int, running: int, ratio: float, tolerance: Tolerance) -> int:
    """Workers that bring a measure to its target, given measure / target; Eq. 3.1 with HPA's care for those that were
    asked for and do not run yet: on the way up they count as doing nothing.

    >>> proposal(4, 4, 1.4, Tolerance()), proposal(4, 4, 1.05, Tolerance()), proposal(8, 4, 1.9, Tolerance())
    (6, 4, 8)
    """
    if tolerance.holds(ratio):
        return requested
    exact = ratio * running
    wanted = ceil(exact - abs(exact) * ROUNDING)
    return max(wanted, requested) if ratio > 1 else min(wanted, requested)


def _idle(operator: Operator) -> float | None:
    if operator.idle is not None or operator.busy is None:
        return operator.idle
    return max(0.0, 1 - operator.busy - (operator.backpressure or 0.0))
