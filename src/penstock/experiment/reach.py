"""What a simulated job can do with so many workers at their best: on the nearest nodes, dealt to operators as needed.

The yardstick of `ideal`, `oracle` and of SPEC's measures. A policy that places its workers well must not look better
than a limit that places them anyhow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from penstock.models import limit
from penstock.targets.simulated import Profile, capacity
from penstock.targets.simulated.dataflow import Plan, layout, node_names


@dataclass(frozen=True, slots=True)
class Reach:
    """Records/s for 1, 2, … workers, and how they are placed for that.

    placed: nodes for each number of workers, where nodes matter.
    dealt: instances of each operator for each number, where operators scale apart.
    least: the fewest workers there can be.
    """

    capacities: tuple[float, ...]
    placed: tuple[tuple[str, ...], ...] = ()
    dealt: tuple[tuple[tuple[str, int], ...], ...] = ()
    least: int = 1

    def capacity(self, workers: int) -> float:
        return self.capacities[min(workers, len(self.capacities)) - 1]

    def nodes(self, workers: int) -> tuple[str, ...]:
        return self.placed[workers - 1] if self.placed else ()

    def parallelism(self, workers: int) -> dict[str, int] | None:
        return dict(self.dealt[workers - 1]) if self.dealt else None

    def ideal(self, load: NDArray[np.float64], fewest: int, most: int) -> NDArray[np.int64]:
        """The fewest workers that cover the load, at each instant."""
        return limit.ideal(load, self.capacities[:most], min_workers=max(fewest, self.least), max_workers=most)


@lru_cache(maxsize=256)
def reach(profile: Profile, most: int, seed: int) -> Reach:
    """Of 1 to `most` workers."""
    if profile.scaling == "operators":
        return _dealt(profile, most, seed)
    if profile.nodes and profile.distance_cost:
        return _placed(profile, most, seed)
    return Reach(tuple(capacity(profile, n, seed) for n in range(1, most + 1)))


def _placed(profile: Profile, most: int, seed: int) -> Reach:
    best: list[tuple[float, tuple[str, ...]]] = []
    for n in range(1, most + 1):
        choices = combinations(node_names(profile), n)
        best.append(max((layout(profile, Plan(n, {}, nodes), seed).capacity, nodes) for nodes in choices))
    return Reach(tuple(rate for rate, _ in best), tuple(nodes for _, nodes in best))


def _dealt(profile: Profile, most: int, seed: int) -> Reach:
    """One instance after another for the operator that holds back the rest: no other way to deal them does more."""
    counts = {stage.name: 1 for stage in profile.operators}
    rates = [0.0] * (len(counts) - 1)
    dealt = [tuple(counts.items())] * (len(counts) - 1)
    while len(rates) < most:
        found = layout(profile, Plan(sum(counts.values()), dict(counts)), seed)
        rates.append(found.capacity)
        dealt.append(tuple(counts.items()))
        free = [name for name in counts if counts[name] < profile.max_workers]
        if free:
            counts[min(free, key=lambda name: found.operator_limits[name])] += 1
    return Reach(tuple(rates), (), tuple(dealt), len(profile.operators))
