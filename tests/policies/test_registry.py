from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from penstock.core import Decision, Observation, Policy, Reason
from penstock.errors import ConfigError
from penstock.policies import POLICIES, make, parameters, register


def test_the_registry_is_sorted_and_names_agree() -> None:
    assert list(POLICIES) == sorted(POLICIES)
    assert all(name == cls.name for name, cls in POLICIES.items())


WRONG: dict[str, tuple[str, dict[str, object], str]] = {
    "unknown policy": ("hpaa", {}, "got 'hpaa'; did you mean 'hpa'?"),
    "no policy near": ("zzz", {}, "got 'zzz'"),
    "unknown parameter": ("static", {"worker": 3}, "static.worker must be a parameter of static (min_workers, "),
    "suggests the nearest": ("static", {"worker": 3}, "got 3; did you mean 'workers'?"),
    "text for a number": ("hpa", {"target_cpu": "80 %"}, "hpa.target_cpu must be a finite number, got '80 %'"),
    "a share for a count": ("hpa", {"scale_up_pods": 1.5}, "hpa.scale_up_pods must be a whole number, got 1.5"),
    "true is no number": ("hpa", {"max_workers": True}, "hpa.max_workers must be a whole number, got True"),
    "NaN": ("hpa", {"target_cpu": float("nan")}, "hpa.target_cpu must be a finite number, got nan"),
    "no such choice": (
        "hpa",
        {"scale_up_select": "avg"},
        "hpa.scale_up_select must be 'max' | 'min' | 'disabled', got 'avg'",
    ),
    "text for a count or none": (
        "static",
        {"workers": "3"},
        "static.workers must be a whole number or unset, got '3'",
    ),
    "percent for a share": ("hpa", {"target_cpu": 80}, "hpa.target_cpu must be in [0.01, 1], got 80"),
    "no rule left": ("hpa", {"scale_down_percent": 0}, "hpa.scale_down_percent must be above 0 when scale_down_pods"),
    "no period": ("hpa", {"scale_up_period": 0}, "hpa.scale_up_period must be above 0 seconds, got 0.0"),
    "negative window": ("hpa", {"scale_down_stabilisation": -1}, "hpa.scale_down_stabilisation must be 0 or more"),
    "outside its bounds": (
        "static",
        {"workers": 13},
        "static.workers must be within min_workers and max_workers (1 to",
    ),
    "bounds of the parent": ("static", {"min_workers": 0}, "static.min_workers must be at least 1, got 0"),
}


@pytest.mark.parametrize(("name", "config", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(name: str, config: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        make(name, **config)
    assert message in str(error.value)


def test_whole_numbers_do_for_seconds() -> None:
    assert make("hpa", interval=30).config()["interval"] == 30.0
    assert isinstance(make("hpa", interval=30).interval, float)


def test_parameters_have_a_line_each() -> None:
    for cls in POLICIES.values():
        listed = parameters(cls)
        assert {p.name for p in listed} == set(cls().config())
        assert all(p.doc for p in listed), [p.name for p in listed if not p.doc]
    by_name = {p.name: p for p in parameters(POLICIES["hpa"])}
    assert by_name["target_cpu"].type == "float"
    assert by_name["target_cpu"].default == 0.8
    assert by_name["interval"].doc == "seconds between decisions."
    assert by_name["scale_up_select"].type == "'max' | 'min' | 'disabled'"
    assert by_name["scale_down_pods"].doc == by_name["scale_up_pods"].doc
    assert {p.name: p.type for p in parameters(POLICIES["static"])}["workers"] == "int | unset"


def test_words_over_several_lines_are_shown_whole() -> None:
    words = {p.name: p.doc for p in parameters(POLICIES["daedalus"])}
    assert words["time_scale"].startswith("how many times shorter")
    assert words["time_scale"].endswith("and 60 s of warm_up.")
    assert words["worth"] == " ".join(words["worth"].split())
    assert words["downtime_out"] == words["downtime_in"]
    assert all(doc.endswith(".") for doc in words.values()), words


def test_anyone_can_register_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.policies.POLICIES", dict(POLICIES))

    @register
    @dataclass
    class Mine(Policy):
        """Mine."""

        name: ClassVar[str] = "mine"

        def decide(self, observation: Observation) -> Decision:
            return Decision.hold(observation.requested, Reason("mine.held", "I hold"))

    assert isinstance(make("mine", max_workers=3), Mine)
    with pytest.raises(ConfigError, match="name must be a name no other policy has, got 'hpa'"):
        register(type("Hpa2", (Mine,), {"name": "hpa"}))
