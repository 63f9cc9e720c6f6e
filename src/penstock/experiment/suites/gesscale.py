"""Gesscale and its three baselines on taxi rides in a fog: Arkian et al., ICCCN 2021, sec. V and table III."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.experiment.cell import Cell
from penstock.experiment.suites.base import Finding, Published, Suite, Summary, less, with_oracle

MOST, FIRST = 8, 1
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
    found = []
    for policy, figures in FIGURES.items():
        if policy != "gesscale":
            for measure, mine, theirs in zip(MEASURES, FIGURES["gesscale"], figures, strict=True):
                if mine < theirs and not measure.startswith("timeshare"):
                    found.append(less(summary, GROUP, measure, "gesscale", policy, f"{mine:g} against {theirs:g}"))
    return found


SUITE = Suite(
    name="gesscale",
    title="Gesscale and its baselines on taxi rides in a fog",
    paper="Arkian et al., Model-based Stream Processing Auto-scaling, ICCCN 2021, table III",
    settings=(
        f"Two days of taxi rides ten times faster; at most {MOST} nodes, {FIRST} at first; every seed another fog.",
        "The capacity of a node and the cost of distance are not printed in the paper, its load is drawn afresh.",
        "The demand behind accuracy and timeshare is of the best placement of so many workers.",
    ),
    plan=with_oracle(_cells()),
    published=tuple(_published()),
    vary=_vary,
    judge=_judge,
)
