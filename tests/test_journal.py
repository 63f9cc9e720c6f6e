from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import journal
from penstock.core import Batch, Decision, Expectation, Observation, Operator, Option, Reason, Stage, Worker
from penstock.errors import ConfigError, Damaged, Locked, Unavailable, Unsupported
from penstock.journal import Decided, Event, Journal, Record, Rescale, Sample, Setting, ShadowSetting, Start, Stop

WHY = Reason("test.why", "Because it was – so", {"b": 1, "a": 2.5, "c": None, "d": True, "e": "text"})
SEEN = Observation(
    at=1.25,
    workers=2,
    requested=3,
    input_rate=5.0,
    per_worker=(Worker("w", cpu=0.5),),
    operators=(Operator("map", 2, busy=0.1),),
    batch=Batch(1, 40.0, 2.5, 100, stages=(Stage(1.5, 100), Stage(0.5, 10))),
    events=(WHY,),
)
MADE = Decision(4, (WHY,), (Option(4, True, WHY),), Expectation(capacity=1e9))
START = Start(at=0.0, policy=Setting("hpa", {"interval": 15.0}), guards=(Setting("bounds"),))
RECORDS: list[Record] = [
    replace(START, shadows=(ShadowSetting("s", Setting("static")),), mode="dry-run", resumed=True),
    Sample(observation=SEEN),
    Decided(at=1.25, by="hpa", role="control", proposed=5, decision=MADE, observation=SEEN),
    Decided(at=1.25, by="s", role="shadow", proposed=None, decision=Decision(None, (WHY,))),
    Rescale(at=2.0, before=3, after=4, outcome="done", sentence="Done"),
    Event(at=3.0, reason=WHY),
    Stop(at=4.0, reason=WHY),
]


def write(path: Path, *records: Record) -> None:
    with Journal.open(path) as file:
        for record in records:
            file.write(record)


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.kind)
def test_what_is_written_is_read(record: Record) -> None:
    assert journal.decode(journal.encode(record)) == record


def test_a_file_of_all_kinds(tmp_path: Path) -> None:
    write(tmp_path / "j", *RECORDS)
    assert list(journal.read(tmp_path / "j")) == RECORDS


def test_equal_records_give_equal_bytes() -> None:
    one = Event(at=3.0, reason=Reason("a.b", "c", {"x": 1, "y": 2.0}))
    other = Event(at=3, reason=Reason("a.b", "c", {"y": 2, "x": 1.0}))
    assert journal.encode(one) == journal.encode(other)
    assert (
        journal.encode(one) == b'{"kind":"event","at":3,"reason":{"code":"a.b","sentence":"c","facts":{"x":1,"y":2}}}\n'
    )


def test_numbers_of_a_library_are_numbers_and_other_things_are_nothing() -> None:
    numpy = pytest.importorskip("numpy")
    assert journal.encode(Sample(observation=Observation(at=numpy.float64(1.5)))).endswith(b'{"at":1.5}}\n')
    with pytest.raises(TypeError, match="is not for a journal"):
        journal.encode(Event(at=0.0, reason=Reason("a.b", "c", {"x": object()})))  # type: ignore[dict-item]


def test_what_is_empty_is_left_out() -> None:
    assert journal.encode(Sample(observation=Observation(at=1.0))) == b'{"kind":"sample","observation":{"at":1}}\n'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_to_the_bit(value: float) -> None:
    line = journal.encode(Sample(observation=Observation(at=value)))
    record = journal.decode(line)
    assert isinstance(record, Sample)
    assert record.observation.at == value
    assert journal.encode(record) == line


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_number_that_is_none(value: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write(tmp_path / "j", Sample(observation=Observation(at=value)))


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j"
    write(path, START, *RECORDS[1:3])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with pytest.warns(RuntimeWarning, match="the last line was torn"):
        assert list(journal.read(path)) == [START, RECORDS[1]]
    with pytest.warns(RuntimeWarning, match="the last line was torn"):
        write(path, RECORDS[2])
    assert path.read_bytes() == whole


def test_a_torn_first_line_leaves_an_empty_journal(tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(journal.encode(START)[:5])
    with pytest.warns(RuntimeWarning, match="torn"), Journal.open(tmp_path / "j") as file:
        assert file.empty


DAMAGE: dict[str, tuple[bytes, type[Exception], str]] = {
    "no JSON": (b"hello\n", Damaged, r"line 2: not a record"),
    "unknown kind": (b'{"kind":"note"}\n', Damaged, r"line 2: .*'note'"),
    "unknown key": (b'{"kind":"sample","observation":{"at":1,"cpus":1}}\n', Damaged, r"line 2: .*cpus"),
    "missing key": (b'{"kind":"sample"}\n', Damaged, r"line 2: .*observation"),
    "wrong type": (b'{"kind":"sample","observation":{"at":"1"}}\n', Damaged, r"line 2: .*valid number"),
    "from the future": (b'{"kind":"start","schema":2,"at":0}\n', Unsupported, r"line 2: journal schema 2, .* knows 1"),
}


@pytest.mark.parametrize(("line", "error", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named_with_file_and_line(tmp_path: Path, line: bytes, error: type[Exception], message: str) -> None:
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(journal.encode(START) + line + journal.encode(RECORDS[1]))
    with pytest.raises(error, match=f"damaged.jsonl, {message}"):
        list(journal.read(path))


@pytest.mark.parametrize("content", [b"Dear diary,\nit rained", b"Dear diary", journal.encode(RECORDS[1])])
def test_somebodys_letters_are_not_touched(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "letters").write_bytes(content)
    with pytest.raises(Damaged, match="letters, line 1"):
        Journal.open(tmp_path / "letters")
    assert (tmp_path / "letters").read_bytes() == content


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"journal must be a file that can be read, got '.*none': No such file"):
        list(journal.read(tmp_path / "none"))
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigError, match=r"journal must have at least one line, got '.*empty', which is empty"):
        list(journal.read(tmp_path / "empty"))
    with pytest.raises(ConfigError, match="journal must be a file that can be written"):
        Journal.open(tmp_path / "no" / "such" / "folder")


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "j"), pytest.raises(Locked, match="is being written by another process"):
        Journal.open(tmp_path / "j")
    Journal.open(tmp_path / "j").close()


def test_a_full_disk_leaves_whole_lines() -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("no /dev/full here")
    full = Journal(Path("/dev/full"), os.open("/dev/full", os.O_WRONLY), 0)
    with full, pytest.raises(Unavailable, match="cannot be written: No space left on device"):
        full.write(START)


WRITER = """
import sys
from penstock.journal import *
from penstock.core import Observation
file = Journal.open(sys.argv[1])
if file.empty: file.write(Start(at=0, policy=Setting("hpa")))
print("writing", flush=True)
n = 0
while True: file.write(Sample(observation=Observation(at=(n := n + 1))))
"""


def test_a_kill_leaves_a_readable_journal(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"writing\n"
        size = path.stat().st_size
        while path.stat().st_size < size + 20_000:
            pass
        child.send_signal(signal.SIGKILL)
        child.communicate()
    lines = [json.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    assert lines[0]["kind"] == "start"
    assert sum(line["observation"]["at"] == 1 for line in lines[1:]) == 3
