"""Ends a cluster's processes when their owner is gone, however it went.

Run as `python -I reaper.py TOKEN [GROUP_DIRECTORY ...]` with a pipe on standard input that only the owner holds: end of
file means that the owner closed the cluster, or crashed. The processes are found by the token that each inherited in
its environment, so no process is ever ended that the cluster did not start. Standard library only: it must start fast
and depend on nothing.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

TOKEN = "PENSTOCK_CLUSTER"  # noqa: S105 - the name of a variable
PATIENCE = 5.0


def members(token: str) -> list[int]:
    """The processes that carry the token."""
    mark = f"{TOKEN}={token}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):  # ended meanwhile, or not ours to read
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def end(token: str) -> None:
    """Terminate the members, and kill those that do not go."""
    deadline = time.monotonic() + PATIENCE
    while pids := members(token):
        late = time.monotonic() > deadline
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.1)


def remove(root: Path) -> None:
    """Remove the control groups; one whose last process just died stays busy for a moment."""
    deadline = time.monotonic() + PATIENCE
    while root.exists() and time.monotonic() < deadline:
        for group in [*root.glob("*/"), root]:
            with suppress(OSError):
                group.rmdir()
        time.sleep(0.05)


def main() -> None:
    """Wait for the owner, then clean up after it."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)  # the owner's Ctrl-C must not end its own cleaner
    token, *roots = sys.argv[1:]
    while sys.stdin.buffer.read(4096):
        pass
    end(token)
    for root in map(Path, roots):
        remove(root)


if __name__ == "__main__":
    main()
