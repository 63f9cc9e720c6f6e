"""What is known of a job and its engine, as numbers with units: a profile, read from TOML by name or path.

A profile describes machinery and data, never a policy or an outcome: the same one serves every autoscaler.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Literal

from penstock.errors import ConfigError, check
from penstock.settings import build

Partitioning = Literal["partition", "key", "even"]


def _from_zero(name: str, value: float) -> None:
    check(isfinite(value) and value >= 0, name, "be 0 or more", value)


def _within(name: str, value: float, low: float, high: float) -> None:
    check(low <= value <= high, name, f"be in [{low}, {high}]", value)


@dataclass(frozen=True, slots=True)
class Stage:
    """One operator of the dataflow.

    name: what it is called.
    cost: share of the CPU time of one source record that is spent here; all shares together are 1.
    selectivity: records that go out per record that comes in.
    partitioning: how its input reaches the workers: as the source's partitions lie, by key, or evenly.
    downstream: the operators that its output goes to, whole to each.
    buffer: records that wait before one instance of it when it holds the others back; of a job whose source makes its
        own records, the most that do, and the source is stopped from there until half of them are gone.
    """

    name: str
    cost: float
    selectivity: float = 1.0
    partitioning: Partitioning = "even"
    downstream: tuple[str, ...] = ()
    buffer: float = 0.0

    def __post_init__(self) -> None:
        check(bool(self.name), "name", "be a text that is not empty", self.name)
        _within("cost", self.cost, 0, 1)
        _from_zero("selectivity", self.selectivity)
        _from_zero("buffer", self.buffer)


@dataclass(frozen=True, slots=True)
class Profile:
    """A job on an engine. Times are seconds, rates records per second of the source, CPU is 0..1 of a worker's own.

    engine: continuous (Flink, Heron, Kafka Streams) or microbatch (Spark).
    capacity: records/s that one worker alone does at full CPU.
    description: a sentence for people.
    max_workers: the most workers of the published setting; more are refused.
    exponent: n workers together do n to this power times what one does; 1: no loss to coordination.
    ceiling: records/s that the job never exceeds, whatever its workers: brokers, network, shared cores; 0: none.
    ceiling_cpu: share of the CPU that the ceiling leaves idle which is spent all the same, as on cores that are shared.
    speed_spread: standard deviation of the workers' speeds around 1 (unequal nodes).
    idle_cpu: CPU of a worker with nothing to do.
    full_cpu: CPU of the busiest worker when the job can do no more; below 1 where something else is the limit.
    cpu_noise: standard deviation of a worker's CPU from second to second.
    cpu_correlation: how much of that noise stays from one second to the next.
    cpu_window: seconds over which the CPU metric is a mean.
    rate_window: seconds over which rates, busy and backpressure time are a mean.
    latency_window: seconds over which the latency metric is a mean.
    backlog_window: seconds over which the backlog metric is the maximum, as Kafka's records-lag-max is.
    backlog_wait: seconds of input that it shows for each further partition that a worker polls in turn.
    backlog_floor: records that the backlog metric shows though the job keeps up: fetched, not yet counted.
    metric_delay: seconds by which every metric lags behind.
    counters_restart: a restart begins the rate counters anew, while the mean still divides by the whole window.
    cpu_through_restart: workers live on while the job restarts, and so does their CPU metric.
    feed: log (what the job does not read waits in it) or generator (the source makes its own records as fast as
        they are wanted, and what the job does not take is never made).
    partitions: partitions of the source.
    source_keys: distinct keys by which records are hashed to those partitions; 0: all partitions get alike.
    keys: distinct keys that records are hashed by; 0: so many that every worker gets its even share.
    zipf: exponent of the keys' popularity; 0: all alike.
    key_groups: groups that keys are hashed to; groups, not keys, are dealt to workers in equal ranges.
    checkpoint_interval: seconds between checkpoints.
    savepoint: a planned rescale saves its position first, so that nothing is replayed.
    state_per_record: bytes of state that a processed record adds.
    state_limit: GB at which the state stays.
    rescaling: restart (the job stops) or live (it runs on, new workers join cold).
    startup: seconds until a worker that was asked for is there; until then the job runs on as it was.
    downtime_out, downtime_in: mean seconds that the job stops for when it restarts with more or with fewer workers.
    downtime_failure: the same after a failure, once it is noticed.
    downtime_spread: standard deviation of the downtime as a share of its mean.
    downtime_per_gb: seconds that each GB of state adds.
    detection: seconds until a lost worker is noticed.
    works_until_noticed: what is lost is its heartbeats only, so that the job goes on until that is noticed.
    warmup: seconds until a worker, or a restarted job, is at full speed.
    warmup_speed: its speed at first, as a share; it rises in a straight line.
    stays_warm: a restart leaves workers that were there before warm; only new ones are cold.
    warmup_cpu: CPU that warming takes at first on top; it falls in a straight line.
    behind_speed: speed, as a share, of a job far behind: old records come from disk, and windows and state swell.
    behind_after: seconds behind at which half of that slowdown is reached.
    latency_base: seconds from event to result with nothing in the way.
    partition_wait: seconds that a record waits for each further partition that its worker reads in turn.
    burst: seconds that a record waits at half load because loads come in bursts; grows as use / (1 - use).
    window: seconds of the window that a result waits for; 0 where the published latency leaves windows out.
    fill_records: records that a worker collects before it passes them on, so that low rates wait longer.
    fill_timeout: the most seconds of that.
    scaling: workers run every operator (one number), or operators have instances of their own.
    busy_ceiling: busy time that a saturated operator reports; below 1 in Flink (Koper sec. 5.12).
    busy_power: busy time grows with this power of the load; above 1 where a record takes longer on a contended worker.
    busy_decline: n instances of a saturated operator are busy for n to minus this power of the time that one is, on
        average: the busiest holds back the rest.
    backpressure_share: share of their free time that those before a saturated operator are held back, on average.
    trigger: seconds between the starts of two batches (microbatch).
    batch_fixed: seconds of a batch before and after its tasks: planning, offsets, commit.
    batch_tasks: tasks of a batch besides one per worker, such as its state partitions.
    batch_task: seconds that one task costs on its worker besides its records.
    batch_limit: the most records per worker in a batch; 0: no limit.
    batch_noise: standard deviation of a batch's duration as a share of it.
    nodes: places that workers may run at; 0: it does not matter where.
    node_latency: the longest round trip in seconds between two nodes whose places are drawn by the seed.
    distances: seconds of round trip from each node to each, instead of drawn places.
    distance_cost: records/s of capacity lost per second of the longest round trip in use (Gesscale eq. 1).
    operators: the dataflow, source first.
    """

    engine: Literal["continuous", "microbatch"]
    capacity: float
    description: str = ""
    max_workers: int = 24
    exponent: float = 1.0
    ceiling: float = 0.0
    ceiling_cpu: float = 0.0
    speed_spread: float = 0.0
    idle_cpu: float = 0.05
    full_cpu: float = 1.0
    cpu_noise: float = 0.02
    cpu_correlation: float = 0.8
    cpu_window: float = 60.0
    rate_window: float = 60.0
    latency_window: float = 1.0
    backlog_window: float = 1.0
    backlog_wait: float = 0.0
    backlog_floor: float = 0.0
    metric_delay: float = 0.0
    counters_restart: bool = True
    cpu_through_restart: bool = True
    feed: Literal["log", "generator"] = "log"
    partitions: int = 24
    source_keys: int = 0
    keys: int = 0
    zipf: float = 0.0
    key_groups: int = 128
    checkpoint_interval: float = 10.0
    savepoint: bool = False
    state_per_record: float = 0.0
    state_limit: float = 0.0
    rescaling: Literal["restart", "live"] = "restart"
    startup: float = 0.0
    downtime_out: float = 30.0
    downtime_in: float = 15.0
    downtime_failure: float = 30.0
    downtime_spread: float = 0.2
    downtime_per_gb: float = 0.0
    detection: float = 20.0
    works_until_noticed: bool = False
    warmup: float = 0.0
    warmup_speed: float = 1.0
    stays_warm: bool = False
    warmup_cpu: float = 0.0
    behind_speed: float = 1.0
    behind_after: float = 60.0
    latency_base: float = 0.1
    partition_wait: float = 0.0
    burst: float = 0.0
    window: float = 0.0
    fill_records: float = 0.0
    fill_timeout: float = 0.0
    scaling: Literal["workers", "operators"] = "workers"
    busy_ceiling: float = 1.0
    busy_power: float = 1.0
    busy_decline: float = 0.0
    backpressure_share: float = 1.0
    trigger: float = 0.0
    batch_fixed: float = 0.0
    batch_tasks: int = 0
    batch_task: float = 0.0
    batch_limit: float = 0.0
    batch_noise: float = 0.0
    nodes: int = 0
    node_latency: float = 0.0
    distances: tuple[tuple[float, ...], ...] = ()
    distance_cost: float = 0.0
    operators: tuple[Stage, ...] = (Stage("job", 1.0),)

    def __post_init__(self) -> None:
        check(isfinite(self.capacity) and self.capacity > 0, "capacity", "be above 0 records/s", self.capacity)
        for name in ("max_workers", "partitions", "key_groups"):
            check(getattr(self, name) >= 1, name, "be at least 1", getattr(self, name))
        for name in ("cpu_window", "rate_window", "latency_window", "backlog_window", "checkpoint_interval"):
            check(getattr(self, name) >= 1, name, "be at least 1 second, which is the tick", getattr(self, name))
        for quantity in fields(self):
            if type(value := getattr(self, quantity.name)) in (int, float):
                _from_zero(quantity.name, value)
        for name in ("idle_cpu", "full_cpu", "warmup_cpu", "ceiling_cpu", "busy_decline", "backpressure_share"):
            _within(name, getattr(self, name), 0, 1)
        check(self.full_cpu > self.idle_cpu, "full_cpu", f"be above idle_cpu ({self.idle_cpu})", self.full_cpu)
        check(0 <= self.cpu_correlation < 1, "cpu_correlation", "be in [0, 1)", self.cpu_correlation)
        for name in ("exponent", "warmup_speed", "behind_speed", "busy_ceiling"):
            check(0 < getattr(self, name) <= 1, name, "be in (0, 1]", getattr(self, name))
        check(self.busy_power >= 1, "busy_power", "be 1 or more", self.busy_power)
        check(self.speed_spread < 0.5, "speed_spread", "be below 0.5", self.speed_spread)
        self._check_engine()
        self._check_nodes()
        check_dataflow(self.operators)

    def _check_engine(self) -> None:
        check(self.engine in ("continuous", "microbatch"), "engine", "be continuous or microbatch", self.engine)
        check(self.rescaling in ("restart", "live"), "rescaling", "be restart or live", self.rescaling)
        check(self.scaling in ("workers", "operators"), "scaling", "be workers or operators", self.scaling)
        check(self.feed in ("log", "generator"), "feed", "be log or generator", self.feed)
        if self.engine == "microbatch":
            check(self.feed == "log", "feed", "be log with micro-batches", self.feed)
            check(self.rescaling == "live", "rescaling", "be live with micro-batches", self.rescaling)
            check(self.scaling == "workers", "scaling", "be workers with micro-batches", self.scaling)
            check(self.trigger >= 1, "trigger", "be at least 1 second, which is the tick", self.trigger)
        if self.scaling == "operators":
            check(self.rescaling == "restart", "rescaling", "be restart where operators scale apart", self.rescaling)

    def _check_nodes(self) -> None:
        enough = self.nodes == 0 or self.nodes >= self.max_workers
        check(enough, "nodes", f"be 0 or at least max_workers ({self.max_workers})", self.nodes)
        if self.distances:
            size = self.nodes
            square = len(self.distances) == size and all(len(row) == size for row in self.distances)
            check(square, "distances", f"have {size} rows of {size} values, one per node", len(self.distances))
            known = all(isfinite(value) and value >= 0 for row in self.distances for value in row)
            check(known, "distances", "be 0 seconds or more", self.distances)

    @property
    def source(self) -> Stage:
        """The operator that reads the log."""
        return self.operators[0]


def profiles() -> tuple[str, ...]:
    """The names of the profiles that come with Penstock, in order."""
    folder = files(__package__) / "profiles"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load(name: str) -> Profile:
    """The profile of this name, or in the TOML file at this path.

    >>> load("flink-wordcount").engine
    'continuous'
    """
    path = Path(name)
    if path.suffix == ".toml":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"profile must be a TOML file that can be read, got {name!r}: {error}") from None
    elif name in profiles():
        text = (files(__package__) / "profiles" / f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise ConfigError(f"profile must be one of {', '.join(profiles())}, or the path of a .toml file, got {name!r}")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"profile must be a TOML file, got {name!r}: {error}") from None
    return profile_of(path.stem if path.suffix == ".toml" else name, table)


def profile_of(name: str, table: Mapping[str, object]) -> Profile:
    """The profile that a table describes; `name` is what errors call it."""
    flat = {key: value for key, value in table.items() if key != "operators"}
    stages = table.get("operators", [{"name": "job", "cost": 1.0}])
    if not isinstance(stages, list) or not all(isinstance(stage, Mapping) for stage in stages):
        raise ConfigError(f"{name}.operators must be a list of tables, got {stages!r}")
    profile: Profile = build("profile", {name: Profile}, name, flat)
    dataflow = tuple(build("operator", {f"{name}.operators": Stage}, f"{name}.operators", stage) for stage in stages)
    try:
        return replace(profile, operators=dataflow)
    except ConfigError as error:
        raise ConfigError(f"{name}.{error}") from None


def check_dataflow(operators: tuple[Stage, ...]) -> None:
    """A graph without a cycle: every operator comes after all that feed it, so one pass in order is enough."""
    check(bool(operators), "operators", "have at least one", operators)
    names = [stage.name for stage in operators]
    check(len(set(names)) == len(names), "operators", "have names that differ", names)
    total = sum(stage.cost for stage in operators)
    check(abs(total - 1) < 1e-6, "operators", "have costs that add up to 1", round(total, 9))
    for place, stage in enumerate(operators):
        for target in stage.downstream:
            check(target in names[place + 1 :], "operators", f"name {stage.name}'s downstream after it", target)
