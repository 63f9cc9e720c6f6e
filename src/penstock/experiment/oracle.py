"""The oracle as a policy: a plan made with the whole load known (`penstock.models.limit`), then run like any other.

The plan is exact for a fluid whose downtimes and capacities are known. A simulated job draws its downtimes, replays
what lies since its last checkpoint and deals keys anew at each restart. A plan that is just enough would never make up
for what that costs; so it keeps a little of the capacity in reserve, as little as will do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock.core import Decision, Observation, Policy, Reason
from penstock.experiment.reach import Reach
from penstock.models import limit
from penstock.targets.simulated import Profile
from penstock.workloads import Load

ORACLE = "oracle"  # not a policy that anybody could run: it knows the whole load
TICK = 60.0
RESERVES = (0.01, 0.02, 0.04, 0.08)  # shares of capacity, tried in this order
KEPT = 0.01  # share of the time that may be over the target: a drawn downtime can be longer than any plan allows


@dataclass
class Scripted(Policy):
    """The oracle's plan, carried out as written: an ordinary run then says what it is worth.

    plan: workers in each tick; tick: its seconds.
    """

    name: ClassVar[str] = ORACLE

    plan: tuple[int, ...] = ()
    tick: float = TICK
    reach: Reach = field(default_factory=lambda: Reach(()))

    def workers(self, at: float) -> int:
        return self.plan[min(int(at // self.tick), len(self.plan) - 1)]

    def decide(self, observation: Observation) -> Decision:
        workers = self.workers(observation.at)
        reason = Reason("oracle.plan", f"{workers} workers, as planned with all that is to come")
        if workers == observation.requested:
            return Decision.hold(workers, reason)
        return Decision(
            workers,
            (reason,),
            parallelism=self.reach.parallelism(workers) or {},
            nodes=self.reach.nodes(workers),
        )


def reserves(profile: Profile) -> tuple[float, ...]:
    """Which to try: also none, where nothing is drawn that a plan could not know."""
    drawn = profile.downtime_spread or profile.speed_spread or profile.keys or profile.batch_noise
    return RESERVES if drawn else (0.0, *RESERVES)


def plan(
    profile: Profile,
    load: Load,
    reach: Reach,
    *,
    fewest: int,
    most: int,
    latency_target: float,
    reserve: float = 0.0,
) -> Scripted:
    """The least worker-seconds with which no record waits longer than the target; ConfigError if there is no plan.

    reserve: share of the capacity that the plan does without.
    """
    tick = max(1.0, min(TICK, float(int(load.duration / 30))))
    ticks = max(1, int(load.duration // tick))
    rates = load.rates(np.arange(0.5, ticks * tick)).reshape(ticks, int(tick)).mean(axis=1)
    live = profile.rescaling == "live"
    found = limit.oracle(
        rates,
        [(1 - reserve) * rate for rate in reach.capacities[:most]],
        tick=tick,
        min_workers=max(fewest, reach.least),
        max_workers=most,
        latency_target=latency_target,
        downtime_out=0.0 if live else stop(profile, profile.downtime_out),
        downtime_in=0.0 if live else stop(profile, profile.downtime_in),
        replay=0.0 if live or profile.savepoint else profile.checkpoint_interval / 2,
    )
    return Scripted(
        min_workers=fewest,
        max_workers=most,
        interval=tick,
        plan=tuple(int(n) for n in found.workers),
        tick=tick,
        reach=reach,
    )


def stop(profile: Profile, downtime: float) -> float:
    """Seconds of full speed that a rescale costs: the stop, and what warming up loses."""
    return downtime + profile.warmup * (1 - profile.warmup_speed) / 2
