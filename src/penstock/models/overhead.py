"""What the work besides records belongs to: to batches, of which fewer are made when they grow, or to time.

A micro-batch engine that falls behind makes larger batches, and fewer. What each costs besides its records then counts
less, but what passes with time (small files to open, threads that wake up) counts as before. CPU tells which it is
where batches come at different intervals:

    CPU = a + cost x rate + b x (1 / interval)

by least squares on both. As rate and interval move together where a job comes to its limit, both are needed. On a
machine at half of its usual speed, three workers of a fifth of a core were thought to do 31,000 records/s in batches as
large as they may be, with all of the rest taken for that of batches; they did 21,000, and by this line 24,000.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.models.welford import Paired

FEWEST = 8.0  # batches, faded with age, below which nothing is made of them
CORRELATED = 4.0  # samples of overlapping windows: so many count as one when noise is weighed
NOISE = 0.05  # of CPU, around the line on Spark; fewer samples may happen to show less, and say no more for it
LEAST = 0.001  # of CPU: below that there is nothing to share
SPREAD = 0.5  # how far from all of it the batches' share may be, before anything was seen


@dataclass(slots=True)
class Overhead:
    """Learns from batches: mean CPU of the workers, mean rate of each, seconds from one batch to the next.

    >>> seen = Overhead()
    >>> for rate, interval in ((1000, 3), (2000, 3), (3000, 5), (4000, 8), (2000, 4)) * 60:
    ...     seen.add(cpu=0.1 + rate / 10_000 + 0.6 / interval, rate=rate, interval=interval)
    >>> round(seen.of_batches(idle=0.3, interval=3.0), 1)  # 0.2 of the 0.3 are of batches
    0.7
    """

    _by_rate: Paired = field(default_factory=Paired)  # rate and CPU
    _by_pace: Paired = field(default_factory=Paired)  # batches per second and CPU
    _both: Paired = field(default_factory=Paired)  # rate and batches per second

    def add(self, cpu: float, rate: float, interval: float) -> None:
        pace = 1 / interval
        self._by_rate.add(rate, cpu)
        self._by_pace.add(pace, cpu)
        self._both.add(rate, pace)

    def fade(self, share: float) -> None:
        for pairs in (self._by_rate, self._by_pace, self._both):
            pairs.fade(share)

    def of_batches(self, idle: float, interval: float) -> float:
        """The share of `idle`, CPU without records at this interval, that is of batches; all of it until seen."""
        rates, paces = self._both.x_variance or 0.0, self._both.y_variance or 0.0
        together = self._both.covariance or 0.0
        apart = rates * paces - together**2  # 0 where one follows from the other
        if self._both.weight < FEWEST or idle < LEAST or apart <= 1e-9 * rates * paces:
            return 1.0
        by_rate, by_pace = self._by_rate.covariance or 0.0, self._by_pace.covariance or 0.0
        found = (by_pace * rates - by_rate * together) / apart
        cost = (by_rate * paces - by_pace * together) / apart
        left = max(NOISE**2, (self._by_rate.y_variance or 0.0) - cost * by_rate - found * by_pace)
        whole = idle * interval
        certain = self._both.weight * apart / rates / (left * CORRELATED)
        believed = 1 / (SPREAD * whole) ** 2
        return min(max((found / whole * certain + believed) / (certain + believed), 0.0), 1.0)
