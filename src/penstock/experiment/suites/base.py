"""What a suite is: cells, published figures, and findings, and how what was measured is set beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from penstock.errors import ConfigError, check
from penstock.experiment.cell import ORACLE, Cell, Row
from penstock.experiment.simulation import numbered
from penstock.measures import Interval, over_seeds
from penstock.policies import POLICIES

UNITS = {
    "average_workers": "workers",
    "latency_mean": "s",
    "latency_max": "s",
    "rescales": "rescales",
    "worker_minutes": "worker-minutes",
    "recovery_failure": "s",
}
WORDS = {
    "average_workers": "average workers",
    "latency_mean": "average latency",
    "latency_max": "highest latency",
    "recovery_failure": "recovery after a failure",
    "worker_minutes": "worker-minutes",
    "workers_over": "workers too many",
    "workers_under": "workers missing",
    "timeshare_over": "share of time with too many",
    "timeshare_under": "share of time with too few",
    "excess_time": "excess time",
}


@dataclass(frozen=True, slots=True)
class Published:
    """A figure of a paper."""

    group: str
    policy: str
    measure: str
    value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """A published figure and what was measured over the seeds; None where nothing was."""

    group: str
    policy: str
    measure: str
    unit: str
    published: float
    measured: Interval | None

    @property
    def ratio(self) -> float | None:
        """Measured over published."""
        return self.measured.mean / self.published if self.measured is not None and self.published else None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a paper found, and whether it is found here; `kept` is None where that cannot be known."""

    group: str
    claim: str
    measured: str
    kept: bool | None


@dataclass(frozen=True, slots=True)
class Missing:
    """A policy of the paper that this Penstock does not have."""

    group: str
    policy: str
    name: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of its own, where a paper has one that is no average over a run."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Summary:
    """Means over seeds, by group and policy."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            self._rows.setdefault((row.group, row.policy), []).append(row)

    def keys(self) -> Iterator[tuple[str, str]]:
        """Groups and policies, in the order of their cells."""
        return iter(self._rows)

    def rows(self, group: str, policy: str) -> list[Row]:
        return self._rows.get((group, policy), [])

    def interval(self, group: str, policy: str, measure: str) -> Interval | None:
        """The mean of a measure with its interval; None if no seed knows it."""
        values = [value for row in self.rows(group, policy) if (value := _value(row, measure)) is not None]
        return over_seeds(values) if values else None

    def mean(self, group: str, policy: str, measure: str) -> float | None:
        found = self.interval(group, policy, measure)
        return None if found is None else found.mean


def _value(row: Row, measure: str) -> float | None:
    if measure == "worker_minutes":
        return None if row.worker_seconds is None else row.worker_seconds / 60
    value = getattr(row, measure)
    return None if value is None else float(value)


Compare = Callable[["Suite", Summary], list[Comparison]]
Judge = Callable[["Suite", Summary], list[Finding]]


def _beside(suite: Suite, summary: Summary) -> list[Comparison]:
    return [
        Comparison(p.group, p.policy, p.measure, UNITS.get(p.measure, ""), p.value, _found(summary, p))
        for p in suite.published
    ]


def _found(summary: Summary, published: Published) -> Interval | None:
    return summary.interval(published.group, published.policy, published.measure)


def _nothing(_suite: Suite, _summary: Summary) -> list[Finding]:
    return []


def _no_sheets(_rows: Sequence[Row]) -> list[Sheet]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A paper's experiments.

    plan: all cells with seed 0, also those of policies that are not there yet.
    vary: a cell with another seed; by default only the simulated job is another one.
    settings: how it was set up, in sentences; what the paper leaves open and was chosen here belongs there.
    featured: the policies whose lines are drawn over time, where there are too many for all.
    """

    name: str
    title: str
    paper: str
    settings: tuple[str, ...]
    plan: tuple[Cell, ...]
    published: tuple[Published, ...]
    vary: Callable[[Cell, int], Cell] = lambda cell, seed: replace(cell, seed=seed)
    compare: Compare = _beside
    judge: Judge = _nothing
    sheets: Callable[[Sequence[Row]], list[Sheet]] = _no_sheets
    featured: tuple[str, ...] = field(default=())

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.group for cell in self.plan))

    def chosen(self, only: Sequence[str]) -> tuple[str, ...]:
        """The groups of these names, or all."""
        for name in only:
            if name not in self.groups:
                raise ConfigError(f"only must be one of {', '.join(self.groups)}, got {name!r}")
        return tuple(group for group in self.groups if not only or group in only)

    def cells(self, seeds: int, only: Sequence[str] = ()) -> tuple[Cell, ...]:
        """What can be run, numbered in order."""
        check(1 <= seeds <= 1000, "seeds", "be from 1 to 1000", seeds)
        groups = self.chosen(only)
        known = [cell for cell in self.plan if cell.group in groups and _known(cell)]
        return numbered(self.vary(cell, seed) for cell in known for seed in range(seeds))

    def missing(self, only: Sequence[str] = ()) -> tuple[Missing, ...]:
        """What the paper ran and Penstock cannot yet."""
        groups = self.chosen(only)
        return tuple(
            Missing(cell.group, cell.policy, str(cell.settings["name"]))
            for cell in self.plan
            if cell.group in groups and not _known(cell)
        )


def _known(cell: Cell) -> bool:
    return cell.settings["name"] == ORACLE or cell.settings["name"] in POLICIES


def with_oracle(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells with an oracle at the end of each group."""
    made: list[Cell] = []
    last: Cell | None = None
    for cell in cells:
        if last is not None and last.group != cell.group:
            made.append(_oracle(last))
        made.append(cell)
        last = cell
    return tuple(made) if last is None else (*made, _oracle(last))


def _oracle(cell: Cell) -> Cell:
    return replace(cell, policy=ORACLE, settings={"name": ORACLE}, guards=None, parallelism={})


def within(comparison: Comparison, share: float) -> Finding:
    """Whether a figure is within so much of the published one."""
    word = WORDS.get(comparison.measure, comparison.measure)
    claim = f"{comparison.policy}: {word} within {100 * share:.0f} % of {comparison.published:g}"
    if comparison.measured is None or comparison.ratio is None:
        return Finding(comparison.group, claim, "not run", None)
    measured = f"{comparison.measured.mean:.2f} ({100 * (comparison.ratio - 1):+.0f} %)"
    return Finding(comparison.group, claim, measured, abs(comparison.ratio - 1) <= share)


def less(summary: Summary, group: str, measure: str, lower: str, higher: str, published: str) -> Finding:
    """Whether one policy has less of a measure than another."""
    word = WORDS.get(measure, measure)
    claim = f"{lower} has less {word} than {higher} (published: {published})"
    one, other = summary.mean(group, lower, measure), summary.mean(group, higher, measure)
    if one is None or other is None:
        return Finding(group, claim, "not run", None)
    return Finding(group, claim, f"{one:.3g} against {other:.3g}", one < other)


def impossible(suite: Suite, summary: Summary) -> list[Finding]:
    """Published averages that nobody could have on the load as it is assumed here: where physics forbids agreement."""
    found = []
    for p in suite.published:
        needed = summary.mean(p.group, ORACLE, "average_workers")
        demand = summary.mean(p.group, p.policy, "ideal_workers")
        least = min((value for value in (needed, demand) if value is not None), default=None)
        if p.measure == "average_workers" and least is not None and p.value < least:
            claim = f"{p.policy}: {p.value:g} workers on average, as published, are enough for this load"
            why = f"no: even the limit needs {least:.2f}, so the paper's load, which it does not print, was lower"
            found.append(Finding(p.group, claim, why, False))
    return found
