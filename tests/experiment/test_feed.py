"""The load generator's process: it makes the records of the job as the experiment has set it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Unavailable
from penstock.experiment.feed import Feed, Task
from penstock.jobs import events
from penstock.sources.log import EmbeddedLog


def task(into: Path, settings: dict[str, Any]) -> Task:
    log = EmbeddedLog.create(into / "log", events.SCHEMA, 1)
    return Task(
        log=str(log.path),
        job="ysb",
        job_settings=settings,
        workload={"kind": "constant", "level": 2_000, "duration": 0.5},
        progress=str(into / "feed.json"),
        until=0.5,
    )


def finished(feed: Feed) -> None:
    while not feed.done:
        feed.progress()
        time.sleep(0.05)


def test_generator_and_job_have_the_same_settings(tmp_path: Path) -> None:
    path = tmp_path / "campaigns.json"
    path.write_text(json.dumps({"only ad": "campaign"}))
    with Feed(task(tmp_path, {"campaigns": str(path)})) as feed:
        finished(feed)
    log = EmbeddedLog.open(tmp_path / "log")
    lines = [str(line) for part in log.read(0, 0, log.end_offsets()[0]) for line in part["value"].to_pylist()]
    ads = {one["ad_id"] for line in lines if (one := events.read(line, {"ad_id": str}))}
    assert ads == {"only ad"}


def test_a_setting_that_no_longer_holds_is_said(tmp_path: Path) -> None:
    words = r"the load generator ended: ysb\.campaigns must be a file"
    with (
        Feed(task(tmp_path, {"campaigns": str(tmp_path / "gone.json")})) as feed,
        pytest.raises(Unavailable, match=words),
    ):
        finished(feed)
