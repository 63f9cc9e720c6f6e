"""Gesscale and its three baselines on taxi rides in a fog: Arkian et al., ICCCN 2021, sec. V and table III."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from penstock.experiment.cell import Cell
from penstock.experiment.suites.base import Finding, Published, Suite, Summary, less, with_oracle

MOST, FIRST = 7, 1
GROUP = "fog-taxi"
# Table III: accuracy over and under (workers), timeshare over and under (%), excess time, reconfigurations, cost
# (a replica for a minute is 1).
FIGURES = {
    "thr-nl-unaware": (1.636, 0.742, 51.11, 30.28, 0.163, 25, 1199.5),
    "thr-nl-aware": (1.517, 0.640, 46.67, 22.99, 0.115, 19, 1193.75),
    "mdl-nl-unaware": (1.713, 0.622, 60.42, 25.00, 0.126, 16, 1270.5),
    "gesscale": (0.838, 0.499, 49.31, 21.74, 0.042, 12, 999.5),
}
MEASURES = (
    "workers_over",
    "workers_under",
    "timeshare_over",
    "timeshare_under",
    "excess_time",
    "rescales",
    "worker_minutes",
)


def _cells() -> Iterator[Cell]:
    for policy in FIGURES:
        yield Cell(
            group=GROUP,
            policy=policy,
            settings={"name": policy},
            profile="fog-taxi",
            workload={"kind": "taxi"},
            seed=0,
            max_workers=MOST,
            initial_workers=FIRST,
            sample_every=5.0,
            demand_near=True,
        )


def _vary(cell: Cell, seed: int) -> Cell:
    """Another seed, another fog: nodes lie elsewhere. Baselines that pick nodes at random pick others."""
    random = "unaware" in cell.policy
    settings = {**cell.settings, **({"seed": seed} if random else {})}
    return replace(cell, seed=seed, settings=settings, workload={**cell.workload, "seed": seed})


def _published() -> Iterator[Published]:
    for policy, figures in FIGURES.items():
        for measure, value in zip(MEASURES, figures, strict=True):
            yield Published(GROUP, policy, measure, value / 100 if measure.startswith("timeshare") else value)


def _judge(_suite: Suite, summary: Summary) -> list[Finding]:
    """The order of every two of the four; of timeshares the paper makes no point."""
    found = []
    for place, measure in enumerate(MEASURES):
        if measure.startswith("timeshare"):
            continue
        for one, other in combinations(sorted(FIGURES, key=lambda policy: FIGURES[policy][place]), 2):
            published = f"{FIGURES[one][place]:g} against {FIGURES[other][place]:g}"
            found.append(less(summary, GROUP, measure, one, other, published))
    return found


SUITE = Suite(
    name="gesscale",
    title="Gesscale and its baselines on taxi rides in a fog",
    paper="Arkian et al., Model-based Stream Processing Auto-scaling, ICCCN 2021, table III",
    settings=(
        f"Two days of taxi rides ten times faster; at most {MOST} nodes, {FIRST} at first; every seed another fog.",
        "A rescale stops every worker: for its two minutes there are none, and none are paid for. So read, cost, "
        "accuracy and rescales of table III agree with each other.",
        "The demand behind accuracy and timeshare is that of nodes next to each other, as of an ideal scaler.",
        "The capacity of a node and the cost of distance are not printed. One is from table III; the other, the number "
        "of nodes and what counts as demand were chosen for its orders on seeds 0 to 4, so others are the test.",
        "The load is drawn as the paper tells it.",
        "Not found again: MDL-NLunaware keeps more workers there than the threshold scalers, although it goes down at "
        "30 % to spare and they at 50 % CPU; what made its model so cautious is not told.",
        "Nor the excess time, which there is nearly the number of reconfigurations times two minutes, as if what waits "
        "during a restart were not made up before the end. Here a job catches up as fast as its workers can.",
    ),
    plan=with_oracle(_cells()),
    published=tuple(_published()),
    vary=_vary,
    judge=_judge,
)
