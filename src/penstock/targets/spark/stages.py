"""The stages of a query's batches as operators, as DS2 sees dataflows whose operators share their workers. Pure.

A batch runs its stages one after another on the same executors, so each has a share of the workers' time, and these
shares add up (DS2, sec. 4.3). The stages of every batch get new numbers; what stays is their place in it. A stage that
reads no record is none of them: it makes ready a table that the batch is joined with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.core import Operator, Stage
from penstock.targets.spark.progress import Counter

_BATCH = re.compile(r"runId = (\S+?)(?:<br/>|\s|$).*?batch = (\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Work:
    """What one task did for a stage of a batch: seconds on a slot, records in and out, and whose slot it was."""

    batch: int
    stage: int
    seconds: float
    records_in: int
    records_out: int
    worker: str = ""


def batch_of(description: str | None, run: str) -> int | None:
    """The batch that a stage belongs to, by the description that Structured Streaming gives its jobs.

    >>> batch_of("counts<br/>id = a-1<br/>runId = b-2<br/>batch = 13", run="b-2")
    13
    >>> batch_of("counts<br/>id = a-1<br/>runId = other<br/>batch = 13", run="b-2") is batch_of(None, "b-2") is None
    True
    """
    found = _BATCH.search(description or "")
    return int(found.group(2)) if found and found.group(1) == run else None


def stage_of(works: Iterable[Work], slots: int) -> Stage:
    """A stage of a batch from its tasks, on workers with so many slots each: all wait for the busiest.

    >>> stage_of([Work(7, 0, 1.0, 500, 50, "a"), Work(7, 0, 1.5, 600, 60, "b"), Work(7, 0, 1.0, 400, 40, "a")], slots=1)
    Stage(seconds=2.0, records=1500)
    """
    seconds: dict[str, float] = {}
    records = 0
    for work in works:
        seconds[work.worker] = seconds.get(work.worker, 0.0) + work.seconds
        records += work.records_in
    return Stage(max(seconds.values()) / slots, records)


class _Place:
    """The totals of one place in the batch, growing: slot seconds, records in, records out."""

    def __init__(self, window: float) -> None:
        self._totals = [0.0, 0.0, 0.0]
        self._counters = [Counter(window) for _ in self._totals]

    def add(self, works: Iterable[Work]) -> None:
        for work in works:
            for i, amount in enumerate((work.seconds, work.records_in, work.records_out)):
                self._totals[i] += amount

    def saw(self, at: float) -> None:
        for counter, total in zip(self._counters, self._totals, strict=True):
            counter.saw(at, total)

    def rates(self) -> tuple[float, ...] | None:
        """Each per second; None until two batches have ended."""
        known = [rate for counter in self._counters if (rate := counter.rate()) is not None]
        return tuple(known) if len(known) == len(self._counters) else None


@dataclass(slots=True)
class Stages:
    """Rates and busy shares by place in the batch, over the batches that ended within a window.

    window: seconds that they are averaged over.
    names: what the stages are called, where somebody knows; else "stage 1", "stage 2", …

    >>> stages = Stages(window=10)
    >>> for batch, at in enumerate((0.0, 5.0, 10.0)):
    ...     stages.add([Work(batch, 2 * batch, 1.0, 500, 50), Work(batch, 2 * batch + 1, 0.5, 50, 0)])
    ...     stages.ended(batch, at)
    >>> for o in stages.operators(workers=1, slots=1, backlog=None):
    ...     print(o.name, o.rate_in, o.rate_out, o.busy, o.downstream)
    stage 1 100.0 10.0 0.2 ('stage 2',)
    stage 2 10.0 0.0 0.1 ()
    """

    window: float
    names: tuple[str, ...] = ()
    _open: list[Work] = field(default_factory=list)
    _latest: list[list[Work]] = field(default_factory=list)
    _places: list[_Place] = field(default_factory=list)

    def add(self, works: Iterable[Work]) -> None:
        """Take in what tasks did; it counts once its batch has ended."""
        self._open.extend(works)

    def ended(self, batch: int, at: float) -> None:
        """All up to this batch are done."""
        done: dict[int, dict[int, list[Work]]] = {}
        for work in self._open:
            if work.batch <= batch:
                done.setdefault(work.batch, {}).setdefault(work.stage, []).append(work)
        self._open = [work for work in self._open if work.batch > batch]
        self._latest = []
        for number, stages in done.items():
            reading = [works for _, works in sorted(stages.items()) if any(work.records_in for work in works)]
            for place, works in enumerate(reading):
                if place == len(self._places):
                    self._places.append(_Place(self.window))
                self._places[place].add(works)
            if number == batch:
                self._latest = reading
        for each in self._places:
            each.saw(at)

    def latest(self, slots: int) -> tuple[Stage, ...]:
        """The stages of the batch that ended last, on workers with so many slots each."""
        return tuple(stage_of(works, slots) for works in self._latest)

    def operators(self, workers: int, slots: int, backlog: float | None) -> tuple[Operator, ...]:
        """The stages as a chain of operators that share `workers` with so many slots each; none before it is known."""
        rates = [known for place in self._places if (known := place.rates()) is not None]
        if workers < 1 or not rates or len(rates) < len(self._places):
            return ()
        names = self._called(len(rates))
        busy = [min(1.0, seconds / (workers * slots)) for seconds, _, _ in rates]
        idle = max(0.0, 1.0 - sum(busy))
        return tuple(
            Operator(
                name=names[i],
                parallelism=workers,
                rate_in=taken,
                rate_out=given,
                busy=busy[i],
                idle=idle,
                queue=backlog if i == 0 else None,
                downstream=tuple(names[i + 1 : i + 2]),
                shared=True,
            )
            for i, (_, taken, given) in enumerate(rates)
        )

    def _called(self, count: int) -> Sequence[str]:
        known = len(self.names) == count
        return self.names if known else [f"stage {i + 1}" for i in range(count)]
