"""What to believe of a measurement: bad values become unknown, and an interval of them becomes a doubt.

Metrics go missing, are NaN, negative or frozen, start again from nothing with a restarted counter, or carry a clock
that steps back. A value that cannot be is unknown; whether the rest is good enough to take workers away on is for
`Trust` to say. Nothing here keeps from scaling up: too many workers cost money, too few cost the job.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isfinite

from penstock.core import Batch, Fact, Observation, Reason, Worker

FROZEN = 5  # as many equal samples in a row are no coincidence for measured floats
MISSING = 0.2  # more than this share of an interval's samples missing is not a whole picture
MOST = 1e12  # records/s, or records, or seconds: nothing that is scaled has more
LEAST = 1e-9  # of the same: less is nothing, and nothing can be divided by it
JUMP = 10.0  # a load so many times that of the sample before is a surge or a broken counter: nobody knows yet


@dataclass(frozen=True, slots=True)
class Checked:
    """An observation without what cannot be, and what was left out of it."""

    observation: Observation
    problems: tuple[Reason, ...] = ()


def checked(observation: Observation) -> Checked | None:
    """The believable part of an observation; None if it does not even say when it was.

    >>> from penstock.core import Observation
    >>> seen = checked(Observation(at=1.0, input_rate=float("nan"), backlog=-5.0))
    >>> seen.observation.input_rate, seen.observation.backlog, [p.code for p in seen.problems]
    (None, None, ['metrics.impossible'])
    """
    o = observation
    if not _number(o.at) or abs(o.at) > MOST:
        return None
    wrong: list[str] = []

    def rate(name: str, value: float | None) -> float | None:
        if value is None or (_number(value) and 0 <= value <= MOST):
            return value if value is None or value >= LEAST else 0.0
        wrong.append(name)
        return None

    def count(name: str, value: int | None) -> int | None:
        if value is None or (isinstance(value, int) and value >= 0):
            return value
        wrong.append(name)
        return None

    def time(name: str, value: float | None) -> float | None:
        if value is None or (_number(value) and abs(value) <= MOST):
            return value
        wrong.append(name)
        return None

    def worker(w: Worker) -> Worker:
        if _plain(w):
            return w
        cpu = rate(f"cpu of {w.name}", w.cpu)
        return Worker(
            w.name,
            None if cpu is None else min(cpu, 1.0),
            rate(f"rate of {w.name}", w.rate),
            time(f"start of {w.name}", w.started_at),
            time(f"readiness of {w.name}", w.ready_at),
        )

    kept = replace(
        o,
        workers=count("workers", o.workers),
        requested=count("requested", o.requested),
        uptime=rate("uptime", o.uptime),
        last_rescale_at=time("last_rescale_at", o.last_rescale_at),
        input_rate=rate("input rate", o.input_rate),
        processed_rate=rate("processed rate", o.processed_rate),
        backlog=rate("backlog", o.backlog),
        latency=rate("latency", o.latency),
        per_worker=tuple(worker(w) for w in o.per_worker),
        batch=o.batch if o.batch is None or _sound(o.batch) else None,
    )
    if not wrong:
        return Checked(kept)
    names = ", ".join(dict.fromkeys(wrong))
    sentence = f"Not numbers that can be: {names}; taken as unknown"
    return Checked(kept, (Reason("metrics.impossible", sentence, {"fields": names}),))


def _number(value: float) -> bool:
    return isinstance(value, float | int) and isfinite(value)


def _plain(w: Worker) -> bool:
    """Nothing about it is in doubt: the way of nearly all, and by far the quickest."""
    return (
        isinstance(w.cpu, float)
        and LEAST <= w.cpu <= 1.0
        and isinstance(w.rate, float)
        and LEAST <= w.rate <= MOST
        and isinstance(w.started_at, float)
        and abs(w.started_at) <= MOST
        and isinstance(w.ready_at, float)
        and abs(w.ready_at) <= MOST
    )


def _sound(batch: Batch) -> bool:
    limits = [value for value in (batch.limit, batch.trigger) if value is not None]
    stages = [value for stage in batch.stages for value in (stage.seconds, stage.records)]
    known = (batch.ended_at, batch.seconds, batch.records, *limits, *stages)
    return all(_number(value) and 0 <= value <= MOST for value in known)


@dataclass(slots=True)
class Trust:
    """How far the samples since the last decision can be believed; `doubts` says why not to scale down on them."""

    _samples: int = 0
    _without: dict[str, int] = field(default_factory=dict)
    _problems: dict[str, Reason] = field(default_factory=dict)
    _same: int = 0
    _last: Observation | None = None

    def learn(self, seen: Checked) -> None:
        """Take in a sample."""
        o, last = seen.observation, self._last
        self._samples += 1
        for problem in seen.problems:
            self._problems[problem.code] = problem
        lacking = {
            "input rate": o.input_rate is None,
            "backlog": o.backlog is None,
            "cpu": not o.per_worker or any(w.cpu is None for w in o.per_worker),
            "workers": o.workers is None,
        }
        for name, gone in lacking.items():
            self._without[name] = self._without.get(name, 0) + gone
        if last is not None:
            self._compare(o, last)
        self._last = o

    def _compare(self, o: Observation, last: Observation) -> None:
        if o.at < last.at:
            sentence = f"The clock stepped back by {last.at - o.at:,.0f} s"
            self._problems["clock.stepped_back"] = Reason("clock.stepped_back", sentence, {"seconds": last.at - o.at})
        if o.uptime is not None and last.uptime is not None and o.uptime < last.uptime:
            self._problems["job.restarted"] = Reason("job.restarted", f"The job restarted {o.uptime:.0f} s ago")
        if o.input_rate is not None and last.input_rate and not 1 / JUMP <= o.input_rate / last.input_rate <= JUMP:
            sentence = f"The load jumped from {last.input_rate:,.0f} to {o.input_rate:,.0f} records/s at once"
            self._problems["load.jumped"] = Reason("load.jumped", sentence, {"rate": o.input_rate})
        # Only when everything stands still: an idle job has a rate of 0, and a steady load may be steady.
        measured = _measured(o)
        still = measured == _measured(last) and any(measured) and o.at != last.at
        self._same = self._same + 1 if still else 0

    def doubts(self) -> tuple[Reason, ...]:
        """What speaks against scaling down on what was seen since `renew`."""
        if self._samples == 0:
            return (Reason("metrics.none", "Nothing was observed since the last decision"),)
        found = list(self._problems.values())
        for name, gone in self._without.items():
            if gone > MISSING * self._samples:
                facts: dict[str, Fact] = {"field": name, "missing": gone, "samples": self._samples}
                sentence = f"No sample of {name} in {gone} of the last {self._samples} observations"
                found.append(Reason("metrics.missing", sentence, facts))
        if self._same >= FROZEN:
            sentence = f"All measurements were the same {self._same + 1} times in a row: they seem frozen"
            found.append(Reason("metrics.frozen", sentence, {"samples": self._same + 1}))
        return tuple(found)

    def renew(self) -> None:
        """Begin the next interval; what is standing still goes on doing so."""
        self._samples = 0
        self._without.clear()
        self._problems.clear()


def _measured(o: Observation) -> tuple[float, ...]:
    rates = (o.input_rate, o.processed_rate, o.backlog, *(w.cpu for w in o.per_worker), *(w.rate for w in o.per_worker))
    return tuple(value or 0.0 for value in rates)
