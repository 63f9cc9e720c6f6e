"""From a TOML file to the cells of a simulation: the words of `penstock run`, and a profile instead of a cluster.

name = "my simulation"     # optional: the file's name
profile = "flink-wordcount"  # or the path of a .toml; left out: the profile of the Spark job that `job` names
max_workers = 18           # left out: the most of the profile
latency_target = 120       # of the oracle
price = 0.1                # of a worker for an hour
[workload]                 # or several [[workload]], each with a label; peak_of_capacity as in `run`
[[policy]]                 # one or several, each with a label if a name comes twice; left out: daedalus
[guards]                   # as in `run`

What only a real run has ([job_settings], [cluster], [stream], [[shadow]]) is checked, not simulated, and said in the
report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from penstock import jobs, policies
from penstock.errors import ConfigError, check
from penstock.experiment import cell as cells_module
from penstock.experiment.cell import ORACLE, Cell
from penstock.experiment.spec import (
    DEFAULT_POLICY,
    TABLES,
    ClusterSpec,
    GuardSpec,
    StreamSpec,
    from_file,
    known_tables,
    table_of,
    tables_of,
    with_profile,
)
from penstock.settings import build
from penstock.targets.simulated import Profile, profiles
from penstock.targets.simulated import load as profile_named
from penstock.workloads import Recorded

REAL = ("job_settings", "cluster", "stream", "shadow")


@dataclass(frozen=True, slots=True)
class Head:
    """What stands above the tables.

    profile: the job, as the simulator knows it.
    job: the Spark job, whose profile is taken if none is named.
    name: what to call it.
    min_workers, max_workers: the fewest and the most workers; unset: the most of the profile.
    initial_workers: how many to start with; unset: min_workers.
    sample_every: seconds between observations that policies learn from.
    latency_target: seconds that a record may wait under the oracle; unset: twice what a rescale takes, 60 at least.
    price: of a worker for an hour, in any money.
    """

    profile: str = ""
    job: str = ""
    name: str = ""
    min_workers: int = 1
    max_workers: int | None = None
    initial_workers: int | None = None
    sample_every: float = 1.0
    latency_target: float | None = None
    price: float | None = None

    def __post_init__(self) -> None:
        check(self.min_workers >= 1, "min_workers", "be at least 1", self.min_workers)
        rule = f"be at least min_workers ({self.min_workers})"
        most, first = self.max_workers, self.initial_workers
        check(most is None or most >= self.min_workers, "max_workers", rule, most)
        check(first is None or first >= self.min_workers, "initial_workers", rule, first)
        check(most is None or first is None or first <= most, "initial_workers", f"be at most {most}", first)
        whole = self.sample_every >= 1 and self.sample_every == int(self.sample_every)
        check(whole, "sample_every", "be whole seconds, 1 or more, in a simulation", self.sample_every)
        check(self.price is None or self.price >= 0, "price", "be 0 or more", self.price)


@dataclass(frozen=True, slots=True)
class Simulation:
    """A checked file: its cells for one seed or many, and what of it is not simulated."""

    name: str
    text: str
    notes: tuple[str, ...]
    first: tuple[Cell, ...]

    def cells(self, seeds: int) -> tuple[Cell, ...]:
        """All cells, numbered in order: group by group, policy by policy, seed by seed."""
        return numbered(replace(cell, seed=seed) for cell in self.first for seed in range(seeds))


def numbered(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The same with their places."""
    return tuple(replace(cell, number=place) for place, cell in enumerate(cells))


def load(path: Path | str) -> Simulation:
    """The simulation of a file."""
    return from_file(path, parse)


def parse(text: str, name: str) -> Simulation:
    """The simulation of a text; `name` is what to call it if it does not say."""
    raw = tables_of(text)
    known_tables(raw, TABLES, Head)
    notes = _real(raw)
    guards = build("guards", {"guards": GuardSpec}, "guards", table_of(raw, "guards"))
    loads = _tables(raw, "workload")
    wanted = [with_profile(table) for table in _tables(raw, "policy")] or [{"name": DEFAULT_POLICY}]
    for table in wanted:
        for key in ("min_workers", "max_workers"):
            if key in table:
                raise ConfigError(f"policy.{key} must be given above the tables, for all alike, got {table[key]!r}")
    head = build("simulation", {"simulation": Head}, "simulation", {"name": name, **raw})
    if not loads:
        raise ConfigError("workload must be a table [workload], got nothing")
    profile_name = _profile_name(head)
    profile = profile_named(profile_name)
    most = head.max_workers or profile.max_workers * (len(profile.operators) if profile.scaling == "operators" else 1)
    base = Cell(
        group="",
        policy="",
        settings={},
        profile=profile_name,
        workload={},
        seed=0,
        min_workers=head.min_workers,
        max_workers=most,
        initial_workers=_first(head, profile, most, {}),  # of the oracle, which begins as it likes
        sample_every=head.sample_every,
        guards=asdict(guards),
        latency_target=head.latency_target,
        price=head.price,
    )
    groups = _labels(loads, "kind", "workload")
    labels = _labels(wanted, "name", "policy")
    cells = []
    for group, table in zip(groups, loads, strict=True):
        share = table.pop("peak_of_capacity", None)
        if share is not None:
            fits = isinstance(share, float | int) and not isinstance(share, bool) and 0 < share <= 2
            check(fits, "workload.peak_of_capacity", "be a number in (0, 2]", share)
        here = replace(base, group=group, workload=table, peak_share=share)
        cells += [
            replace(here, policy=label, settings=settings, initial_workers=_first(head, profile, most, settings))
            for label, settings in zip(labels, wanted, strict=True)
        ]
        cells.append(replace(here, policy=ORACLE, settings={"name": ORACLE}, guards=None))
    for each in cells:
        cells_module.parts(each)  # so that what is wrong is said now
    holes = (_holes(group, table) for group, table in zip(groups, loads, strict=True))
    return Simulation(head.name, text, (*notes, *(hole for hole in holes if hole)), tuple(cells))


def _holes(group: str, table: Mapping[str, Any]) -> str:
    """That a recorded load is not known everywhere."""
    if table.get("kind") != Recorded.kind:
        return ""
    own = {each.name for each in fields(Recorded) if each.init}
    load: Recorded = build("workload", {"recorded": Recorded}, "recorded", {k: table[k] for k in own & set(table)})
    what = f"{load.holes} rows of {load.path} have no rate: it goes straight from the last known one to the next"
    return f"{group}: {what}." if load.holes else ""


def _real(raw: dict[str, Any]) -> tuple[str, ...]:
    """Take out what only a real run has, checked all the same."""
    given = [key for key in REAL if key in raw]
    settings = table_of(raw, "job_settings")
    if settings:
        jobs.make(str(raw.get("job")), **settings)
    build("cluster", {"cluster": ClusterSpec}, "cluster", table_of(raw, "cluster"))
    build("stream", {"stream": StreamSpec}, "stream", table_of(raw, "stream"))
    for shadow in _tables(raw, "shadow"):
        wanted = with_profile({key: value for key, value in shadow.items() if key != "name"})
        policies.make(str(shadow.get("name")), **wanted)
    return tuple(f"[{key}] is for a real run and was not simulated." for key in given)


def _profile_name(head: Head) -> str:
    if head.profile:
        return head.profile
    if not head.job:
        raise ConfigError(f"profile must be one of {', '.join(profiles())}, or the path of a .toml file, got nothing")
    jobs.make(head.job)
    name = f"spark-{head.job}"
    if name not in profiles():
        raise ConfigError(f"profile must be given where the job has none of its own, got job {head.job!r}")
    return name


def _first(head: Head, profile: Profile, most: int, settings: Mapping[str, Any]) -> int:
    """How many to start with: as the file says; else the fewest, and for static as many as it will have anyway."""
    least = len(profile.operators) if profile.scaling == "operators" else 1
    first = head.initial_workers or max(head.min_workers, least)
    if head.initial_workers is None and settings.get("name") == "static":
        given = settings.get("workers")
        first = given if isinstance(given, int) and least <= given <= most else most
    check(first <= most, "initial_workers", f"be at most max_workers ({most})", first)
    return first


def _tables(raw: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """One table [key] or several [[key]]."""
    given = raw.pop(key, [])
    tables = [given] if isinstance(given, dict) else given
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{key} must be a table [{key}] or several [[{key}]], got {given!r}")
    return tables


def _labels(tables: Sequence[dict[str, Any]], by: str, what: str) -> list[str]:
    """What each is called: its label, or its name with a number if that comes twice."""
    known: list[str] = []
    plain = [str(table.get(by)) for table in tables]
    for place, table in enumerate(tables):
        if not isinstance(table.get(by), str):
            choices = ", ".join(policies.POLICIES) if what == "policy" else "those of `penstock workloads`"
            raise ConfigError(f"{what}.{by} must be one of {choices}, got {table.get(by)!r}")
        label = table.pop("label", None)
        if label is None:
            label = plain[place] if plain.count(plain[place]) == 1 else f"{plain[place]}-{place + 1}"
        check(isinstance(label, str) and bool(label), f"{what}.label", "be a text that is not empty", label)
        check(label not in known and label != ORACLE, f"{what}.label", "be a label that no other has", label)
        known.append(label)
    return known
