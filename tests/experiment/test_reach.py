"""What so many workers can do at their best: against every way to deal or to place them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from penstock.experiment.reach import reach
from penstock.targets.simulated import Profile, Stage, capacity, load
from penstock.targets.simulated.dataflow import Plan, layout, node_names

APART = Profile(
    "continuous",
    1000.0,
    max_workers=6,
    scaling="operators",
    keys=50,
    operators=(
        Stage("read", 0.15, downstream=("parse",)),
        Stage("parse", 0.6, downstream=("count",)),
        Stage("count", 0.25, partitioning="key"),
    ),
)
FOG = replace(load("fog-taxi"), max_workers=4, nodes=6, distances=())


def test_workers_alike_are_what_the_profile_says() -> None:
    profile = load("flink-wordcount")
    found = reach(profile, 5, 1)
    assert found.capacities == tuple(capacity(profile, n, 1) for n in range(1, 6))
    assert (found.least, found.nodes(3), found.parallelism(3)) == (1, (), None)


@pytest.mark.parametrize("seed", range(3))
def test_instances_are_dealt_as_well_as_can_be(seed: int) -> None:
    profile = replace(APART, keys=0)
    found = reach(profile, 8, seed)
    names = [stage.name for stage in profile.operators]
    for workers in range(3, 9):
        best = max(
            layout(profile, Plan(workers, dict(zip(names, counts, strict=True))), seed).capacity
            for counts in product(range(1, 7), repeat=3)
            if sum(counts) == workers
        )
        assert found.capacity(workers) == pytest.approx(best)
        dealt = found.parallelism(workers)
        assert dealt is not None
        assert sum(dealt.values()) == workers
    assert found.least == 3
    assert found.capacities[:2] == (0.0, 0.0)


def test_the_last_number_stands_for_all_beyond() -> None:
    found = reach(APART, 30, 0)
    assert found.capacity(99) == found.capacity(18)
    assert found.parallelism(18) == {"read": 6, "parse": 6, "count": 6}


@pytest.mark.parametrize("seed", range(3))
def test_workers_are_on_the_nearest_nodes(seed: int) -> None:
    found = reach(FOG, 4, seed)
    for workers in range(1, 5):
        best = max(
            layout(FOG, Plan(workers, {}, nodes), seed).capacity for nodes in combinations(node_names(FOG), workers)
        )
        assert found.capacity(workers) == pytest.approx(best)
        assert len(found.nodes(workers)) == workers


def test_the_ideal_follows_the_load_within_bounds() -> None:
    found = reach(replace(APART, scaling="workers", keys=0), 6, 0)
    demand = found.ideal(np.array([0.0, 900.0, 1100.0, 99_000.0]), 1, 4)
    assert demand.tolist() == [1, 1, 2, 4]
    assert reach(APART, 6, 0).ideal(np.array([1.0]), 1, 6).tolist() == [3], "one instance of each operator at least"
