"""Every policy in control of a real Spark job for a few decisions: it sees what it needs there, and does no harm."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock import guards, policies
from penstock.experiment.pipeline import Pipeline
from penstock.journal import Decided, Journal, Rescale, read
from penstock.loop import Loop
from penstock.testing import eventually

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS = 4


def feed(pipeline: Pipeline, records: int = 2_000) -> None:
    with pipeline.log.writer() as writer:
        for partition in range(pipeline.log.partitions):
            writer.append(partition, pipeline.generate_now(records // pipeline.log.partitions))


@pytest.mark.parametrize("name", policies.POLICIES)
def test_a_policy_in_control_of_a_real_job(pipeline: Pipeline, tmp_path: Path, name: str) -> None:
    path = tmp_path / "journal.jsonl"
    policy = policies.make(name, min_workers=1, max_workers=3, interval=1.0)
    with Journal.open(path) as journal:
        loop = Loop(pipeline.target, policy, guards=guards.default(1, 3, settle=1.0), journal=journal)
        for _ in range(STEPS):
            feed(pipeline)
            loop.step()
            time.sleep(1.0)
    decisions = [record for record in read(path) if isinstance(record, Decided)]
    assert len(decisions) >= 2
    for decided in decisions:
        assert decided.observation is not None
        assert decided.observation.processed_rate is not None, "it decides on what the job really does"
        assert decided.decision.workers in (1, 2, 3)
        codes = {reason.code for reason in decided.decision.reasons}
        assert not codes & {"policy.failed", "guard.failed"}, decided.decision.reasons
    assert all(record.outcome == "done" for record in read(path) if isinstance(record, Rescale))


def test_after_all_of_them_nothing_is_lost(pipeline: Pipeline) -> None:
    eventually(lambda: pipeline.target.observe().backlog == 0, "an empty backlog")
    assert pipeline.target.executors.failed_tasks() == 0
    verdict = pipeline.verify()
    assert verdict.equal, verdict.sentence
    assert verdict.records_in == verdict.records_out == sum(pipeline.log.end_offsets().values())
