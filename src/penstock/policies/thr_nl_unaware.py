"""THR-NLunaware, a baseline of Gesscale: CPU thresholds, one worker at a time, on any node.

Arkian et al., ICCCN 2021, sec. V-A. It picks from an unsorted list; here a seed makes the picks repeatable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.models.placement import ByChance, Choice
from penstock.policies.thr_nl_aware import ThrNlAware


@dataclass
class ThrNlUnaware(ThrNlAware):
    """One worker more above a CPU threshold, one fewer below another; any node.

    seed: which nodes chance takes.
    """

    name: ClassVar[str] = "thr-nl-unaware"

    seed: int = 0

    def _choice(self) -> Choice:
        return ByChance(self.seed)
