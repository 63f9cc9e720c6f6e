"""Gesscale and its three baselines on taxi rides in a fog: Arkian et al., ICCCN 2021, sec. V and table III."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from penstock.experiment.cell import Cell
from penstock.experiment.suites.base import Finding, Published, Suite, Summary, less, with_oracle

MOST, FIRST = 6, 2
# Seconds after the load's end that still count. All timeshares of table III are multiples of 15 s over 360 minutes, and
# over these its figures agree (cost / 360 - accuracy_O + accuracy_U is 2.44 for each of the four); the load has 288.
AFTER = 4320.0
# The authors' scripts (github.com/Arkian/Gesscale): nobody looks for five minutes after a restart, and the two that go
# by a model have a minimum of two (algorithm 4's n_min) and do nothing once their source has nothing to read, where the
# thresholds go on to one worker.
WARM_UP = 300.0
MODEL = {"stay_idle": True, "min_workers": 2}
MODELS = ("mdl-nl-unaware", "gesscale")
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


def _load(seed: int) -> dict[str, Any]:
    nothing = {"kind": "constant", "level": 0.0, "duration": AFTER}
    return {"kind": "concatenated", "parts": [{"kind": "taxi", "seed": seed}, nothing]}


def _cells() -> Iterator[Cell]:
    for policy in FIGURES:
        yield Cell(
            group=GROUP,
            policy=policy,
            settings={"name": policy, "warm_up": WARM_UP, **(MODEL if policy in MODELS else {})},
            profile="fog-taxi",
            workload=_load(0),
            seed=0,
            max_workers=MOST,
            initial_workers=FIRST,
            sample_every=5.0,
            demand_near=True,
        )


def _vary(cell: Cell, seed: int) -> Cell:
    """Another seed, another ripple of the load, other noise. Baselines that pick nodes at random pick others."""
    random = "unaware" in cell.policy
    settings = {**cell.settings, **({"seed": seed} if random else {})}
    return replace(cell, seed=seed, settings=settings, workload=_load(seed))


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
        f"Two days of taxi rides ten times faster, and {AFTER / 60:g} minutes without any: the timeshares of "
        "table III are of 360 minutes in steps of 15 s, and so read cost less what is too many plus what is missing is "
        "2.44 workers for each of the four.",
        f"At most {MOST} nodes, {FIRST} at first, their delays, five minutes' rest after a restart, and models that "
        "keep two workers, and all once nothing comes: as in the authors' scripts.",
        "A rescale stops every worker: for its two minutes there are none, and none are paid for.",
        "The demand behind accuracy and timeshare is that of nodes next to each other, as of an ideal scaler.",
        "The capacity of a node and the cost of distance are not printed. One is from table III; the other was chosen "
        "for its orders on seeds 0 to 5, so others are the test.",
        "The load is drawn as the paper tells it.",
        "Not found again: that THR-NLunaware rescales more often and misses more than THR-NLaware. Here both run into "
        "the maximum while they catch up, and far nodes look busier, so that it goes down less far at night.",
        "Nor the excess time, which there is 15 to 59 minutes. Here what waits is worked off before the load ends, and "
        "so less is missing as well.",
    ),
    plan=with_oracle(_cells()),
    published=tuple(_published()),
    vary=_vary,
    judge=_judge,
)
