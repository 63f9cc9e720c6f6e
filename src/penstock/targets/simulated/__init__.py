"""The simulator: streaming jobs as a fluid model in ticks of one second, deterministic by seed.

>>> from penstock.policies import make
>>> from penstock.workloads import Constant
>>> target = SimulatedTarget("flink-wordcount", Constant(level=20_000, duration=600), workers=12)
>>> made = run(target, make("hpa", max_workers=18), duration=600)
>>> len(target.series().at), round(float(target.series().input_rate.sum()))
(600, 12000000)

Pages to read first: docs/simulator.md. `Profile` has every quantity with its unit.
"""

from __future__ import annotations

from penstock.targets.simulated.agreement import Agreement, Fed, Points, Run, agree, compare, feed, fit
from penstock.targets.simulated.clock import SimulatedClock
from penstock.targets.simulated.dataflow import capacity
from penstock.targets.simulated.profile import Profile, Stage, load, profile_of, profiles
from penstock.targets.simulated.runner import Made, run
from penstock.targets.simulated.target import Series, SimulatedTarget

__all__ = [
    "Agreement",
    "Fed",
    "Made",
    "Points",
    "Profile",
    "Run",
    "Series",
    "SimulatedClock",
    "SimulatedTarget",
    "Stage",
    "agree",
    "capacity",
    "compare",
    "feed",
    "fit",
    "load",
    "profile_of",
    "profiles",
    "run",
]
