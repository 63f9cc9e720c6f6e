"""From a TOML file to checked objects. What is wrong with a file is said by field, rule and value.

name = "my run"            # optional: the file's name
job = "wordcount"
min_workers = 1
max_workers = 6
[job_settings]             # see `penstock jobs NAME`; most jobs have none
[workload]                 # see `penstock workloads`
[policy]                   # see `penstock policies`; left out: daedalus
[[shadow]]                 # others that watch the same job and only say what they would do
[guards]                   # settle, cooldown_up, cooldown_down
[cluster]                  # cpu, memory
[stream]                   # trigger, max_records_per_worker, partitions, state_partitions, sink, warm_up
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from penstock import guards, jobs, policies, workloads
from penstock.core import Guard, Policy
from penstock.errors import ConfigError, check
from penstock.jobs import Job
from penstock.jobs.sink import KINDS
from penstock.settings import build, one_of
from penstock.workloads import Load

T = TypeVar("T")

DEFAULT_POLICY = "daedalus"
TABLES = ("job_settings", "workload", "policy", "shadow", "guards", "cluster", "stream")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """How big a worker is.

    cpu: share of a core that each worker is bounded to.
    memory: heap of each worker's JVM.
    """

    cpu: float = 0.2
    memory: str = "512m"

    def __post_init__(self) -> None:
        check(0.01 <= self.cpu <= 64, "cpu", "be between 0.01 and 64 cores", self.cpu)


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """How the query reads and keeps state.

    trigger: seconds between the starts of two batches, when the job keeps up.
    max_records_per_worker: the most records of one batch that each worker gets.
    partitions: of the source log.
    state_partitions: of the query's state, fixed for its life; unset: half of max_workers.
    sink: where the results go: parquet, log, console or none; without a recount for the last two.
    warm_up: batches of 20,000 records before the load begins, so that no policy begins with a cold JVM.
    """

    trigger: float = 3.0
    max_records_per_worker: int = 60_000
    partitions: int = 4
    state_partitions: int | None = None
    sink: str = "parquet"
    warm_up: int = 3

    def __post_init__(self) -> None:
        check(self.trigger >= 0, "trigger", "be 0 seconds or more", self.trigger)
        check(self.max_records_per_worker >= 1, "max_records_per_worker", "be at least 1", self.max_records_per_worker)
        check(self.partitions >= 1, "partitions", "be at least 1", self.partitions)
        known = self.state_partitions
        check(known is None or known >= 1, "state_partitions", "be at least 1, or unset", known)
        one_of("stream.sink", KINDS, self.sink)
        check(1 <= self.warm_up <= 1000, "warm_up", "be from 1 to 1000 batches", self.warm_up)


@dataclass(frozen=True, slots=True)
class GuardSpec:
    """The rails around the policy.

    settle: seconds of unbroken sight, and of uptime, before scaling down.
    cooldown_up, cooldown_down: seconds after a rescale without another in this direction.
    """

    settle: float = 30.0
    cooldown_up: float = 0.0
    cooldown_down: float = 0.0


@dataclass(frozen=True, slots=True)
class Head:
    """What stands above the tables.

    job: the streaming job.
    name: what to call the run.
    min_workers, max_workers: the fewest and the most workers.
    initial_workers: how many to start with; unset: min_workers.
    sample_every: seconds between observations.
    """

    job: str
    name: str = ""
    min_workers: int = 1
    max_workers: int = 6
    initial_workers: int | None = None
    sample_every: float = 1.0

    def __post_init__(self) -> None:
        check(self.min_workers >= 1, "min_workers", "be at least 1", self.min_workers)
        rule = f"be at least min_workers ({self.min_workers})"
        check(self.max_workers >= self.min_workers, "max_workers", rule, self.max_workers)
        first, between = self.initial_workers, f"be from {self.min_workers} to {self.max_workers}"
        check(first is None or self.min_workers <= first <= self.max_workers, "initial_workers", between, first)
        check(self.sample_every > 0, "sample_every", "be above 0 seconds", self.sample_every)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A checked experiment. `workload` is the table of its file, so that the feeding process can make the same load.

    peak_of_capacity: scale the load so that its peak is this share of what max_workers can do here, measured first.
    """

    text: str
    head: Head
    job: Job
    workload: Mapping[str, Any]
    load: Load
    peak_of_capacity: float | None
    policy_table: Mapping[str, Any]
    shadow_tables: tuple[Mapping[str, Any], ...] = ()
    guard_spec: GuardSpec = field(default_factory=GuardSpec)
    cluster: ClusterSpec = field(default_factory=ClusterSpec)
    stream: StreamSpec = field(default_factory=StreamSpec)

    @property
    def initial_workers(self) -> int:
        return self.head.initial_workers or self.head.min_workers

    @property
    def state_partitions(self) -> int:
        return self.stream.state_partitions or max(1, self.head.max_workers // 2)

    def at_most(self, workers: int) -> Experiment:
        """The same, where the cluster turns out to have room for no more than `workers`."""
        if workers >= self.head.max_workers:
            return self
        first = None if self.head.initial_workers is None else min(self.head.initial_workers, workers)
        return replace(self, head=replace(self.head, max_workers=workers, initial_workers=first))

    def policy(self) -> Policy:
        """A fresh policy: it has learned nothing yet."""
        return self._policy(self.policy_table)

    def shadows(self) -> list[Policy]:
        return [self._policy(table) for table in self.shadow_tables]

    def guards(self) -> tuple[Guard, ...]:
        spec = self.guard_spec
        return guards.default(
            self.head.min_workers,
            self.head.max_workers,
            settle=spec.settle,
            cooldown_up=spec.cooldown_up,
            cooldown_down=spec.cooldown_down,
        )

    def _policy(self, table: Mapping[str, Any]) -> Policy:
        config = {key: value for key, value in table.items() if key != "name"}
        bounds = {"min_workers": self.head.min_workers, "max_workers": self.head.max_workers}
        for key in bounds.keys() & config.keys():
            raise ConfigError(f"policy.{key} must be given above the tables, for all alike, got {config[key]!r}")
        return policies.make(table["name"], **bounds, **with_profile(config))


def with_profile(config: Mapping[str, Any]) -> dict[str, Any]:
    """A policy's settings, with the text of the profile that a .json file has, which is what the policy goes by."""
    given = config.get("profile")
    if not isinstance(given, str) or not given.endswith(".json"):
        return dict(config)
    try:
        return {**config, "profile": Path(given).read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigError(f"policy.profile must be a file of `penstock profile`, got {given!r}: {why}") from None


def load(path: Path | str) -> Experiment:
    """The experiment of a file."""
    return from_file(path, parse)


def from_file(path: Path | str, parse: Callable[[str, str], T]) -> T:
    """What `parse` makes of the text and name of a file; what is wrong with it names the file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"experiment must be a file that can be read, got {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"experiment must be a TOML text, got {str(path)!r}, which is not UTF-8") from None
    try:
        return parse(text, path.stem)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def tables_of(text: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"experiment must be valid TOML, got {error}") from None


def parse(text: str, name: str) -> Experiment:
    """The experiment of a text; `name` is what to call it if it does not say."""
    raw = tables_of(text)
    if "profile" in raw:
        raise ConfigError(f"profile must be left out of a real run (try `penstock simulate`), got {raw['profile']!r}")
    known_tables(raw, TABLES, Head)
    tables = {key: table_of(raw, key) for key in TABLES if key != "shadow"}
    shadows = raw.pop("shadow", [])
    if not isinstance(shadows, list) or not all(isinstance(shadow, dict) for shadow in shadows):
        raise ConfigError(f"shadow must be a list of tables [[shadow]], got {shadows!r}")
    tables["policy"] = tables["policy"] or {"name": DEFAULT_POLICY}
    for table in (tables["policy"], *shadows):
        if not isinstance(table.get("name"), str):
            raise ConfigError(f"policy.name must be one of {', '.join(policies.POLICIES)}, got {table.get('name')!r}")
    head = build("experiment", {"experiment": Head}, "experiment", {"name": name, **raw})
    workload = tables["workload"]
    share = workload.pop("peak_of_capacity", None)
    if share is not None:
        fits = isinstance(share, float | int) and not isinstance(share, bool) and 0 < share <= 2
        check(fits, "workload.peak_of_capacity", "be a number in (0, 2]", share)
    experiment = Experiment(
        text=text,
        head=head,
        job=jobs.make(head.job, **tables["job_settings"]),
        workload=workload,
        load=workloads.make_from(workload),
        peak_of_capacity=None if share is None else float(share),
        policy_table=tables["policy"],
        shadow_tables=tuple(shadows),
        guard_spec=build("guards", {"guards": GuardSpec}, "guards", tables["guards"]),
        cluster=build("cluster", {"cluster": ClusterSpec}, "cluster", tables["cluster"]),
        stream=build("stream", {"stream": StreamSpec}, "stream", tables["stream"]),
    )
    experiment.policy()  # so that a wrong policy, shadow or guard is said now, not after the cluster has started
    experiment.shadows()
    experiment.guards()
    return experiment


def known_tables(raw: Mapping[str, Any], tables: Iterable[str], head: type) -> None:
    """A misspelt table is named as one; what stands above the tables has its own check."""
    above = {each.name for each in fields(head)}
    for key, value in raw.items():
        if isinstance(value, dict) and key not in above:
            one_of("table", tables, key)


def table_of(raw: dict[str, Any], key: str) -> dict[str, Any]:
    """Take the table of this name out; empty if there is none."""
    table = raw.pop(key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{key} must be a table [{key}], got {table!r}")
    return table
