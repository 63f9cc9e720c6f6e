"""Daedalus against static and HPA: Pfister et al., ICPE 2024. Figures from the text of sec. 4.5 to 4.7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from penstock.experiment.cell import Cell
from penstock.experiment.suites.base import (
    Finding,
    Published,
    Suite,
    Summary,
    impossible,
    with_oracle,
    within,
)

HOURS = 6
STATIC, MOST = 12, 18  # sec. 4.3.1, 4.7
FIRST = 1  # worker of an autoscaled job at its start: the authors' configuration
LOW = 0.125  # of the sine's peak: 5,000 of 40,000 records/s in the authors' load file; not in the paper
PEAK = 0.9  # of what the workers can do, against Phoebe; sec. 4.2 says only that the peak is below it
MARGIN = 0.08  # points of saving that a policy may fall short of the published one


@dataclass(frozen=True, slots=True)
class Job:
    """An experiment of sec. 4.5 and 4.6.

    load: its shape; peak: its highest rate as a share of what 12 workers can do.
    request: CPU that a worker requests as a share of its limit, which is what HPA's percentages are of.
    figures: average workers and latency in ms of each policy, as published; HPA's are the second and third.
    """

    load: dict[str, Any]
    peak: float
    request: float
    figures: dict[str, tuple[float, float]]

    @property
    def hpa(self) -> tuple[str, ...]:
        return tuple(policy for policy in self.figures if policy.startswith("hpa"))

    def saving(self, than: str) -> float:
        """The share of worker-seconds that Daedalus saved, as published."""
        return 1 - self.figures["daedalus"][0] / self.figures[than][0]


SINE = {"kind": "sine", "low": LOW, "high": 1.0, "periods": 2}
# The peaks are the one thing fitted here, to the published averages. The requests are those of the authors' charts: 250
# of 500 millicores with Flink, 1000 of 1000 with Kafka Streams. Their recording of the Yahoo benchmark agrees: HPA 80
# scales in at a CPU of 0.39, and not of 0.72.
JOBS: dict[str, Job] = {
    "flink-wordcount": Job(  # sec. 4.5.1
        SINE,
        0.62,
        0.5,
        {"daedalus": (5.4, 1171), "hpa-80": (7.8, 1791), "hpa-85": (7.0, 961), "static-12": (12.0, 1408)},
    ),
    "flink-ysb": Job(  # sec. 4.5.2
        {"kind": "advertising", "high": 1.0},
        0.9,
        0.5,
        {"daedalus": (5.5, 9106), "hpa-80": (10.0, 7862), "hpa-85": (9.6, 8042), "static-12": (12.0, 7576)},
    ),
    "flink-traffic": Job(  # sec. 4.5.3
        {"kind": "traffic", "high": 1.0},
        0.77,
        0.5,
        {"daedalus": (3.5, 6176), "hpa-80": (5.9, 5566), "hpa-85": (5.6, 5671), "static-12": (12.0, 8778)},
    ),
    "kafka-streams-wordcount": Job(  # sec. 4.6
        SINE,
        0.72,
        1.0,
        {"daedalus": (5.2, 10566), "hpa-60": (5.8, 15453), "hpa-80": (4.0, 102153), "static-12": (12.0, 8343)},
    ),
}
PHOEBE = "flink-ysb-phoebe"  # sec. 4.7: average workers, latency in ms, highest latency in s
STARVED = ("kafka-streams-wordcount", "hpa-80")
AGAINST_PHOEBE = {"daedalus": (10.1, 9624.0, 88.0), "phoebe": (12.4, 3340.0, 65.0)}


def _cell(group: str, job: Job, policy: str, settings: dict[str, Any]) -> Cell:
    return Cell(
        group=group,
        policy=policy,
        settings=settings,
        profile=group,
        workload={**job.load, "duration": HOURS * 3600.0},
        seed=0,
        max_workers=MOST,
        initial_workers=STATIC if settings["name"] == "static" else FIRST,
        peak_share=job.peak,
        peak_workers=STATIC,
        latency_target=120.0,
    )


def _hpa(policy: str, request: float) -> dict[str, Any]:
    """Kubernetes' defaults, and five minutes of stabilisation both ways (sec. 4.3.2)."""
    return {
        "name": "hpa",
        "target_cpu": int(policy.removeprefix("hpa-")) / 100,
        "cpu_request": request,
        "scale_up_stabilisation": 300.0,
        "scale_down_stabilisation": 300.0,
    }


def _cells() -> Iterator[Cell]:
    for group, job in JOBS.items():
        yield _cell(group, job, "static-12", {"name": "static", "workers": STATIC})
        for policy in job.hpa:
            yield _cell(group, job, policy, _hpa(policy, job.request))
        yield _cell(group, job, "daedalus", {"name": "daedalus"})
    for policy in AGAINST_PHOEBE:
        cell = _cell("flink-ysb", JOBS["flink-wordcount"], policy, {"name": policy, "recovery_target": 600.0})
        cell = replace(cell, group=PHOEBE, initial_workers=STATIC, peak_share=PEAK, peak_workers=MOST)
        # Sec. 4.7 says nothing of Phoebe's profiling phase: rates rise in about as many steps as in Phoebe's own paper.
        yield replace(cell, profiling={"step": 5_000.0} if policy == "phoebe" else None)


def _vary(cell: Cell, seed: int) -> Cell:
    """Another seed: other keys, speeds, downtimes and noise, and another ripple on the days."""
    days = cell.workload["kind"] in ("advertising", "traffic")
    return replace(cell, seed=seed, workload={**cell.workload, **({"seed": seed} if days else {})})


def _published() -> Iterator[Published]:
    for group, job in JOBS.items():
        for policy, (workers, latency) in job.figures.items():
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
        if c.measure == "average_workers"
        and (c.policy == "daedalus" or (c.policy.startswith("hpa") and c.group.startswith("flink")))
        and c.group in JOBS
    ]
    for group, job in JOBS.items():
        # Kafka Streams' HPA 80 could not keep up (sec. 4.6): what it saved by that nobody wants.
        rivals = [policy for policy in job.hpa if (group, policy) != STARVED]
        found += [_saving(summary, group, job, rival) for rival in ("static-12", *rivals)]
        found += [_no_slower(summary, group, job, rival) for rival in rivals]
    found.append(_starved(summary))
    for group in JOBS:
        found += [_error(summary, group, "capacity_error"), _error(summary, group, "forecast_error")]
    return found + impossible(suite, summary)


def _saving(summary: Summary, group: str, job: Job, than: str) -> Finding:
    published, least = job.saving(than), job.saving(than) - MARGIN
    claim = f"daedalus has at least {100 * least:.0f} % fewer workers than {than} (published: {100 * published:.0f} %)"
    mean, other = summary.mean(group, "daedalus", "average_workers"), summary.mean(group, than, "average_workers")
    if mean is None or other is None:
        return Finding(group, claim, "not run", None)
    return Finding(group, claim, f"{100 * (1 - mean / other):.0f} % fewer", 1 - mean / other >= least)


def _no_slower(summary: Summary, group: str, job: Job, than: str) -> Finding:
    published = job.figures["daedalus"][1] / job.figures[than][1]
    claim = f"daedalus' average latency is at most 1.25 times that of {than} (published: {published:.2f} times)"
    mean, other = summary.mean(group, "daedalus", "latency_mean"), summary.mean(group, than, "latency_mean")
    if mean is None or other is None:
        return Finding(group, claim, "not run", None)
    return Finding(group, claim, f"{mean:.2f} s against {other:.2f} s, {mean / other:.2f} times", mean <= 1.25 * other)


def _starved(summary: Summary) -> Finding:
    group, policy = STARVED
    claim = f"{policy} falls behind: five times the latency of static or more (published: 12 times)"
    one = summary.mean(group, policy, "latency_mean")
    other = summary.mean(group, "static-12", "latency_mean")
    if one is None or other is None:
        return Finding(group, claim, "not run", None)
    return Finding(group, claim, f"{one:.1f} s against {other:.1f} s", one >= 5 * other)


def _error(summary: Summary, group: str, measure: str) -> Finding:
    what = "capacity" if measure == "capacity_error" else "peak of the next 15 minutes, as forecast,"
    claim = f"daedalus' {what} is off by less than 5 % (sec. 4.8)"
    mean = summary.mean(group, "daedalus", measure)
    if mean is None:
        return Finding(group, claim, "not run", None)
    # Over the first minute, which is what the paper scored, the last value is as good a forecast (docs/simulator.md).
    why = ", but the paper scored the first minute alone" if measure == "forecast_error" and mean >= 0.05 else ""
    return Finding(group, claim, f"{100 * mean:.1f} %{why}", mean < 0.05)


SUITE = Suite(
    name="daedalus",
    title="Daedalus against HPA and a static maximum",
    paper="Pfister et al., Daedalus, ICPE 2024, sec. 4.5 to 4.8, doi:10.1145/3629526.3645042",
    settings=(
        f"Loads of {HOURS} hours; at most {MOST} workers; static begins with {STATIC}, the others with {FIRST}, as the "
        f"authors' configuration has it ({PHOEBE}: {STATIC}); HPA stabilised over 300 s, up and down.",
        "Missing in the paper: what HPA's percentages are of. Kubernetes counts CPU against what a pod requests. In "
        "the authors' charts (github.com/pfisterb/daedalus) Flink's workers request half of their limit, so that HPA "
        "80 holds them near 40 % of what they can do; Kafka Streams' request all of it, so that HPA 80 means 80 %. "
        "With all of it requested in Flink too, HPA 80 has about as few workers as Daedalus or fewer (3.6, 5.4 and 3.3 "
        "on the three jobs) and is a quarter of an hour behind on word count, far from the published figures.",
        "Missing in the paper: how high the peaks are, but for that 12 workers can do them. Here they are "
        + ", ".join(f"{100 * job.peak:.0f} % ({group})" for group, job in JOBS.items())
        + f" of what {STATIC} workers can do with that seed ({PHOEBE}: {100 * PEAK:.0f} % of what {MOST} can). They "
        "are fitted, one number for each job, to the average workers published for it: that one policy's average fits "
        "is no result, that those of all three fit the same peak is. Of a sine up to 90 % even an ideal autoscaler "
        f"needs more than the published 5.4. Its low is {100 * LOW:.1f} % of its peak, as in the authors' load file.",
        "The advertising and traffic days are drawn afresh after the paper's description, not its traces.",
        "Buffers' waiting times are fitted to static's latency; they, downtimes and skew: docs/simulator.md.",
        "Policies run as published, without Penstock's guards, and Daedalus with Penstock's models: see "
        "docs/policies/daedalus.md.",
    ),
    plan=with_oracle(_cells()),
    published=tuple(_published()),
    vary=_vary,
    judge=_judge,
)
