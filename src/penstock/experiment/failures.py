"""What a run's failures are measured by: the latency that a metric shows, and what the policy's models foretold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from penstock.core import Observation, Policy
from penstock.measures import Recovery

Floats = NDArray[np.float64]
ONSET = 60.0  # seconds by which a measured recovery may begin before or after the failure it is of


@runtime_checkable
class Foretells(Protocol):
    """A policy that models recoveries."""

    def recovery_now(self, observation: Observation) -> float | None:
        """Seconds that a failure would take now to be over; None: never, or not known."""
        ...


class Witness:
    """Asks a policy, as each failure begins, how long it will take; give it every sample after the policy had it."""

    def __init__(self, policy: Policy, failures: Iterable[float]) -> None:
        self._policy = policy
        self._due = sorted(failures)
        self.told: list[tuple[float, float]] = []

    def __call__(self, observation: Observation) -> None:
        while self._due and observation.at >= self._due[0]:
            at = self._due.pop(0)
            said = self._policy.recovery_now(observation) if isinstance(self._policy, Foretells) else None
            if said is not None:
                self.told.append((at, said))

    def error(self, ended: Sequence[Recovery]) -> float | None:
        """The mean over failures of how far the recovery was off what was told, as a share of that."""
        shares = []
        for at, said in self.told:
            near = [r for r in ended if r.cause == "failure" and abs(r.at - at) <= ONSET]
            recovery = min(near, key=lambda r: abs(r.at - at), default=None)
            if recovery is not None and recovery.seconds is not None and said > 0:
                shares.append(abs(recovery.seconds / said - 1))
        return sum(shares) / len(shares) if shares else None


def as_shown(latency: Floats, up: NDArray[np.bool_], window: float) -> Floats:
    """Latency as a metric has it: means over a window of what is known; nothing (NaN) while the job is down.

    >>> as_shown(np.array([1.0, 3.0, np.nan, 5.0]), np.array([True, True, False, True]), 2.0).tolist()
    [1.0, 2.0, nan, 5.0]
    """
    if window <= 1:
        return latency
    known = ~np.isnan(latency)
    sums, counts = (np.concatenate([[0.0], np.cumsum(each)]) for each in (np.where(known, latency, 0.0), known))
    last = np.arange(1, len(latency) + 1)
    first = np.maximum(last - int(window), 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (sums[last] - sums[first]) / (counts[last] - counts[first])
    return np.where(up, mean, np.nan)
