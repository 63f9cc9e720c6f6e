"""Journals to explain and replay: the toy job under a wave, with what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import cos, pi
from pathlib import Path

import pytest

from penstock import guards
from penstock.core import Observation, Reason
from penstock.journal import Journal
from penstock.loop import Loop, Pilot, Step
from penstock.policies import make
from penstock.testing import FakeClock, FakeTarget

LOST = Reason("worker.lost", "worker 3 was lost: exit code 137", {"worker": "3"})
PERIOD = 900.0


class Job(FakeTarget):
    """Loses a worker at 400 s and cannot be seen from 500 to 530 s."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock, rate=lambda t: 2500 - 2000 * cos(2 * pi * t / PERIOD), startup=20)
        self.began = clock.now()

    def observe(self) -> Observation:
        observation = super().observe()
        lost = observation.at - self.began == 400
        if lost:
            self.lose()
        return replace(observation, latency=1.5, events=(LOST,) if lost else ())


def write(path: Path, *, shadow: bool = False, dry_run: bool = False) -> Path:
    """A wave of 15 minutes; after it the loop is gone for 60 s, comes back, and goes on for 5 minutes."""
    clock = FakeClock(1_000_000)
    job = Job(clock)

    def run(seconds: float) -> None:
        with Journal.open(path) as file:
            loop = Loop(
                job,
                make("hpa", max_workers=8),
                guards=guards.default(1, 8),
                journal=file,
                clock=clock,
                dry_run=dry_run,
                shadows=(Pilot(make("static", workers=6)),) if shadow else (),
            )
            loop.resume(path)
            loop.run(_until(clock, seconds), lambda step: _outage(job, step))

    run(PERIOD)
    clock.sleep(60)
    run(300)
    return path


def _until(clock: FakeClock, seconds: float) -> Callable[[], bool]:
    end = clock.now() + seconds
    return lambda: clock.now() >= end


def _outage(job: Job, step: Step) -> None:
    job.down = "connection refused" if 500 <= step.observation.at - job.began < 530 else None


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("journals") / "wave.jsonl")


@pytest.fixture(scope="session")
def shadowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("journals") / "shadowed.jsonl", shadow=True)


@pytest.fixture(scope="session")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("journals") / "advised.jsonl", dry_run=True)
