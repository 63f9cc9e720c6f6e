"""DS2-modern that looks at the queue first: Koper 2022, sec. 3.5.4.

The model says how much, event-time lag says when: more workers only while records wait, fewer only while none do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.core import Observation, Reason
from penstock.errors import check
from penstock.models.operators import waiting
from penstock.policies.ds2_modern import Ds2Modern


@dataclass
class Ds2ModernAdapted(Ds2Modern):
    """What ds2-modern says, but up only with latency and down only without.

    scale_up_latency: seconds of latency above which more workers are allowed.
    scale_down_latency: seconds of latency below which fewer workers are allowed.
    """

    name: ClassVar[str] = "ds2-modern-adapted"
    paper: ClassVar[str] = "Koper 2022, TU Delft, section 3.5.4"
    inputs: ClassVar[tuple[str, ...]] = (*Ds2Modern.inputs, "latency")

    scale_up_latency: float = 5.0
    scale_down_latency: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.scale_down_latency >= 0, "scale_down_latency", "be 0 seconds or more", self.scale_down_latency)
        rule = f"be at least scale_down_latency ({self.scale_down_latency:g})"
        check(self.scale_up_latency >= self.scale_down_latency, "scale_up_latency", rule, self.scale_up_latency)

    def _forbidden(self, observation: Observation, current: int, wanted: int) -> Reason | None:
        latency = waiting(observation)
        if latency is None:
            return Reason("latency.unknown", f"Latency is not known: {current} stay, not {wanted}")
        if wanted > current and latency <= self.scale_up_latency:
            sentence = f"Latency {latency:.1f} s is not above {self.scale_up_latency:g} s: {current} do, not {wanted}"
            return Reason("latency.too_low", sentence, {"latency": latency, "threshold": self.scale_up_latency})
        if wanted < current and latency >= self.scale_down_latency:
            sentence = (
                f"Latency {latency:.1f} s is not below {self.scale_down_latency:g} s: {current} stay, not {wanted}"
            )
            return Reason("latency.too_high", sentence, {"latency": latency, "threshold": self.scale_down_latency})
        return None
