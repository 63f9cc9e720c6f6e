"""MDL-NLunaware, a baseline of Gesscale: its policy on the simplest model, MST = alpha n, and on any node.

Arkian et al., ICCCN 2021, sec. V-A and equation 2. It picks from an unsorted list; here a seed makes the picks
repeatable. Alpha is that of the newest measurement, as in the authors' script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.models.placement import ByChance, Choice
from penstock.models.scaling_law import Measurement, ScalingLaw, linear
from penstock.policies.gesscale import Gesscale


@dataclass
class MdlNlUnaware(Gesscale):
    """Gesscale without network distances: one more at the root of backpressure, fewer by a linear model; any node.

    seed: which nodes chance takes.
    """

    name: ClassVar[str] = "mdl-nl-unaware"

    seed: int = 0

    def _fit(self, measurements: Sequence[Measurement]) -> ScalingLaw | None:
        return linear(measurements[-1:])

    def _choice(self) -> Choice:
        return ByChance(self.seed)
