"""Safety rails: small wrappers around an untouched policy. Each may correct a decision, and says why.

Order matters, since each sees what the one before made of the decision. `default` gives the order to keep:

    Stabilisation, StepLimit, Cooldown   shape the change the policy wants
    HoldWhenBlind                        takes it back when too little is known
    Bounds                               has the last word, so that the result is always allowed

The promise of HoldWhenBlind: a metrics outage, a restart or a missing sample never scales a job down. Only bounds do
that blind, because they are the user's word and need no measurement.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

from penstock.core import Decision, Guard, Observation, Reason
from penstock.errors import check
from penstock.models.hpa import Moment, since, stabilise
from penstock.settings import build


@dataclass
class Rail:
    """What the guards here share; its fields are its configuration, as with a policy. Others need only be a `Guard`."""

    name: ClassVar[str]

    def learn(self, observation: Observation) -> None:
        """Most rails look only at the moment."""

    def check(self, observation: Observation, decision: Decision) -> Decision:
        """The decision, corrected where the rail says so. A decision for no number, or from none, is left alone."""
        if decision.workers is None or observation.requested is None:
            return decision
        return self.correct(observation, decision, observation.requested, decision.workers)

    def correct(self, observation: Observation, decision: Decision, now: int, wanted: int) -> Decision:
        raise NotImplementedError

    def config(self) -> dict[str, object]:
        """The settings that make an equal guard again."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}


@dataclass
class Bounds(Rail):
    """Never fewer, never more; also when nothing was to change but what runs is outside.

    min_workers: the fewest workers to ask for.
    max_workers: the most workers to ask for.
    """

    name: ClassVar[str] = "bounds"
    min_workers: int = 1
    max_workers: int = 12

    def __post_init__(self) -> None:
        check(self.min_workers >= 1, "min_workers", "be at least 1", self.min_workers)
        rule = f"be at least min_workers ({self.min_workers})"
        check(self.max_workers >= self.min_workers, "max_workers", rule, self.max_workers)

    def check(self, observation: Observation, decision: Decision) -> Decision:  # noqa: ARG002 - bounds need no sight
        wanted = decision.workers
        if wanted is not None and wanted > self.max_workers:
            sentence = f"At most {self.max_workers} workers are allowed, not {wanted}"
            return decision.but(self.max_workers, Reason("bounds.max", sentence, {"max_workers": self.max_workers}))
        if wanted is not None and wanted < self.min_workers:
            sentence = f"At least {self.min_workers} workers are required, not {wanted}"
            return decision.but(self.min_workers, Reason("bounds.min", sentence, {"min_workers": self.min_workers}))
        return decision


@dataclass
class Cooldown(Rail):
    """After a rescale, none in this direction for a while.

    up: seconds after any rescale without scaling up.
    down: seconds after any rescale without scaling down.
    """

    name: ClassVar[str] = "cooldown"
    up: float = 0.0
    down: float = 0.0

    def __post_init__(self) -> None:
        check(self.up >= 0, "up", "be 0 seconds or more", self.up)
        check(self.down >= 0, "down", "be 0 seconds or more", self.down)

    def correct(self, observation: Observation, decision: Decision, now: int, wanted: int) -> Decision:
        if observation.last_rescale_at is None or not decision.is_change(observation):
            return decision
        # Other operators or nodes at the same number are for the sake of one that lacks something: the way up.
        way, rest = ("up", self.up) if wanted >= now else ("down", self.down)
        passed = observation.at - observation.last_rescale_at
        if passed >= rest:
            return decision
        what = f"{way} to {wanted}" if wanted != now else "to other operators or nodes"
        sentence = f"The last rescale was {passed:.0f} s ago: not {what} before {rest:g} s have passed"
        return decision.but(now, Reason(f"cooldown.{way}", sentence, {"passed": passed, "cooldown": rest})).plain()


@dataclass
class Stabilisation(Rail):
    """Up to no more than the lowest, down to no less than the highest wish of its window, as Kubernetes does it.

    up: seconds over which the lowest wish counts on the way up.
    down: seconds over which the highest wish counts on the way down.
    """

    name: ClassVar[str] = "stabilisation"
    up: float = 0.0
    down: float = 300.0
    _wishes: tuple[Moment, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        check(self.up >= 0, "up", "be 0 seconds or more", self.up)
        check(self.down >= 0, "down", "be 0 seconds or more", self.down)

    def correct(self, observation: Observation, decision: Decision, now: int, wanted: int) -> Decision:
        wishes = self._wishes or (Moment(observation.at, now),)  # what runs first counts as wished for
        workers = stabilise(now, wanted, wishes, observation.at, up_window=self.up, down_window=self.down)
        self._wishes = (*since(wishes, observation.at - max(self.up, self.down)), Moment(observation.at, wanted))
        if workers == wanted:
            return decision
        way, best, window = ("up", "lowest", self.up) if wanted >= now else ("down", "highest", self.down)
        sentence = f"{workers}, the {best} wish of the last {window:g} s, comes before {wanted}"
        return decision.but(workers, Reason(f"stabilisation.{way}", sentence, {"window": window, "wanted": wanted}))


@dataclass
class StepLimit(Rail):
    """Not too many at once.

    up: the most workers to add in one decision; unset: any number.
    down: the most workers to remove in one decision; unset: any number.
    """

    name: ClassVar[str] = "step_limit"
    up: int | None = None
    down: int | None = None

    def __post_init__(self) -> None:
        check(self.up is None or self.up >= 1, "up", "be at least 1, or unset", self.up)
        check(self.down is None or self.down >= 1, "down", "be at least 1, or unset", self.down)

    def correct(self, observation: Observation, decision: Decision, now: int, wanted: int) -> Decision:  # noqa: ARG002
        way, most = ("up", self.up) if wanted > now else ("down", self.down)
        if most is None or abs(wanted - now) <= most:
            return decision
        workers = now + most if way == "up" else now - most
        sentence = f"{workers} instead of {wanted}: at most {most} {way} in one decision"
        return decision.but(workers, Reason(f"step_limit.{way}", sentence, {"wanted": wanted, "most": most}))


@dataclass
class HoldWhenBlind(Rail):
    """No change without sight, and none downward while sight is doubtful.

    Doubtful is: a measure that was there before is gone (input rate, backlog, or the CPU of a worker), a worker was
    lost and is not back, the job or the view of it has been up for less than `settle` seconds. Latency and the last
    batch are not asked for: an idle job has neither, and idle is when scaling down pays.

    settle: seconds of unbroken sight, and of uptime, before scaling down.
    patience: seconds after which a lost worker is no longer waited for.
    """

    name: ClassVar[str] = "hold_when_blind"
    settle: float = 30.0
    patience: float = 600.0
    _measured: frozenset[str] = field(default=frozenset(), init=False, repr=False)
    _sight_since: float | None = field(default=None, init=False, repr=False)
    _last: Observation | None = field(default=None, init=False, repr=False)
    _lost_at: float | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check(self.settle >= 0, "settle", "be 0 seconds or more", self.settle)
        check(self.patience >= 0, "patience", "be 0 seconds or more", self.patience)

    def learn(self, observation: Observation) -> None:
        last, self._last = self._last, observation
        self._measured |= _measures(observation)
        if observation.blind:
            self._sight_since = None
            return
        if last is None or self._sight_since is None or observation.at - last.at > max(self.settle, 1.0):
            self._sight_since = observation.at  # a long gap is an outage too: nobody looked
        workers, requested = observation.workers, observation.requested
        if workers is None or requested is None:
            return
        if workers >= requested:
            self._lost_at = None
        elif last is not None and last.workers is not None and workers < last.workers and requested == last.requested:
            self._lost_at = observation.at

    def check(self, observation: Observation, decision: Decision) -> Decision:
        requested, wanted = observation.requested, decision.workers
        if requested is None:
            if wanted is None:
                return decision
            return decision.but(
                None, Reason("blind.requested", "How many workers were asked for is not known: no change")
            )
        if wanted is None or not decision.is_change(observation):
            return decision
        if observation.blind:
            reason = Reason("blind.metrics", f"Nothing is measured now: {requested} workers stay")
            return decision.but(requested, reason).plain()
        doubt = self._doubt(observation, requested) if wanted < requested else None
        return decision if doubt is None else decision.but(requested, doubt)

    def _doubt(self, observation: Observation, requested: int) -> Reason | None:
        at, workers = observation.at, observation.workers
        if workers is None:
            return Reason("blind.workers", "How many workers run is not known: not down")
        gone = self._measured - _measures(observation)
        if gone:
            names = ", ".join(sorted(gone))
            return Reason("blind.missing", f"No sample of {names} now: not down on half a picture", {"missing": names})
        if self._lost_at is not None and workers < requested and at - self._lost_at < self.patience:
            sentence = f"{workers} of {requested} workers run since one was lost: not down before it is back"
            return Reason("blind.worker_lost", sentence, {"workers": workers, "lost_for": at - self._lost_at})
        if observation.uptime is not None and observation.uptime < self.settle:
            sentence = f"The job is up for only {observation.uptime:.0f} s: not down before {self.settle:g} s"
            return Reason("blind.restarted", sentence, {"uptime": observation.uptime, "settle": self.settle})
        sight = 0.0 if self._sight_since is None else at - self._sight_since
        if sight < self.settle:
            sentence = f"Metrics are here for only {sight:.0f} s: not down before {self.settle:g} s"
            return Reason("blind.settling", sentence, {"sight": sight, "settle": self.settle})
        return None


def _measures(observation: Observation) -> frozenset[str]:
    """What is measured now; "cpu" only if every worker says it, so that one silent worker counts as missing."""
    known = {"input rate": observation.input_rate, "backlog": observation.backlog}
    measured = {name for name, value in known.items() if value is not None}
    if observation.per_worker and all(worker.cpu is not None for worker in observation.per_worker):
        measured.add("cpu")
    return frozenset(measured)


GUARDS: dict[str, type[Rail]] = {
    cls.name: cls for cls in sorted((Bounds, Cooldown, HoldWhenBlind, Stabilisation, StepLimit), key=lambda c: c.name)
}


def make(name: str, **config: object) -> Rail:
    """The guard called `name`, with these settings.

    >>> make("bounds", max_workers=4)
    Bounds(min_workers=1, max_workers=4)
    """
    return build("guard", GUARDS, name, config)


def default(
    min_workers: int, max_workers: int, *, settle: float = 30.0, cooldown_up: float = 0.0, cooldown_down: float = 0.0
) -> tuple[Guard, ...]:
    """The standard chain; a policy that damps itself, as most do, needs no more."""
    cooldown = (Cooldown(cooldown_up, cooldown_down),) if cooldown_up or cooldown_down else ()
    return (*cooldown, HoldWhenBlind(settle), Bounds(min_workers, max_workers))
