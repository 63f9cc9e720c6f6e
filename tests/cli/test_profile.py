"""`penstock profile` on a simulated job, as a user calls it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from penstock.cli import call
from penstock.errors import ConfigError
from penstock.experiment import simulation, spec
from penstock.models.profiling import profile_from

QUICK = ("--count", "3", "--step", "100000", "--settle", "30", "--measure", "20", "--failures", "2")
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "tsw.json"
    assert call(["profile", "top-speed-windowing", "--into", str(path), *QUICK]) == 0
    return path


def test_help(capsys: Output) -> None:
    assert call(["profile", "--help"]) == 0
    text = capsys.readouterr().out
    assert "Profile a job" in text
    assert "penstock profile top-speed-windowing --into tsw.json" in text
    for option in ("--into", "--min", "--max", "--count", "--first", "--step", "--settle", "--failures", "--json"):
        assert option in text


def test_the_file_is_a_profile(written: Path) -> None:
    data = profile_from(written.read_text())
    assert [limit.workers for limit in data.limits] == [2, 13, 24]
    assert len(data.recoveries) == 2
    assert data.worker_seconds > data.failure_seconds > 0


def test_it_says_what_it_found_and_what_it_cost(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "tsw.json"
    assert call(["profile", "top-speed-windowing", "--into", str(path), *QUICK]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"100,000 records/s: 2 of 3 scale-outs keep up", text)
    assert re.search(r"records/s at most as fitted", text)
    assert re.search(r"That is [\d,]+ s of downtime.* by Phoebe's closed form", text)
    assert re.search(r"It cost [\d,]+ worker-seconds", text)


def test_json(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "tsw.json"
    assert call(["profile", "top-speed-windowing", "--into", str(path), "--json", *QUICK]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["job"] == "top-speed-windowing"
    assert found["file"] == str(path)
    assert [limit["workers"] for limit in found["limits"]] == [2, 13, 24]
    assert found["worker_seconds"] > found["failure_seconds"] > 0
    assert found["downtime"] > 0


BAD: dict[str, tuple[list[str], str]] = {
    "what": (["profile", "tsw", "--into", "x.json"], "what to profile must be one of "),
    "no directory": (
        ["profile", "top-speed-windowing", "--into", "nowhere/x.json"],
        "into must be a file in a directory that exists, got 'nowhere/x.json'",
    ),
    "a directory": (
        ["profile", "top-speed-windowing", "--into", "."],
        "into must be a file in a directory that exists",
    ),
    "max": (
        ["profile", "top-speed-windowing", "--into", "x.json", "--max", "99"],
        "max must be at most 24, the job's own, got 99",
    ),
    "min": (
        ["profile", "top-speed-windowing", "--into", "x.json", "--min", "0"],
        "min must be at least 1 worker, got 0",
    ),
    "max below min": (
        ["profile", "top-speed-windowing", "--into", "x.json", "--min", "5", "--max", "3"],
        "max must be at least min (5), got 3",
    ),
    "step": (
        ["profile", "top-speed-windowing", "--into", "x.json", "--step", "0"],
        "step must be above 0 records/s, got 0.0",
    ),
    "measure": (
        ["profile", "wordcount", "--into", "x.json", "--measure", "0"],
        "measure must be at least 1 second, got 0.0",
    ),
    "cpu of a Spark job": (["profile", "wordcount", "--into", "x.json", "--cpu", "-1"], "cpu must be "),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_said_before_anything_starts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    words, said = BAD[name]
    assert call(words) == 2
    printed = capsys.readouterr()
    assert said in " ".join(printed.err.split())
    assert printed.out == ""
    assert not list(tmp_path.iterdir())


EXPERIMENT = """
{head}
max_workers = 4
[workload]
kind = "constant"
level = 100
duration = 600
[policy]
name = "phoebe"
profile = {profile}
"""


def test_an_experiment_takes_the_file(written: Path) -> None:
    text = EXPERIMENT.format(head='job = "wordcount"', profile=json.dumps(str(written)))
    assert spec.parse(text, "test").policy().config()["profile"] == written.read_text()


def test_a_simulation_takes_the_file(written: Path) -> None:
    text = EXPERIMENT.format(head='profile = "spark-wordcount"', profile=json.dumps(str(written)))
    cells = simulation.parse(text, "test").first
    assert cells[0].settings["profile"] == written.read_text()


@pytest.mark.parametrize("parse", [spec.parse, simulation.parse])
def test_a_profile_that_is_not_there(parse: object) -> None:
    text = EXPERIMENT.format(head='job = "wordcount"', profile='"nowhere.json"')
    with pytest.raises(ConfigError, match=r"^policy.profile must be a file of `penstock profile`, got 'nowhere.json'"):
        parse(text, "test")  # type: ignore[operator]
