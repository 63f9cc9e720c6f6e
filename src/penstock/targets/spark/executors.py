"""The executors of a running application, through the driver's own JVM: who they are, what they did, more, fewer.

Everything is asked of the JVM that the driver already talks to: no port is opened, and nothing is installed on workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JNetworkError

from penstock.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

MAX_TASKS = 10_000


@dataclass(frozen=True, slots=True)
class Executor:
    """A registered executor. `held` is the bytes of blocks it keeps; `leaving` that it is being drained."""

    name: str
    started_at: float
    failed: int
    held: int
    leaving: bool


@dataclass(frozen=True, slots=True)
class Task:
    """A task: who runs it, since when and for how long (None: it still runs), source records read, keeps state?

    stage: the number of its stage; description: what the stage's job is called.
    taken, given: records from the source or a shuffle, and records into the next shuffle.
    """

    executor: str
    started_at: float
    seconds: float | None
    records: int
    stateful: bool
    stage: int
    description: str | None
    taken: int
    given: int


class Executors:
    """A thin wall around the scheduler backend and the status store of one application."""

    def __init__(self, context: SparkContext) -> None:
        if context._jsc is None:
            raise Refused("the Spark session is not a classic one with a driver JVM: it cannot be scaled from here")
        self._context = context
        gateway: Any = context._gateway
        self._gateway = gateway
        self._jvm = gateway.jvm
        self._spark: Any = context._jsc.sc()
        self._backend = self._spark.schedulerBackend()
        self._store = self._spark.statusStore()
        jackson: Any = self._jvm.com.fasterxml.jackson
        self._mapper = jackson.databind.ObjectMapper()
        self._mapper.registerModule(_scala_object(jackson.module.scala, "DefaultScalaModule"))
        self._read: set[tuple[int, int]] = set()
        self._open: list[tuple[int, int]] = []
        with _reached("read the stages"):
            stages = self._stages()
            # A session may have a long history; only what ends from now on is of interest.
            self._read_to = stages.apply(0).stageId() if stages.size() > 0 else 0

    @property
    def app(self) -> str:
        return str(self._context.applicationId)

    def all(self) -> list[Executor]:
        """The registered executors, the oldest first."""
        with _reached("list the executors"):
            rows = self._rows(self._store.executorList(True))
            found = [
                Executor(
                    name=row["id"],
                    started_at=row["addTime"] / 1000,
                    failed=row["failedTasks"],
                    held=row["memoryUsed"] + row["diskUsed"],
                    leaving=not self._backend.isExecutorActive(row["id"]),
                )
                for row in rows
                if row["id"] != "driver"
            ]
        return sorted(found, key=lambda e: (e.started_at, e.name))

    def failed_tasks(self) -> int:
        """Failed tasks over the application's life, on executors that are gone as well."""
        with _reached("count failed tasks"):
            return sum(row["failedTasks"] for row in self._rows(self._store.executorList(False)))

    def why_gone(self, name: str) -> str:
        """Spark's own words for the removal of an executor."""
        with _reached("look up an executor"):
            for row in self._rows(self._store.executorList(False)):
                if row["id"] == name and row["removeReason"]:
                    return str(row["removeReason"]).splitlines()[0]
        return "no reason is known"

    def finished_tasks(self) -> list[Task]:
        """The tasks of all stages that ended since the last call."""
        with _reached("read task metrics"):
            stages = self._stages()
            tasks: list[Task] = []
            newest, self._open, ended = self._read_to, [], set()
            for i in range(stages.size()):  # newest first; everything below `_read_to` has been read
                stage = stages.apply(i)
                number = stage.stageId()
                if number < self._read_to:
                    break
                newest = max(newest, number + 1)
                if stage.status().toString() in ("ACTIVE", "PENDING"):
                    self._open.append((number, stage.attemptId()))
                elif (number, stage.attemptId()) not in self._read:
                    ended.add((number, stage.attemptId()))
                    told = stage.description()
                    description = str(told.get()) if told.isDefined() else None
                    stateful = stage.shuffleReadRecords() > 0
                    tasks += self._tasks(number, stage.attemptId(), stateful, description)
        self._read_to = min([newest, *(number for number, _ in self._open)])
        self._read = {stage for stage in self._read | ended if stage[0] >= self._read_to}
        return tasks

    def open_tasks(self) -> list[Task]:
        """The tasks, running and ended, of the stages that had not ended at the last call of `finished_tasks`.

        What Spark counts as an executor's active tasks is no measure of its load: it is noted at most every 100 ms, so
        that a task which follows on another within that time is not seen for as long as it runs.
        """
        with _reached("read the tasks of running stages"):
            return [task for stage, attempt in self._open for task in self._tasks(stage, attempt)]

    def request(self, workers: int) -> None:
        """Ask the cluster for this many in total. It never shrinks what runs."""
        with _reached("request executors"):
            nowhere = _scala_object(self._jvm.scala.collection.immutable, "Map").empty()
            if not self._spark.requestTotalExecutors(workers, 0, nowhere):
                raise Refused(f"the cluster manager did not accept a request for {workers} executors")

    def drain(self, names: Iterable[str], why: str) -> None:
        """Let these finish their tasks, hand over their blocks, and go."""
        names = list(names)
        with _reached("drain executors"):
            info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
                why, _scala_object(self._jvm.scala, "None")
            )
            pairs = self._gateway.new_array(self._jvm.scala.Tuple2, len(names))
            for i, name in enumerate(names):
                pairs[i] = self._jvm.scala.Tuple2(name, info)
            self._backend.decommissionExecutors(pairs, False, False)

    def _stages(self) -> Any:
        """Every stage that is still remembered, the newest first."""
        nothing = self._jvm.java.util.ArrayList()
        return self._store.stageList(nothing, False, False, self._gateway.new_array(self._jvm.double, 0), nothing)

    def _tasks(
        self, stage: int, attempt: int, stateful: bool = False, description: str | None = None
    ) -> Iterator[Task]:
        for row in self._rows(self._store.taskList(stage, attempt, MAX_TASKS)):
            metrics = row.get("taskMetrics") or {}
            duration = row.get("duration")
            records = metrics.get("inputMetrics", {}).get("recordsRead", 0)
            yield Task(
                executor=row["executorId"],
                started_at=row["launchTime"] / 1000,
                seconds=None if duration is None or row["status"] == "RUNNING" else duration / 1000,
                records=records,
                stateful=stateful,
                stage=stage,
                description=description,
                taken=records + metrics.get("shuffleReadMetrics", {}).get("recordsRead", 0),
                given=metrics.get("shuffleWriteMetrics", {}).get("recordsWritten", 0),
            )

    def _rows(self, value: Any) -> list[dict[str, Any]]:
        """A Scala collection of the status store in one round trip instead of one per field."""
        rows: list[dict[str, Any]] = json.loads(self._mapper.writeValueAsString(value))
        return rows


def _scala_object(package: Any, name: str) -> Any:
    return getattr(getattr(package, f"{name}$"), "MODULE$")


@contextmanager
def _reached(what: str) -> Iterator[None]:
    try:
        yield
    except Py4JNetworkError as error:
        raise Unavailable(f"could not {what}: the driver's JVM does not answer ({error})") from error
    except (Py4JError, ConnectionError) as error:
        raise Unavailable(f"could not {what}: {str(error).splitlines()[0]}") from error
