from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from penstock import guards, journal
from penstock.core import Decision, Guard, Observation, Policy, Reason, Target
from penstock.errors import ConfigError, Unavailable
from penstock.journal import Decided, Event, Journal, Record, Rescale, Sample, Start, Stop, encode
from penstock.loop import Loop, Pilot, Step, SystemClock, guards_of, policy_of, replay
from penstock.policies import make
from penstock.policies.hpa import Hpa
from penstock.policies.static import Static
from penstock.testing import FakeClock, FakeTarget, TargetContract


class TestFakeTarget(TargetContract):
    def make(self) -> Target:
        self.clock = FakeClock()
        return FakeTarget(self.clock, startup=3)

    def wait(self) -> None:
        self.clock.sleep(1)


class Bench:
    """A loop around the toy job, its journal, and the time."""

    def __init__(self, path: Path, policy: Policy, at: float = 1000.0, **job: Any) -> None:
        self.path, self.policy = path, policy
        self.clock = FakeClock(at)
        self.target = FakeTarget(self.clock, **job)

    def loop(self, **settings: Any) -> Loop:
        self.journal = Journal.open(self.path)
        return Loop(self.target, self.policy, journal=self.journal, clock=self.clock, **settings)

    def run(self, loop: Loop, seconds: float, on_step: Callable[[Step], None] | None = None) -> list[Step]:
        steps: list[Step] = []
        end = self.clock.now() + seconds

        def keep(step: Step) -> None:
            steps.append(step)
            if on_step is not None:
                on_step(step)

        loop.run(lambda: self.clock.now() >= end, keep)
        self.journal.close()
        return steps

    def records(self) -> list[Record]:
        return list(journal.read(self.path))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def kinds(records: Sequence[Record]) -> str:
    """One letter a record: S(tart) s(ample) d(ecision) r(escale) e(vent) x (stop)."""
    return "".join(
        {"start": "S", "sample": "s", "decision": "d", "rescale": "r", "event": "e", "stop": "x"}[r.kind]
        for r in records
    )


def test_samples_decisions_and_rescales_in_order(path: Path) -> None:
    bench = Bench(path, Static(workers=4, interval=3.0))
    steps = bench.run(bench.loop(), 7)
    assert kinds(bench.records()) == "Sdrssdssdx"
    assert bench.target.rescales == [4]
    assert [s.decided is not None for s in steps] == [True, False, False] * 2 + [True]
    start, decided, rescale = bench.records()[:3]
    assert isinstance(start, Start)
    assert (start.mode, start.resumed, policy_of(start)) == ("live", False, bench.policy)
    assert isinstance(decided, Decided)
    assert (decided.by, decided.role, decided.proposed, decided.decision.workers) == ("static", "control", 4, 4)
    assert isinstance(rescale, Rescale)
    assert (rescale.before, rescale.after, rescale.outcome) == (2, 4, "done")


def test_the_decision_is_on_disk_before_it_is_carried_out(path: Path) -> None:
    bench = Bench(path, Static(workers=4))
    on_disk: list[str] = []

    class Watched(FakeTarget):
        def rescale(self, workers: int) -> None:
            on_disk.append(kinds(bench.records()))
            super().rescale(workers)

    bench.target = Watched(bench.clock)
    bench.run(bench.loop(), 1)
    assert on_disk == ["Sd"]
    assert kinds(bench.records()) == "Sdrx"


def test_a_dry_run_only_advises(path: Path) -> None:
    bench = Bench(path, Static(workers=4))
    bench.run(bench.loop(dry_run=True), 1)
    start, _, rescale, _ = bench.records()
    assert isinstance(start, Start)
    assert isinstance(rescale, Rescale)
    assert (start.mode, rescale.outcome, bench.target.rescales) == ("dry-run", "dry-run", [])


def test_a_refusal_and_a_bug_in_the_target_are_noted_and_survived(path: Path) -> None:
    bench = Bench(path, Static(workers=4, interval=1.0))
    bench.target.refusal = "no room"
    bench.run(bench.loop(), 1)
    bench.target.rescale = lambda workers: 1 / 0  # type: ignore[assignment,method-assign]
    bench.run(bench.loop(), 1)
    outcomes = [(r.outcome, r.sentence) for r in bench.records() if isinstance(r, Rescale)]
    assert outcomes == [
        ("refused", "The target refused 4 workers: no room"),
        ("unavailable", "4 workers could not be asked for: division by zero"),
    ]


def test_an_outage_is_a_blind_observation_that_keeps_what_was_known(path: Path) -> None:
    bench = Bench(
        path, Hpa(interval=1.0, scale_down_stabilisation=0.0), workers=3, rate=lambda t: 2400 if t < 2 else 100
    )

    def break_it(step: Step) -> None:
        bench.target.down = "connection refused" if 1001 <= step.observation.at < 1005 else None

    steps = bench.run(bench.loop(guards=guards.default(1, 12)), 60, break_it)
    blind = [s for s in steps if s.observation.blind]
    assert [s.observation.at for s in blind] == [1002.0, 1003.0, 1004.0, 1005.0]
    for step in blind:
        assert step.observation.requested == 3
        assert step.observation.events[0].code == "metrics.unavailable"
        assert "connection refused" in step.observation.events[0].sentence
        assert step.decided is not None
        assert step.decided.decision.workers == 3
        assert step.rescale is None
    first = next(s for s in steps if s.rescale is not None)
    assert first.observation.at == 1036.0  # 30 s after sight came back, not before


def test_a_measure_that_is_no_number_is_no_measure(path: Path) -> None:
    bench = Bench(path, Static(workers=4), rate=lambda _: float("nan"))
    step = bench.run(bench.loop(), 1)[0]
    assert step.observation.blind
    assert step.observation.events[0].code == "metrics.unavailable"


@dataclass
class Faulty(Policy):
    """Fails on demand."""

    name: ClassVar[str] = "faulty"
    fails_in: str = "decide"
    calls: int = field(default=0, init=False)

    def learn(self, observation: Observation) -> None:
        if self.fails_in == "learn":
            raise KeyError("lost")

    def decide(self, observation: Observation) -> Decision:
        if self.fails_in == "decide":
            raise ZeroDivisionError("by nothing")
        fact = float("nan") if self.fails_in == "facts" else 1.0
        return Decision(9, (Reason("faulty.up", "Up", {"fact": fact}),))


FAULTS = {
    "decide": "ZeroDivisionError: by nothing",
    "learn": "KeyError: 'lost'",
    "facts": "ValueError: Out of range float",
}


@pytest.mark.parametrize(("where", "text"), FAULTS.items())
def test_a_policy_that_fails_holds_and_says_why(path: Path, where: str, text: str) -> None:
    bench = Bench(path, Faulty(fails_in=where, interval=1.0))
    steps = bench.run(bench.loop(guards=guards.default(1, 12)), 2)
    for step in steps:
        assert step.decided is not None
        reason = step.decided.decision.reason
        assert (step.decided.decision.workers, reason.code) == (2, "policy.failed")
        assert text in reason.sentence
    assert bench.target.rescales == []


def test_a_guard_that_fails_holds_too(path: Path) -> None:
    class Broken:
        def learn(self, observation: Observation) -> None: ...

        def check(self, observation: Observation, decision: Decision) -> Decision:
            raise RuntimeError("rail gone")

    bench = Bench(path, Static(workers=4))
    step = bench.run(bench.loop(guards=(Broken(),)), 1)[0]
    assert step.decided is not None
    assert (step.decided.decision.workers, step.decided.decision.reason.code) == (2, "guard.failed")


def test_what_cannot_be_written_down_is_not_done(path: Path) -> None:
    bench = Bench(path, Static(workers=4, interval=1.0))
    loop = bench.loop()
    write = bench.journal.write

    def full(record: Record) -> None:
        if isinstance(record, Decided) and record.at < 1002:
            raise Unavailable("disk full")
        write(record)

    bench.journal.write = full  # type: ignore[method-assign]
    steps = bench.run(loop, 4)
    assert [s.problem.code if s.problem else None for s in steps] == ["journal.unavailable"] * 2 + [None] * 2
    assert [s.rescale is not None for s in steps] == [False, False, True, False]


def wave(t: float) -> float:
    return 6000.0 if 100 < t < 400 else 900.0


def windowed() -> tuple[Policy, tuple[Guard, ...], tuple[Pilot, ...]]:
    """Much that has to come back: windows in the policy, in a guard and in shadows."""
    policy = make("hpa", scale_down_stabilisation=120)
    chain = (guards.Stabilisation(up=0, down=60), *guards.default(1, 8, cooldown_down=45))
    shadows = (Pilot(make("hpa", target_cpu=0.5, interval=20), guards.default(1, 6), "careful"), Pilot(make("static")))
    return policy, chain, shadows


def start(path: Path, target: FakeTarget, clock: FakeClock) -> tuple[Loop, Journal]:
    policy, chain, shadows = windowed()
    file = Journal.open(path)
    loop = Loop(target, policy, guards=chain, journal=file, clock=clock, shadows=shadows)
    loop.resume(path)
    return loop, file


def test_shadows_decide_in_their_own_rhythm_and_are_never_acted_on(path: Path) -> None:
    clock = FakeClock()
    loop, file = start(path, target := FakeTarget(clock, workers=2, rate=wave), clock)
    loop.run(lambda: clock.now() >= 61)
    file.close()
    decided = [r for r in journal.read(path) if isinstance(r, Decided)]
    assert [r.at for r in decided if r.by == "careful"] == [0, 20, 40, 60]
    assert [r.at for r in decided if r.by == "static"] == [0, 15, 30, 45, 60]
    assert all((r.observation is None) == (r.role == "shadow") for r in decided)
    assert any(r.decision.workers == 12 for r in decided if r.by == "static")
    assert target.rescales == []


def test_a_replay_gives_the_same_bytes(path: Path) -> None:
    clock = FakeClock()
    loop, file = start(path, target := FakeTarget(clock, workers=2, rate=wave, startup=20), clock)
    loop.run(lambda: clock.now() >= 900)
    file.close()
    assert len(target.rescales) >= 3
    records = list(journal.read(path))
    begin = records[0]
    assert isinstance(begin, Start)
    written = [encode(r) for r in records if isinstance(r, Decided) and r.role == "control"]
    assert [encode(r) for r in replay(records, policy_of(begin), guards_of(begin))] == written
    other = list(replay(records, Static(interval=60.0)))
    assert [r.at for r in other] == [60.0 * i for i in range(15)]


@pytest.mark.parametrize("breaks", [[450], [100, 101, 460, 700], list(range(7, 900, 37))])
def test_restarts_change_nothing(tmp_path: Path, breaks: list[float]) -> None:
    """The same job with and without restarts of the loop: same decisions, same rescales, no window forgotten."""

    def play(path: Path, ends: list[float]) -> tuple[list[bytes], list[int]]:
        clock = FakeClock()
        target = FakeTarget(clock, workers=2, rate=wave, startup=20)
        for end in ends:
            loop, file = start(path, target, clock)
            loop.run(lambda end=end: clock.now() >= end)  # type: ignore[misc]
            file.close()
        decided = [encode(r) for r in journal.read(path) if isinstance(r, Decided)]
        return decided, target.rescales

    assert play(tmp_path / "broken", [*breaks, 900]) == play(tmp_path / "whole", [900])
    starts = [r for r in journal.read(tmp_path / "broken") if isinstance(r, Start)]
    assert [r.resumed for r in starts] == [False] + [True] * len(breaks)


def test_a_new_start_forgets_what_came_before(path: Path) -> None:
    for _ in range(2):  # two loops on one journal that do not resume
        bench = Bench(path, Hpa(interval=5.0, scale_down_stabilisation=10.0), workers=6)
        bench.run(bench.loop(), 30)
    records = bench.records()
    written = [encode(r) for r in records if isinstance(r, Decided)]
    assert [encode(r) for r in replay(records, Hpa(interval=5.0, scale_down_stabilisation=10.0))] == written


def test_no_history_is_no_resumption(path: Path) -> None:
    loop = Loop(FakeTarget(FakeClock()), Static(), clock=FakeClock())
    assert loop.resume(path) is False
    loop.step()
    path.write_bytes(encode(Start(at=0.0, policy=journal.Setting("static"))))
    with pytest.raises(ConfigError, match="resume must be called before the first step"):
        loop.resume(path)


def test_a_target_that_forgot_its_last_rescale_is_reminded(path: Path) -> None:
    bench = Bench(path, Static(workers=4, interval=1.0))
    bench.run(bench.loop(), 2)
    bench.target = FakeTarget(bench.clock, workers=4)  # a new process that knows nothing of the rescale
    loop = bench.loop()
    loop.resume(path)
    assert bench.run(loop, 1)[0].observation.last_rescale_at == 1000.0


KILLED = """
import os, signal, sys
from penstock.journal import Journal
from penstock.loop import Loop
from penstock.policies import make
from penstock.testing import FakeClock, FakeTarget

class Deadly(FakeTarget):
    def rescale(self, workers):
        os.kill(os.getpid(), signal.SIGKILL)

clock = FakeClock(500)
Loop(Deadly(clock), make("static", workers=4), journal=Journal.open(sys.argv[1]), clock=clock).run(lambda: False)
"""


def test_a_kill_between_decision_and_outcome_is_seen_and_not_repeated(path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == -9
    assert kinds(list(journal.read(path))) == "Sd"
    bench = Bench(path, make("static", workers=4), at=501.0, workers=4)  # the rescale had reached the job
    loop = bench.loop()
    assert loop.resume(path)
    steps = bench.run(loop, 20)
    records = bench.records()
    assert kinds(records)[:4] == "SdSe"
    event = records[3]
    assert isinstance(event, Event)
    assert (event.reason.code, event.reason.facts["workers"]) == ("loop.unfinished", 4)
    assert bench.target.rescales == []
    assert steps[0].observation.last_rescale_at == 500.0
    assert [s.observation.at for s in steps if s.decided] == [515.0]  # when it would have been due


def test_an_interrupted_loop_says_so(path: Path) -> None:
    bench = Bench(path, Static())

    def interrupt(step: Step) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.run(bench.loop(), 5, interrupt)
    last = bench.records()[-1]
    assert isinstance(last, Stop)
    assert last.reason.code == "loop.interrupted"


def test_late_samples_do_not_add_up_and_a_clock_set_back_does_not_stall() -> None:
    pilot = Pilot(Static(interval=15.0))
    due = [at for at in (i * 1.1 for i in range(100)) if pilot.is_due(at)]
    assert [round(at - 15 * i, 6) < 1.1 for i, at in enumerate(due)] == [True] * 8
    assert not pilot.is_due(due[-1])
    assert pilot.is_due(20.0)
    assert not pilot.is_due(34.9)
    assert pilot.is_due(35.0)


def test_a_slow_step_skips_ticks() -> None:
    clock = FakeClock()
    target = FakeTarget(clock)
    loop = Loop(target, Static(), clock=clock, sample_every=2.0)
    seen: list[float] = []

    def slow(step: Step) -> None:
        seen.append(step.observation.at)
        clock.sleep(5.0 if len(seen) == 2 else 0.5)

    loop.run(lambda: clock.now() >= 12, slow)
    assert seen == [0, 2, 8, 10]


def test_a_sleep_can_be_ended() -> None:
    clock = SystemClock()
    before = clock.now()
    clock.interrupt()
    clock.sleep(60)
    assert clock.now() - before < 5


def test_every_sample_is_learned_once(path: Path) -> None:
    bench = Bench(path, Static(interval=2.0))
    steps = bench.run(bench.loop(), 9)
    seen = [r.observation for r in bench.records() if isinstance(r, Sample | Decided) and r.observation]
    assert seen == [s.observation for s in steps]
