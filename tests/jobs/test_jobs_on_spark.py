"""Every job on a real cluster: scaled 2, 6, 3, an executor killed, the driver killed and started again; then recounted.

All jobs run at once, on one cluster, to spare the time of eleven.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock import jobs
from penstock.experiment.query import JobQuery
from penstock.jobs import events
from penstock.sources.log import EmbeddedLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DRIVER = Path(__file__).parent / "driver.py"
RECORDS = 24 * 300  # as in driver.py


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("jobs")
    log = where / "driver.log"
    with log.open("wb") as errors:
        command = [sys.executable, str(DRIVER), str(where)]
        first = subprocess.Popen(
            [*command, "begin"], stdout=subprocess.PIPE, stderr=errors, start_new_session=True, text=True
        )
        assert first.stdout is not None
        said = first.stdout.readline()
        first.kill()
        first.wait()
        assert said == "ready\n", log.read_text()[-3000:]
        second = subprocess.run([*command, "finish"], stdout=errors, stderr=errors, check=False)
        assert second.returncode == 0, log.read_text()[-3000:]
    return where


@pytest.mark.parametrize("name", jobs.JOBS)
def test_nothing_is_lost_and_nothing_counts_twice(directory: Path, name: str) -> None:
    job = jobs.make(name)
    verdict = JobQuery(job, EmbeddedLog.open(directory / name / "log"), directory / name).verify()
    assert verdict.equal, verdict.sentence
    assert verdict.records_in == verdict.records_out == RECORDS
    if job.schema == events.SCHEMA:
        assert verdict.set_aside > 0, "the load had malformed records"
    if "window" in job.state:
        assert verdict.late > 0, "the load had records that came too late"
