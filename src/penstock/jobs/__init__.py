"""The streaming jobs: what gets scaled. Each says how to build it, makes its records, and proves its own results."""

from __future__ import annotations

from penstock.jobs.base import Job, Verdict
from penstock.jobs.nexmark_q1 import NexmarkQ1
from penstock.jobs.nexmark_q2 import NexmarkQ2
from penstock.jobs.nexmark_q3 import NexmarkQ3
from penstock.jobs.nexmark_q5 import NexmarkQ5
from penstock.jobs.nexmark_q8 import NexmarkQ8
from penstock.jobs.nexmark_q11 import NexmarkQ11
from penstock.jobs.taxi import Taxi
from penstock.jobs.topspeed import TopSpeed
from penstock.jobs.traffic import Traffic
from penstock.jobs.wordcount import WordCount
from penstock.jobs.ysb import YahooBenchmark
from penstock.settings import build

_ALL: tuple[type[Job], ...] = (
    NexmarkQ1,
    NexmarkQ2,
    NexmarkQ3,
    NexmarkQ5,
    NexmarkQ8,
    NexmarkQ11,
    Taxi,
    TopSpeed,
    Traffic,
    WordCount,
    YahooBenchmark,
)
JOBS: dict[str, type[Job]] = {job.name: job for job in sorted(_ALL, key=lambda job: job.name)}

__all__ = ["JOBS", "Job", "Verdict", "make"]


def make(name: str, **settings: object) -> Job:
    """The job of that name, with these settings."""
    return build("job", JOBS, name, settings)
