"""Loads from configuration: by name, with checked parameters, from TOML tables."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

import pytest

from penstock.errors import ConfigError
from penstock.workloads import (
    KINDS,
    TRANSFORMS,
    Compressed,
    Concatenated,
    Constant,
    Load,
    Noisy,
    Scaled,
    Sine,
    Step,
    make,
    make_from,
    parameters,
)


def test_the_registry_is_sorted_and_says_the_names_that_the_loads_say() -> None:
    assert list(KINDS) == sorted(KINDS)
    assert {name: load.kind for name, load in KINDS.items()} == {name: name for name in KINDS}


@pytest.mark.parametrize("kind", [*KINDS.values(), Noisy, Scaled, Compressed], ids=lambda kind: kind.kind)
def test_every_parameter_is_explained(kind: type[Load]) -> None:
    for parameter in parameters(kind):
        assert parameter.doc, f"{kind.__name__}.{parameter.name} has no line in the docstring"
        assert parameter.type
        assert parameter.name not in TRANSFORMS


def test_parameters_tell_name_type_default_and_words() -> None:
    level, duration = parameters(Constant)
    assert (level.name, level.type, level.required, level.doc) == ("level", "number", True, "records/s.")
    assert (duration.name, duration.default, duration.required) == ("duration", 3600.0, False)


MADE = {
    "a kind": ('kind = "constant"\nlevel = 5', Constant(5)),
    "lists become tuples": ('kind = "step"\nsteps = [[0, 1], [9, 2.5]]', Step(((0, 1), (9, 2.5)))),
    "noise": ('kind = "constant"\nlevel = 5\nnoise = 0.2\nnoise_seed = 3', Noisy(Constant(5), 0.2, 3)),
    "compressed, scaled, then noisy": (
        'kind = "sine"\nlow = 1\nhigh = 2\nnoise = 0.1\nscale_to = 5000\ncompress = 10',
        Noisy(Scaled(Compressed(Sine(1, 2), 10), 5000), 0.1),
    ),
    "nested": (
        'kind = "concatenated"\nparts = [{kind = "constant", level = 1}, {kind = "constant", level = 2, scale_to = 9}]',
        Concatenated((Constant(1), Scaled(Constant(2), 9))),
    ),
}


@pytest.mark.parametrize(("text", "load"), MADE.values(), ids=MADE)
def test_make_from_toml(text: str, load: Load) -> None:
    assert make_from(tomllib.loads(text)) == load


REFUSED: dict[str, tuple[Mapping[str, object], str]] = {
    "no kind": ({}, "kind must be one of concatenated, constant, flash"),
    "unknown kind": ({"kind": "sin"}, "got 'sin'; did you mean sine?"),
    "nothing near": ({"kind": "zzz"}, "got 'zzz'"),
    "unknown parameter": (
        {"kind": "sine", "amplitute": 5},
        "sine must have only the parameters low, high, mean, amplitude, periods, phase, duration, "
        "got 'amplitute'; did you mean amplitude?",
    ),
    "misspelt transform": ({"kind": "constant", "level": 1, "compres": 5}, "did you mean compress?"),
    "missing": ({"kind": "ramp", "first": 1}, "last must be given for ramp, got nothing"),
    "text for a number": ({"kind": "constant", "level": "5"}, "level must be a number, got '5'"),
    "yes for a number": ({"kind": "constant", "level": True}, "level must be a number, got True"),
    "half a seed": ({"kind": "random_walk", "low": 1, "high": 2, "seed": 0.5}, "seed must be a whole number, got 0.5"),
    "steps that are none": ({"kind": "step", "steps": 5}, "steps must be a list of [seconds, records/s], got 5"),
    "a step of three": ({"kind": "step", "steps": [[0, 1, 2]]}, "steps must be a list of [seconds, records/s], got [0"),
    "parts that are none": ({"kind": "concatenated", "parts": [3]}, "parts must be a load, got 3"),
    "no list of parts": ({"kind": "concatenated", "parts": "sine"}, "parts must be a list of loads, got 'sine'"),
    "wrong part": ({"kind": "concatenated", "parts": [{"kind": "cosine"}]}, "got 'cosine'; did you mean sine?"),
    "transform of another type": (
        {"kind": "constant", "level": 1, "scale_to": "x"},
        "scale_to must be a number, got 'x'",
    ),
    "transform out of its range": ({"kind": "constant", "level": 1, "noise": 2}, "noise must be in [0, 1], got 2"),
    "compress by nothing": ({"kind": "constant", "level": 1, "compress": 0}, "compress must be above 0, got 0"),
    "a seed without noise": ({"kind": "constant", "level": 1, "noise_seed": 2}, "noise must be given for noise_seed"),
    "path of a number": ({"kind": "recorded", "path": 5}, "path must be text, got 5"),
}


@pytest.mark.parametrize(("table", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said(table: Mapping[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        make_from(table)
    assert message in str(refusal.value)


def test_make_takes_loads_as_parts() -> None:
    assert make("concatenated", parts=[Constant(1), Constant(2)]) == Concatenated((Constant(1), Constant(2)))
