"""Daedalus against static and HPA: Pfister et al., ICPE 2024. Figures from the text of sec. 4.5 to 4.7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.experiment.cell import Cell
from penstock.experiment.suites.base import (
    Finding,
    Published,
    Suite,
    Summary,
    impossible,
    less,
    with_oracle,
    within,
)

HOURS = 6
STATIC, MOST = 12, 18  # sec. 4.3.1, 4.7
PEAK = 0.9  # of what 12 workers can do; sec. 4.2 says only that the peak is below it
LOW = 0.1  # of the sine's peak; not in the paper

# Profile: load, HPA's two targets, and average workers and latency in ms of each policy.
JOBS: dict[str, tuple[dict[str, Any], tuple[int, int], dict[str, tuple[float, float]]]] = {
    "flink-wordcount": (  # sec. 4.5.1
        {"kind": "sine", "low": LOW, "high": 1.0, "periods": 2},
        (80, 85),
        {"daedalus": (5.4, 1171), "hpa-80": (7.8, 1791), "hpa-85": (7.0, 961), "static-12": (12.0, 1408)},
    ),
    "flink-ysb": (  # sec. 4.5.2
        {"kind": "advertising", "high": 1.0},
        (80, 85),
        {"daedalus": (5.5, 9106), "hpa-80": (10.0, 7862), "hpa-85": (9.6, 8042), "static-12": (12.0, 7576)},
    ),
    "flink-traffic": (  # sec. 4.5.3
        {"kind": "traffic", "high": 1.0},
        (80, 85),
        {"daedalus": (3.5, 6176), "hpa-80": (5.9, 5566), "hpa-85": (5.6, 5671), "static-12": (12.0, 8778)},
    ),
    "kafka-streams-wordcount": (  # sec. 4.6
        {"kind": "sine", "low": LOW, "high": 1.0, "periods": 2},
        (60, 80),
        {"daedalus": (5.2, 10566), "hpa-60": (5.8, 15453), "hpa-80": (4.0, 102153), "static-12": (12.0, 8343)},
    ),
}
PHOEBE = "flink-ysb-phoebe"  # sec. 4.7: average workers, latency in ms, highest latency in s
AGAINST_PHOEBE = {"daedalus": (10.1, 9624.0, 88.0), "phoebe": (12.4, 3340.0, 65.0)}


def _cell(group: str, profile: str, load: dict[str, Any], policy: str, settings: dict[str, Any]) -> Cell:
    return Cell(
        group=group,
        policy=policy,
        settings=settings,
        profile=profile,
        workload={**load, "duration": HOURS * 3600.0},
        seed=0,
        max_workers=MOST,
        initial_workers=STATIC,
        peak_share=PEAK,
        peak_workers=STATIC,
        latency_target=120.0,
    )


def _hpa(target: int) -> dict[str, Any]:
    """Kubernetes' defaults, and five minutes of stabilisation both ways (sec. 4.3.2)."""
    return {
        "name": "hpa",
        "target_cpu": target / 100,
        "scale_up_stabilisation": 300.0,
        "scale_down_stabilisation": 300.0,
    }


def _cells() -> Iterator[Cell]:
    for profile, (load, targets, _) in JOBS.items():
        yield _cell(profile, profile, load, "static-12", {"name": "static", "workers": STATIC})
        for target in targets:
            yield _cell(profile, profile, load, f"hpa-{target}", _hpa(target))
        yield _cell(profile, profile, load, "daedalus", {"name": "daedalus"})
    sine = JOBS["flink-wordcount"][0]
    for policy in AGAINST_PHOEBE:
        cell = _cell(PHOEBE, "flink-ysb", sine, policy, {"name": policy, "recovery_target": 600.0})
        # Sec. 4.7 says nothing of Phoebe's profiling phase: rates rise in about as many steps as in Phoebe's own paper.
        yield replace(cell, peak_workers=MOST, profiling={"step": 5_000.0} if policy == "phoebe" else None)


def _vary(cell: Cell, seed: int) -> Cell:
    """Another seed: other keys, speeds, downtimes and noise, and another ripple on the days."""
    days = cell.workload["kind"] in ("advertising", "traffic")
    return replace(cell, seed=seed, workload={**cell.workload, **({"seed": seed} if days else {})})


def _published() -> Iterator[Published]:
    for group, (_, _, figures) in JOBS.items():
        for policy, (workers, latency) in figures.items():
            yield Published(group, policy, "average_workers", workers)
            yield Published(group, policy, "latency_mean", latency / 1000)
    for policy, (workers, latency, highest) in AGAINST_PHOEBE.items():
        yield Published(PHOEBE, policy, "average_workers", workers)
        yield Published(PHOEBE, policy, "latency_mean", latency / 1000)
        yield Published(PHOEBE, policy, "latency_max", highest)


def _judge(suite: Suite, summary: Summary) -> list[Finding]:
    found = [
        within(c, 0.15)
        for c in suite.compare(suite, summary)
        if c.measure == "average_workers" and c.policy.startswith("hpa") and c.group.startswith("flink")
    ]
    for group, (_, targets, figures) in JOBS.items():
        base = f"hpa-{targets[0]}"
        text = f"{figures['daedalus'][0]:g} against {figures[base][0]:g}"
        found.append(less(summary, group, "average_workers", "daedalus", base, text))
        found.append(_saving(summary, group, figures["daedalus"][0] / STATIC))
    found.append(_starved(summary))
    for group in JOBS:
        found += [_error(summary, group, "capacity_error"), _error(summary, group, "forecast_error")]
    return found + impossible(suite, summary)


def _saving(summary: Summary, group: str, published: float) -> Finding:
    claim = f"daedalus needs at most {100 * published:.0f} % of static's worker-seconds, as published"
    mean = summary.mean(group, "daedalus", "average_workers")
    if mean is None:
        return Finding(group, claim, "not run", None)
    return Finding(group, claim, f"{100 * mean / STATIC:.0f} %", mean / STATIC <= published)


def _starved(summary: Summary) -> Finding:
    group, claim = "kafka-streams-wordcount", "hpa-80 falls behind: five times the latency of static or more (12 times)"
    one = summary.mean(group, "hpa-80", "latency_mean")
    other = summary.mean(group, "static-12", "latency_mean")
    if one is None or other is None:
        return Finding(group, claim, "not run", None)
    return Finding(group, claim, f"{one:.1f} s against {other:.1f} s", one >= 5 * other)


def _error(summary: Summary, group: str, measure: str) -> Finding:
    what = "capacity" if measure == "capacity_error" else "forecast"
    claim = f"daedalus' {what} is off by less than 5 % (sec. 4.8)"
    mean = summary.mean(group, "daedalus", measure)
    return Finding(
        group, claim, "not run" if mean is None else f"{100 * mean:.1f} %", None if mean is None else mean < 0.05
    )


SUITE = Suite(
    name="daedalus",
    title="Daedalus against HPA and a static maximum",
    paper="Pfister et al., Daedalus, ICPE 2024, sec. 4.5 to 4.8, doi:10.1145/3629526.3645042",
    settings=(
        f"Loads of {HOURS} hours; at most {MOST} workers, all begin with {STATIC}; HPA stabilised over 300 s, "
        "up and down.",
        f"The peak of each load is {100 * PEAK:.0f} % of what {STATIC} workers can do with that seed ({PHOEBE}: of "
        f"what {MOST} can). The paper says only that it is below, and nothing of the sine's low, here "
        f"{100 * LOW:.0f} % of its peak.",
        "The advertising and traffic days are drawn afresh after the paper's description, not its traces.",
        "The profile flink-wordcount was chosen with HPA's average workers in view: see docs/simulator.md.",
        "Policies run as published, without Penstock's guards.",
    ),
    plan=with_oracle(_cells()),
    published=tuple(_published()),
    vary=_vary,
    judge=_judge,
)
