"""The streaming jobs: what gets scaled. Each says how to build it, makes its records, and proves its own results."""

from __future__ import annotations

import difflib

from penstock.errors import ConfigError
from penstock.jobs.base import Job, Verdict
from penstock.jobs.wordcount import WordCount

JOBS: dict[str, type[Job]] = {job.name: job for job in sorted((WordCount,), key=lambda job: job.name)}

__all__ = ["JOBS", "Job", "Verdict", "make"]


def make(name: str) -> Job:
    """The job of that name."""
    if name in JOBS:
        return JOBS[name]()
    near = difflib.get_close_matches(name, JOBS, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"job must be one of {', '.join(JOBS)}, got {name!r}{hint}")
