"""Gesscale's way down: as many workers fewer as the model allows.

Arkian et al., ICCCN 2021, algorithms 2 and 4. Algorithm 4 prints `MST <= IR` where its text and the authors' code mean
>=, and leaves its loop one worker too low when the last step breaks that; here the last that still fits is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.core import Fact, Reason
from penstock.models.backpressure import Flow


@dataclass(frozen=True, slots=True)
class Prospect:
    """What the operator with the least to spare could do, in records/s, with so many workers."""

    workers: int
    flow: Flow
    capacity: float

    @property
    def fits(self) -> bool:
        return self.capacity > 0 and self.capacity >= self.flow.demand

    @property
    def spare(self) -> float:
        """Algorithm 2's DT as a share."""
        return 1 - self.flow.throughput / self.capacity if self.capacity > 0 else 0.0

    @property
    def job_capacity(self) -> float | None:
        """The same in records/s that the job reads."""
        return self.capacity / self.flow.selectivity if self.flow.selectivity else None

    def reason(self, threshold: float) -> Reason:
        flow, name = self.flow, self.flow.name
        facts: dict[str, Fact] = {"operator": name, "workers": self.workers, "capacity": self.capacity}
        facts |= {"demand": flow.demand, "spare": self.spare, "threshold": threshold}
        can = f"{self.workers} worker{'s' * (self.workers != 1)} can do {self.capacity:.0f} records/s in {name}"
        if not self.fits:
            sentence = f"{can}, less than the {flow.demand:.0f} that come"
            return Reason("capacity.below_load", sentence, facts)
        if self.spare >= threshold:
            sentence = f"{can}, where {flow.throughput:.0f} come: {self.spare:.0%} to spare"
            return Reason("capacity.to_spare", sentence, facts)
        sentence = f"{can}, where {flow.throughput:.0f} come: {self.spare:.0%} to spare is less than {threshold:.0%}"
        return Reason("capacity.fits", sentence, facts)


def walk(current: int, least: int, threshold: float, prospect: Callable[[int], Prospect]) -> list[Prospect]:
    """What is looked at on the way down from `current`; the last is the first that does not fit, or the end."""
    seen = [prospect(current)]
    while seen[-1].fits and seen[-1].spare >= threshold and seen[-1].workers > least:
        seen.append(prospect(seen[-1].workers - 1))
    return seen
