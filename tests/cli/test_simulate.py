"""`penstock simulate` and the papers' suites of `penstock bench`: what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from penstock.cli import call
from penstock.experiment import matrix
from penstock.report.colours import STYLES

Output = pytest.CaptureFixture[str]
EXAMPLE = Path(__file__).parents[2] / "experiments" / "three-policies.toml"

SMALL = """
name = "small"
profile = "flink-wordcount"
max_workers = 6
price = 0.1
[workload]
kind = "sine"
low = 0.1
high = 1.0
duration = 1800
peak_of_capacity = 0.7
[[policy]]
name = "hpa"
label = "hpa-80"
target_cpu = 0.8
[[policy]]
name = "static"
workers = 5
"""


def write(folder: Path, text: str, name: str = "small.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a report: two policies and the oracle, three seeds."""
    folder = tmp_path_factory.mktemp("simulate")
    words = ["simulate", str(write(folder, SMALL)), "--seeds", "3", "--processes", "1", "--into", str(folder / "out")]
    assert call(words) == 0
    return folder / "out"


def test_help_says_what_it_needs(capsys: Output) -> None:
    for command in ("simulate", "bench"):
        assert call([command, "--help"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        for word in ("--seeds", "--into", "--on", "--master", "--processes", "--json"):
            assert word in text


def test_everything_is_written_and_says_the_same(made: Path) -> None:
    names = {path.name for path in made.iterdir()}
    assert names == {"cells.parquet", "report.html", "results.csv", "results.json", "sine.png", "sine-cost.png"}
    rows = matrix.read(made / "cells.parquet")
    assert [(row.policy, row.seed) for row in rows] == [
        (p, s) for p in ("hpa-80", "static", "oracle") for s in range(3)
    ]
    with (made / "results.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        for name, text in line.items():
            value = getattr(row, name)
            assert text == ("" if value is None else str(value)), name
    document = json.loads((made / "results.json").read_text())
    for result in document["results"]:
        here = [row for row in rows if row.policy == result["policy"]]
        for name in ("average_workers", "latency_mean", "rescales", "money", "ideal_workers"):
            known = [getattr(row, name) for row in here]
            assert result[name]["mean"] == pytest.approx(sum(known) / len(known), rel=1e-6), name
            assert result[name]["low"] <= result[name]["mean"] <= result[name]["high"]
    for name in ("sine.png", "sine-cost.png"):
        assert (made / name).read_bytes().startswith(b"\x89PNG")


def test_a_static_policy_starts_as_it_stays(made: Path) -> None:
    for row in matrix.read(made / "cells.parquet"):
        if row.policy == "static":
            assert (row.average_workers, row.rescales) == (5, 0)


def test_the_oracle_keeps_its_target_and_says_what_that_took(made: Path) -> None:
    for row in matrix.read(made / "cells.parquet"):
        if row.policy == "oracle":
            assert row.over_target is not None
            assert row.over_target <= 0.01
            assert "% of capacity in reserve" in row.note


def test_json_is_the_document_and_nothing_else(tmp_path: Path, capsys: Output) -> None:
    path = write(tmp_path, SMALL)
    into = tmp_path / "out"
    assert call(["simulate", str(path), "--seeds", "1", "--processes", "1", "--into", str(into), "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document == json.loads((into / "results.json").read_text())
    assert document["seeds"] == 1
    assert document["command"] == f"penstock simulate {path} --seeds 1"
    assert [result["policy"] for result in document["results"]] == ["hpa-80", "static", "oracle"]
    assert document["results"][0]["average_workers"]["high"] is None, "one seed has no interval"


def test_a_directory_is_ours_or_new(made: Path, tmp_path: Path, capsys: Output) -> None:
    path = write(tmp_path, SMALL)
    assert call(["simulate", str(path), "--seeds", "1", "--into", str(tmp_path)]) == 2
    assert f"into must be a new directory or one of a simulation, got '{tmp_path}'" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert call(["simulate", str(path), "--seeds", "1", "--into", str(tmp_path / "file" / "out")]) == 2
    assert "into must be a directory that can be made" in capsys.readouterr().err
    again = ["simulate", str(path), "--seeds", "1", "--processes", "1", "--into", str(made.parent / "again")]
    assert call(again) == 0
    assert call(again) == 0, "a report of ours may be written again"


def test_the_terminal_cuts_no_name_at_100_columns(tmp_path: Path, capsys: Output) -> None:
    text = SMALL.replace('label = "hpa-80"', 'label = "horizontal-pod-autoscaler-80"').replace(
        "[workload]", '[workload]\nlabel = "a wave of thirty minutes and no more"'
    )
    words = ["simulate", str(write(tmp_path, text)), "--seeds", "1", "--processes", "1"]
    assert call([*words, "--into", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("a wave of thirty minutes and no more") for line in lines)
    assert any(line.startswith("horizontal-pod-autoscaler-80 ") for line in lines)
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= 100


def test_labels_are_only_ever_text(tmp_path: Path, capsys: Output) -> None:
    text = SMALL.replace('label = "hpa-80"', 'label = "<b>$x_[red]</b>"').replace(
        "[workload]", '[workload]\nlabel = "../up & <away> $"'
    )
    words = ["simulate", str(write(tmp_path, text)), "--seeds", "1", "--processes", "1"]
    assert call([*words, "--into", str(tmp_path / "out")]) == 0
    assert "<b>$x_[red]</b>" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "small.toml"]
    document = page(tmp_path / "out")
    assert "<b>$x_[red]</b>" in "".join(document.itertext())
    assert not list(document.iter("away"))


def page(folder: Path) -> ElementTree.Element:
    """The report as the XML that it also is."""
    text = (folder / "report.html").read_text()
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))  # noqa: S314 - we wrote it just now


def test_the_page_is_self_contained_light_and_dark(made: Path) -> None:
    text = (made / "report.html").read_text()
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    for outside in ("<script", "<link", "<img", "@import", "src="):
        assert outside not in text
    assert "prefers-color-scheme: dark" in text
    assert "color-scheme: light dark" in text
    assert "#000000" not in text, "black would be lost in the dark"
    root = page(made)
    known = {e.get("id") for e in root.iter() if e.get("id")}
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'xlink:href="#([^"]+)"', text))
    assert used <= known, "every reference stays within the page"
    assert len([e for e in root.iter() if e.get("id")]) == len(known), "and no name is used twice"


def test_figures_have_labelled_axes_with_units(made: Path) -> None:
    text = " ".join("".join(page(made).itertext()).split())
    for label in (
        "load (records/s)",
        "hours",
        "workers",
        "p95 latency from event to result (s)",
        "share of time with at most this latency",
        "worker-seconds, share of static",
        "average workers (means over seeds, bars: 95 % intervals)",
        "average p95 latency from event to result (s)",
    ):
        assert label in text, label


def test_every_policy_has_its_colour_in_every_figure(made: Path) -> None:
    figures = re.findall(r"<figure>(.*?)</figure>", (made / "report.html").read_text(), re.DOTALL)
    assert len(figures) == 2
    for figure in figures:
        assert STYLES["hpa-80"].colour.lower() in figure.lower()
        assert "#777777" in figure, "the oracle"


def test_what_only_a_real_run_has_is_said_and_not_simulated(tmp_path: Path, capsys: Output) -> None:
    text = f"{SMALL}\n[cluster]\ncpu = 0.5\n[[shadow]]\nname = 'hpa'\n"
    words = ["simulate", str(write(tmp_path, text)), "--seeds", "1", "--processes", "1", "--json"]
    assert call([*words, "--into", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert "penstock: [cluster] is for a real run and was not simulated." in printed.err
    assert "[shadow] is for a real run and was not simulated." in json.loads(printed.out)["settings"]


def recorded(folder: Path, text: str, more: str = "") -> Path:
    """An experiment on a recorded load."""
    (folder / "load.csv").write_text(text)
    tables = f'[workload]\nkind = "recorded"\npath = "{folder / "load.csv"}"\n{more}\n[[policy]]\nname = "static"\n'
    return write(folder, f'profile = "flink-wordcount"\n{tables}', "recorded.toml")


def test_a_hole_in_recorded_arrivals_is_said_and_bridged(tmp_path: Path, capsys: Output) -> None:
    path = recorded(tmp_path, "seconds,rate\n0,1000\n60,\n120,3000\n180,3000\n")
    words = ["simulate", str(path), "--seeds", "1", "--processes", "1", "--json", "--into", str(tmp_path / "out")]
    assert call(words) == 0
    printed = capsys.readouterr()
    assert "1 rows of" in printed.err
    assert "have no rate: it goes straight from the last known one to the next" in printed.err
    (row, _) = matrix.read(tmp_path / "out" / "cells.parquet")
    assert row.records_in == pytest.approx(120 * 2000 + 60 * 3000, rel=0.01)


BAD_LOADS: dict[str, tuple[str, str, *tuple[str, ...]]] = {
    "ragged rows": ("seconds,rate\n0,1\n10\n20,3\n", "", "recorded.path must be a CSV or Parquet file"),
    "nothing but holes": ("seconds,rate\n0,\n10,\n", "", "recorded.column rate must hold numbers", "got"),
    "negative rates": ("seconds,rate\n0,100\n10,-5\n", "", "recorded.rate must be 0 or more", "got -5"),
    "unsorted times": (
        "seconds,rate\n0,1\n20,1\n10,1\n",
        "",
        "seconds must increase from row to row",
        "got 10 s after 20",
    ),
    "a wrong unit": ("seconds,rate\n0,1\n10,1\n", 'unit = "fortnight"', "unit must be a unit of time", "'fortnight'"),
    "a misspelt unit": ("seconds,rate\n0,1\n10,1\n", 'per = "minuet"', "per must be a unit", "did you mean 'minute'?"),
    "another column": ("time,rate\n0,1\n10,1\n", "", "column must be one of time, rate", "got 'seconds'"),
    "one row": ("seconds,rate\n0,1\n", "", "must have two rows or more with a time and a value"),
    "no text": ("", "", "recorded.path must be a CSV or Parquet file", "Empty CSV"),
}


@pytest.mark.parametrize("name", BAD_LOADS)
def test_a_bad_recorded_load_is_exit_2_and_one_sentence(name: str, tmp_path: Path, capsys: Output) -> None:
    text, more, *parts = BAD_LOADS[name]
    complains(["simulate", str(recorded(tmp_path, text, more)), "--into", str(tmp_path / "out")], parts, capsys)
    assert not (tmp_path / "out").exists()


def complains(words: list[str], parts: list[str], capsys: Output) -> None:
    assert call(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("penstock: ")
    assert printed.err.count("\n") == 1
    for part in parts:
        assert part in printed.err


def changed(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


BAD_FILES: dict[str, tuple[str, *tuple[str, ...]]] = {
    "not TOML": ("profile = ", "small.toml: experiment must be valid TOML"),
    "an unknown profile": (changed("flink-wordcount", "flink-wordcont"), "profile must be one of ", "'flink-wordcont'"),
    "a profile that is not there": (
        changed("flink-wordcount", "mine.toml"),
        "profile must be a TOML file",
        "mine.toml",
    ),
    "no profile": (changed('profile = "flink-wordcount"', ""), "profile must be one of ", "got nothing"),
    "an unknown policy": (changed('name = "hpa"', 'name = "hpaa"'), "policy must be one of ", "did you mean 'hpa'?"),
    "a policy without a name": (changed('name = "static"\n', ""), "policy.name must be one of ", "got None"),
    "a misspelt parameter": (changed("target_cpu", "target_cp"), "hpa.target_cp must be a parameter of hpa", "got 0.8"),
    "a parameter out of range": (changed("= 0.8", "= 80"), "hpa.target_cpu must be in [0.01, 1], got 80"),
    "a misspelt key": (changed("max_workers", "max_worker"), "max_worker", "max_workers"),
    "a misspelt table": (SMALL + "\n[guard]\nsettle = 3\n", "guard", "guards"),
    "a misspelt guard": (SMALL + "\n[guards]\nsetle = 3\n", "guards.setle must be a parameter of guards", "'settle'"),
    "no load": (changed("[workload]", "[cluster]"), "cluster.kind"),
    "an unknown load": (changed('"sine"', '"sinus"'), "workload must be one of ", "got 'sinus'"),
    "a misspelt parameter of a load": (changed("high", "hihg"), "sine.hihg must be a parameter of sine", "got 1.0"),
    "a share of capacity that is none": (changed("= 0.7", "= 7"), "peak_of_capacity must be a number in (0, 2], got 7"),
    "more workers than the profile has": (changed("= 6", "= 60"), "max_workers must be at most 18", "got 60"),
    "bounds the wrong way": (changed("max_workers = 6", "max_workers = 6\nmin_workers = 7"), "max_workers must be"),
    "a sample of half a second": (changed("price", "sample_every = 0.5\nprice"), "sample_every must be whole seconds"),
    "a negative price": (changed("price = 0.1", "price = -1"), "price must be 0 or more, got -1"),
    "two of one label": (
        changed("workers = 5", 'workers = 5\nlabel = "hpa-80"'),
        "label must be a label that no other",
    ),
    "the oracle's label": (changed("workers = 5", 'workers = 5\nlabel = "oracle"'), "label must be a label that no"),
    "bounds of a policy": (
        changed("workers = 5", "workers = 5\nmax_workers = 5"),
        "max_workers must be given above the",
    ),
    "a load of no time": (changed("1800", "0.4"), "duration must be at least 10 seconds in a simulation, got 0.4"),
    "a load of a year": (changed("1800", "31_536_000"), "duration must be at most 2.6784e+06 seconds in a simulation"),
    "a target that is none": (changed("price", "latency_target = 0\nprice"), "latency_target must be above 0 seconds"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_exit_2_and_one_sentence(name: str, tmp_path: Path, capsys: Output) -> None:
    text, *parts = BAD_FILES[name]
    complains(["simulate", str(write(tmp_path, text)), "--into", str(tmp_path / "out")], parts, capsys)
    assert not (tmp_path / "out").exists()


BAD_WORDS: dict[str, tuple[list[str], *tuple[str, ...]]] = {
    "no file": (["simulate", "nowhere.toml"], "experiment must be a file that can be read, got 'nowhere.toml'"),
    "a directory": (["simulate", "."], "experiment must be a file that can be read, got '.': Is a directory"),
    "no experiment": (["simulate"], "EXPERIMENT", "penstock simulate --help"),
    "no seeds": (["simulate", "small.toml", "--seeds", "0"], "seeds must be from 1 to 1000, got 0"),
    "seeds in words": (["simulate", "small.toml", "--seeds", "few"], "--seeds", "few"),
    "no processes": (["simulate", "small.toml", "--processes", "0"], "processes must be at least 1, got 0"),
    "a master here": (["simulate", "small.toml", "--master", "local[2]"], "master must be given with --on spark only"),
    "processes there": (
        ["simulate", "small.toml", "--on", "spark", "--processes", "2"],
        "processes must be given without --on spark only, got 2",
    ),
    "on the moon": (["simulate", "small.toml", "--on", "moon"], "--on", "moon"),
    "no master": (
        ["simulate", "small.toml", "--on", "spark", "--master", "mesos://host"],
        "master must be the URL of a Spark master",
        "got 'mesos://host'",
    ),
    "no suite": (["bench"], "SUITE", "penstock bench --help"),
    "an unknown suite": (["bench", "daedalos"], "suite must be one of spark, daedalus", "got 'daedalos'"),
    "an unknown load of a suite": (["bench", "koper", "--only", "q2"], "only must be one of q1, q3, q11, got 'q2'"),
    "no seeds of a suite": (["bench", "koper", "--seeds", "0"], "seeds must be from 1 to 1000, got 0"),
    "minutes of a paper": (["bench", "koper", "--minutes", "5"], "minutes must be left out with koper", "got 5"),
    "workers of a paper": (["bench", "koper", "--max", "5"], "max must be left out with koper", "got 5"),
    "report of a paper": (["bench", "koper", "--report-only"], "report-only must be left out with a simulation"),
    "seeds of a cluster": (["bench", "spark", "--seeds", "2"], "seeds, on, master and processes must be left out"),
    "somebody's directory": (
        ["bench", "gesscale", "--into", "."],
        "into must be a new directory or one of a simulation",
    ),
}


@pytest.mark.parametrize("name", BAD_WORDS)
def test_bad_words_are_exit_2_and_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, SMALL)
    words, *parts = BAD_WORDS[name]
    complains(words, parts, capsys)


def test_the_example_that_comes_along_is_sound() -> None:
    from penstock.experiment import simulation

    found = simulation.load(EXAMPLE)
    cells = found.cells(2)
    assert found.name == "three policies"
    assert [cell.group for cell in cells[::8]] == ["two waves", "flash crowd"]
    assert [cell.policy for cell in cells[:8:2]] == ["daedalus", "hpa-80", "static", "oracle"]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One load of a paper's suite, with one seed."""
    into = tmp_path_factory.mktemp("bench") / "out"
    words = ["bench", "koper", "--only", "q1", "--seeds", "1", "--processes", "1", "--into", str(into)]
    assert call(words) == 0
    document: dict[str, Any] = json.loads((into / "results.json").read_text())
    return document | {"into": into}


def test_a_suite_is_measured_beside_published(suite: dict[str, Any]) -> None:
    assert {result["group"] for result in suite["results"]} == {"q1"}
    assert {c["group"] for c in suite["published"]} == {"q1"}
    assert suite["command"] == "penstock bench koper --seeds 1 --only q1"
    by = {(c["policy"], c["measure"]): c for c in suite["published"]}
    assert by["hpa-50", "average_workers"]["ratio"] == pytest.approx(
        by["hpa-50", "average_workers"]["measured"]["mean"] / by["hpa-50", "average_workers"]["published"]
    )
    assert suite["findings"]
    text = " ".join("".join(page(suite["into"]).itertext()).split())
    assert "Measured beside published" in text
    assert "What of the paper is found again" in text
    assert suite["results"][0]["of_oracle"] is not None
    assert suite["results"][0]["of_ideal"] is not None
