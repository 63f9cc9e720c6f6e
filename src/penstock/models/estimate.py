"""What is known, and what is said, of the capacity of a scale-out: values that penstock.models.capacity deals in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Estimate:
    """Records/s at a scale-out with more waiting than it can take, and where that comes from.

    sure: what plans can rely on, without anybody waiting for full batches.
    held: it is how large a batch may be and when the next one starts that allows no more, not CPU.
    """

    workers: int
    capacity: float
    source: Literal["current", "seen", "average"]
    sure: float
    held: bool = False

    def held_to(self, most: float) -> Estimate:
        """No more than that, whatever CPU would allow.

        >>> Estimate(2, capacity=54_000.0, source="current", sure=48_000.0).held_to(40_000.0)
        Estimate(workers=2, capacity=40000.0, source='current', sure=40000.0, held=True)
        """
        if self.capacity <= most:
            return self
        return replace(self, capacity=most, sure=min(self.sure, most), held=True)


@dataclass(slots=True)
class Seen:
    """What a scale-out was found to be capable of, when, and from how many samples.

    evenness: as a share of what as many workers could do with equal shares of the work: less under skew.
    """

    at: float
    evenness: float
    samples: float


@dataclass(frozen=True, slots=True)
class Current:
    """What runs: how many workers, what they can do together, and what they could with equal shares.

    gain: how many times as much they do in batches as large as may be; punctual: in such that nobody waits long for.
    """

    workers: int
    capacity: float
    even: float
    gain: float = 1.0
    punctual: float = 1.0

    @property
    def evenness(self) -> float:
        return min(1.0, self.capacity / self.even)
