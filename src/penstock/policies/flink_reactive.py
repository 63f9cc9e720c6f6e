"""Flink's reactive mode under a HorizontalPodAutoscaler at 35 % CPU: what Flink's documentation shows.

The cluster takes whatever workers it is given and restarts from its last checkpoint (FLIP-159); the HPA gives them. It
is also the reactive baseline of Phoebe (Geldenhuys et al.). The restart is the target's business, not the policy's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.policies.hpa import Hpa


@dataclass
class FlinkReactive(Hpa):
    """As many workers as bring their mean CPU to 35 %, which leaves room to catch up after every restart.

    target_cpu: CPU use to aim at, as a share of a worker's own allowance; whole percents.
    """

    name: ClassVar[str] = "flink-reactive"
    paper: ClassVar[str] = "https://nightlies.apache.org/flink/flink-docs-stable/docs/deployment/elastic_scaling/"

    target_cpu: float = 0.35
