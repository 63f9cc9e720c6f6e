"""`penstock bench`, without Spark: what it refuses, and the report it writes from what is there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from math import cos, pi
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import bench as command
from penstock.cli import call
from penstock.core import Observation, Reason
from penstock.experiment import bench
from penstock.experiment.bench import CASES, Calibration
from penstock.journal import Journal, Rescale, Sample, Setting, Start, Stop

Output = pytest.CaptureFixture[str]
CALIBRATION = Calibration(12.0, 6, 4, 4, 12_500.0, 0.02, 5, 10_000.0, "Linux, 2 cores")
BEGAN = 1_800_000_000.0

BAD: dict[str, tuple[list[str], *tuple[str, ...]]] = {
    "unknown suite": (["sparc"], "suite must be one of spark", "got 'sparc'"),
    "no suite": ([], "SUITE", "penstock bench --help"),
    "no time": (["spark", "--minutes", "0"], "minutes must be from 1 to 1440, got 0.0"),
    "endless": (["spark", "--minutes", "inf"], "minutes must be from 1 to 1440, got inf"),
    "not a number": (["spark", "--minutes", "few"], "--minutes", "few"),
    "one worker": (["spark", "--max", "1"], "max must be from 2 to 64, got 1"),
    "no static": (["spark", "--static", "0"], "static must be from 1 to max (6), got 0"),
    "static above max": (["spark", "--max", "4", "--static", "5"], "static must be from 1 to max (4), got 5"),
    "static of a paper": (["koper", "--static", "5"], "static must be left out with koper", "got 5"),
    "unknown run": (["spark", "--only", "sine-hpa"], "only must be one of sine-daedalus, ", "got 'sine-hpa'"),
    "nothing to report": (["spark", "--report-only"], "into must have a run of the suite to report on, got "),
    "a file": (["spark", "--into", "letters.txt"], "into must be a new directory or one of a suite, got 'letters.txt'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_exit_2_and_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("letters.txt").write_text("Dear John,\n")
    words, *parts = BAD[name]
    assert call(["bench", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("penstock: ")
    assert printed.err.count("\n") == 1
    for part in parts:
        assert part in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"], "nothing was begun"


def fabricate(into: Path, name: str, workers: Callable[[float], int], **summary: Any) -> None:
    """A run's directory, as a real one leaves it: a wave of twelve minutes, sampled every 5 s."""
    case = next(case for case in CASES if case.name == name)
    directory = into / name
    directory.mkdir(parents=True)
    (directory / "experiment.toml").write_text(bench.toml(case, peak=10_000.0, minutes=12.0, most=6, static=4))
    before = 2
    with Journal.open(directory / "journal.jsonl") as journal:
        journal.write(Start(at=BEGAN, policy=Setting("static")))
        for t in range(0, 725, 5):
            share = 0.55 - 0.45 * cos(4 * pi * t / 720)
            now = workers(share)
            seen = Observation(BEGAN + t, now, now, input_rate=10_000 * share, backlog=0.0, latency=1 + 2 * share / now)
            journal.write(Sample(observation=seen))
            if now != before:
                done = Rescale(at=BEGAN + t, before=before, after=now, outcome="done", sentence="asked")
                journal.write(done)
                before = now
        journal.write(Stop(at=BEGAN + 725, reason=Reason("loop.stopped", "The load is over")))
    verdict = {"equal": True, "records_in": 700, "records_out": 700, "sentence": "every word counted once"}
    document = {"verdict": verdict, "max_workers": 6, "failed_tasks": 0, "finished": True, **summary}
    (directory / "summary.json").write_text(json.dumps(document))


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    into = tmp_path / "suite"
    fabricate(into, "sine-daedalus", lambda x: 2 if x < 0.6 else 4)
    fabricate(into, "sine-hpa-80", lambda x: max(2, round(7 * x)))
    fabricate(into, "sine-static", lambda _: 4)
    fabricate(into, "advertising-daedalus", lambda _: 3)
    (into / "capacity.json").write_text(json.dumps(asdict(CALIBRATION)))
    return into


def test_report_only_writes_everything(suite: Path, capsys: Output) -> None:
    assert call(["bench", "spark", "--into", str(suite), "--report-only"]) == 0
    text = capsys.readouterr().out
    assert "daedalus" in text
    assert "Not run, or not finished: sine-hpa-85, advertising-hpa-80, sine-hpa-80-of-limit" in " ".join(text.split())
    report = (suite / "report.md").read_text()
    assert "`penstock bench spark --minutes 12 --max 6`" in report
    assert "4 workers do 12,500 records/s" in report
    assert "Static has these 4, all others at most 6." in report
    assert "On sine, daedalus used " in report
    assert "2027-01-15" in report
    for name in ("sine.png", "advertising.png"):
        assert f"]({name})" in report
        assert (suite / name).stat().st_size > 10_000
    assert len((suite / "results.csv").read_text().splitlines()) == 5


def test_the_report_as_json(suite: Path, capsys: Output) -> None:
    assert call(["bench", "spark", "--into", str(suite), "--report-only", "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document == json.loads((suite / "results.json").read_text())
    by = {(r["load"], r["policy"]): r for r in document["results"]}
    assert by["sine", "static"]["average_workers"] == 4
    assert by["sine", "static"]["share_of_static"] == 1
    assert by["sine", "daedalus"]["rescales_out"] == 2
    assert by["advertising", "daedalus"]["share_of_static"] == pytest.approx(3 / 4), "as many as static would have"
    assert document["calibration"]["peak"] == 10_000
    assert document["missing"] == ["sine-hpa-85", "advertising-hpa-80", "sine-hpa-80-of-limit"]


def test_a_recount_that_is_not_equal_is_exit_1_and_bold(suite: Path, capsys: Output) -> None:
    verdict = {"equal": False, "records_in": 700, "records_out": 690, "sentence": "10 words are missing"}
    fabricate(suite, "sine-hpa-85", lambda _: 4, verdict=verdict)
    assert call(["bench", "spark", "--into", str(suite), "--report-only"]) == 1
    assert "NOT EQUAL" in capsys.readouterr().out
    assert "**sine-hpa-85: the recount is not equal: 10 words are missing**" in (suite / "report.md").read_text()


def test_a_run_that_was_stopped_is_not_reported_yet(suite: Path, capsys: Output) -> None:
    fabricate(suite, "sine-hpa-85", lambda _: 4, finished=False, stopped=True)
    assert call(["bench", "spark", "--into", str(suite), "--report-only", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "sine-hpa-85" in document["missing"]
    fabricate(suite, "advertising-hpa-80", lambda _: 4, finished=False, stopped=False)  # not drained in time
    assert call(["bench", "spark", "--into", str(suite), "--report-only", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["missing"] == ["sine-hpa-85", "sine-hpa-80-of-limit"]


def test_what_has_finished_is_kept_and_only_reported(suite: Path, capsys: Output) -> None:
    assert call(["bench", "spark", "--into", str(suite), "--only", "sine-static"]) == 0
    text = capsys.readouterr().out
    assert "run 1 of 1: static on sine: finished before, kept" in text
    assert (suite / "report.md").exists()


def test_a_suite_of_another_length_is_refused(suite: Path, capsys: Output) -> None:
    assert call(["bench", "spark", "--into", str(suite), "--minutes", "5", "--only", "sine-static"]) == 2
    assert "minutes must be 12, as " in capsys.readouterr().err
    assert not (suite / "report.md").exists()


def test_another_static_is_in_the_command_that_the_report_names(suite: Path) -> None:
    (suite / "capacity.json").write_text(json.dumps({**asdict(CALIBRATION), "static": 6, "workers": 6}))
    assert call(["bench", "spark", "--into", str(suite), "--report-only"]) == 0
    assert "`penstock bench spark --minutes 12 --max 6 --static 6`" in (suite / "report.md").read_text()


def test_a_run_that_cannot_start_says_why_in_a_process_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letters.txt").write_text("Dear John,\n")
    assert command._apart(command.Task(str(tmp_path), 12.0, 6, 4, None, "calibration", False)) == 2
    printed = capfd.readouterr()
    assert printed.err.startswith("penstock: into must be a new directory or one of a suite")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_is_handed_on_to_the_run(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    with command._handing_on(process) as asked:
        assert not asked()
        os.kill(os.getpid(), number)
        assert process.wait(timeout=30) == -number
        assert asked()
    assert signal.getsignal(number) is before


def test_a_run_whose_suite_was_killed_stops() -> None:
    script = "import time; from penstock.cli import bench; bench._end_with_owner(); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=60) == -signal.SIGTERM


def test_help_says_how_to_go_on(capsys: Output) -> None:
    assert call(["bench", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "penstock bench spark" in text
    assert "--json" in text
    assert "--report-only" in text
