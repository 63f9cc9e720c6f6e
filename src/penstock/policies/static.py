"""A fixed number of workers: the baseline that every autoscaler has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.core import Decision, Observation, Policy, Reason
from penstock.errors import check


@dataclass
class Static(Policy):
    """Always the same number of workers.

    workers: how many; unset means max_workers.

    >>> Static(workers=4).decide(Observation(at=0, requested=2, backlog=0)).workers
    4
    """

    name: ClassVar[str] = "static"
    workers: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check(
            self.workers is None or self.min_workers <= self.workers <= self.max_workers,
            "workers",
            f"be within min_workers and max_workers ({self.min_workers} to {self.max_workers})",
            self.workers,
        )

    def decide(self, observation: Observation) -> Decision:
        requested = observation.requested
        if requested is None or observation.blind:
            return Decision.hold(
                requested, Reason("static.blind", "Nothing is measured now: no change until the job is seen")
            )
        wanted = self.max_workers if self.workers is None else self.workers
        if requested == wanted:
            return Decision.hold(requested, Reason("static.kept", f"{wanted} workers, as always", {"workers": wanted}))
        return Decision(
            wanted,
            (Reason("static.set", f"Always {wanted} workers, not {requested}", {"workers": wanted}),),
        )
