"""What each worker count was seen to achieve at most: the memory of Koper's next-generation autoscaler (TU Delft 2022,
sec. 6.3). Only what is read while records wait is a maximum; at other times it is just what arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Memory:
    """The highest throughput per worker count.

    >>> memory = Memory(); memory.note(4, 4000.0); memory.note(4, 3000.0)
    >>> memory.capacity(4), memory.capacity(6), memory.smallest(5500.0, 1, 12)
    (4000.0, 6000.0, 6)
    """

    best: dict[int, float] = field(default_factory=dict)

    def note(self, workers: int, throughput: float) -> None:
        self.best[workers] = max(throughput, self.best.get(workers, 0.0))

    def capacity(self, workers: int) -> float | None:
        """As seen, or else in proportion to the nearest count that was seen; of two as near, the larger, as it already
        pays for whatever keeps workers from scaling perfectly."""
        if not self.best:
            return None
        nearest = min(self.best, key=lambda known: (abs(known - workers), -known))
        return self.best[nearest] / nearest * workers

    def smallest(self, load: float, least: int, most: int) -> int | None:
        """The fewest workers whose capacity is not below `load`; `most` if none is; None before anything is known."""
        if not self.best:
            return None
        return next((n for n in range(least, most) if (self.capacity(n) or 0.0) >= load), most)
