"""What the tests of several folders share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from penstock.experiment import spec
from penstock.experiment.pipeline import Pipeline
from penstock.java import java_home

# The same examples every time, so that what passed here passes there, and no limit that a busy machine breaks.
# HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

SMALL = """
job = "wordcount"
min_workers = 1
max_workers = 3
[workload]
kind = "constant"
level = 500
duration = 40
[policy]
name = "hpa"
interval = 2
[stream]
trigger = 0.5
max_records_per_worker = 20_000
[cluster]
cpu = 0.4
"""


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_works() -> None:
    """A shell that starts the tests in the background has them ignore Ctrl-C, and so would all that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _spark_finds_java_and_python() -> None:
    """Wherever `make setup` found them: Spark itself looks only into the environment."""
    os.environ |= {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """A real cluster with word count running on two bounded workers."""
    with Pipeline(spec.parse(SMALL, "tests"), tmp_path_factory.mktemp("run"), workers=2) as running:
        running.warm_up()
        yield running
