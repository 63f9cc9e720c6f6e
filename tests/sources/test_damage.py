"""Damage, full disks, two writers, sudden death: a clear error each, and nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import Damaged, Full, Locked, SourceError
from penstock.sources.log import EmbeddedLog
from penstock.sources.segments import Segment

Batch = Callable[[int, int], pa.RecordBatch]
Contents = Callable[[EmbeddedLog], dict[int, list[int]]]


def segment(log: EmbeddedLog, number: int) -> Path:
    return sorted((log.path / "0").iterdir())[number]


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


def miscount(path: Path) -> None:
    """The right checksum, but a name that promises more; its successor is moved along, so that no gap gives it away."""
    told = Segment.parse(path.name)
    assert told is not None
    path.rename(path.with_name(Segment(told.base, told.count + 1, told.crc).name))


@pytest.mark.parametrize(
    ("number", "harm", "message"),
    [
        (2, truncate, "is truncated"),
        (2, empty, "is truncated: its 0 bytes"),
        (2, flip, "has changed since it was written: its checksum is"),
        (4, miscount, "holds 10 records, its name says 11"),
    ],
)
def test_a_damaged_segment_is_named_and_not_delivered(
    filled: EmbeddedLog, contents: Contents, number: int, harm: Callable[[Path], None], message: str
) -> None:
    harm(segment(filled, number))
    name = segment(filled, number).name
    with pytest.raises(Damaged, match=f"{name} {message}"):
        contents(EmbeddedLog.open(filled.path))
    sound = [i for batch in filled.read(0, 0, 10 * number) for i in batch.column("id").to_pylist()]
    assert sound == list(range(10 * number)), "what is not damaged can still be read"


def test_a_missing_segment_in_the_middle_is_damage_for_all(filled: EmbeddedLog, batch: Batch) -> None:
    before, after = segment(filled, 1).name, segment(filled, 3).name
    segment(filled, 2).unlink()
    message = f"0 lacks the segments between {before} and {after}"
    for log in (filled, EmbeddedLog.open(filled.path)):
        with pytest.raises(Damaged, match=message):
            log.end_offsets()
        with pytest.raises(Damaged, match=message):
            log.read(0, 0, 10)
        with pytest.raises(Damaged, match=message):
            log.writer()


def test_a_missing_partition_is_damage(filled: EmbeddedLog) -> None:
    (filled.path / "1").rmdir()
    with pytest.raises(Damaged, match="1 is missing, with all of its segments"):
        filled.end_offsets()


def test_readers_never_see_a_gap_while_a_writer_writes_and_retention_deletes(log: EmbeddedLog, batch: Batch) -> None:
    def write() -> None:
        with EmbeddedLog.open(log.path).writer(durable=False) as writer:
            for i in range(600):
                writer.append(0, batch(i, 1))

    with ThreadPoolExecutor() as pool:
        writing = pool.submit(write)
        last = 0
        while not writing.done():
            end = log.end_offsets()[0]
            assert end >= last
            last = end
            log.retain(max_bytes=20_000)
        writing.result()
    assert log.end_offsets()[0] == 600


def test_a_restored_segment_heals_the_log(filled: EmbeddedLog, contents: Contents) -> None:
    lost = segment(filled, 2)
    body = lost.read_bytes()
    lost.unlink()
    with pytest.raises(Damaged):
        filled.end_offsets()
    lost.write_bytes(body)
    assert contents(filled)[0] == list(range(50))


def test_two_segments_with_the_same_offsets_are_damage(filled: EmbeddedLog) -> None:
    segment(filled, 1).with_name(Segment(10, 4, 1).name).write_bytes(b"")
    with pytest.raises(Damaged, match="has the same offsets in both"):
        filled.end_offsets()


def test_a_segment_that_vanishes_under_a_reader_is_named(filled: EmbeddedLog) -> None:
    reading = filled.read(0, 0, 50)
    next(reading)
    name = segment(filled, 1).name
    segment(filled, 1).unlink()
    with pytest.raises(SourceError, match=f"{name} is gone"):
        next(reading)


def test_a_torn_write_is_invisible_and_cleared_away(filled: EmbeddedLog, batch: Batch, contents: Contents) -> None:
    torn = filled.path / "0" / (Segment(50, 9, 7).name + ".tmp")
    torn.write_bytes(b"half a segm")
    assert contents(EmbeddedLog.open(filled.path))[0] == list(range(50))
    assert torn.exists(), "readers change nothing"
    with filled.writer() as writer:
        assert not torn.exists()
        writer.append(0, batch(50, 1))
    assert contents(filled)[0] == list(range(51))


def test_a_second_writer_in_this_process_is_refused(log: EmbeddedLog) -> None:
    with log.writer(), pytest.raises(Locked, match=f"already has a writer: process {os.getpid()}"):
        log.writer()
    log.writer().close()


HOLD = """
import sys
from penstock.sources.log import EmbeddedLog
with EmbeddedLog.open(sys.argv[1]).writer():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_dies(log: EmbeddedLog) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(log.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Locked, match=f"process {holder.pid}"):
            log.writer()
        holder.kill()
    log.writer().close()


WRITE = """
import sys
import pyarrow as pa
from penstock.sources.log import EmbeddedLog
log = EmbeddedLog.open(sys.argv[1])
with log.writer() as writer:
    at = log.end_offsets()[0]
    while True:
        ids = pa.array(range(at, at + 2000), pa.int64())
        writer.append(0, pa.record_batch([ids, pa.array(["x" * 50] * 2000)], schema=log.schema))
        at += 2000
        print(at, flush=True)
"""


def test_killed_in_mid_write_again_and_again_nothing_acknowledged_is_lost(log: EmbeddedLog, contents: Contents) -> None:
    acknowledged = 0
    for writes in (1, 2, 5, 3, 8):
        writing = subprocess.Popen([sys.executable, "-c", WRITE, str(log.path)], stdout=subprocess.PIPE, text=True)
        with writing:
            assert writing.stdout is not None
            for _ in range(writes):
                acknowledged = int(writing.stdout.readline())
            writing.send_signal(signal.SIGKILL)
            rest = writing.stdout.read().split("\n")[:-1]  # what was acknowledged before the signal got there
            acknowledged = int(rest[-1]) if rest else acknowledged
        found = contents(EmbeddedLog.open(log.path))[0]
        assert found == list(range(len(found)))
        assert len(found) >= acknowledged


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system with very little room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mount.returncode:
        pytest.skip(f"cannot mount a small disk here: {mount.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_loses_nothing_and_the_write_can_be_repeated(
    small_disk: Path, batch: Batch, contents: Contents
) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 100_000)
    log = EmbeddedLog.create(small_disk / "log", batch(0, 0).schema, partitions=1)
    with log.writer() as writer:
        writer.append(0, batch(0, 500))
        with pytest.raises(Full, match=r"no room for \d+ bytes in .*: No space left on device"):
            writer.append(0, batch(500, 3000))
        assert [path.suffix for path in (log.path / "0").iterdir()] == [".arrow"], "no torn file takes up the room"
        assert log.end_offsets() == {0: 500}
        filler.unlink()
        writer.append(0, batch(500, 3000))
    assert contents(log) == {0: list(range(3500))}
