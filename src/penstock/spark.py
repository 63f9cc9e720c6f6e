"""Penstock inside your own PySpark driver: one line, and the query scales itself.

    spark = SparkSession.builder.config(map=penstock.spark.conf(workers=2)).getOrCreate()
    query = spark.readStream. … .start()
    handle = penstock.spark.autoscale(query, policy="hpa", min_workers=1, max_workers=6)

The loop runs in a thread of the driver, opens no port, and never stops the query: if Penstock ends, the job runs on
with the workers it has.
"""

from __future__ import annotations

import copy
import logging
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import guards, policies
from penstock.core import Guard, Observation, Policy
from penstock.errors import ConfigError, Refused, Unavailable, check
from penstock.journal import Decided, Journal, last_requested, read
from penstock.loop import Loop, Pilot, Step, SystemClock
from penstock.sources import Source
from penstock.targets.spark.cluster import SparkCluster
from penstock.targets.spark.conf import conf
from penstock.targets.spark.latency import observe_latency
from penstock.targets.spark.target import SparkTarget

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_LIVE: set[str] = set()  # applications that a handle of this process scales

cluster = SparkCluster  # reads as what it does: `with penstock.spark.cluster(directory, max_workers=4) as cluster:`

__all__ = ["Handle", "Status", "autoscale", "cluster", "conf", "observe_latency"]


@dataclass(frozen=True, slots=True)
class Status:
    """How it stands: whether the loop runs, what it last saw and decided, and what went wrong if it ended."""

    running: bool
    observation: Observation | None
    decided: Decided | None
    problem: str | None

    def __str__(self) -> str:
        if self.problem:
            return self.problem if self.running else f"ended: {self.problem}"
        if self.observation is None:
            return "starting"
        why = self.decided.decision.reason.sentence if self.decided else "no decision yet"
        state = "" if self.running else "stopped; "
        return f"{state}{self.observation.workers} workers, {self.observation.requested} requested: {why}"


class Handle:
    """A running autoscaler. `stop()` ends it and leaves the query, and its workers, as they are."""

    def __init__(self, loop: Loop, journal: Journal, clock: SystemClock, query: StreamingQuery, app: str) -> None:
        self.journal = journal.path
        self._journal = journal
        self._loop = loop
        self._clock = clock
        self._query = query
        self._app = app
        self._last: Step | None = None
        self._decided: Decided | None = None
        self._problem: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock", daemon=True)
        self._thread.start()

    def status(self) -> Status:
        """What was last seen and decided."""
        seen = self._last.observation if self._last else None
        return Status(self._thread.is_alive(), seen, self._decided, self._problem)

    def stop(self, timeout: float | None = 60.0) -> None:
        """End the loop; raises Unavailable if it does not end in time."""
        self._stopping.set()
        self._clock.interrupt()
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise Unavailable(f"the loop did not end within {timeout:g} s; it will after its current step")

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._loop.run(lambda: self._stopping.is_set() or not self._query.isActive, self._note)
            failure = None if self._stopping.is_set() else self._query.exception()
            self._problem = f"the query failed: {str(failure).splitlines()[0]}" if failure else None
        except Exception as error:  # the user's driver must never end because its autoscaler did
            self._problem = f"{type(error).__name__}: {error}"
        finally:
            self._journal.close()
            _LIVE.discard(self._app)
        if self._problem:
            logging.getLogger("penstock").error("autoscaling ended: %s", self._problem)

    def _note(self, step: Step) -> None:
        self._last = step
        self._decided = step.decided or self._decided
        self._problem = step.problem.sentence if step.problem else None


def autoscale(
    query: StreamingQuery,
    policy: str | Policy = "daedalus",
    min_workers: int = 1,
    max_workers: int = 6,
    dry_run: bool = False,
    *,
    journal: Path | str | None = None,
    source: Source | None = None,
    cluster: SparkCluster | None = None,
    splits: Path | None = None,
    rails: Sequence[Guard] | None = None,
    shadows: Sequence[Policy] = (),
    sample_every: float = 1.0,
    **settings: object,
) -> Handle:
    """Watch a running query and give it just the workers it needs.

    query: a running query of a classic session on a cluster, started with the settings of `conf()`.
    policy: an autoscaler by name, with its own parameters as further keywords, or a policy of your own.
    min_workers, max_workers: the fewest and the most executors.
    dry_run: only advise: decide and write down why, and change nothing.
    journal: where every step is written; one that exists is continued. Default: a new file in the temporary directory.
    source: the log that the query reads, to see arrivals and backlog live instead of once per batch.
    cluster: our own cluster, if the query runs on one, whose control groups measure CPU best.
    splits: the file that tells an embedded log's reader how many workers there are.
    rails: guards around the policy, instead of the default ones.
    shadows: policies that decide on the same observations and are never acted on.
    sample_every: seconds between observations.
    """
    if isinstance(policy, str):
        chosen = policies.make(policy, min_workers=min_workers, max_workers=max_workers, **settings)
    else:
        if settings:
            raise ConfigError(f"{next(iter(settings))} must be set on the policy itself when it is given as an object")
        chosen = policy
    check(sample_every > 0, "sample_every", "be above 0 seconds", sample_every)
    around = guards.default(min_workers, max_workers) if rails is None else tuple(rails)
    path = Path(journal) if journal is not None else Path(tempfile.mkdtemp(prefix="penstock-")) / "journal.jsonl"
    clock = SystemClock()
    app = "" if dry_run else _unclaimed()
    book = Journal.open(path)  # before anything is asked of the cluster: it may belong to another autoscaler
    try:
        target = SparkTarget(
            query,
            max_workers=max_workers,
            source=source,
            cluster=cluster,
            splits=splits,
            control=not dry_run,
            requested=None if book.empty else last_requested(read(path)),
        )
        loop = Loop(
            target,
            chosen,
            guards=around,
            journal=book,
            clock=clock,
            sample_every=sample_every,
            dry_run=dry_run,
            shadows=[Pilot(shadow, copy.deepcopy(around), f"{shadow.name}-{i}") for i, shadow in enumerate(shadows, 1)],
        )
        loop.resume(path)
    except BaseException:
        book.close()
        raise
    if app:
        _LIVE.add(app)
    return Handle(loop, book, clock, query, app)


def _unclaimed() -> str:
    """The application of this driver, if nobody scales it yet."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    app = context.applicationId if context is not None else ""
    if app in _LIVE:
        raise Refused("this application is autoscaled already, and two masters would fight: stop() the other first")
    return app
