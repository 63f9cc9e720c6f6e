"""The commands, in this process, as a user calls them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import COMMANDS, call
from penstock.cli.inspect import assignments
from penstock.errors import ConfigError
from penstock.jobs import JOBS
from penstock.journal import Decided, read
from penstock.policies import POLICIES
from penstock.workloads import KINDS

Output = pytest.CaptureFixture[str]


def said(capsys: Output, *words: object, code: int = 0) -> str:
    assert call([str(word) for word in words]) == code
    printed = capsys.readouterr()
    assert printed.err == ""
    return re.sub(r" +\n", "\n", printed.out)


def document(capsys: Output, *words: object, code: int = 0) -> Any:
    return json.loads(said(capsys, *words, "--json", code=code))


def test_help_names_every_command(capsys: Output) -> None:
    text = said(capsys, "--help")
    assert all(re.search(rf"{name}\s+{re.escape(summary[:30])}", text) for name, (_, _, summary) in COMMANDS.items())
    assert text.index("Run ─") < text.index("│ demo") < text.index("Look ─") < text.index("│ explain")


@pytest.mark.parametrize("name", ["explain", "replay", "policies", "jobs", "workloads"])
def test_every_command_has_a_summary_an_example_and_json(capsys: Output, name: str) -> None:
    text = said(capsys, name, "--help")
    assert COMMANDS[name][2].rstrip(".") in text
    assert re.search(rf"\n\s+penstock {name}", text)
    assert "--json" in text


def test_policies(capsys: Output) -> None:
    text = said(capsys, "policies")
    assert all(name in text for name in POLICIES)
    assert "As many workers as bring their mean CPU to its target." in text
    assert [p["name"] for p in document(capsys, "policies")] == list(POLICIES)


def test_one_policy(capsys: Output) -> None:
    text = said(capsys, "policies", "hpa")
    assert re.search(r"target_cpu +float +0\.8 +CPU use to aim at", text)
    one = document(capsys, "policies", "hpa")
    assert one["inputs"] == ["requested", "per_worker.cpu", "per_worker.ready_at"]
    assert {key: value for key, value in one["parameters"][2].items() if key != "doc"} == {
        "name": "interval",
        "type": "float",
        "default": 15.0,
        "required": False,
    }


def test_jobs(capsys: Output) -> None:
    assert all(name in said(capsys, "jobs") for name in JOBS)
    one = document(capsys, "jobs", "wordcount")
    assert (one["operators"], one["parameters"]) == (list(JOBS["wordcount"].operators), [])
    assert "Parameters of" not in said(capsys, "jobs", "wordcount")


def test_parameters_of_a_job(capsys: Output) -> None:
    assert re.search(r"redis +str \| unset +unset +address of a Redis", said(capsys, "jobs", "ysb"))
    assert [each["name"] for each in document(capsys, "jobs", "ysb")["parameters"]] == ["redis", "campaigns"]


def test_workloads(capsys: Output) -> None:
    text = said(capsys, "workloads")
    assert all(name in text for name in KINDS)
    text = said(capsys, "workloads", "constant")
    assert re.search(r"level +float +required", text)
    assert re.search(r"scale_to +float \| unset +unset", text)
    assert [kind["kind"] for kind in document(capsys, "workloads")["kinds"]] == list(KINDS)


def test_explain_reads_as_a_story(capsys: Output, journal: Path) -> None:
    text = said(capsys, "explain", journal)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert text.startswith("21:00 observed: ")
    assert "1 worker lost, 30 s blind, 61 s with nobody looking" in " ".join(text.split())
    assert "0:00  start    hpa (1 to 8 workers) in control; guards hold_when_blind, bounds" in text
    assert re.search(
        r"2 → 3 +load [\d,]+/s, CPU 9\d %, backlog 0, latency 1.5 s\n +hpa wants 3, and the guards agree", text
    )
    assert re.search(r"hold 2 +\d+ decisions until \d:\d\d, the last: CPU", text)
    assert "[cpu.above_target]" in text
    assert "Asked for 3 workers instead of 2 (done)" in text
    assert "worker 3 was lost: exit code 137 [worker.lost]" in text
    assert text.count("[metrics.unavailable]") == 1
    assert "bounds; 61 s after the last sample, with all that was learned before" in " ".join(text.split())


def test_explain_all_shows_every_decision(capsys: Output, journal: Path) -> None:
    decided = [r for r in read(journal) if isinstance(r, Decided)]
    shown = [e for e in document(capsys, "explain", journal, "--all")["entries"] if e["kind"] == "decision"]
    assert [e["at"] for e in shown] == [d.at for d in decided]
    assert {e["count"] for e in shown} == {1}
    folded = [e for e in document(capsys, "explain", journal)["entries"] if e["kind"] == "decision"]
    assert len(folded) < len(shown) == sum(e["count"] for e in folded)


def test_explain_last(capsys: Output, journal: Path) -> None:
    text = said(capsys, "explain", journal, "--last", "2")
    assert "entries before are left out" in text
    assert [e["kind"] for e in document(capsys, "explain", journal, "--last", "1")["entries"]] == ["event"]
    assert document(capsys, "explain", journal, "--last", "100000")["left_out"] == 0


def test_explain_marks_shadows(capsys: Output, shadowed: Path) -> None:
    text = said(capsys, "explain", shadowed)
    assert re.search(r"shadow +\d+ decisions until 2:45, the last: static would go from 2 to 6", text)
    assert "in its shadow static" in " ".join(text.split())


def test_explain_folds_advice_that_repeats(capsys: Output, advised: Path) -> None:
    text = said(capsys, "explain", advised)
    assert "dry run: nothing is carried out" in " ".join(text.split())
    assert re.search(r"2 → 3 .*\n +\d decisions until \d+:\d\d, the last: hpa wants 3", text)


def test_replay_is_the_same(capsys: Output, journal: Path, shadowed: Path, advised: Path) -> None:
    decisions = sum(isinstance(r, Decided) for r in read(journal))
    assert said(capsys, "replay", journal) == f"All {decisions} decisions are the same, byte for byte.\n"
    for other in (shadowed, advised):
        assert document(capsys, "replay", other)["same"] is True


def test_replay_shows_the_first_difference(capsys: Output, journal: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.jsonl"
    changed.write_text(journal.read_text().replace("is above its target of 80 %", "is above its aim of 80 %"))
    text = said(capsys, "replay", changed, code=1)
    assert "decisions are not the same" in text
    assert re.search(r"\n-.*is above its aim.*\n\+.*is above its target", text)
    plain = document(capsys, "replay", changed, code=1)
    assert plain["same"] is False
    assert plain["first_difference"]["journal"] != plain["first_difference"]["replay"]


def test_replay_compares_with_another_policy(capsys: Output, journal: Path) -> None:
    text = said(capsys, "replay", journal, "--policy", "static", "--set", "workers=4")
    assert text.startswith("static workers=4: another number of workers in ")
    assert re.search(r"Wanted on average: 4\.\d workers by the journal, 4(\.\d)? by static workers=4\.", text)
    plain = document(capsys, "replay", journal, "--policy", "static", "--set", "workers=4")
    assert plain["config"]["max_workers"] == 8, "the journal's own bounds"
    assert plain["differing"] == sum(d["count"] for d in plain["differences"])
    assert plain["average_now"] == pytest.approx(4, abs=0.3)  # not down while blind


def test_replay_with_other_parameters(capsys: Output, journal: Path) -> None:
    lower = document(capsys, "replay", journal, "--set", "target_cpu=0.5")
    assert lower["policy"] == "hpa"
    assert lower["average_now"] > lower["average_then"]
    same = document(capsys, "replay", journal, "--policy", "hpa")
    assert same["differing"] == 0
    narrow = document(capsys, "replay", journal, "--policy", "static", "--set", "max_workers=12")
    assert narrow["average_now"] > 11, "the guards' bounds follow"


def test_assignments_are_toml() -> None:
    given = ["a=1", "b=0.5", "c=true", 'd="x y"', "e=[1, 2]", "f=max", "g=data/load.csv", "h=a=b"]
    with pytest.raises(ConfigError, match=r"--set h must be a TOML value, got 'a=b'"):
        assignments(given)
    assert assignments(given[:-1]) == {
        "a": 1, "b": 0.5, "c": True, "d": "x y", "e": [1, 2], "f": "max", "g": "data/load.csv",
    }  # fmt: skip
