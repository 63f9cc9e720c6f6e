"""A running Structured Streaming query as a target: watched and rescaled from inside its driver, and never stopped.

Out by requesting executors, in by graceful decommission: the query runs on. New executors are cold (their first batches
pay for loading and compiling), so a worker counts as ready only after it has taken part in a few.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from penstock.core import Batch, Observation, Operator, Reason, Worker
from penstock.errors import Refused, Unavailable, check
from penstock.sources import Source
from penstock.sources.splits import publish
from penstock.targets.spark.cluster import SparkCluster
from penstock.targets.spark.conf import check_session
from penstock.targets.spark.executors import Executor, Executors, Task
from penstock.targets.spark.progress import Counter, Progress, parse
from penstock.targets.spark.stages import Stages, Work, batch_of

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql.streaming.query import StreamingQuery

WINDOW = 10.0  # seconds that rates and CPU are averaged over: several batches
CPU_MEMORY = 4 * WINDOW  # so long CPU is kept, to tell it for the very seconds that a worker's rate is of
COLD_BATCHES = 2  # an executor's first batches pay for class loading and compilation
COLD_SECONDS = 60.0  # without any batch to run, a worker is taken as ready after this long
INITIAL = ("spark.dynamicAllocation.initialExecutors", "spark.executor.instances")
STALE = 60.0  # a batch that ended longer ago says nothing about now

_REQUESTED: dict[str, int] = {}  # by application, so that whoever attaches next in this driver knows what was asked for


class SparkTarget:
    """A query to observe and rescale.

    query: a running query of a classic (not Connect) session on a cluster.
    source: the log that it reads, to see arrivals and backlog live; without it they are known only once per batch.
    cluster: our own cluster, whose control groups measure CPU; without it a worker's busy share stands for it.
    splits: the file that tells the log's reader how many workers share a batch.
    control: False promises to watch only: `rescale` is refused and nothing is ever asked of the cluster.
    requested: how many workers were last asked for, if somebody knows: after a restart one may just be missing.
    stages: what the stages of a batch are called, in order.
    max_records_per_split: the most records of a batch for each worker, where the source has such a limit.
    """

    def __init__(
        self,
        query: StreamingQuery,
        *,
        max_workers: int,
        source: Source | None = None,
        cluster: SparkCluster | None = None,
        splits: Path | None = None,
        control: bool = True,
        requested: int | None = None,
        stages: tuple[str, ...] = (),
        max_records_per_split: int | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        if type(query).__module__.startswith("pyspark.sql.connect"):
            raise Refused(
                "Spark Connect gives no access to the executors: run Penstock in the driver of a classic session"
            )
        self._query = query
        self._java: Any = query._jsq
        self._run = str(query.runId)
        _check_running(query)
        context = _context()
        settings = dict(context.getConf().getAll())
        check_session(settings, settings.get("spark.master", ""))
        self._cores = int(settings["spark.executor.cores"])
        self.max_workers = max_workers
        self._source = source
        self._cluster = cluster
        self._splits = splits
        self._control = control
        self._now = now
        self.executors = Executors(context)
        self._attached_at = now()
        self._members: set[str] = set()
        self._draining: set[str] = set()
        self._batches: dict[str, int] = {}
        self._state_tasks: dict[str, int] = {}
        self._ready: dict[str, float] = {}
        self._cpu: dict[str, Counter] = {}
        self._busy: dict[str, float] = {}
        self._busy_so_far: dict[str, float] = {}
        self._read: dict[str, float] = {}
        self._rates: dict[str, Counter] = {}
        self._arrived = Counter(WINDOW)
        self._processed = Counter(WINDOW)
        self._stages = Stages(WINDOW, stages)
        self._limit = max_records_per_split
        self._trigger = _trigger(self._java)
        self._told: int | None = None
        self._last: Progress | None = None
        self._done: int | None = None
        self._batch: Batch | None = None
        self._last_rescale_at: float | None = None
        active = [e for e in self.executors.all() if not e.leaving]
        self._members = {e.name for e in active}
        initial = max(int(settings.get(key, 0)) for key in INITIAL)
        last = _REQUESTED.get(self.executors.app, requested or initial)
        # Executors may be on their way, or one just lost: attaching must never make the job smaller.
        self.requested = max(len(active), min(last, max_workers), 1)
        if control:
            # Only after an explicit request does Spark replace an executor that is lost.
            self.executors.request(self.requested)
            _REQUESTED[self.executors.app] = self.requested

    def observe(self) -> Observation:
        """What the query, its source and its executors show now."""
        _check_running(self._query)
        now = self._now()
        found = self.executors.all()
        active = [e for e in found if not e.leaving]
        events = (*self._changes(found), *self._surplus(active))
        active = [e for e in active if e.name not in self._draining]
        self._follow_batches()
        self._measure(now, active)
        self._tell_source(len(active))
        arrivals, backlog = self._arrivals(now)
        return Observation(
            at=now,
            workers=len(active),
            requested=self.requested,
            uptime=now - self._attached_at,
            last_rescale_at=self._last_rescale_at,
            input_rate=arrivals,
            processed_rate=self._processed_rate(now, backlog),
            backlog=backlog,
            latency=self._last.latency if self._last and now - self._last.ended_at < STALE else None,
            per_worker=tuple(self._worker(e, now) for e in active),
            operators=self._operators(now, len(active), backlog),
            batch=self._batch,
            events=events,
        )

    def rescale(self, workers: int) -> None:
        """Ask for `workers`: more by request, fewer by draining those with the least to lose."""
        check(workers >= 1, "workers", "be at least 1", workers)
        if workers > self.max_workers:
            raise Refused(f"{workers} workers are more than the {self.max_workers} there may be")
        if not self._control:
            raise Refused(f"told only to watch: {workers} workers were not requested")
        _check_running(self._query)
        self.executors.request(workers)
        active = [e for e in self.executors.all() if not e.leaving]
        leaving = self._drain(active, workers)
        if workers != self.requested:
            self.requested = _REQUESTED[self.executors.app] = workers
            self._last_rescale_at = self._now()
        self._tell_source(len(active) - len(leaving))

    def _drain(self, active: list[Executor], workers: int) -> list[str]:
        """Let all but `workers` go; their names."""
        leaving = [e.name for e in sorted(active, key=self._to_lose)[: max(0, len(active) - workers)]]
        if leaving:
            self.executors.drain(leaving, f"Penstock scales in to {workers}")
            self._draining |= set(leaving)
        return leaving

    def _surplus(self, active: list[Executor]) -> list[Reason]:
        """A request that was taken back may still bring executors that were being launched."""
        if not self._control:
            return []
        sentence = "worker {} came after it was no longer wanted, and is drained"
        names = self._drain([e for e in active if e.name not in self._draining], self.requested)
        return [Reason("worker.surplus", sentence.format(name), {"worker": name}) for name in names]

    def _to_lose(self, executor: Executor) -> tuple[int, int, float]:
        """State and blocks to rebuild elsewhere come first; then the youngest goes, whose code is the least warm."""
        return self._state_tasks.get(executor.name, 0), executor.held, -executor.started_at

    def _changes(self, found: list[Executor]) -> list[Reason]:
        events = []
        present = {e.name for e in found}
        active = {e.name for e in found if not e.leaving}
        for name in sorted(self._members - present):
            if name in self._draining:
                events.append(Reason("worker.left", f"worker {name} was drained and left", {"worker": name}))
            else:
                why = self.executors.why_gone(name)
                events.append(Reason("worker.lost", f"worker {name} was lost: {why}", {"worker": name, "why": why}))
            for known in (
                self._batches,
                self._state_tasks,
                self._ready,
                self._cpu,
                self._rates,
                self._read,
                self._busy,
                self._busy_so_far,
            ):
                known.pop(name, None)
        for name in sorted(active - self._members):
            events.append(Reason("worker.joined", f"worker {name} joined", {"worker": name}))
        self._draining &= present
        # One that just died is listed as inactive for a moment: it stays a member until it is gone.
        self._members = (self._members & present) | active
        return events

    def _follow_batches(self) -> None:
        """Take in what finished since the last look."""
        try:
            raw = self._java.lastProgress()
            text = None if raw is None else raw.json()
        except (Py4JError, ConnectionError) as error:
            raise Unavailable(f"could not read the query's progress: {error}") from error
        latest = None if text is None else parse(text)
        if latest is not None:
            self._done = latest.end if latest.end is not None else self._done
            if latest.records == 0:
                latest = None  # an idle trigger reports as well, under the number of the batch to come
        tasks = self.executors.finished_tasks()
        for task in tasks:
            self._read[task.executor] = self._read.get(task.executor, 0.0) + task.records
            self._busy[task.executor] = self._busy.get(task.executor, 0.0) + (task.seconds or 0.0)
        self._stages.add(self._works(tasks))
        if latest is None or (self._last is not None and latest.number <= self._last.number):
            return
        took_part = {task.executor for task in tasks}
        cold = any(name not in self._ready for name in took_part)
        for name in took_part:
            self._batches[name] = self._batches.get(name, 0) + 1
        self._state_tasks = {}
        for task in tasks:
            if task.stateful:
                self._state_tasks[task.executor] = self._state_tasks.get(task.executor, 0) + 1
        self._last = latest
        self._stages.ended(latest.number, latest.ended_at)
        self._batch = Batch(
            number=latest.number,
            ended_at=latest.ended_at,
            seconds=latest.seconds,
            records=latest.records,
            cold=cold,
            limit=None if self._limit is None else self._limit * (self._told or 1),
            trigger=self._trigger,
            stages=self._stages.latest(self._cores),
        )
        for name, records in self._read.items():
            self._rates.setdefault(name, Counter(WINDOW)).saw(latest.ended_at, records)
        if latest.end is not None:
            self._processed.saw(latest.ended_at, latest.end)
        if self._source is None and latest.latest is not None:
            self._arrived.saw(latest.started_at, latest.latest)

    def _works(self, tasks: Iterable[Task]) -> Iterator[Work]:
        """What the tasks of this query's batches did; others that run in the same session do not count."""
        for task in tasks:
            batch = batch_of(task.description, self._run)
            if batch is not None:
                yield Work(batch, task.stage, task.seconds or 0.0, task.taken, task.given, task.executor)

    def _operators(self, now: float, workers: int, backlog: float | None) -> tuple[Operator, ...]:
        fresh = self._last is not None and now - self._last.ended_at <= STALE
        return self._stages.operators(workers, self._cores, backlog) if fresh else ()

    def _measure(self, now: float, active: list[Executor]) -> None:
        measured = self._cluster is not None and self._cluster.groups is not None
        going_on = {} if measured else self._going_on(now)
        for executor in active:
            name = executor.name
            used = self._used(name, going_on)
            if used is None:
                self._cpu.pop(name, None)  # an old reading must not pass for a new one
            else:
                self._cpu.setdefault(name, Counter(CPU_MEMORY)).saw(now, used)
            warm = self._batches.get(name, 0) >= COLD_BATCHES or now - executor.started_at > COLD_SECONDS
            if name not in self._ready and warm and self._bounded(name):
                self._ready[name] = now
                self._cpu.pop(name, None)  # what it used while cold says nothing about its work

    def _going_on(self, now: float) -> dict[str, float]:
        """Seconds that tasks of stages which have not ended took so far, by executor."""
        seconds: dict[str, float] = {}
        for task in self.executors.open_tasks():
            took = max(0.0, now - task.started_at) if task.seconds is None else task.seconds
            seconds[task.executor] = seconds.get(task.executor, 0.0) + took
        return seconds

    def _used(self, name: str, going_on: Mapping[str, float]) -> float | None:
        """CPU seconds so far as a share of a worker's allowance; where only Spark can be asked, its busy seconds.

        Busy is the share of a worker's slots that run a task. Spark's own CPU times come only when a stage ends and
        leave Python out, so a saturated job would look idle; busy time errs upward, which is the safe side.
        """
        if self._cluster is not None and self._cluster.groups is not None:
            used = self._cluster.groups.used(self._cluster.group(self.executors.app, name))
            return None if used is None else used / self._cluster.cpu
        busy = (self._busy.get(name, 0.0) + going_on.get(name, 0.0)) / self._cores
        # A task's length is a little less when Spark says it at the end than by our clock while it ran.
        self._busy_so_far[name] = max(busy, self._busy_so_far.get(name, 0.0))
        return self._busy_so_far[name]

    def _bounded(self, name: str) -> bool:
        if self._cluster is None or self._cluster.groups is None:
            return True
        return self._cluster.groups.bounded(self._cluster.group(self.executors.app, name))

    def _worker(self, executor: Executor, now: float) -> Worker:
        name, last = executor.name, self._last
        fresh = last is not None and now - last.ended_at <= STALE
        rates = self._rates.get(name) if fresh else None
        return Worker(
            name=name,
            cpu=self._worker_cpu(name, now, rates),
            rate=None if rates is None else rates.rate(),
            started_at=executor.started_at,
            ready_at=self._ready.get(name),
        )

    def _worker_cpu(self, name: str, now: float, rates: Counter | None) -> float | None:
        """CPU of the same seconds as the rate, so that the two can be set against each other.

        The rate is known at the ends of batches. While one batch takes longer than a window, CPU is that of now.
        """
        used = self._cpu.get(name)
        if used is None:
            return None
        span = None if rates is None else rates.span
        cpu = used.rate(*span) if span is not None and now - span[1] <= WINDOW else None
        if cpu is None:
            known = used.span
            cpu = None if known is None else used.rate(max(known[0], known[1] - WINDOW), known[1])
        return None if cpu is None else min(cpu, 1.0)

    def _arrivals(self, now: float) -> tuple[float | None, float | None]:
        """Input rate and backlog: from the log itself where there is one, else as of the last batch."""
        done = self._done
        if self._source is not None:
            end = sum(self._source.end_offsets().values())
            self._arrived.saw(now, end)
            return self._arrived.rate(), None if done is None else float(max(0, end - done))
        if self._last is None or done is None or self._last.latest is None:
            return None, None
        if now - self._last.ended_at > STALE and not self._waiting():
            return None, None
        if self._waiting():
            return self._arrived.rate() if now - self._last.ended_at < WINDOW else 0.0, 0.0
        return self._arrived.rate(), float(max(0, self._last.latest - done))

    def _processed_rate(self, now: float, backlog: float | None) -> float | None:
        if self._last is not None and now - self._last.ended_at > WINDOW and backlog == 0:
            return 0.0  # nothing arrives, so nothing is processed: known, not missing
        if self._last is not None and now - self._last.ended_at > STALE:
            return None  # one long batch: how fast it goes is not known before it ends
        return self._processed.rate()

    def _waiting(self) -> bool:
        status = self._query.status
        return not status["isDataAvailable"] and not status["isTriggerActive"]

    def _tell_source(self, workers: int) -> None:
        if self._splits is None or workers < 1:
            return
        if workers != self._told:
            publish(self._splits, workers)
            self._told = workers


def _check_running(query: StreamingQuery) -> None:
    try:
        if query.isActive:
            return
        error = query.exception()
    except (Py4JError, ConnectionError) as gone:
        raise Unavailable(f"the driver's JVM does not answer: {gone}") from gone
    why = f": {str(error).splitlines()[0]}" if error else ""
    raise Refused(f"query {query.name or query.id} has stopped{why}")


def _trigger(query: Any) -> float | None:
    """Seconds between the starts of two batches that a query waits for; None where it waits for none, or hides it."""
    try:
        trigger = query.streamingQuery().trigger()
        waits = trigger.getClass().getSimpleName() == "ProcessingTimeTrigger"
        return (trigger.intervalMs() / 1000 or None) if waits else None
    except Py4JError:  # nothing depends on it but how well capacity is known
        return None


def _context() -> SparkContext:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        raise Refused("there is no SparkContext in this process: run Penstock in the query's driver")
    return context
