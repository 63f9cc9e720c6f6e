"""A profile for the simulator from what `penstock calibrate` measured on a real cluster.

Saturated throughput tells how fast workers are and what they lose to each other; the time of the stages, where a
record's cost lies. The rest of a profile (what a batch costs besides its records, how workers come up and warm, what
metrics show) they do not tell: that is taken from the profile of this job that comes with Penstock, or of word count
where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from math import exp, log
from typing import Protocol

from penstock.core import Operator
from penstock.errors import ConfigError, check
from penstock.targets.simulated import Profile, Stage, load, profiles

USUAL = "spark-wordcount"
MEASURED = ("capacity", "exponent", "max_workers", "batch_noise")


class Throughput(Protocol):
    """What was measured at one scale-out: records/s, and their spread over batches as a share."""

    @property
    def workers(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def spread(self) -> float: ...


def base(job: str) -> str:
    """The profile that the rest is taken from."""
    return f"spark-{job}" if f"spark-{job}" in profiles() else USUAL


def profile_from(
    job: str,
    measured: Sequence[Throughput],
    *,
    batch: float,
    operators: tuple[Stage, ...] = (),
    description: str = "",
) -> Profile:
    """The profile of a job; every batch of the measurement had `batch` records per worker.

    A batch of n workers lasts fixed + task + batch n / (capacity n^exponent) seconds: from its measured rate follows
    what the records alone took, and from that, over all n, capacity and exponent (least squares of logarithms).
    """
    check(bool(measured), "measured", "have at least one scale-out", len(measured))
    known = load(base(job))
    points = []
    for found in measured:
        check(found.rate > 0, "rate", f"be above 0 records/s with {found.workers} workers", found.rate)
        records = batch * found.workers
        fixed = known.batch_fixed + known.batch_task * (1 + known.batch_tasks / found.workers)
        own = records / found.rate - fixed
        if own <= 0:
            rule = f"leave time for the records of a batch, which alone costs {fixed:g} s"
            raise ConfigError(f"rate of {found.workers} workers must {rule}, got {found.rate:g} records/s")
        points.append((log(found.workers), log(records / own)))
    exponent = _slope(points)
    lacking = [y - exponent * x for x, y in points]
    spreads = [found.spread for found in measured]
    return replace(
        known,
        capacity=exp(sum(lacking) / len(lacking)),
        exponent=exponent,
        max_workers=max(found.workers for found in measured),
        batch_noise=sum(spreads) / len(spreads),
        operators=operators or known.operators,
        description=description or f"{job} on Spark, measured by penstock calibrate",
    )


def operators_from(samples: Iterable[Sequence[Operator]]) -> tuple[Stage, ...]:
    """A chain of operators, each with its share of the time that all were busy; none where it was not seen.

    samples: the operators of observations at saturation; those that do not have as many as the last one are left out.
    The first operator reads what the source deals out evenly, the others what comes to them by key.
    """
    seen = [sample for sample in samples if sample and all(each.busy is not None for each in sample)]
    alike = [sample for sample in seen if len(sample) == len(seen[-1])]
    busy = [sum(each.busy or 0.0 for each in place) for place in zip(*alike, strict=True)]
    if not sum(busy):
        return ()
    taken, given = (
        [sum(getattr(each, name) or 0.0 for each in place) for place in zip(*alike, strict=True)]
        for name in ("rate_in", "rate_out")
    )
    return tuple(
        Stage(
            name=operator.name,
            cost=busy[i] / sum(busy),
            selectivity=given[i] / taken[i] if taken[i] and operator.downstream else 1.0,  # a sink's output is not seen
            partitioning="key" if i else "even",
            downstream=operator.downstream,
        )
        for i, operator in enumerate(alike[-1])
    )


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the straight line through these points; at most 1, since more workers do not make each other faster."""
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    across = sum((a - x) ** 2 for a, _ in points)
    return min(1.0, sum((a - x) * (b - y) for a, b in points) / across) if across else 1.0


def toml(profile: Profile, notes: Mapping[str, str], heading: str) -> str:
    """A profile as the text of its file: what has a note, which says where it is from, or is not as usual."""
    lines = [f"# {heading}"]
    for each in fields(Profile):
        value = getattr(profile, each.name)
        said = each.default is MISSING or value != each.default or each.name in notes
        if said and each.name != "operators":
            lines.append(_line(each.name, value, notes.get(each.name, "")))
    for stage in profile.operators:
        lines += ["", "[[operators]]"]
        for part in fields(Stage):
            value = getattr(stage, part.name)
            if part.default is MISSING or value != part.default:
                lines.append(_line(part.name, value, ""))
    return "\n".join(lines) + "\n"


def _line(name: str, value: object, note: str) -> str:
    text = f"{name} = {_value(value)}"
    return f"{text:<28} # {note}" if note else text


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        plain = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{" ".join(plain.split())}"'
    return str(value)
