"""Several runs of a suite side by side: cost, latency and rescales as a table, in words, as CSV and as JSON.

Nothing of a run is left out, from its first observation to its last line. The one exception is a run that was stopped
and went on later: in between there was no cluster, so that time is neither cost nor load. Latency is the p95 that was
observed, averaged over the time in which it was known, as Daedalus reports it (ICPE 2024, sec. 4.5), and how much of
the time that was is said beside it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from penstock.errors import ConfigError
from penstock.journal import Record, Start
from penstock.measures import Span, spans, summarise

BASE = "hpa-80"  # what the others are compared with
STATIC = "static"


@dataclass(frozen=True, slots=True)
class Ran:
    """A run as it lies on the disk: which load and policy, its journal, and its summary.json."""

    load: str
    policy: str
    records: Sequence[Record]
    summary: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.load}-{self.policy}"


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, `t` seconds after the first look, pauses of the run not counted."""

    t: float
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run in numbers; None is unknown.

    began, ended: seconds since the epoch; pauses: how often it was stopped and went on.
    worker_seconds: the cost; share_of_static: the same against the static run on this load or, without one, against
    its workers for as long as this run took.
    latency_average, latency_p50, latency_p95, latency_p99: of the observed p95, weighted by time; latency_known: the
    share of the duration in which there was one.
    """

    load: str
    policy: str
    began: float
    ended: float
    pauses: int
    duration: float
    max_workers: int
    average_workers: float | None
    worker_seconds: float | None
    share_of_static: float | None
    latency_average: float | None
    latency_p50: float | None
    latency_p95: float | None
    latency_p99: float | None
    latency_known: float
    rescales_out: int
    rescales_in: int
    records_in: int
    records_out: int
    equal: bool
    drained: bool
    failed_tasks: int
    recount: str

    @property
    def rescales(self) -> int:
        return self.rescales_out + self.rescales_in

    @property
    def sound(self) -> bool:
        """Every record was counted once, and the load was worked off."""
        return self.equal and self.drained


@dataclass(frozen=True, slots=True)
class Ratio:
    """A run against the base on the same load; None where one of the two is not known."""

    load: str
    policy: str
    cost: float | None
    latency: float | None
    rescales: float | None


@dataclass(frozen=True, slots=True)
class Goal:
    """What a policy must reach against the base: at most so many times its worker-seconds and its average latency."""

    policy: str = "daedalus"
    cost: float = 0.75
    latency: float = 1.25


@dataclass(frozen=True, slots=True)
class Check:
    """One goal on one load; `kept` is None where it cannot be known."""

    load: str
    goal: str
    measured: str
    kept: bool | None


def looks(records: Sequence[Record]) -> list[Look]:
    """The observations of a journal on one clock, without the pauses in which its run was stopped."""
    found: list[Look] = []
    passed = 0.0
    for part in _parts(records):
        held = spans(part)
        for span in held:
            found.append(Look(passed + span.observation.at - held[0].observation.at, span))
        passed += sum(span.seconds for span in held)
    return found


def latencies(records: Sequence[Record]) -> list[tuple[float, float]]:
    """Latency and the share of the known time in which it was at most that: the empirical distribution.

    Latencies of the same value are one step.
    """
    weights: dict[float, float] = {}
    for look in looks(records):
        latency = look.span.observation.latency
        if latency is not None:
            weights[latency] = weights.get(latency, 0.0) + look.span.seen
    total = sum(weights.values())
    steps: list[tuple[float, float]] = []
    passed = 0.0
    for latency in sorted(weights):
        passed += weights[latency]
        steps.append((latency, passed / total if total else 1.0))
    return steps


def collect(runs: Iterable[Ran], static_workers: int) -> tuple[Result, ...]:
    """The results of runs, each with its share of the static run on the same load, or of so many workers throughout."""
    results = [_result(run) for run in runs]
    static = {r.load: r.worker_seconds for r in results if r.policy == STATIC}
    shared = []
    for r in results:
        whole = static.get(r.load) or static_workers * r.duration
        share = r.worker_seconds / whole if r.worker_seconds is not None and whole else None
        shared.append(replace(r, share_of_static=share))
    return tuple(shared)


def ratios(results: Sequence[Result], base: str = BASE) -> tuple[Ratio, ...]:
    """Every other run against the base on its load."""
    bases = {r.load: r for r in results if r.policy == base}
    return tuple(
        Ratio(
            r.load,
            r.policy,
            _over(r.worker_seconds, bases[r.load].worker_seconds),
            _over(r.latency_average, bases[r.load].latency_average),
            _over(r.rescales, bases[r.load].rescales),
        )
        for r in results
        if r.load in bases and r.policy != base
    )


def judge(results: Sequence[Result], goal: Goal, base: str = BASE) -> tuple[Check, ...]:
    """Whether the goals were reached, load by load."""
    checks: list[Check] = []
    by = {(r.load, r.policy): r for r in results}
    for ratio in ratios(results, base):
        if ratio.policy != goal.policy:
            continue
        mine, theirs = by[ratio.load, goal.policy], by[ratio.load, base]
        cost = f"{goal.policy}: worker-seconds at most {goal.cost:g} × those of {base}"
        checks.append(Check(ratio.load, cost, times(ratio.cost), _within(ratio.cost, goal.cost)))
        latency = f"{goal.policy}: average latency at most {goal.latency:g} × that of {base}"
        checks.append(Check(ratio.load, latency, times(ratio.latency), _within(ratio.latency, goal.latency)))
        fewer = f"{mine.rescales} against {theirs.rescales}"
        checks.append(
            Check(ratio.load, f"{goal.policy}: fewer rescales than {base}", fewer, mine.rescales < theirs.rescales)
        )
    for r in results:
        left = "" if r.drained else "; the load was not worked off in time"
        counted = f"{r.records_in:,} in, {r.records_out:,} out{left}"
        checks.append(Check(r.load, f"{r.policy}: every record counted once", counted, r.sound))
    return tuple(checks)


def document(results: Sequence[Result], checks: Sequence[Check], **about: object) -> dict[str, Any]:
    """All of it for machines; `about` says where it comes from."""
    return {
        **about,
        "results": [asdict(r) for r in results],
        "ratios": [{**asdict(ratio), "base": BASE} for ratio in ratios(results)],
        "checks": [asdict(check) for check in checks],
    }


def table(results: Sequence[Result]) -> str:
    """The results as CSV, one line per run; what is not known is empty."""
    text = io.StringIO()
    names = [field.name for field in fields(Result)]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for r in results:
        writer.writerow(asdict(r))
    return text.getvalue()


def dates(results: Sequence[Result]) -> str:
    """From when to when the runs were made.

    >>> dates([])
    'never'
    """
    if not results:
        return "never"
    began = datetime.fromtimestamp(min(r.began for r in results), UTC)
    ended = datetime.fromtimestamp(max(r.ended for r in results), UTC)
    return f"{began:%Y-%m-%d %H:%M} to {ended:%Y-%m-%d %H:%M} UTC"


def _parts(records: Sequence[Record]) -> list[list[Record]]:
    """A journal at its starts: a loop that starts again has a new cluster, and there was none before it."""
    parts: list[list[Record]] = []
    for record in records:
        if isinstance(record, Start) or not parts:
            parts.append([])
        parts[-1].append(record)
    return parts


def _result(run: Ran) -> Result:
    most = int(run.summary["max_workers"])
    parts = [part for part in _parts(run.records) if spans(part)]
    measured = [summarise(part, most) for part in parts]
    costs = [(m.worker_seconds, m.duration) for m in measured if m.worker_seconds is not None]
    worker_seconds = sum(cost for cost, _ in costs) if costs else None
    staffed = sum(seconds for _, seconds in costs)
    duration = sum(m.duration for m in measured)
    held = [look.span for look in looks(run.records)]
    known = [(span.seen, span.observation.latency) for span in held if span.observation.latency is not None]
    seconds = sum(weight for weight, _ in known)
    steps = latencies(run.records)
    if not held:
        raise ConfigError(f"journal must have at least one observation, got none in {run.name}")
    verdict = run.summary["verdict"]
    return Result(
        load=run.load,
        policy=run.policy,
        began=held[0].observation.at,
        ended=held[-1].observation.at + held[-1].seconds,
        pauses=len(parts) - 1,
        duration=duration,
        max_workers=most,
        average_workers=worker_seconds / staffed if worker_seconds is not None and staffed else None,
        worker_seconds=worker_seconds,
        share_of_static=None,
        latency_average=sum(weight * value for weight, value in known) / seconds if seconds else None,
        latency_p50=_quantile(steps, 0.50),
        latency_p95=_quantile(steps, 0.95),
        latency_p99=_quantile(steps, 0.99),
        latency_known=seconds / duration if duration else 0.0,
        rescales_out=sum(m.rescales_up for m in measured),
        rescales_in=sum(m.rescales_down for m in measured),
        records_in=int(verdict["records_in"]),
        records_out=int(verdict["records_out"]),
        equal=bool(verdict["equal"]),
        drained=bool(run.summary["finished"]),
        failed_tasks=int(run.summary["failed_tasks"]),
        recount=str(verdict["sentence"]),
    )


def _quantile(steps: Sequence[tuple[float, float]], share: float) -> float | None:
    """The smallest latency that is not exceeded for `share` of the known time."""
    return next((latency for latency, reached in steps if reached >= share * (1 - 1e-12)), None)


def _over(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def _within(value: float | None, limit: float) -> bool | None:
    return None if value is None else value <= limit


def times(value: float | None) -> str:
    """A ratio in words.

    >>> times(0.5), times(None)
    ('0.50 ×', 'unknown')
    """
    return "unknown" if value is None else f"{value:.2f} ×"
