"""A whole run as a user starts it: killed in the middle, started again, nothing lost and nothing done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from penstock import journal
from penstock.cli import call
from penstock.experiment.feed import read_progress
from penstock.testing import eventually

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXPERIMENT = """
name = "killed"
job = "wordcount"
min_workers = 1
max_workers = 3
[workload]
kind = "step"
steps = [[0, 500], [15, 9000], [75, 500]]
duration = 110
[policy]
name = "hpa"
interval = 3
target_cpu = 0.5
scale_up_period = 6
scale_down_period = 6
scale_down_stabilisation = 10
[guards]
settle = 5
[stream]
trigger = 1
[cluster]
cpu = 0.3
"""

PENSTOCK = [sys.executable, "-c", "from penstock.cli import main; main()"]


def processes(directory: Path) -> list[int]:
    """Everything that runs for this directory: it stands in their command lines, or in what they inherited."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):  # gone meanwhile
                if str(directory).encode() in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def executors(directory: Path) -> list[int]:
    """Its executors, without the shells that started them."""
    found = []
    for pid in processes(directory):
        with suppress(OSError):  # gone meanwhile
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"--executor-id" in words and Path(f"/proc/{pid}/exe").resolve().name == "java":
                found.append(pid)
    return found


def done(path: Path) -> list[journal.Rescale]:
    if not path.exists() or path.stat().st_size == 0:
        return []
    return [r for r in journal.read(path) if isinstance(r, journal.Rescale) and r.outcome == "done"]


@pytest.mark.filterwarnings("ignore:.*the last line was torn:RuntimeWarning")
def test_kill_the_controller_and_an_executor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment, into = tmp_path / "killed.toml", tmp_path / "run"
    experiment.write_text(EXPERIMENT)
    command = [*PENSTOCK, "run", str(experiment), "--into", str(into), "--json"]
    book = into / "journal.jsonl"

    with (tmp_path / "first.log").open("wb") as log:
        first = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def under_way() -> bool:
        progress = read_progress(into / "feed.json")
        return first.poll() is not None or (bool(done(book)) and progress is not None and progress.t > 5)

    eventually(under_way, "the load and the first rescale")
    assert first.poll() is None, (tmp_path / "first.log").read_text()
    assert executors(into)
    first.send_signal(signal.SIGKILL)
    first.wait()
    eventually(lambda: not processes(into), "everything that the killed run had started to be gone")

    with (tmp_path / "second.log").open("wb") as log, (tmp_path / "second.json").open("wb") as out:
        second = subprocess.Popen(command, stdout=out, stderr=log, start_new_session=True)

        def resumed() -> bool:
            starts = [r for r in journal.read(book) if isinstance(r, journal.Start)]
            return len(starts) == 2 or second.poll() is not None

        eventually(resumed, "the second start")
        eventually(lambda: bool(executors(into)) or second.poll() is not None, "an executor")
        assert second.poll() is None, (tmp_path / "second.log").read_text()
        os.kill(executors(into)[0], signal.SIGKILL)
        assert second.wait(timeout=600) == 0, (tmp_path / "second.log").read_text()
    eventually(lambda: not processes(into), "everything to be gone")

    summary = json.loads((tmp_path / "second.json").read_text())
    assert summary["verdict"]["equal"], summary["verdict"]
    assert summary["verdict"]["records_in"] == summary["verdict"]["records_out"] > 0
    assert Path(summary["picture"]).stat().st_size > 10_000

    for before, after in pairwise(done(book)):
        assert before.after == after.before, "each rescale starts where the last one ended: none was made twice"
    codes = [
        e.code
        for r in journal.read(book)
        if isinstance(r, journal.Sample | journal.Decided) and r.observation
        for e in r.observation.events
    ]
    assert "worker.lost" in codes

    assert call(["explain", str(book)]) == 0
    story = capsys.readouterr().out
    assert "was lost" in story
    assert "resumed" in story.lower() or "restart" in story.lower()
    assert call(["replay", str(book)]) == 0, "the same journal gives the same decisions, byte for byte"


def test_another_experiment_s_directory_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letters.txt").write_text("dear aunt")
    experiment = tmp_path / "killed.toml"
    experiment.write_text(EXPERIMENT)
    assert call(["run", str(experiment), "--into", str(tmp_path)]) == 2
    assert "into must be a new or empty directory" in capsys.readouterr().err
