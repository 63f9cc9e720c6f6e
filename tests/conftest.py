"""What the tests of several folders share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.experiment import spec
from penstock.experiment.pipeline import Pipeline

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


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """A real cluster with word count running on two bounded workers."""
    with Pipeline(spec.parse(SMALL, "tests"), tmp_path_factory.mktemp("run"), workers=2) as running:
        running.warm_up()
        yield running
