"""The load, from a process of its own, so that a busy driver does not slow it and it does not slow the driver.

`Feed` starts `python -m penstock.experiment.feed`; its task comes as JSON on standard input, which stays open: when it
closes, because the run ended or crashed, the feed ends too. Its progress goes to a small file, rewritten whole.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock import jobs, workloads
from penstock.errors import PenstockError, Unavailable
from penstock.loop import SystemClock
from penstock.sources.log import EmbeddedLog
from penstock.sources.rate import Progress, RateWriter

REPORT_EVERY = 0.5


@dataclass(frozen=True, slots=True)
class Task:
    """What to feed, and from where to where in the workload's time."""

    log: str
    job: str
    workload: Mapping[str, Any]
    progress: str
    seed: int = 0
    start_t: float = 0.0
    until: float | None = None
    job_settings: Mapping[str, Any] = field(default_factory=dict)


class Feed:
    """A feeding process, ended with the `with` block or with this process, whichever comes first."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._errors = Path(task.progress).with_suffix(".err")
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "penstock.experiment.feed"],
                stdin=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # a Ctrl-C is the run's to handle
            )
        assert self._process.stdin is not None  # noqa: S101 - it was asked for above
        self._process.stdin.write(json.dumps(asdict(task)).encode() + b"\n")
        self._process.stdin.flush()

    def progress(self) -> Progress | None:
        """How far it is; raises Unavailable when it died."""
        if self._process.poll() not in (None, 0):
            raise Unavailable(
                f"the load generator ended: {self._errors.read_text().strip() or self._process.returncode}"
            )
        return read_progress(self.task.progress)

    @property
    def done(self) -> bool:
        return self._process.poll() == 0

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def read_progress(path: Path | str) -> Progress | None:
    """The last progress of a feed; None if it never began."""
    try:
        return Progress(**json.loads(Path(path).read_text()))
    except FileNotFoundError:
        return None


def main() -> None:
    """Feed as told on standard input until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    task = Task(**json.loads(sys.stdin.readline()))
    clock = SystemClock()
    over = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        over.set()
        clock.interrupt()

    threading.Thread(target=watch, daemon=True).start()
    log = EmbeddedLog.open(task.log)
    target = Path(task.progress)
    fresh = target.with_suffix(".new")
    last = 0.0

    def note(progress: Progress, *, always: bool = False) -> None:
        nonlocal last
        if not always and time.monotonic() - last < REPORT_EVERY:
            return
        last = time.monotonic()
        fresh.write_text(json.dumps(asdict(progress)))
        fresh.rename(target)

    with log.writer() as writer:
        load = workloads.make_from(task.workload)
        generate = jobs.make(task.job, **task.job_settings).generator(task.seed)
        feeder = RateWriter(writer, log.partitions, load, generate, clock)
        note(feeder.run(until=task.until, stop=over.is_set, start_t=task.start_t, report=note), always=True)


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(2)  # the watching thread may still sit in a read
    os._exit(0)
