from __future__ import annotations

from pathlib import Path

import pytest

from penstock import jobs
from penstock.errors import ConfigError
from penstock.settings import parameters
from penstock.targets.simulated import Profile, Stage, capacity, load, profile_of, profiles

BASE: dict[str, object] = {"engine": "continuous", "capacity": 1000}


@pytest.mark.parametrize("name", profiles())
def test_every_profile_that_comes_along_is_sound(name: str) -> None:
    profile = load(name)
    assert profile.description
    few, many = len(profile.operators), profile.max_workers
    assert capacity(profile, many) > 0.9 * capacity(profile, few)


def test_the_published_settings_are_all_there() -> None:
    published = """flink-wordcount flink-ysb flink-traffic kafka-streams-wordcount top-speed-windowing ysb-phoebe
    nexmark-q1-koper nexmark-q3-koper nexmark-q11-koper nexmark-q1-ds2 nexmark-q2-ds2 nexmark-q3-ds2 nexmark-q5-ds2
    nexmark-q8-ds2 nexmark-q11-ds2 heron-wordcount fog-taxi"""
    assert set(published.split()) | {f"spark-{job}" for job in jobs.JOBS} == set(profiles())


def test_every_job_on_spark_has_its_operators_in_its_profile() -> None:
    for job in jobs.JOBS.values():
        profile = load(f"spark-{job.name}")
        assert profile.engine == "microbatch"
        assert len(profile.operators) == len(job.operators), job.name


def test_every_quantity_is_explained() -> None:
    for cls in (Profile, Stage):
        for parameter in parameters(cls):
            assert parameter.doc, parameter.name


WRONG = {
    "unknown field": ({"capasity": 3}, "capasity must be a parameter of"),
    "no capacity": ({"capacity": 0}, "job.capacity must be above 0 records/s, got 0"),
    "text for a number": ({"capacity": "many"}, "job.capacity must be a finite number, got 'many'"),
    "share above one": ({"idle_cpu": 1.5}, "job.idle_cpu must be in [0, 1], got 1.5"),
    "full below idle": ({"idle_cpu": 0.5, "full_cpu": 0.4}, "job.full_cpu must be above idle_cpu (0.5), got 0.4"),
    "busier with less": ({"busy_power": 0.5}, "job.busy_power must be 1 or more, got 0.5"),
    "held back for longer than there is": (
        {"backpressure_share": 2},
        "job.backpressure_share must be in [0, 1], got 2",
    ),
    "negative time": ({"downtime_out": -1}, "job.downtime_out must be 0 or more, got -1"),
    "engine": ({"engine": "steam"}, "job.engine must be 'continuous' | 'microbatch', got 'steam'"),
    "stopping batches": ({"engine": "microbatch", "trigger": 3}, "job.rescaling must be live with micro-batches"),
    "costs": ({"operators": [{"name": "a", "cost": 0.5}]}, "job.operators must have costs that add up to 1, got 0.5"),
    "no table": ({"operators": 3}, "job.operators must be a list of tables, got 3"),
    "cycle": (
        {"operators": [{"name": "a", "cost": 0.5}, {"name": "b", "cost": 0.5, "downstream": ["a"]}]},
        "job.operators must name b's downstream after it, got 'a'",
    ),
    "too few nodes": ({"nodes": 2, "max_workers": 4}, "job.nodes must be 0 or at least max_workers (4), got 2"),
    "not a square": (
        {"nodes": 2, "max_workers": 2, "distances": [[0.0, 1.0]]},
        "job.distances must have 2 rows of 2 values",
    ),
}


@pytest.mark.parametrize(("table", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_a_sentence(table: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        profile_of("job", BASE | table)
    assert message in str(caught.value)


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"profile must be one of .*flink-wordcount.*, got 'flink-wordcout'"):
        load("flink-wordcout")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('engine = "continuous"\ncapacity = 5\n')
    assert load(str(path)).capacity == 5
    path.write_text("engine = \n")
    with pytest.raises(ConfigError, match="must be a TOML file"):
        load(str(path))
    with pytest.raises(ConfigError, match="that can be read"):
        load(str(tmp_path / "none.toml"))
