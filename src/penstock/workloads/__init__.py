"""Loads by name: rate(t) in records per second, t in seconds after the start.

>>> load = make("ramp", first=100, last=200, duration=60)
>>> load.rate(30), load.peak(), load.duration
(150.0, 200, 60)
>>> make_from({"kind": "sine", "low": 1, "high": 9, "scale_to": 4500, "compress": 10, "noise": 0.05}).duration
2160.0
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import ConfigError
from penstock.workloads.base import Load
from penstock.workloads.combinators import Compressed, Concatenated, Noisy, Scaled
from penstock.workloads.recorded import Recorded
from penstock.workloads.settings import Parameter, build, nearest, parameters
from penstock.workloads.shapes import Constant, Flash, Ramp, Sine, Step
from penstock.workloads.walk import RandomWalk

__all__ = [
    "KINDS",
    "TRANSFORMS",
    "Compressed",
    "Concatenated",
    "Constant",
    "Flash",
    "Load",
    "Noisy",
    "Parameter",
    "Ramp",
    "RandomWalk",
    "Recorded",
    "Scaled",
    "Sine",
    "Step",
    "make",
    "make_from",
    "parameters",
]

KINDS: dict[str, type[Load]] = {
    "concatenated": Concatenated,
    "constant": Constant,
    "flash": Flash,
    "ramp": Ramp,
    "random_walk": RandomWalk,
    "recorded": Recorded,
    "sine": Sine,
    "step": Step,
}

# Keys that any kind takes besides its own parameters, in the order in which they apply.
TRANSFORMS: dict[str, str] = {
    "compress": "how many times faster it runs",
    "scale_to": "its peak, in records/s, before noise",
    "noise": "random factor within 1 - noise .. 1 + noise",
    "noise_seed": "another seed, another noise",
    "noise_interval": "seconds that one draw of the noise lasts",
}


def make(kind: str, **config: object) -> Load:
    """The load of this kind; ConfigError names what is wrong with the configuration."""
    if kind not in KINDS:
        raise ConfigError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}{nearest(kind, KINDS)}")
    if kind == "concatenated" and isinstance(parts := config.get("parts"), list | tuple):
        config["parts"] = tuple(make_from(part) if isinstance(part, Mapping) else part for part in parts)
    return build(KINDS[kind], config, also=TRANSFORMS)


def make_from(table: Mapping[str, object]) -> Load:
    """The load that a TOML table describes: its kind, its parameters, and any of the TRANSFORMS."""
    config = {key: value for key, value in table.items() if key not in ("kind", *TRANSFORMS)}
    load = make(str(table.get("kind")), **config)
    if "compress" in table:
        load = build(Compressed, {"of": load, "factor": table["compress"]}, called={"factor": "compress"})
    if "scale_to" in table:
        load = build(Scaled, {"of": load, "to": table["scale_to"]}, called={"to": "scale_to"})
    noise = {key: table[name] for key, name in _NOISE.items() if name in table}
    if "share" in noise:
        return build(Noisy, {"of": load, **noise}, called=_NOISE)
    if noise:
        raise ConfigError(f"noise must be given for {' and '.join(_NOISE[key] for key in noise)} to matter, got none")
    return load


_NOISE = {"share": "noise", "seed": "noise_seed", "interval": "noise_interval"}
