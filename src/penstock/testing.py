"""For the tests of policies and targets, ours and anyone's: two contracts, a clock that is turned by hand, a toy job.

class TestMine(PolicyContract):
    def make(self) -> Policy:
        return Mine(threshold=0.5)
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import isfinite, sin
from typing import Any

import pytest

from penstock.core import Clock, Decision, Observation, Policy, Reason, Target, Worker
from penstock.errors import ConfigError, Refused, Unavailable
from penstock.loop import Pilot
from penstock.policies import POLICIES, make

CODE = re.compile(r"^[a-z_]+(\.[a-z_]+)+$")


class FakeClock:
    """Time that passes only when somebody sleeps.

    >>> clock = FakeClock(100); clock.sleep(5); clock.now()
    105.0
    """

    def __init__(self, at: float = 0.0) -> None:
        self._at = float(at)

    def now(self) -> float:
        return self._at

    def sleep(self, seconds: float) -> None:
        self._at += max(0.0, seconds)


class FakeTarget:
    """A toy job, for tests of loops and policies only: deterministic, in memory, and no model of any real engine.

    Every worker processes up to `capacity` records/s of `rate(t)`; what is left becomes backlog. A worker comes up
    `startup` seconds after it was asked for, and is ready at once. Set `down` to make the job unobservable, `refusal`
    to have rescales refused, and call `lose` to kill a worker, which comes back after `startup` seconds.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        workers: int = 2,
        rate: Callable[[float], float] = lambda _: 1000.0,
        capacity: float = 1000.0,
        startup: float = 0.0,
    ) -> None:
        self._clock = clock
        self._rate, self._capacity, self._startup = rate, capacity, startup
        self._born = self._seen = clock.now()
        self._requested = workers
        self._up_at = [clock.now()] * workers
        self._backlog = 0.0
        self._last_rescale_at: float | None = None
        self.down: str | None = None
        self.refusal: str | None = None
        self.rescales: list[int] = []

    def observe(self) -> Observation:
        if self.down is not None:
            raise Unavailable(self.down)
        at = self._clock.now()
        running = [up for up in self._up_at if up <= at]
        load = self._rate(at - self._born)
        processed = min(load + self._backlog, len(running) * self._capacity)
        self._backlog = max(0.0, self._backlog + (load - processed) * (at - self._seen))
        self._seen = at
        cpu = processed / (len(running) * self._capacity) if running else 0.0
        return Observation(
            at=at,
            workers=len(running),
            requested=self._requested,
            uptime=at - self._born,
            last_rescale_at=self._last_rescale_at,
            input_rate=load,
            processed_rate=processed,
            backlog=self._backlog,
            per_worker=tuple(
                Worker(f"worker-{i}", cpu=cpu, rate=processed / len(running), started_at=up, ready_at=up)
                for i, up in enumerate(running)
            ),
        )

    def rescale(self, workers: int) -> None:
        if workers < 1:
            raise Refused(f"workers must be at least 1, got {workers}")
        if self.refusal is not None:
            raise Refused(self.refusal)
        if workers == self._requested:
            return
        self._requested, self._last_rescale_at = workers, self._clock.now()
        self._up_at = self._up_at[:workers] + [self._clock.now() + self._startup] * (workers - len(self._up_at))
        self.rescales.append(workers)

    def lose(self) -> None:
        self._up_at[-1] = self._clock.now() + self._startup


def sample(at: float, cpus: float | tuple[float | None, ...] = (), **known: object) -> Observation:
    """An observation of ready workers with this CPU, one or all; other fields by name."""
    per_worker = tuple(
        Worker(f"worker-{i}", cpu=cpu, started_at=0.0, ready_at=0.0)
        for i, cpu in enumerate(cpus if isinstance(cpus, tuple) else (cpus,))
    )
    base = Observation(at=at, workers=len(per_worker), requested=len(per_worker), per_worker=per_worker)
    return replace(base, **known)  # type: ignore[arg-type]


def history(
    requested: int = 4, start: float = 1_000_000, seconds: float = 1800, every: float = 5.0
) -> Iterator[Observation]:
    """Half an hour of a job under a swinging load, with what goes wrong: silent and cold workers, gaps, an outage."""
    for i in range(int(seconds / every)):
        at = start + i * every
        load = 2000 + 1800 * sin(i / 40)
        if i % 60 in (20, 21, 22, 23):
            gone = Reason("metrics.unavailable", "The job cannot be observed: test")
            yield Observation(at=at, requested=requested, events=(gone,))
            continue
        cpu = min(1.0, load / (1000 * requested))
        workers = [Worker(f"w{n}", cpu, load / requested, at - 500, at - 490) for n in range(requested)]
        if i % 17 == 0:
            workers[0] = replace(workers[0], cpu=None)
        if i % 23 < 3:
            workers[-1] = replace(workers[-1], started_at=at - 2, ready_at=None)
        yield Observation(
            at=at,
            workers=requested,
            requested=requested,
            uptime=i * every,
            input_rate=None if i % 29 == 0 else load,
            processed_rate=min(load, 1000.0 * requested),
            backlog=None if i % 31 == 0 else max(0.0, load - 1000 * requested) * every,
            latency=None if i % 37 == 0 else 1.0 + max(0.0, load / 1000 - requested),
            per_worker=tuple(workers),
        )


class PolicyContract:
    """What every policy has to keep. Subclass it in a test file and give `make`."""

    def make(self) -> Policy:
        """A policy that has learned nothing yet."""
        raise NotImplementedError

    def history(self) -> list[Observation]:
        """What it is shown; override it for a policy that needs inputs which the usual history does not have."""
        policy = self.make()
        few, many = policy.min_workers, policy.max_workers
        return [*history(few, start=1_000_000), *history(many, start=1_002_000), *history(few, start=1_004_000)]

    def test_is_deterministic(self) -> None:
        assert _run(self.make(), self.history()) == _run(self.make(), self.history())

    def test_is_replayable(self) -> None:
        """A copy that is shown the first half, as after a restart, decides the second half alike."""
        observations = self.history()
        half = len(observations) // 2
        whole = _run(self.make(), observations)
        policy = self.make()
        first = _run(policy, observations[:half])
        assert first + _run(copy.deepcopy(policy), observations[half:], before=observations[:half]) == whole

    def test_holds_when_blind(self) -> None:
        policy = self.make()
        for observation in self.history():
            policy.learn(observation)
            if observation.blind:
                assert policy.decide(observation).workers == observation.requested, observation
        nothing = Observation(at=2_000_000.0)
        policy.learn(nothing)
        assert policy.decide(nothing).workers is None

    def test_stays_in_bounds(self) -> None:
        policy = self.make()
        for decision in _run(policy, self.history()):
            assert decision.workers is not None
            assert policy.min_workers <= decision.workers <= policy.max_workers, decision

    def test_every_reason_renders(self) -> None:
        for decision in _run(self.make(), self.history()):
            for reason in (*decision.reasons, *(option.reason for option in decision.options)):
                assert CODE.match(reason.code), reason
                assert reason.sentence.strip() == reason.sentence != "", reason
                assert reason.code in str(reason)
                assert json.loads(json.dumps(dict(reason.facts), allow_nan=False)) == dict(reason.facts)
                assert all(isfinite(v) for v in reason.facts.values() if isinstance(v, float)), reason

    def test_leaves_the_observation_alone(self) -> None:
        policy, observations = self.make(), self.history()
        before = copy.deepcopy(observations)
        _run(policy, observations)
        assert observations == before

    def test_config_makes_an_equal_policy(self) -> None:
        policy = self.make()
        config = json.loads(json.dumps(policy.config()))
        again = make(policy.name, **config) if policy.name in POLICIES else _again(policy)
        assert type(again) is type(policy)
        assert again.config() == policy.config()
        assert _run(again, self.history()) == _run(policy, self.history())


def eventually(condition: Callable[[], bool], what: str, patience: float = 240.0) -> None:
    """Wait for what must happen on a real target, however busy the machine; patience only ends a hopeless wait."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s for {what}"
        time.sleep(0.25)


class TargetContract:
    """What every target has to keep. Subclass it in a test file and give `make` and, if time is real, `wait`."""

    patience = 60  # how many waits a rescale may need to show

    def make(self) -> Target:
        """A running job, observable, with at least one worker."""
        raise NotImplementedError

    def wait(self) -> None:
        """Let a little time pass for the target of this test."""
        raise NotImplementedError

    def test_observations_move_on(self) -> None:
        target = self.make()
        first = target.observe()
        self.wait()
        second = target.observe()
        assert isinstance(first, Observation)
        assert second.at > first.at
        assert second.requested is not None, "without it no rescale is ever made"

    def test_rescale_is_seen_and_idempotent(self) -> None:
        target = self.make()
        workers = (target.observe().requested or 1) + 1
        target.rescale(workers)
        target.rescale(workers)
        for _ in range(self.patience):
            if target.observe().requested == workers:
                break
            self.wait()
        seen = target.observe()
        assert seen.requested == workers
        target.rescale(workers)
        self.wait()
        assert target.observe().last_rescale_at == seen.last_rescale_at, "asking for what is there is no rescale"

    @pytest.mark.parametrize("workers", [0, -1])
    def test_a_bad_count_is_refused(self, workers: int) -> None:
        target = self.make()
        before = target.observe().requested
        with pytest.raises((Refused, ConfigError)):
            target.rescale(workers)
        assert target.observe().requested == before


def _again(policy: Policy) -> Policy:
    cls: Any = type(policy)
    again: Policy = cls(**policy.config())
    return again


def _run(policy: Policy, observations: list[Observation], before: Iterable[Observation] = ()) -> list[Decision]:
    """The decisions of a policy, at its own interval; `before` sets the rhythm."""
    rhythm = Pilot(policy)
    for observation in before:
        rhythm.is_due(observation.at)
    decisions = []
    for observation in observations:
        policy.learn(observation)
        if rhythm.is_due(observation.at):
            decisions.append(policy.decide(observation))
    return decisions
