"""One simulated run as plain data in, and a row of measures as plain data out: the unit that a matrix is made of.

A `Cell` says all there is to say about a run (job, load, policy, seed), so that any process, here or on a Spark
executor, makes the same `Row` of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock import guards, policies, workloads
from penstock.core import Decision, Guard, Observation, Policy
from penstock.errors import ConfigError, check
from penstock.experiment import oracle, row
from penstock.experiment.failures import Witness, as_shown
from penstock.experiment.oracle import ORACLE
from penstock.experiment.profiling import Plan, profiled
from penstock.experiment.reach import Reach, reach
from penstock.experiment.row import Row
from penstock.measures import Disturbance, Series, elasticity, excess_time, latency, recoveries
from penstock.measures import backlog as backlog_of
from penstock.measures import downtime as downtime_of
from penstock.measures.series import mean
from penstock.targets.simulated import Made, Profile, SimulatedTarget, profile_of, run
from penstock.targets.simulated import load as profile_named
from penstock.workloads import Load

LEAST_TARGET = 60.0
HOUR = 3600.0
SHORTEST, LONGEST = 10.0, 31 * 24 * HOUR

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run: a policy on a load on a job, with a seed.

    group: what is compared side by side; policy: what its settings are called there.
    settings: the policy's table, with its name, and with bounds where it has its own within the cell's.
    profile, workload: a name or a table.
    peak_share, peak_workers: the load's peak as a share of what so many workers can do, instead of its own.
    parallelism: instances of each operator at first, where operators scale apart.
    guards: settings of the usual rails; None for none, as in the papers.
    latency_target: seconds that a record may wait under the oracle; unset: twice what a rescale takes, 60 at least.
    failures: seconds after the start at which a worker is lost.
    normal_latency: seconds at which a job has recovered; unset: as before the rescale or failure.
    profiling: of a profiling phase that is made first, for a policy that goes by one; see `Plan` of
        penstock.experiment.profiling.
    demand_near: the workers that the load needs are reckoned as if all nodes were next to each other.
    """

    group: str
    policy: str
    settings: Mapping[str, Any]
    profile: str | Mapping[str, Any]
    workload: Mapping[str, Any]
    seed: int
    min_workers: int = 1
    max_workers: int
    initial_workers: int
    number: int = 0
    title: str = ""
    peak_share: float | None = None
    peak_workers: int | None = None
    parallelism: Mapping[str, int] = field(default_factory=dict)
    sample_every: float = 1.0
    guards: Mapping[str, float] | None = None
    latency_target: float | None = None
    price: float | None = None
    failures: tuple[float, ...] = ()
    normal_latency: float | None = None
    profiling: Mapping[str, Any] | None = None
    demand_near: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def of(cls, text: str) -> Cell:
        """The cell that `to_json` wrote."""
        document = json.loads(text)
        return cls(**{**document, "failures": tuple(document["failures"])})


@dataclass(frozen=True, slots=True)
class Parts:
    """What a cell is made of, checked."""

    profile: Profile
    load: Load
    policy: Policy | None  # None for the oracle, which is planned when it is run
    guards: tuple[Guard, ...]
    reach: Reach
    demand: Reach  # what SPEC's measures take the load's need from
    latency_target: float
    profiling_seconds: float | None = None


def parts(cell: Cell) -> Parts:
    """The objects of a cell, or a ConfigError that says what is wrong with it."""
    profile = profile_named(cell.profile) if isinstance(cell.profile, str) else _profile(cell.profile)
    most = cell.max_workers
    allowed = profile.max_workers * (len(profile.operators) if profile.scaling == "operators" else 1)
    check(most <= allowed, "max_workers", f"be at most {allowed}, the most of this profile", most)
    can = reach(profile, max(most, cell.peak_workers or 0), cell.seed)
    table = dict(cell.workload)
    if cell.peak_share is not None:
        table["scale_to"] = cell.peak_share * can.capacity(cell.peak_workers or most)
    load = workloads.make_from(table)
    check(load.duration >= SHORTEST, "duration", f"be at least {SHORTEST:g} seconds in a simulation", load.duration)
    check(load.duration <= LONGEST, "duration", f"be at most {LONGEST:g} seconds in a simulation", load.duration)
    settings = {key: value for key, value in cell.settings.items() if key != "name"}
    policy, spent = None, None
    if cell.settings["name"] != ORACLE:
        if cell.profiling is not None:
            found = profiled(profile, most, cell.seed, Plan(**cell.profiling))
            settings["profile"], spent = found.text(), found.worker_seconds
        bounds = {"min_workers": cell.min_workers, "max_workers": most}
        policy = policies.make(cell.settings["name"], **(bounds | settings))
    rails = () if cell.guards is None else guards.default(cell.min_workers, most, **cell.guards)
    target = cell.latency_target
    if target is None:
        target = max(LEAST_TARGET, 2 * oracle.stop(profile, profile.downtime_out))
    check(isfinite(target) and target > 0, "latency_target", "be above 0 seconds", target)
    near = reach(replace(profile, distance_cost=0.0), most, cell.seed) if cell.demand_near else can
    return Parts(profile, load, policy, rails, can, near, target, spent)


def execute(cell: Cell) -> Row:
    """Make the run and measure it."""
    made_of = parts(cell)
    load = made_of.load
    seconds = np.arange(0.5, load.duration)
    demand = made_of.demand.ideal(load.rates(seconds), cell.min_workers, cell.max_workers)
    known: dict[str, Any] = {
        "number": cell.number,
        "group": cell.group,
        "policy": cell.policy,
        "name": cell.settings["name"],
        "profile": cell.profile if isinstance(cell.profile, str) else str(cell.profile.get("name", "")),
        "seed": cell.seed,
        "duration": load.duration,
        "max_workers": cell.max_workers,
        "latency_target": made_of.latency_target,
        "ideal_workers": float(demand.mean()),
    }
    if made_of.policy is None:
        return row.made(known | _oracle(cell, made_of))
    parallelism = dict(cell.parallelism) or None
    workers = sum(parallelism.values()) if parallelism else cell.initial_workers
    return row.made(known | _lived(cell, made_of, made_of.policy, workers, parallelism))


def _oracle(cell: Cell, made_of: Parts) -> dict[str, Any]:
    """The plan with the least reserve whose run keeps the target: what a plan with none falls behind by, it never
    makes up for, since its workers are just enough.
    """
    best: dict[str, Any] = {}
    for reserve in oracle.reserves(made_of.profile):
        try:
            policy = oracle.plan(
                made_of.profile,
                made_of.load,
                made_of.reach,
                fewest=cell.min_workers,
                most=cell.max_workers,
                latency_target=made_of.latency_target,
                reserve=reserve,
            )
        except ConfigError as error:
            return best or {"note": str(error)}
        first = policy.workers(0.0)
        found = _lived(cell, made_of, policy, first, made_of.reach.parallelism(first))
        over = found["over_target"] or 0.0
        said = f"{100 * reserve:g} % of capacity in reserve; over its target for {100 * over:.1f} % of the time"
        if not best or over < best["over_target"]:
            best = found | {"note": said}
        if over <= oracle.KEPT:
            break
    return best


def _lived(
    cell: Cell, made_of: Parts, policy: Policy, workers: int, parallelism: dict[str, int] | None
) -> dict[str, Any]:
    """Make the run under this policy and measure it."""
    load = made_of.load
    target = SimulatedTarget(made_of.profile, load, workers=workers, parallelism=parallelism, seed=cell.seed)
    for at in cell.failures:
        target.fail(at)
    watch, witness = _Watch(), Witness(policy, cell.failures)
    made = run(
        target,
        policy,
        made_of.guards,
        duration=load.duration,
        sample_every=cell.sample_every,
        on_decision=watch,
        on_sample=witness,
    )
    watch.look(target.observe())
    return _measured(cell, made_of, target, watch, witness, made, policy)


class _Watch:
    """Which rescales there were, from what is seen at each decision: at most one happens between two of them."""

    def __init__(self) -> None:
        self.seen: list[Observation] = []

    def __call__(self, observation: Observation, _decision: Decision) -> None:
        self.look(observation)

    def look(self, observation: Observation) -> None:
        last = self.seen[-1] if self.seen else None
        if last is None or observation.last_rescale_at != last.last_rescale_at:
            self.seen.append(observation)

    def rescales(self) -> list[tuple[float, int, int]]:
        """When, from how many, to how many."""
        found = []
        for before, after in zip(self.seen, self.seen[1:], strict=False):
            at = after.last_rescale_at
            found.append((0.0 if at is None else at, before.requested or 0, after.requested or 0))
        return found


def _measured(
    cell: Cell,
    made_of: Parts,
    target: SimulatedTarget,
    watch: _Watch,
    witness: Witness,
    made: list[Made],
    policy: Policy,
) -> dict[str, Any]:
    truth = target.series()
    columns = {name: getattr(truth, name) for name in ("workers", "input_rate", "processed_rate", "backlog")}
    series = Series.ticks(1.0, **columns, latency=truth.p95)
    shown = Series.ticks(1.0, **columns, latency=as_shown(truth.p95, truth.up, made_of.profile.latency_window))
    changes = watch.rescales()
    late = latency(series, made_of.latency_target)
    held = backlog_of(series)
    capacities = made_of.demand.capacities[: cell.max_workers]
    follows = elasticity(series, capacities, max_workers=cell.max_workers, min_workers=cell.min_workers)
    stirred = [Disturbance(at, "rescale") for at, _, _ in changes]
    quiet = made_of.profile.detection if made_of.profile.works_until_noticed else 0.0
    stirred += [Disturbance(at, "failure", quiet) for at in cell.failures]
    # Nobody has to look for the beginning of a failure here: it is known.
    ended = recoveries(shown, stirred, detection=0.0, normal_latency=cell.normal_latency)
    healed = {
        cause: [r.seconds for r in ended if r.cause == cause and r.seconds is not None and not r.interrupted]
        for cause in ("rescale", "failure")
    }
    paid = float(truth.workers.sum())
    lines = row.lines(truth.input_rate, truth.workers, truth.p95, truth.backlog)
    lines["quantiles"] = row.quantiles(series)
    lines["decisions"] = [
        [row.short(m.at), m.decision.workers, dict(m.decision.parallelism)] for m in made if m.carried_out
    ]
    lines["rescales"] = [[row.short(at), before, after] for at, before, after in changes]
    lines["failures"] = [[row.short(r.at), row.short(r.seconds), r.interrupted] for r in ended if r.cause == "failure"]
    return {
        "average_workers": paid / len(truth.workers),
        "worker_seconds": paid,
        "money": None if cell.price is None else paid / HOUR * cell.price,
        **{f"latency_{name}": getattr(late, name) for name in ("mean", "p50", "p95", "p99", "max")},
        "latency_known": late.known / len(truth.workers),
        "over_target": late.over_target,
        "rescales": len(changes),
        "rescales_out": sum(after > before for _, before, after in changes),
        "rescales_in": sum(after < before for _, before, after in changes),
        "downtime": downtime_of(series),
        **{f"backlog_{name}": getattr(held, name) for name in ("mean", "max", "end")},
        **({} if follows is None else {key: value for key, value in asdict(follows).items() if key != "known"}),
        "excess_time": excess_time(series, made_of.reach.capacities),
        **{f"recovery_{cause}": sum(found) / len(found) if found else None for cause, found in healed.items()},
        "capacity_error": _capacity_error(made, made_of.reach),
        "forecast_error": _forecast_error(made, truth.input_rate, policy),
        "recovery_error": witness.error(ended),
        "profiling_seconds": made_of.profiling_seconds,
        "cpu_mean": mean(truth.cpu, np.ones(len(truth.cpu))),
        "records_in": float(truth.input_rate.sum()),
        "lines": json.dumps(lines, separators=(",", ":")),
    }


def _capacity_error(made: list[Made], can: Reach) -> float | None:
    """Sum of errors over sum of what was true (WAPE), over all decisions that expected a capacity."""
    pairs = [
        (m.decision.expects.capacity, can.capacity(m.decision.workers))
        for m in made
        if m.decision.expects is not None and m.decision.expects.capacity is not None and m.decision.workers
    ]
    return _wape(pairs)


def _forecast_error(made: list[Made], load: Floats, policy: Policy) -> float | None:
    """The same of the peaks that were expected within the policy's horizon."""
    horizon = int(getattr(policy, "horizon", 0.0) / getattr(policy, "time_scale", 1.0))
    pairs = [
        (m.decision.expects.peak, float(load[int(m.at) : int(m.at) + horizon].max()))
        for m in made
        if m.decision.expects is not None and m.decision.expects.peak is not None and m.at + horizon <= len(load)
    ]
    return _wape(pairs) if horizon else None


def _wape(pairs: list[tuple[float, float]]) -> float | None:
    total = sum(true for _, true in pairs)
    return sum(abs(expected - true) for expected, true in pairs) / total if total > 0 else None


def _profile(table: Mapping[str, Any]) -> Profile:
    return profile_of(str(table.get("name", "profile")), {key: value for key, value in table.items() if key != "name"})


__all__ = ["ORACLE", "Cell", "Parts", "Row", "execute", "parts"]
