"""The Spark target on a real cluster: watched, rescaled, hurt, and nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from penstock import guards
from penstock.core import Observation, Reason
from penstock.errors import ConfigError, Refused
from penstock.experiment.pipeline import Pipeline
from penstock.java import java_home
from penstock.spark import autoscale
from penstock.targets.spark import reaper
from penstock.targets.spark.target import SparkTarget
from penstock.testing import TargetContract, eventually

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def feed(pipeline: Pipeline, records: int = 4_000) -> None:
    with pipeline.log.writer() as writer:
        for partition in range(pipeline.log.partitions):
            writer.append(partition, pipeline.generate_now(records // pipeline.log.partitions))


def drained(pipeline: Pipeline) -> bool:
    return pipeline.target.observe().backlog == 0


def settle(pipeline: Pipeline, workers: int) -> list[Reason]:
    """Work until `workers` run, and return what happened on the way."""
    events: list[Reason] = []

    def there() -> bool:
        seen = pipeline.target.observe()
        events.extend(seen.events)
        if not seen.backlog:
            feed(pipeline)
        return seen.workers == workers == len(seen.per_worker)

    eventually(there, f"{workers} workers")
    return events


def test_what_is_observed(pipeline: Pipeline) -> None:
    settle(pipeline, 2)
    seen: list[Observation] = []

    def complete() -> bool:
        feed(pipeline)
        seen.append(pipeline.target.observe())
        now = seen[-1]
        rates = (now.input_rate, now.processed_rate, now.latency, now.batch)
        whole = all(value is not None for value in rates) and bool(now.operators)
        return whole and all(
            w.cpu is not None and w.rate is not None and w.ready_at is not None for w in now.per_worker
        )

    eventually(complete, "a complete observation")
    now = seen[-1]
    assert now.requested == now.workers == 2
    assert now.batch is not None
    assert now.batch.trigger == pipeline.experiment.stream.trigger
    assert now.batch.limit == 2 * pipeline.max_records_per_worker
    first, second = now.batch.stages
    assert first.records == now.batch.records > second.records > 0, "all are read, and counted by word"
    assert 0 < first.seconds + second.seconds < now.batch.seconds
    assert now.input_rate is not None
    assert now.input_rate > 0
    assert all(0 <= (w.cpu or 0) <= 1 for w in now.per_worker)
    assert now.latency is not None
    assert now.latency > 0
    read, count = now.operators
    assert (read.name, count.name) == pipeline.experiment.job.operators
    assert (read.shared, read.parallelism, read.downstream) == (True, 2, (count.name,))
    assert read.rate_in == pytest.approx(now.processed_rate, rel=0.5), (
        "all that is processed was read by the first stage"
    )
    assert read.rate_out == pytest.approx(count.rate_in), "what one stage writes the next one reads"
    assert 0 < (read.busy or 0) + (count.busy or 0) + (read.idle or 0) <= 1.001
    eventually(lambda: drained(pipeline), "an empty backlog")


def test_without_control_groups_a_worker_at_work_looks_busy(pipeline: Pipeline) -> None:
    """On anyone's own cluster busy time stands for CPU: near 1 under more than the job can do, near 0 when idle."""
    settle(pipeline, 2)
    watcher = SparkTarget(pipeline.query, max_workers=3, control=False)  # type: ignore[arg-type]

    def cpu() -> float:
        found = [w.cpu for w in watcher.observe().per_worker if w.cpu is not None]
        return max(found, default=0.0)

    def busy() -> bool:
        if (pipeline.target.observe().backlog or 0) < 200_000:
            feed(pipeline, 200_000)
        return cpu() > 0.6

    eventually(busy, "a worker that looks busy under saturation")
    eventually(lambda: drained(pipeline), "an empty backlog")
    eventually(lambda: cpu() < 0.2, "workers that look idle when nothing is to be done")


class TestContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _running(self, pipeline: Pipeline) -> None:
        pipeline.target.rescale(2)
        self.pipeline = pipeline

    def make(self) -> SparkTarget:
        return self.pipeline.target

    def wait(self) -> None:
        feed(self.pipeline, 400)


def test_out_and_in_again_loses_nothing(pipeline: Pipeline) -> None:
    pipeline.target.rescale(3)
    settle(pipeline, 3)
    pipeline.target.rescale(1)
    events = settle(pipeline, 1)

    def gone() -> bool:
        events.extend(pipeline.target.observe().events)
        return [e.code for e in events].count("worker.left") == 2

    eventually(gone, "both drained workers to leave")
    assert "worker.lost" not in {e.code for e in events}
    eventually(lambda: drained(pipeline), "an empty backlog")
    assert pipeline.target.executors.failed_tasks() == 0
    verdict = pipeline.verify()
    assert verdict.equal, verdict.sentence
    assert verdict.records_in == verdict.records_out == sum(pipeline.log.end_offsets().values())


def test_a_killed_executor_is_noticed_replaced_and_costs_no_record(pipeline: Pipeline) -> None:
    pipeline.target.rescale(2)
    settle(pipeline, 2)
    # Not the shell that lifts a new executor's bound for a while: it has the same command line.
    executors = [
        pid
        for pid in reaper.members(pipeline.cluster.token)
        if Path(f"/proc/{pid}/exe").resolve().name == "java"
        and b"--executor-id" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    feed(pipeline, 20_000)
    os.kill(executors[-1], signal.SIGKILL)
    events: list[Reason] = []

    def back() -> bool:
        seen = pipeline.target.observe()
        events.extend(seen.events)
        codes = [e.code for e in events]
        return "worker.lost" in codes and "worker.joined" in codes and seen.workers == 2 and seen.backlog == 0

    eventually(back, "the lost worker's successor and an empty backlog")
    assert pipeline.target.requested == 2
    verdict = pipeline.verify()
    assert verdict.equal, verdict.sentence
    assert verdict.records_in == verdict.records_out == sum(pipeline.log.end_offsets().values())


def test_autoscale_and_what_a_dry_run_must_not_do(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.target.rescale(2)
    settle(pipeline, 2)
    assert pipeline.query is not None
    before = listening()
    with autoscale(
        pipeline.query,
        "static",
        1,
        3,
        True,
        workers=3,
        interval=1,
        journal=tmp_path / "dry.jsonl",
        sample_every=0.5,
        source=pipeline.log,
    ) as handle:
        eventually(lambda: handle.status().decided is not None, "a decision")
        # Spark itself opens some for a while (a batch's results coming to the driver, a Python worker starting); they
        # go again. One of ours would stay, and then there is never a moment without it.
        eventually(lambda: listening() <= before, "a moment with no port open but those there were before")
        status = handle.status()
        assert status.running
        assert status.decided is not None
        assert status.decided.decision.workers == 3
        assert "3" in str(status)
    assert not handle.status().running
    assert handle.status().problem is None
    assert '"outcome":"dry-run"' in (tmp_path / "dry.jsonl").read_text()
    assert pipeline.query.isActive, "stopping the autoscaler never stops the query"
    assert pipeline.target.observe().workers == 2, "told only to watch"
    watcher = SparkTarget(pipeline.query, max_workers=3, control=False)
    with pytest.raises(Refused, match="told only to watch"):
        watcher.rescale(3)


def test_a_minute_of_silence_scales_nothing_down(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metrics go away in mid-run, just when the policy wants to go down: it holds, and says why."""
    if pipeline.cluster.groups is None:
        pytest.skip("no control groups here, so there is no CPU reading of ours to silence")
    pipeline.target.rescale(3)
    settle(pipeline, 3)
    eventually(lambda: drained(pipeline), "an empty backlog")
    assert pipeline.query is not None
    calm, begun_at = 90.0, time.time()  # long enough that the policy has its wish before, on a slow machine too
    with autoscale(
        pipeline.query,
        "hpa",
        1,
        3,
        journal=tmp_path / "silent.jsonl",
        interval=1,
        scale_down_stabilisation=0,
        cluster=pipeline.cluster,
        source=pipeline.log,
        rails=guards.default(1, 3, settle=calm),
    ) as handle:

        def wants_down() -> bool:
            decided = handle.status().decided
            return decided is not None and decided.proposed is not None and decided.proposed < 3

        eventually(wants_down, "an idle job that the policy wants to make smaller")  # the guards let it settle first
        with pytest.raises(Refused, match="autoscaled already"):
            autoscale(pipeline.query, "hpa", 1, 3)
        monkeypatch.setattr(type(pipeline.cluster.groups), "used", lambda *_: None)
        silenced_at = time.time()

        def minute() -> bool:
            seen = handle.status().observation
            return seen is not None and seen.at > max(silenced_at + 60, begun_at + calm + 20)

        eventually(minute, "a minute of silence")
        status = handle.status()
        assert status.decided is not None
        assert status.decided.decision.reason.code == "cpu.unknown"
        assert status.problem is None
    assert '"kind":"rescale"' not in (tmp_path / "silent.jsonl").read_text()
    assert pipeline.target.observe().workers == 3


def test_a_request_taken_back_leaves_no_surplus(pipeline: Pipeline) -> None:
    pipeline.target.rescale(1)
    settle(pipeline, 1)
    pipeline.target.rescale(3)
    pipeline.target.rescale(1)
    quiet = 0

    def stays() -> bool:
        nonlocal quiet
        seen = pipeline.target.observe()
        present = len(pipeline.target.executors.all())
        quiet = quiet + 1 if seen.workers == 1 == present else 0
        return quiet > 40  # ten seconds: whatever was being launched has come and gone

    eventually(stays, "one worker and no other")
    assert pipeline.target.requested == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"master": "local[2]"}, "master 'local[2]' runs everything in one process", id="local"),
        pytest.param(
            {"master": "local-cluster[1,1,1024]", "more": {"spark.dynamicAllocation.enabled": "true"}},
            "two masters would fight",
            id="dynamic allocation",
        ),
        pytest.param(
            {"master": "local-cluster[1,1,1024]"},
            "spark.decommission.enabled must be true, got nothing",
            id="unprepared",
        ),
    ],
)
def test_sessions_that_cannot_be_scaled(settings: dict[str, object], words: str, tmp_path: Path) -> None:
    """In a process of its own: there is one Spark context in each."""
    script = f"""
        from pyspark.sql import SparkSession
        import penstock.spark
        from penstock.errors import PenstockError
        settings = {settings!r}
        builder = SparkSession.builder.master(settings["master"]).config("spark.ui.enabled", "false")
        for key, value in settings.get("more", {{}}).items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        stream = spark.readStream.format("rate").load().writeStream.format("noop")
        query = stream.option("checkpointLocation", {str(tmp_path)!r}).start()
        try:
            penstock.spark.autoscale(query)
        except PenstockError as error:
            print(type(error).__name__, error)
        query.stop()
        try:
            penstock.spark.autoscale(query)
        except PenstockError as error:
            print(type(error).__name__, error)
        spark.stop()
    """
    env = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=env, capture_output=True, text=True, check=False
    )
    assert words in out.stdout, out.stdout + out.stderr
    assert "has stopped" in out.stdout


def test_connect_is_refused() -> None:
    class Remote:
        """Stands for a query of Spark Connect, whose server is not part of this project's environment."""

    Remote.__module__ = "pyspark.sql.connect.streaming.query"
    with pytest.raises(Refused, match="Spark Connect"):
        SparkTarget(Remote(), max_workers=2)  # type: ignore[arg-type]


def test_bad_settings_are_named_before_anything_is_done(pipeline: Pipeline) -> None:
    assert pipeline.query is not None
    with pytest.raises(ConfigError, match=r"max_workers must be at least min_workers \(4\), got 2"):
        autoscale(pipeline.query, min_workers=4, max_workers=2)
    with pytest.raises(ConfigError, match="policy must be one of"):
        autoscale(pipeline.query, "hpaa")


def listening() -> set[str]:
    """The ports that this process and its children listen on."""
    family = {os.getpid()} | {
        int(pid)
        for pid in subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True).stdout.split()
    }
    inodes = set()
    for pid in family:
        try:
            links = list(Path(f"/proc/{pid}/fd").iterdir())
        except OSError:  # it has ended meanwhile, as pgrep itself has
            continue
        for link in links:
            try:
                name = link.readlink().name if link.is_symlink() else ""
            except OSError:
                continue
            if name.startswith("socket:["):
                inodes.add(name[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(fields[1])
    return found
