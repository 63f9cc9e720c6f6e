"""Varga v2: Varga v1 with a rest after a rescale, Koper 2022, sec. 3.3.4.

HPA has no cooldown, so Koper multiplies both measures by 0 while the worker count changed recently (Eq. 3.6): they then
ask for nothing, and the scale-down stabilisation, which remembers what was asked for before, keeps what runs.

Deviation: here what runs is kept in any case, also if somebody else chose it, or the stabilisation is shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from penstock.core import Decision, Observation
from penstock.errors import check
from penstock.models.limits import LastChange
from penstock.policies.varga_v1 import VargaV1


@dataclass
class VargaV2(VargaV1):
    """Varga v1, blind for a while after every change of the worker count.

    cooldown: seconds after a change of the worker count in which both measures count as 0.
    """

    name: ClassVar[str] = "varga-v2"
    paper: ClassVar[str] = "Koper 2022, TU Delft, section 3.3.4"

    cooldown: float = 120.0
    _change: LastChange = field(default_factory=LastChange, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.cooldown >= 0, "cooldown", "be 0 seconds or more", self.cooldown)

    def learn(self, observation: Observation) -> None:
        super().learn(observation)
        self._change.learn(observation)

    def _wish(self, observation: Observation, current: int) -> Decision:
        rest = self._change.rest(observation, self.cooldown)
        return super()._wish(observation, current) if rest is None else Decision(0, (rest,))

    def _damped(self, wish: Decision, current: int, now: float) -> Decision:
        damped = super()._damped(wish, current, now)  # in any case, so that the wish for 0 is remembered
        return Decision.hold(current, wish.reason) if wish.reason.code == "cooldown.resting" else damped
