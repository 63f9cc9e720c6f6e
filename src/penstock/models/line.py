"""CPU as a line of throughput: idle + cost x rate, fitted to few and noisy samples."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from penstock.models.pace import Pace
from penstock.models.welford import Paired

FEWEST = 4  # samples below which a worker's own line says nothing
CORRELATED = 4.0  # samples of overlapping windows: so many count as one when noise is weighed
LEAST_COST, MOST_COST = 0.3, 1.1  # of CPU / throughput: idle CPU is not negative, nor most of what is used


@dataclass(frozen=True, slots=True)
class Line:
    """CPU = idle + cost x rate.

    >>> line = Line(idle=0.3, cost=1e-4)
    >>> round(line.rate(1.0)), round(line.full(1.0, Pace(interval=3.0, limit=60_000)))
    (7000, 8696)
    """

    idle: float
    cost: float

    def rate(self, cpu: float) -> float:
        return max(0.0, (cpu - self.idle) / self.cost)

    def towards(self, other: Line, share: float) -> Line:
        """So much of the way to another."""
        return Line(self.idle + share * (other.idle - self.idle), self.cost + share * (other.cost - self.cost))

    def full(self, cpu: float, pace: Pace | None, of_batches: float = 1.0) -> float:
        """The same with more waiting than one batch may have: all batches are as large as they can be.

        of_batches: the share of idle CPU that is of batches, and not of time.
        """
        steady = self.rate(cpu)
        if pace is None or self.idle <= 0 or steady * pace.interval >= pace.limit:
            return steady
        batches = of_batches * self.idle
        return max(0.0, cpu - self.idle + batches) / (self.cost + batches * pace.interval / pace.limit)


def fit(pairs: Paired, prior: float, spread: float) -> Line | None:
    """Cost per record by least squares, leaning on `prior` as much as the noise asks for."""
    cpu, rate, weight = pairs.x_mean, pairs.y_mean, pairs.weight
    if not cpu or not rate:
        return None
    cost = prior
    rates = weight * (pairs.y_variance or 0.0)
    both = weight * (pairs.covariance or 0.0)
    if weight >= FEWEST and rates > 0 and both > 0:
        squares = both / rates
        left = max(0.0, weight * (pairs.x_variance or 0.0) - squares * both) / max(weight - 2, 1.0)
        certain = rates / (left * CORRELATED) if left > 0 else inf
        believed = 1 / (spread * prior) ** 2 if prior > 0 else 0.0
        cost = squares if certain == inf else (squares * certain + prior * believed) / (certain + believed)
    cost = min(max(cost, LEAST_COST * cpu / rate), MOST_COST * cpu / rate)
    return Line(cpu - cost * rate, cost)
