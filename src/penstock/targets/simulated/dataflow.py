"""Who does how much of the work: keys and partitions dealt to workers, operators, unequal nodes and their distances.

One source record costs 1 / capacity seconds of CPU in all, divided over the operators by their shares. A *unit* is what
has CPU of its own: a worker that runs every operator, or, where operators scale apart, one instance of one operator.
The unit with the most work for its speed limits the job, because it holds back all that feeds it: the whole job goes at
its pace, and every other unit is used in proportion (Daedalus sec. 3.1, fig. 3 and 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from penstock.core import Node
from penstock.errors import Refused
from penstock.targets.simulated.profile import Profile, Stage

Floats = NDArray[np.float64]
# What a generator is for, so that no two draws depend on each other.
_SPEEDS, _KEYS, _PLACES, _DEAL, _SOURCE = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for: how many, of which operators, where."""

    workers: int
    parallelism: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Units and what each has to do.

    names, columns: what they are called, and their place in the history.
    load: each unit's share of the CPU work of the job; together 1.
    limits: records/s of the whole job at which each unit, warm, is saturated.
    toll: records/s lost to the distance between nodes.
    ceiling: records/s that no number of units exceeds.
    operator_limits: records/s of the whole job at which each operator is saturated.
    balance: mean over the busiest instance of each operator.
    nodes: the nodes in use.
    room: records of the source that fit in the queues before the slowest operator.
    """

    names: tuple[str, ...]
    columns: NDArray[np.intp]
    load: Floats
    limits: Floats
    toll: float
    ceiling: float
    parallelism: Mapping[str, int]
    operator_limits: Mapping[str, float]
    balance: Mapping[str, float]
    nodes: tuple[str, ...] = ()
    room: float = 0.0

    @property
    def capacity(self) -> float:
        """Records/s of the job when all its units are warm."""
        return float(self.pace(self.limits[None, :])[0])

    def pace(self, limits: Floats) -> Floats:
        """Records/s of the job in each tick, from the limits of its units as warm as they are then."""
        pace: Floats = np.clip(limits.min(axis=1) - self.toll, 0.0, self.ceiling)
        return pace


def layout(profile: Profile, plan: Plan, seed: int, deal: int = 0) -> Layout:
    """Work dealt to units; another `deal`, as after a restart, gives the same shares to other workers."""
    if profile.scaling == "operators":
        return _apart(profile, plan, seed, deal)
    n = plan.workers
    shares = np.zeros(n)
    balance: dict[str, float] = {}
    order = np.random.default_rng([seed, _DEAL, deal]).permutation(n)
    for stage in profile.operators:
        dealt = _shares(profile, stage, n, seed)[order]
        shares += stage.cost * dealt
        balance[stage.name] = 1 / (n * float(dealt.max()))
    speeds = speed(profile, n, seed) * n ** (profile.exponent - 1)
    with np.errstate(divide="ignore"):
        limits = profile.capacity * speeds / shares
    busiest = float(limits.min())
    most = max(stage.cost for stage in profile.operators)
    return Layout(
        names=tuple(f"worker-{i}" for i in range(n)),
        columns=np.arange(n),
        load=shares,
        limits=limits,
        toll=profile.distance_cost * spread(profile, plan.nodes, seed),
        ceiling=profile.ceiling or np.inf,
        parallelism={stage.name: n for stage in profile.operators},
        # One worker's CPU is shared, so the operator with the most work in it never waits when the worker is full.
        operator_limits={stage.name: busiest * most / max(stage.cost, 1e-12) for stage in profile.operators},
        balance=balance,
        nodes=plan.nodes,
    )


def _apart(profile: Profile, plan: Plan, seed: int, deal: int) -> Layout:
    names: list[str] = []
    loads: list[Floats] = []
    limits: list[Floats] = []
    balance: dict[str, float] = {}
    operator_limits: dict[str, float] = {}
    for stage in profile.operators:
        count = plan.parallelism[stage.name]
        order = np.random.default_rng([seed, _DEAL, deal]).permutation(count)
        dealt = _shares(profile, stage, count, seed)[order]
        speeds = speed(profile, count, seed) * count ** (profile.exponent - 1)
        with np.errstate(divide="ignore"):
            own = profile.capacity * speeds / (stage.cost * dealt)
        names += [f"{stage.name}-{i}" for i in range(count)]
        loads.append(stage.cost * dealt)
        limits.append(own)
        balance[stage.name] = 1 / (count * float(dealt.max()))
        operator_limits[stage.name] = float(own.min())
    slowest = min(profile.operators, key=lambda stage: operator_limits[stage.name])
    fed = ratios(profile)[slowest.name]
    return Layout(
        names=tuple(names),
        columns=np.arange(len(names)),
        load=np.concatenate(loads),
        limits=np.concatenate(limits),
        toll=profile.distance_cost * spread(profile, plan.nodes, seed),
        ceiling=profile.ceiling or np.inf,
        parallelism=dict(plan.parallelism),
        operator_limits=operator_limits,
        balance=balance,
        nodes=plan.nodes,
        room=slowest.buffer * plan.parallelism[slowest.name] / fed if fed else 0.0,
    )


def capacity(profile: Profile, workers: int, seed: int = 0) -> float:
    """Records/s that the job sustains with so many warm workers, skew and coordination included."""
    return layout(profile, complete(profile, Plan(workers), None), seed).capacity


def complete(profile: Profile, wanted: Plan, before: Plan | None) -> Plan:
    """The plan with all that was left open, as like the one before as can be; Refused if it cannot be."""
    parallelism: dict[str, int] = {}
    workers = wanted.workers
    if profile.scaling == "operators":
        parallelism = _parallelism(profile, wanted, before)
        workers = sum(parallelism.values())
    names = node_names(profile)
    unknown = [node for node in wanted.nodes if node not in names]
    if unknown:
        raise Refused(f"nodes must be among {', '.join(names) or 'none'}, got {unknown[0]!r}")
    if wanted.nodes:
        workers = len(set(wanted.nodes))
    most = profile.max_workers * (len(profile.operators) if profile.scaling == "operators" else 1)
    if not 1 <= workers <= most:
        raise Refused(f"workers must be between 1 and {most}, got {workers}")
    nodes = tuple(dict.fromkeys(wanted.nodes))
    if names and not nodes:
        kept = before.nodes[:workers] if before is not None else ()
        nodes = (*kept, *[name for name in names if name not in kept][: workers - len(kept)])
    return Plan(workers, parallelism, nodes)


def _parallelism(profile: Profile, wanted: Plan, before: Plan | None) -> dict[str, int]:
    names = [stage.name for stage in profile.operators]
    unknown = [name for name in wanted.parallelism if name not in names]
    if unknown:
        raise Refused(f"parallelism must name operators among {', '.join(names)}, got {unknown[0]!r}")
    known = dict(before.parallelism) if before is not None else dict.fromkeys(names, 1)
    if wanted.parallelism:
        known |= wanted.parallelism
        if any(not 1 <= count <= profile.max_workers for count in known.values()):
            raise Refused(f"parallelism must be between 1 and {profile.max_workers}, got {dict(wanted.parallelism)}")
        return known
    # A bare number is dealt by the work that each operator has, and each has one at least.
    if wanted.workers < len(names):
        raise Refused(f"workers must be at least {len(names)}, one per operator, got {wanted.workers}")
    left = wanted.workers - len(names)
    exact = [left * stage.cost for stage in profile.operators]
    dealt = [int(share) for share in exact]
    for place in sorted(range(len(names)), key=lambda i: dealt[i] - exact[i])[: left - sum(dealt)]:
        dealt[place] += 1
    return {name: 1 + extra for name, extra in zip(names, dealt, strict=True)}


def ratios(profile: Profile) -> dict[str, float]:
    """Records that reach each operator per record of the source."""
    reach = dict.fromkeys((stage.name for stage in profile.operators), 0.0)
    fed = {target for stage in profile.operators for target in stage.downstream}
    sources = [stage.name for stage in profile.operators if stage.name not in fed]
    reach.update(dict.fromkeys(sources, 1 / len(sources)))  # several sources share the load
    for stage in profile.operators:
        for target in stage.downstream:
            reach[target] += reach[stage.name] * stage.selectivity
    return reach


def upstream(profile: Profile, name: str) -> set[str]:
    """The operators whose output reaches this one."""
    found: set[str] = set()
    for stage in reversed(profile.operators):
        if name in stage.downstream or found & set(stage.downstream):
            found.add(stage.name)
    return found


def _shares(profile: Profile, stage: Stage, n: int, seed: int) -> Floats:
    if stage.partitioning == "partition":
        parts = np.full(profile.partitions, 1 / profile.partitions)
        if profile.source_keys:
            parts = _group_weights(profile.source_keys, 0.0, profile.partitions, seed, _SOURCE)
        return np.bincount(np.arange(profile.partitions) % n, weights=parts, minlength=n).astype(np.float64)
    if stage.partitioning == "key" and profile.keys:
        groups = _group_weights(profile.keys, profile.zipf, profile.key_groups, seed, _KEYS)
        owner = np.arange(profile.key_groups) * n // profile.key_groups
        return np.bincount(owner, weights=groups, minlength=n).astype(np.float64)
    return np.full(n, 1 / n)


@lru_cache(maxsize=64)
def _group_weights(keys: int, zipf: float, groups: int, seed: int, purpose: int) -> Floats:
    weights = 1 / np.arange(1, keys + 1) ** zipf
    hashed = np.random.default_rng([seed, purpose]).integers(0, groups, keys)
    return np.bincount(hashed, weights=weights / weights.sum(), minlength=groups).astype(np.float64)


def speed(profile: Profile, n: int, seed: int) -> Floats:
    """How fast each of n workers is, 1 being the usual; the first n of a lasting draw."""
    if not profile.speed_spread:
        return np.ones(n)
    drawn = np.random.default_rng([seed, _SPEEDS]).standard_normal(max(n, profile.max_workers))[:n]
    return np.clip(1 + profile.speed_spread * drawn, 0.3, 1.7)


def node_names(profile: Profile) -> tuple[str, ...]:
    return tuple(f"node-{i}" for i in range(profile.nodes))


@lru_cache(maxsize=64)
def _distances(profile: Profile, seed: int) -> Floats:
    if profile.distances:
        return np.array(profile.distances)
    places = np.random.default_rng([seed, _PLACES]).random((profile.nodes, 2))
    apart = np.hypot(*(places[:, None, :] - places[None, :, :]).transpose(2, 0, 1))
    longest = float(apart.max()) if profile.nodes > 1 else 1.0
    return np.asarray(apart / longest * profile.node_latency, dtype=np.float64)


def spread(profile: Profile, used: tuple[str, ...], seed: int) -> float:
    """The longest round trip between two nodes in use, in seconds: Gesscale's ND_max."""
    if not profile.nodes or len(used) < 2:
        return 0.0
    at = [node_names(profile).index(name) for name in used]
    return float(_distances(profile, seed)[np.ix_(at, at)].max())


def nodes(profile: Profile, used: tuple[str, ...], seed: int) -> tuple[Node, ...]:
    """Every node as an observation shows it."""
    names = node_names(profile)
    apart = _distances(profile, seed) if names else np.zeros((0, 0))
    return tuple(
        Node(name, name in used, {other: float(apart[i, j]) for j, other in enumerate(names) if j != i})
        for i, name in enumerate(names)
    )
