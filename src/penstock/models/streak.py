"""Values that lie off what was expected, several in a row and all on one side: what was learned holds no more."""

from __future__ import annotations

from dataclasses import dataclass

DRIFT = 0.2  # as a share of what was expected, by which values must lie off it, all on one side, …
ENOUGH = 3  # … and how many in a row


@dataclass(slots=True)
class Streak:
    """Counts them.

    >>> streak = Streak()
    >>> [streak.goes_on(seen, expected=1.0) for seen in (1.3, 1.3, 0.7, 1.4, 1.3, 1.5, 1.3, 1.1)]
    [False, False, False, False, False, True, True, False]
    """

    _count: int = 0  # above 0 where they were more than expected, below where less

    def goes_on(self, seen: float, expected: float | None) -> bool:
        """Whether this is one of enough in a row; None, or nothing, expected: of that, nothing lies off."""
        if expected and seen < expected * (1 - DRIFT):
            self._count = min(self._count, 0) - 1
        elif expected and seen > expected * (1 + DRIFT):
            self._count = max(self._count, 0) + 1
        else:
            self._count = 0
        return abs(self._count) >= ENOUGH
