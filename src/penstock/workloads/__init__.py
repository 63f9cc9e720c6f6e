"""Loads by name: rate(t) in records per second, t in seconds after the start.

>>> load = make("ramp", first=100, last=200, duration=60)
>>> load.rate(30), load.peak(), load.duration
(150.0, 200.0, 60.0)
>>> make_from({"kind": "sine", "low": 1, "high": 9, "scale_to": 4500, "compress": 10, "noise": 0.05}).duration
2160.0
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields

from penstock.errors import ConfigError
from penstock.settings import Parameter, build, parameters
from penstock.workloads.base import Load
from penstock.workloads.combinators import Bursts, Compressed, Concatenated, Noisy, Scaled, Transforms
from penstock.workloads.days import Advertising, Commuting, Taxi, Traffic
from penstock.workloads.published import Koper, NoisySine
from penstock.workloads.recorded import Recorded
from penstock.workloads.shapes import Constant, Flash, Ramp, Sine, Step
from penstock.workloads.walk import RandomWalk

__all__ = [
    "KINDS",
    "Advertising",
    "Bursts",
    "Commuting",
    "Compressed",
    "Concatenated",
    "Constant",
    "Flash",
    "Koper",
    "Load",
    "Noisy",
    "NoisySine",
    "Parameter",
    "Ramp",
    "RandomWalk",
    "Recorded",
    "Scaled",
    "Sine",
    "Step",
    "Taxi",
    "Traffic",
    "Transforms",
    "make",
    "make_from",
    "parameters",
]

KINDS: dict[str, type[Load]] = {
    "advertising": Advertising,
    "commuting": Commuting,
    "concatenated": Concatenated,
    "constant": Constant,
    "flash": Flash,
    "koper": Koper,
    "noisy_sine": NoisySine,
    "ramp": Ramp,
    "random_walk": RandomWalk,
    "recorded": Recorded,
    "sine": Sine,
    "step": Step,
    "taxi": Taxi,
    "traffic": Traffic,
}


def make(kind: str, **config: object) -> Load:
    """The load of this kind; ConfigError names what is wrong with the configuration."""
    if kind == "concatenated" and set(config) == {"parts"}:
        return Concatenated(_parts(config["parts"]))
    return build("workload", KINDS, kind, config)


def make_from(table: Mapping[str, object]) -> Load:
    """The load that a TOML table describes: its kind, its own parameters, and any of the Transforms."""
    kind = table.get("kind")
    if not isinstance(kind, str):
        raise ConfigError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    shared = [field.name for field in fields(Transforms)]
    transforms = {key: value for key, value in table.items() if key in shared}
    own = {key: value for key, value in table.items() if key not in ("kind", *shared)}
    for key in own:
        if near := difflib.get_close_matches(key, shared, n=1, cutoff=0.8):
            raise ConfigError(f"{kind}.{key} must be a parameter of {kind}, or {near[0]}, got {own[key]!r}")
    return build("workload", {kind: Transforms}, kind, transforms)(make(kind, **own))


def _parts(given: object) -> tuple[Load, ...]:
    if not isinstance(given, list | tuple):
        raise ConfigError(f"concatenated.parts must be a list of workloads, got {given!r}")
    parts: list[Load] = []
    for part in given:
        if not isinstance(part, Mapping | Load):
            raise ConfigError(f"concatenated.parts must be a list of workloads, got {part!r} in it")
        parts.append(part if isinstance(part, Load) else make_from(part))
    return tuple(parts)
