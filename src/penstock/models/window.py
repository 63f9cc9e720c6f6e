"""The last seconds of one measure: its mean and its slope, as PromQL's avg_over_time and deriv give them.

Memory is bounded, a missing sample is no sample, and a clock that went back starts anew.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Window:
    """Samples of the last `span` seconds, at most `most` of them.

    >>> lag = Window(60)
    >>> for second in range(4): lag.add(second, 100 + 25 * second)
    >>> lag.mean, lag.slope
    (137.5, 25.0)
    """

    span: float
    most: int = 600
    _samples: deque[tuple[float, float]] = field(default_factory=deque)

    def add(self, at: float, value: float | None) -> None:
        """Take in a sample and forget what is too old; unknown is not taken in, but time passes."""
        if self._samples and at < self._samples[-1][0]:
            self._samples.clear()
        while self._samples and (self._samples[0][0] <= at - self.span or len(self._samples) >= self.most):
            self._samples.popleft()
        if value is not None:
            self._samples.append((at, value))

    @property
    def mean(self) -> float | None:
        if not self._samples:
            return None
        return sum(value for _, value in self._samples) / len(self._samples)

    @property
    def slope(self) -> float | None:
        """Change per second by least squares; None before two moments are known."""
        if len(self._samples) < 2:
            return None
        count = len(self._samples)
        at_mean = sum(at for at, _ in self._samples) / count
        value_mean = sum(value for _, value in self._samples) / count
        spread = sum((at - at_mean) ** 2 for at, _ in self._samples)
        if spread == 0:
            return None
        return sum((at - at_mean) * (value - value_mean) for at, value in self._samples) / spread
