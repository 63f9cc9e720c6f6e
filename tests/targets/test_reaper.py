"""Everything that was started ends with its owner, and nothing else does."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import pytest

from penstock.targets.spark import cgroups, reaper

OWNER = """
    import os, subprocess, sys, time
    from penstock.targets.spark import reaper
    token = sys.argv[1]
    cleaner = subprocess.Popen(
        [sys.executable, "-I", reaper.__file__, token], stdin=subprocess.PIPE, start_new_session=True
    )
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    subprocess.Popen([sys.executable, "-c", child], env={**os.environ, reaper.TOKEN: token}, start_new_session=True)
    print("up", flush=True)
    time.sleep(600)
"""


def gone(token: str) -> bool:
    for _ in range(300):
        if not reaper.members(token):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_and_grandchildren_end_with_their_owner(number: int) -> None:
    token, other = uuid.uuid4().hex, uuid.uuid4().hex
    bystander = subprocess.Popen(["sleep", "600"], env={**os.environ, reaper.TOKEN: other})
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER), token], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        while len(reaper.members(token)) < 2:  # the child and its own child
            time.sleep(0.05)
        owner.send_signal(number)
        owner.wait()
        assert gone(token)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        owner.kill()
        reaper.end(token)


def test_control_groups_bound_and_account(tmp_path: Path) -> None:
    name = f"penstock-test-{uuid.uuid4().hex[:8]}"
    groups = cgroups.make(name)
    if groups is None:
        pytest.skip("this user may not make control groups here")
    try:
        for root in {groups.cpu, groups.usage}:
            (root / "w").mkdir()
        assert not groups.bounded("w")
        groups.limit_file("w").write_text(groups.limit_text(0.1))
        assert groups.bounded("w")
        spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for root in {groups.cpu, groups.usage}:
            (root / "w" / "cgroup.procs").write_text(str(spin.pid))
        before, began = groups.used("w"), time.monotonic()
        time.sleep(2)
        after, ended = groups.used("w"), time.monotonic()
        spin.kill()
        spin.wait()
        assert before is not None
        assert after is not None
        # A busy machine may give it less than its bound, never more.
        assert 0 < (after - before) / (ended - began) < 0.15
    finally:
        for root in {groups.cpu, groups.usage}:
            reaper.remove(root)
    assert not groups.cpu.exists()
    assert groups.used("w") is None


def test_where_no_group_can_be_made_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "_mount", lambda *_: None)
    assert cgroups.make("penstock-none") is None
