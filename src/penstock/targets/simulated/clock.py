"""Time that passes only when somebody sleeps, so that six hours take a second."""

from __future__ import annotations


class SimulatedClock:
    """The clock of simulated targets: a loop that sleeps on it lets their world go on.

    A target on this clock catches up with it whenever it is looked at or changed, so several may share one.

    >>> clock = SimulatedClock(100); clock.sleep(5); clock.now()
    105.0
    """

    def __init__(self, at: float = 0.0) -> None:
        self._at = float(at)

    def now(self) -> float:
        return self._at

    def sleep(self, seconds: float) -> None:
        self._at += max(0.0, seconds)
