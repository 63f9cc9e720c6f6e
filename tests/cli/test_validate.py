"""`penstock validate`: recorded runs and journals, here made by the simulator itself, so that what is true is known."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import guards
from penstock.cli import call
from penstock.experiment import recordings
from penstock.experiment.recordings import KOPER, from_journal
from penstock.journal import Journal
from penstock.loop import Loop
from penstock.policies import make
from penstock.targets.simulated import Profile, Run, SimulatedTarget, feed, load
from penstock.workloads import Sine

Output = pytest.CaptureFixture[str]
NAMES = ("q1-hpa-50", "q1-hpa-90", "q1-vargav1-30")


def write_csv(path: Path, profile: Profile, seed: int) -> None:
    """A run of the simulator in the columns of Koper's recordings, an hour long."""
    rows = np.arange(240)
    workers = np.where(rows < 80, 6.0, np.where(rows < 160, 3.0, 5.0))
    unknown = np.full(len(rows), np.nan)
    given = Run("made", 15.0, 200_000 + 90_000 * np.cos(rows / 15), workers, unknown, unknown, unknown, unknown)
    fed = feed(profile, given, seed)
    columns = (given.load, fed.throughput, fed.backlog, fed.latency, fed.cpu, workers)
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("seconds", *KOPER))
        for row, values in enumerate(zip(*columns, strict=True)):
            writer.writerow([15 * row, *("" if np.isnan(value) else f"{value:.6g}" for value in values)])


def write_journal(path: Path, seed: int, *, lose: bool = False, **changes: float) -> Path:
    """Ten minutes of our own job under HPA, as a real run writes them down."""
    profile = replace(load("spark-wordcount"), **changes)  # type: ignore[arg-type]
    job = SimulatedTarget(profile, Sine(low=10_000, high=60_000, periods=1, duration=600), workers=2, seed=seed)
    if lose:
        job.fail(302.0)
    with Journal.open(path) as journal:
        loop = Loop(job, make("hpa", max_workers=6), guards=guards.default(1, 6), journal=journal, clock=job.clock)
        loop.run(lambda: job.clock.now() >= 600)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(NAMES):
        write_csv(folder / "koper" / f"{name}.csv.gz", load("nexmark-q1-koper"), seed)
    return folder


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("journals")
    return [write_journal(folder / f"{name}.jsonl", seed) for seed, name in enumerate(("one", "two"))]


def test_recorded_runs_are_lived_through_and_reported(data: Path, tmp_path: Path, capsys: Output) -> None:
    into = tmp_path / "report"
    assert call(["validate", "--data", str(data), "--shipped", "--into", str(into)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "nexmark-q1-koper" in text
    assert re.search(r"q1-hpa-90 validation \d", text)
    assert re.search(r"q1-hpa-50 calibration \d", text)
    assert "are reached." in text
    page = (into / "report.html").read_text()
    assert page.count("<svg") == 3
    assert "q1-hpa-90 (not used for calibration)" in page
    assert "latency" in page
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)


def test_the_document(data: Path, tmp_path: Path, capsys: Output) -> None:
    into = tmp_path / "report"
    assert call(["validate", "--data", str(data), "--shipped", "--into", str(into), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((into / "validation.json").read_text())
    (told,) = document["profiles"]
    assert [(run["run"], run["part"]) for run in told["runs"]] == [
        ("q1-hpa-50", "calibrated"),
        ("q1-hpa-90", "validated"),
        ("q1-vargav1-30", "calibrated"),
    ]
    assert document["goals"] == {"throughput": 0.10, "cpu": 0.15, "backlog": 0.90, "latency": 0.90}
    assert document["reached"] is True
    assert document["overall"]["validated"]["throughput"] < 0.05
    assert told["fitted"] == []
    # A seed differs from another by noise and downtimes only, so all runs are near the truth.
    for run in told["runs"]:
        assert run["misses"] == []
        assert run["rows"] == 240


def test_a_machine_that_is_another_misses_the_goals(tmp_path: Path, capsys: Output) -> None:
    slow = replace(load("nexmark-q1-koper"), capacity=30_000.0)
    for name in NAMES:
        write_csv(tmp_path / "data" / "koper" / f"{name}.csv.gz", slow, 0)
    words = ["validate", "--data", str(tmp_path / "data"), "--shipped", "--into", str(tmp_path / "report"), "--json"]
    assert call(words) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["reached"] is False
    assert "throughput" in document["misses"]


def test_calibration_finds_the_machine_and_validates_with_the_other_runs(tmp_path: Path, capsys: Output) -> None:
    slow = replace(load("nexmark-q1-koper"), capacity=45_000.0)
    for seed, name in enumerate(NAMES):
        write_csv(tmp_path / "data" / "koper" / f"{name}.csv.gz", slow, seed)
    words = ["validate", "--data", str(tmp_path / "data"), "--rounds", "1", "--into", str(tmp_path / "r"), "--json"]
    assert call(words) == 0
    (told,) = json.loads(capsys.readouterr().out)["profiles"]
    moved = {change["name"]: change for change in told["fitted"]}
    assert moved["capacity"]["before"] == load("nexmark-q1-koper").capacity
    assert moved["capacity"]["after"] == pytest.approx(45_000, rel=0.1)
    assert told["validated"]["throughput"] < 0.05


def test_a_journal_alone_is_validated_as_it_is(journals: list[Path], tmp_path: Path, capsys: Output) -> None:
    assert call(["validate", str(journals[0]), "--into", str(tmp_path / "report"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (told,) = document["profiles"]
    assert (told["profile"], told["fitted"], told["calibrated"]) == ("spark-wordcount", [], None)
    assert [(run["run"], run["part"], run["rows"]) for run in told["runs"]] == [("one", "validated", 120)]
    assert told["validated"]["throughput"] < 0.10
    assert told["validated"]["cpu"] < 0.15
    assert told["validated"]["backlog"] > 0.90
    assert told["validated"]["latency"] > 0.90


def test_of_several_journals_every_other_one_calibrates(tmp_path: Path, capsys: Output) -> None:
    names = ("a", "b", "c")
    paths = [write_journal(tmp_path / f"{name}.jsonl", seed, capacity=12_000.0) for seed, name in enumerate(names)]
    words = ["validate", *map(str, paths), "--rounds", "1", "--into", str(tmp_path / "report"), "--json"]
    assert call(words) == 0
    (told,) = json.loads(capsys.readouterr().out)["profiles"]
    assert [run["part"] for run in told["runs"]] == ["calibrated", "validated", "calibrated"]
    assert {change["name"] for change in told["fitted"]} >= {"capacity"}
    assert not {change["name"] for change in told["fitted"]} & {"downtime_out", "downtime_in"}, "nothing stops on Spark"


def test_a_journal_becomes_rows_with_what_was_seen_and_lost(tmp_path: Path) -> None:
    directory = tmp_path / "sine-hpa-80"
    directory.mkdir()
    run = from_journal(write_journal(directory / "journal.jsonl", 0, lose=True))
    assert (run.name, run.every, len(run.load)) == ("sine-hpa-80", 5.0, 120)
    assert run.failures
    assert 300 <= run.failures[0] <= 310
    assert np.nanmax(run.load) == pytest.approx(60_000, rel=0.05)
    assert set(np.unique(run.workers[np.isfinite(run.workers)])) <= set(range(1, 7))
    assert np.nanmax(run.cpu) <= 1


def test_what_was_recorded_wrongly_or_not_under_an_autoscaler_is_left_out(tmp_path: Path) -> None:
    for name in ("q3-ds2-modern-00", "q3-hpa-50", "q3-hpa-90"):
        write_csv(tmp_path / "koper" / f"{name}.csv.gz", load("nexmark-q3-koper"), 0)
    (found,) = recordings.recorded(tmp_path)
    assert found.profile == "nexmark-q3-koper"
    assert [run.name for run in (*found.calibrate, *found.validate)] == ["q3-hpa-50", "q3-hpa-90"]


BAD: dict[str, tuple[list[str], *tuple[str, ...]]] = {
    "no directory": (["--data", "nowhere"], "data must be a directory of recorded runs (koper/, phoebe/)", "'nowhere'"),
    "nothing by default": ([], "data must be a directory of recorded runs", "'../shared/data'"),
    "a file": (["--data", "letters.txt"], "data must be a directory of recorded runs", "got 'letters.txt'"),
    "an empty directory": (["--data", "empty"], "data must hold recorded runs (koper/q1-*.csv.gz or ", "got 'empty'"),
    "none of this profile": (["--data", "DATA", "--only", "ysb-phoebe"], "data must hold recorded runs (phoebe/ads-"),
    "an unknown profile": (
        ["--data", "DATA", "--only", "nexmark-q1"],
        "only must be one of nexmark-q1-koper, ",
        "got 'nexmark-q1'; did you mean 'nexmark-q1-koper'?",
    ),
    "not compressed": (
        ["--data", "plain"],
        "data must be CSV compressed with gzip, got 'plain/koper/q1-hpa-50.csv.gz'",
    ),
    "a column missing": (["--data", "columns"], "q1-hpa-50.csv.gz must have a column lag, got seconds, input_rate"),
    "no rows": (["--data", "rows"], "q1-hpa-50.csv.gz must have a column input_rate, got no rows"),
    "not a number": (["--data", "words"], "q1-hpa-50.csv.gz: throughput must be a number in every row, got", "'many'"),
    "no journal": (["nowhere.jsonl"], "journal must be a file that can be read, got 'nowhere.jsonl'"),
    "not a journal": (["letters.txt"], "letters.txt, line 1: not a record of a journal"),
    "nothing seen": (["start.jsonl"], "journal must have observations, got 'start.jsonl', which has none"),
    "too short": (["short.jsonl"], "journal must last at least 10 s to be lived through again, got 'short.jsonl'"),
    "an unknown profile of journals": (
        ["JOURNAL", "--profile", "spark-wordcont"],
        "profile must be one of ",
        "got 'spark-wordcont'",
    ),
    "a profile that is no TOML": (["JOURNAL", "--profile", "letters.toml"], "profile must be a TOML file", "letters"),
    "a profile for others' runs": (["--data", "DATA", "--profile", "mine.toml"], "profile must be given with journals"),
    "only with journals": (
        ["JOURNAL", "--only", "ysb-phoebe"],
        "only must be given for recorded runs, not for journals",
    ),
    "no rounds": (["--data", "DATA", "--rounds", "0"], "rounds must be from 1 to 10, got 0"),
    "no processes": (["--data", "DATA", "--processes", "0"], "processes must be at least 1, got 0"),
    "somebody's directory": (
        ["--data", "DATA", "--shipped", "--into", "plain"],
        "into must be a new directory or one of a validation, got 'plain'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_exit_2_and_one_sentence(
    name: str, data: Path, journals: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    Path("letters.txt").write_text("Dear John,\n")
    Path("letters.toml").write_text("Dear John,\n")
    Path("empty").mkdir()
    lines = journals[0].read_text().splitlines(keepends=True)
    Path("start.jsonl").write_text(lines[0])
    Path("short.jsonl").write_text("".join(lines[:4]))
    header = ",".join(("seconds", *KOPER))
    texts: dict[str, Callable[[], Any]] = {
        "plain": lambda: None,
        "columns": lambda: "seconds,input_rate,throughput\n0,1,1\n15,1,1\n",
        "rows": lambda: header + "\n",
        "words": lambda: header + "\n0,1,many,1,1,1,1\n",
    }
    for folder, text in texts.items():
        path = Path(folder) / "koper" / "q1-hpa-50.csv.gz"
        path.parent.mkdir(parents=True)
        content = text()
        path.write_bytes(b"seconds\n" if content is None else gzip.compress(content.encode()))
    before = sorted(path.name for path in home.iterdir())
    words, *parts = BAD[name]
    stand_ins = {"DATA": str(data), "JOURNAL": str(journals[0])}
    assert call(["validate", *(stand_ins.get(word, word) for word in words)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("penstock: ")
    assert printed.err.count("\n") == 1
    for part in parts:
        assert part in printed.err
    assert sorted(path.name for path in home.iterdir()) == before, "nothing was begun"


def test_help_says_what_goes_in_and_what_exit_codes_mean(capsys: Output) -> None:
    assert call(["validate", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for word in ("--data", "--only", "--shipped", "--json", "recorded worker counts", "Exit code 1"):
        assert word in text
