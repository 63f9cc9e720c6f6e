"""What is wrong with a command line is said in one sentence, with the exit code that scripts rely on."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import penstock.cli
from penstock import __version__
from penstock.cli import call
from penstock.errors import ConfigError, Damaged, Full, Refused, Unavailable

JOURNAL = "JOURNAL"  # stands for a good one
BAD: dict[str, tuple[list[str], *tuple[str, ...]]] = {
    "unknown command": (["polices"], "command must be one of demo, run, ", "got 'polices'; did you mean 'policies'?"),
    "unknown option": (["policies", "--jsn"], "--jsn", "Did you mean --json? See `penstock policies --help`."),
    "unknown global option": (["--frob"], "--frob", "penstock --help"),
    "argument too many": (["policies", "hpa", "static"], "'static'", "penstock policies --help"),
    "missing argument": (["explain"], "JOURNAL", "penstock explain --help"),
    "not a number": (["explain", JOURNAL, "--last", "few"], "--last", "few"),
    "number too low": (["explain", JOURNAL, "--last", "0"], "--last must be at least 1, got 0"),
    "unknown policy": (["policies", "hpaa"], "policy must be one of daedalus, ", "got 'hpaa'; did you mean 'hpa'?"),
    "unknown job": (["jobs", "wordcoun"], "job must be one of ", "got 'wordcoun'; did you mean 'wordcount'?"),
    "unknown load": (["workloads", "sinus"], "workload must be one of ", "got 'sinus'"),
    "no file": (
        ["explain", "nowhere.jsonl"],
        "journal must be a file that can be read",
        "'nowhere.jsonl'",
        "No such file",
    ),
    "a directory": (["replay", "."], "journal must be a file that can be read, got '.': Is a directory"),
    "an empty file": (["explain", "empty.jsonl"], "journal must have at least one line, got 'empty.jsonl'"),
    "another file": (["explain", "letters.txt"], "letters.txt, line 1: not a record of a journal"),
    "a line damaged": (["replay", "damaged.jsonl"], "damaged.jsonl, line 5: not a record of a journal"),
    "a later schema": (["explain", "later.jsonl"], "later.jsonl, line 1: journal schema 99, but this Penstock knows 1"),
    "unknown policy to replay": (["replay", JOURNAL, "--policy", "hpaa"], "policy must be one of", "got 'hpaa'"),
    "unknown parameter": (["replay", JOURNAL, "--set", "target=1"], "hpa.target must be a parameter of hpa", "got 1"),
    "parameter out of range": (
        ["replay", JOURNAL, "--set", "target_cpu=85"],
        "hpa.target_cpu must be in [0.01, 1], got 85",
    ),
    "parameter of another type": (["replay", JOURNAL, "--set", "interval=soon"], "hpa.interval must be", "got 'soon'"),
    "no assignment": (["replay", JOURNAL, "--set", "target_cpu"], "--set must be key=value, got 'target_cpu'"),
    "no TOML": (["replay", JOURNAL, "--set", "target_cpu=[1"], "--set target_cpu must be a TOML value, got '[1'"),
    "two assignments in one": (["replay", JOURNAL, "--set", "a=1\nb=2"], "--set a must be a TOML value"),
    "given twice": (["replay", JOURNAL, "--set", "a=1", "--set", "a=2"], "--set must give a once, got 'a=2'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_exit_2_and_one_sentence(
    name: str, journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = journal.read_text().splitlines()
    Path("empty.jsonl").touch()
    Path("letters.txt").write_text("Dear John,\n")
    Path("damaged.jsonl").write_text("\n".join([*lines[:4], lines[4][:50], *lines[5:]]) + "\n")
    Path("later.jsonl").write_text(lines[0].replace('"schema":1', '"schema":99') + "\n")
    words, *parts = BAD[name]
    assert call([str(journal) if word == JOURNAL else word for word in words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("penstock: ")
    assert printed.err.count("\n") == 1
    for part in parts:
        assert part in printed.err


def test_a_torn_last_line_is_noted_and_left_out(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(journal.read_bytes()[:-20])
    assert call(["replay", str(torn)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("All ")
    assert printed.err.startswith(f"penstock: {torn}: the last line was torn (")
    assert printed.err.count("\n") == 1
    torn.write_bytes(journal.read_bytes()[:20])
    assert call(["explain", str(torn)]) == 2
    assert "journal must have at least one whole line" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("a must be b, got c"), 2),
        (Refused("no"), 2),
        (Damaged("broken"), 2),
        (Full("no room"), 1),
        (Unavailable("not now"), 1),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_exit_codes(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Raising:
        def __call__(self, _: list[str]) -> None:
            raise error

    monkeypatch.setattr(penstock.cli, "_app", lambda _: Raising())
    assert call([]) == code
    assert capsys.readouterr().err == ("" if code == 130 else f"penstock: {error}\n")


def test_a_warning_is_one_line_and_the_old_way_comes_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = warnings.showwarning
    monkeypatch.setattr(
        penstock.cli, "_app", lambda _: lambda _: warnings.warn("mind the step", RuntimeWarning, stacklevel=1)
    )
    assert call([]) == 0
    assert capsys.readouterr().err == "penstock: mind the step\n"
    assert warnings.showwarning is before


def penstock_process(*words: str, **how: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from penstock.cli import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **how)  # type: ignore[call-overload,no-any-return]


def test_the_process_exits_as_it_should(journal: Path) -> None:
    assert penstock_process("--version").stdout.strip() == __version__
    assert penstock_process("replay", str(journal)).returncode == 0
    bad = penstock_process("explain", "nowhere.jsonl")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "Traceback" not in bad.stderr


def test_a_reader_that_has_seen_enough_is_no_error(journal: Path) -> None:
    script = f'{sys.executable} -c "from penstock.cli import main; main()" explain {journal} --all --json | head -1'
    piped = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (piped.stdout, piped.stderr) == ("{\n", "")


@pytest.mark.parametrize("words", [["--help"], ["policies"], ["polices"]], ids=" ".join)
def test_looking_imports_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys; from penstock.cli import call; call(sys.argv[1:]); "
        "print([m for m in ('pyspark', 'matplotlib', 'pyarrow', 'pydantic', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
