"""Loads from configuration: by name, with checked parameters, from TOML tables."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

import pytest

from penstock.errors import ConfigError
from penstock.workloads import (
    KINDS,
    Bursts,
    Compressed,
    Concatenated,
    Constant,
    Koper,
    Load,
    Noisy,
    Scaled,
    Sine,
    Step,
    Transforms,
    make,
    make_from,
    parameters,
)


def test_the_registry_is_sorted_and_says_the_names_that_the_loads_say() -> None:
    assert list(KINDS) == sorted(KINDS)
    assert {name: load.kind for name, load in KINDS.items()} == {name: name for name in KINDS}


@pytest.mark.parametrize("kind", [*KINDS.values(), Transforms], ids=lambda kind: kind.__name__)
def test_every_parameter_is_explained(kind: type) -> None:
    shared = {parameter.name for parameter in parameters(Transforms)}
    for parameter in parameters(kind):
        assert parameter.doc, f"{kind.__name__}.{parameter.name} has no line in the docstring"
        assert kind is Transforms or parameter.name not in shared


def test_parameters_tell_name_default_and_words() -> None:
    level, duration = parameters(Constant)
    assert (level.name, level.doc) == ("level", "records/s.")
    assert (duration.name, duration.default) == ("duration", 3600.0)


MADE = {
    "a kind": ('kind = "constant"\nlevel = 5', Constant(5)),
    "lists become tuples": ('kind = "step"\nsteps = [[0, 1], [9, 2.5]]', Step(((0, 1), (9, 2.5)))),
    "noise": ('kind = "constant"\nlevel = 5\nnoise = 0.2\nnoise_seed = 3', Noisy(Constant(5), 0.2, 3)),
    "compressed, scaled, then noisy": (
        'kind = "sine"\nlow = 1\nhigh = 2\nnoise = 0.1\nscale_to = 5000\ncompress = 10',
        Noisy(Scaled(Compressed(Sine(1, 2), 10), 5000), 0.1),
    ),
    "bursts before noise": (
        'kind = "constant"\nlevel = 5\nburst = 0.5\nburst_every = 600\nburst_seed = 2\nnoise = 0.1',
        Noisy(Bursts(Constant(5), 0.5, every=600, seed=2), 0.1),
    ),
    "a published load": ('kind = "koper"\nquery = "q11"\nseed = 4', Koper("q11", seed=4)),
    "nested": (
        'kind = "concatenated"\nparts = [{kind = "constant", level = 1}, {kind = "constant", level = 2, scale_to = 9}]',
        Concatenated((Constant(1), Scaled(Constant(2), 9))),
    ),
}


@pytest.mark.parametrize(("text", "load"), MADE.values(), ids=MADE)
def test_make_from_toml(text: str, load: Load) -> None:
    assert make_from(tomllib.loads(text)) == load


REFUSED: dict[str, tuple[Mapping[str, object], str]] = {
    "no kind": ({}, "kind must be one of advertising, commuting, concatenated"),
    "unknown kind": ({"kind": "sin"}, "got 'sin'; did you mean 'sine'?"),
    "nothing near": ({"kind": "zzz"}, "got 'zzz'"),
    "unknown parameter": ({"kind": "sine", "amplitute": 5}, "got 5; did you mean 'amplitude'?"),
    "misspelt transform": (
        {"kind": "constant", "level": 1, "compres": 5},
        "constant.compres must be a parameter of constant, or compress, got 5",
    ),
    "missing": ({"kind": "ramp", "first": 1}, "ramp.last must be given, got nothing"),
    "breaks its rule": ({"kind": "constant", "level": -1}, "constant.level must be 0 records/s or more, got -1"),
    "text for a number": ({"kind": "constant", "level": "5"}, "constant.level must be a finite number, got '5'"),
    "yes for a number": ({"kind": "constant", "level": True}, "constant.level must be a finite number, got True"),
    "half a seed": ({"kind": "random_walk", "low": 1, "high": 2, "seed": 0.5}, "seed must be a whole number, got 0.5"),
    "steps that are none": ({"kind": "step", "steps": 5}, "step.steps must be a list of"),
    "a step of three": ({"kind": "step", "steps": [[0, 1, 2]]}, "steps must be one or more pairs of seconds and rec"),
    "half a sine": ({"kind": "sine", "low": 1}, "sine.low must be given with high, or mean with amplitude, got"),
    "parts that are none": ({"kind": "concatenated", "parts": [3]}, "parts must be a list of workloads, got 3 in it"),
    "no list of parts": ({"kind": "concatenated", "parts": "sine"}, "parts must be a list of workloads, got 'sine'"),
    "no parts": ({"kind": "concatenated"}, "concatenated.parts must be given, got nothing"),
    "wrong part": ({"kind": "concatenated", "parts": [{"kind": "cosine"}]}, "got 'cosine'; did you mean 'sine'?"),
    "transform of another type": ({"kind": "constant", "level": 1, "scale_to": "x"}, "constant.scale_to must be a fin"),
    "transform out of its range": ({"kind": "constant", "level": 1, "noise": 2}, "noise must be in [0, 1], got 2"),
    "compress by nothing": ({"kind": "constant", "level": 1, "compress": 0}, "compress must be above 0, got 0"),
    "burst longer than its window": (
        {"kind": "constant", "level": 1, "burst": 1, "burst_length": 9, "burst_every": 5},
        "constant.burst_length must be above 0 and at most burst_every (5.0), got 9",
    ),
    "a query that is none": ({"kind": "koper", "query": "q2"}, "koper.query must be 'q1' | 'q3' | 'q11', got 'q2'"),
    "path of a number": ({"kind": "recorded", "path": 5}, "recorded.path must be a text, got 5"),
}


@pytest.mark.parametrize(("table", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said(table: Mapping[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        make_from(table)
    assert message in str(refusal.value)


def test_make_takes_loads_as_parts() -> None:
    assert make("concatenated", parts=[Constant(1), Constant(2)]) == Concatenated((Constant(1), Constant(2)))
