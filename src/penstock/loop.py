"""The MAPE-K loop: the only place where deciding meets doing.

Monitor is the target's `observe`, analyse and plan are a policy's `learn` and `decide`, execute is the target's
`rescale`, or `reconfigure` where operators or nodes are named and the target has it, and the knowledge is the journal.
Whatever fails, the loop goes on: it holds, and says why.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import floor
from pathlib import Path
from typing import Literal

from penstock import guards as rails
from penstock import policies
from penstock.core import Clock, Decision, Guard, Observation, Policy, Reason, Reconfigurable, Target
from penstock.errors import Refused, Unavailable, check
from penstock.journal import (
    Decided,
    Event,
    Journal,
    Record,
    Rescale,
    Sample,
    Setting,
    ShadowSetting,
    Start,
    Stop,
    encode,
    read,
)


class SystemClock:
    """The time of day, which goes on across restarts; `interrupt` ends a sleep, this one and all to come."""

    def __init__(self) -> None:
        self._interrupted = threading.Event()

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        self._interrupted.wait(max(0.0, seconds))

    def interrupt(self) -> None:
        self._interrupted.set()


@dataclass
class Pilot:
    """A policy with its guards, its rhythm and its failures. Pure: what it does depends on what it was shown.

    label: what the journal calls it; unset: the policy's name.
    """

    policy: Policy
    guards: Sequence[Guard] = ()
    label: str = ""
    _due: float | None = field(default=None, init=False, repr=False)
    _failure: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.label = self.label or self.policy.name

    def take(self, observation: Observation, role: Literal["control", "shadow"]) -> Decided | None:
        """Learn, and decide when it is time."""
        self._learn(observation)
        if not self.is_due(observation.at):
            return None
        proposed, decision = self._decide(observation)
        seen = observation if role == "control" else None
        decided = Decided(
            at=observation.at, by=self.label, role=role, proposed=proposed, decision=decision, observation=seen
        )
        try:
            encode(decided)
        except (TypeError, ValueError) as error:  # what cannot be written down cannot be answered for
            hold = _failed(observation, f"{type(error).__name__}: {error}")
            return replace(decided, proposed=observation.requested, decision=hold)
        return decided

    def is_due(self, at: float) -> bool:
        """On a grid of the policy's interval, so that late samples do not add up; anew when the clock went back."""
        interval = self.policy.period
        if self._due is None or at < self._due - interval:
            self._due = at
        if at < self._due:
            return False
        self._due += interval * (floor((at - self._due) / interval) + 1)
        return True

    def _learn(self, observation: Observation) -> None:
        try:
            self.policy.learn(observation)
            for guard in self.guards:
                guard.learn(observation)
        except Exception as error:  # a policy is anyone's code, and the job must run through the night
            self._failure = f"{type(error).__name__}: {error}"

    def _decide(self, observation: Observation) -> tuple[int | None, Decision]:
        failure, self._failure = self._failure, None
        proposed = observation.requested
        try:
            decision = _failed(observation, failure) if failure else self.policy.decide(observation)
            proposed = decision.workers
        except Exception as error:
            decision = _failed(observation, f"{type(error).__name__}: {error}")
        try:
            for guard in self.guards:
                decision = guard.check(observation, decision)
        except Exception as error:
            sentence = f"A guard failed, so nothing changes: {type(error).__name__}: {error}"
            decision = decision.but(observation.requested, Reason("guard.failed", sentence))
        return proposed, decision


@dataclass(frozen=True, slots=True)
class Step:
    """What one turn of the loop saw and did. `problem` is what kept it out of the journal, if anything did."""

    observation: Observation
    decided: Decided | None = None
    shadows: tuple[Decided, ...] = ()
    rescale: Rescale | None = None
    problem: Reason | None = None


class Loop:
    """Watches a target and rescales it as the policy and its guards decide.

    target: the job.
    policy, guards: who decides; the guards in their order.
    journal: where every step is written; unset: nowhere.
    clock: the time that the target's observations are in.
    sample_every: seconds between observations.
    dry_run: decide and write down, but rescale nothing.
    shadows: others that decide on the same observations and are never acted on.
    """

    def __init__(
        self,
        target: Target,
        policy: Policy,
        *,
        guards: Sequence[Guard] = (),
        journal: Journal | None = None,
        clock: Clock | None = None,
        sample_every: float = 1.0,
        dry_run: bool = False,
        shadows: Sequence[Pilot] = (),
    ) -> None:
        check(sample_every > 0, "sample_every", "be above 0 seconds", sample_every)
        labels = [shadow.label for shadow in shadows]
        check(len(set(labels)) == len(labels), "shadows", "have labels that differ", labels)
        self._target = target
        self._control = Pilot(policy, tuple(guards))
        self._shadows = tuple(shadows)
        self._journal = journal
        self._clock = clock or SystemClock()
        self._sample_every = sample_every
        self._dry_run = dry_run
        self._known = Observation(at=self._clock.now())  # the last that is known of requested and last_rescale_at
        self._asked: Decision | None = None  # the operators or nodes last asked for, until they are seen to run
        self._before: list[Record] = []  # to be written before the first step
        self._begun = False
        self._resumed = False

    def resume(self, path: Path | str) -> bool:
        """Take in the history of a journal, so that this loop goes on where the last one ended; False if there is none.

        Learning and deciding are repeated with the results thrown away, so windows, models and shadows come back as
        they were, and the next decision comes when it would have come.
        """
        if not Path(path).exists() or Path(path).stat().st_size == 0:
            return False
        check(not self._begun, "resume", "be called before the first step", str(path))
        fresh = copy.deepcopy((self._control, self._shadows))
        unfinished: Decided | None = None
        for record in read(path):
            if isinstance(record, Start) and not record.resumed:
                self._control, self._shadows = copy.deepcopy(fresh)
                unfinished = None
            observation = _observation(record)
            if observation is not None:
                self._note(observation)
                self._control.take(observation, "control")
                for shadow in self._shadows:
                    shadow.take(observation, "shadow")
            if isinstance(record, Decided) and record.role == "control":
                unfinished = record if self._change(record) is not None else None
            if isinstance(record, Rescale):
                unfinished = None
                self._note_rescale(record)
        if unfinished is not None:
            self._doubt(unfinished)
        self._resumed = True
        return True

    def step(self) -> Step:
        """Observe, learn, and, when it is time, decide and rescale."""
        self._begin()
        observation = self._observe()
        decided = self._control.take(observation, "control")
        problem = self._write(Sample(observation=observation) if decided is None else decided)
        rescale = None
        if decided is not None and problem is None:  # nothing is done that could not be written down first
            rescale = self._carry_out(decided)
            problem = self._write(rescale) if rescale is not None else None
        shadows = tuple(d for shadow in self._shadows if (d := shadow.take(observation, "shadow")) is not None)
        for shadow_decided in shadows:
            problem = self._write(shadow_decided) or problem
        return Step(observation, decided, shadows, rescale, problem)

    def run(self, stop: Callable[[], bool], on_step: Callable[[Step], None] | None = None) -> None:
        """Step every `sample_every` seconds until `stop` says so."""
        ending = Reason("loop.interrupted", "The loop was interrupted")
        tick = self._clock.now()
        try:
            while not stop():
                step = self.step()
                if on_step is not None:
                    on_step(step)
                now = self._clock.now()
                # On a grid; a late step skips the ticks it missed, and a clock that went back starts a new grid.
                tick += self._sample_every * (floor(max(0.0, now - tick) / self._sample_every) + 1)
                tick = min(tick, now + self._sample_every)
                self._clock.sleep(tick - now)
            ending = Reason("loop.stopped", "The loop was asked to stop")
        finally:
            self._begin()
            self._write(Stop(at=self._clock.now(), reason=ending))

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        start = Start(
            at=self._clock.now(),
            policy=_setting(self._control.policy),
            guards=tuple(_setting(guard) for guard in self._control.guards),
            shadows=tuple(
                ShadowSetting(s.label, _setting(s.policy), tuple(_setting(guard) for guard in s.guards))
                for s in self._shadows
            ),
            mode="dry-run" if self._dry_run else "live",
            resumed=self._resumed,
        )
        for record in (start, *self._before):
            if self._journal is not None:
                self._journal.write(record)  # a journal that fails at once is a setting to correct, so it may raise

    def _observe(self) -> Observation:
        try:
            observation = self._target.observe()
            encode(Sample(observation=observation))  # what cannot be written down, as a NaN, is no measurement
        except Exception as error:
            text = str(error) if isinstance(error, Unavailable) else f"{type(error).__name__}: {error}"
            gone = Reason("metrics.unavailable", f"The job cannot be observed: {text}", {"error": text})
            return replace(self._known, at=self._clock.now(), events=(gone,))
        if observation.last_rescale_at is None:  # the target may have forgotten; the journal has not
            observation = replace(observation, last_rescale_at=self._known.last_rescale_at)
        self._note(observation)
        return observation

    def _carry_out(self, decided: Decided) -> Rescale | None:
        wanted = self._change(decided)
        if wanted is None or wanted.workers is None or decided.observation is None:
            return None
        before, after, details = decided.observation.requested, wanted.workers, _details(wanted)
        outcome: Literal["done", "refused", "unavailable", "dry-run"] = "dry-run"
        sentence = f"Dry run: would go from {before} to {after} workers{details}"
        if not self._dry_run:
            try:
                if details and isinstance(self._target, Reconfigurable):
                    self._target.reconfigure(wanted)
                else:
                    self._target.rescale(after)
                outcome, sentence = "done", f"Asked for {after} workers instead of {before}{details}"
            except Refused as error:
                outcome, sentence = "refused", f"The target refused {after} workers{details}: {error}"
            except Exception as error:
                outcome, sentence = "unavailable", f"{after} workers{details} could not be asked for: {error}"
        rescale = Rescale(
            at=self._clock.now(),
            before=before,
            after=after,
            outcome=outcome,
            sentence=sentence,
            parallelism=wanted.parallelism,
            nodes=wanted.nodes,
        )
        self._note_rescale(rescale)
        return rescale

    def _change(self, decided: Decided) -> Decision | None:
        """What to ask for, if it is anything else than is there or on its way, in the words the target understands."""
        if decided.observation is None:
            return None
        decision = decided.decision if isinstance(self._target, Reconfigurable) else decided.decision.plain()
        return decision if decision.is_change(decided.observation, self._asked) else None

    def _note(self, observation: Observation) -> None:
        requested = self._known.requested if observation.requested is None else observation.requested
        last = self._known.last_rescale_at if observation.last_rescale_at is None else observation.last_rescale_at
        self._known = Observation(observation.at, requested=requested, last_rescale_at=last)
        if self._asked is not None and self._asked.is_placed(observation):
            self._asked = None

    def _note_rescale(self, rescale: Rescale) -> None:
        if rescale.outcome == "done":
            self._known = replace(self._known, requested=rescale.after, last_rescale_at=rescale.at)
            why = Reason("loop.asked", rescale.sentence)
            self._asked = Decision(rescale.after, (why,), parallelism=rescale.parallelism, nodes=rescale.nodes)

    def _doubt(self, decided: Decided) -> None:
        """A kill fell between a decision and its outcome. It may have happened, so cooldowns count from it."""
        sentence = (
            f"The last loop decided on {decided.decision.workers} workers and ended before it noted whether they were "
            "asked for; the target's own count decides, and nothing is asked for again until the next decision"
        )
        reason = Reason("loop.unfinished", sentence, {"workers": decided.decision.workers, "decided_at": decided.at})
        self._before.append(Event(at=self._clock.now(), reason=reason))
        self._known = replace(self._known, last_rescale_at=decided.at)

    def _write(self, record: Record) -> Reason | None:
        if self._journal is None:
            return None
        try:
            self._journal.write(record)
        except Unavailable as error:
            return Reason("journal.unavailable", f"Not written down: {error}", {"error": str(error)})
        return None


def replay(records: Iterable[Record], policy: Policy, guards: Sequence[Guard] = ()) -> Iterator[Decided]:
    """What `policy` decides on recorded observations, as they were: nothing that it decides changes what comes next.

    With the policy and guards that wrote the journal, these are its decisions, byte for byte.
    """
    fresh = Pilot(policy, tuple(guards))
    pilot = copy.deepcopy(fresh)
    for record in records:
        if isinstance(record, Start) and not record.resumed:
            pilot = copy.deepcopy(fresh)
        observation = _observation(record)
        decided = None if observation is None else pilot.take(observation, "control")
        if decided is not None:
            yield decided


def policy_of(start: Start) -> Policy:
    """The policy that was in control."""
    return policies.make(start.policy.name, **start.policy.config)


def guards_of(start: Start) -> tuple[Guard, ...]:
    """The guards around it, in their order."""
    return tuple(rails.make(guard.name, **guard.config) for guard in start.guards)


def _observation(record: Record) -> Observation | None:
    return record.observation if isinstance(record, Sample | Decided) else None


def _details(decision: Decision) -> str:
    """The operators and nodes that a decision names, in words."""
    instances = ", ".join(f"{count} of {name}" for name, count in decision.parallelism.items())
    nodes = f"on {', '.join(decision.nodes)}" if decision.nodes else ""
    named = " ".join(part for part in (instances, nodes) if part)
    return f" ({named})" if named else ""


def _failed(observation: Observation, error: str) -> Decision:
    sentence = f"The policy failed, so nothing changes: {error}"
    return Decision.hold(observation.requested, Reason("policy.failed", sentence, {"error": error}))


def _setting(thing: Policy | Guard) -> Setting:
    """Name and configuration; a guard of somebody's own may have neither."""
    config = getattr(thing, "config", None)
    return Setting(getattr(thing, "name", type(thing).__name__), config() if callable(config) else {})
