"""A lean loop for many simulated runs: the same decisions as `penstock.loop`, without a journal.

The loop writes every observation down, or makes sure that it could; that costs more than the simulated job itself. Here
time passes in one stretch from decision to decision, and the observations in between are only made if somebody learns
from them. To keep a journal, run `penstock.loop.Loop` on the target and its clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor

from penstock.core import Decision, Guard, Observation, Policy
from penstock.errors import Refused, check
from penstock.guards import Rail
from penstock.targets.simulated.target import SimulatedTarget


@dataclass(frozen=True, slots=True)
class Made:
    """A decision, when it was made, and whether something was changed for it."""

    at: float
    decision: Decision
    carried_out: bool


def run(
    target: SimulatedTarget,
    policy: Policy,
    guards: Sequence[Guard] = (),
    *,
    duration: float,
    sample_every: float = 1.0,
    on_decision: Callable[[Observation, Decision], None] | None = None,
    on_sample: Callable[[Observation], None] | None = None,
) -> list[Made]:
    """Let `policy` run the job for `duration` seconds; the decisions it made. What happened is in `target.series()`.

    sample_every: whole seconds between two observations that the policy learns from.
    on_sample: told of each of these once the policy has learned from it; of a policy that learns nothing, of each that
        it decides by.
    """
    check(sample_every >= 1 and sample_every == floor(sample_every), "sample_every", "be whole seconds", sample_every)
    check(duration > 0, "duration", "be above 0 seconds", duration)
    clock = target.clock
    end = clock.now() + duration
    curious = type(policy).learn is not Policy.learn
    keen = [guard for guard in guards if not (isinstance(guard, Rail) and type(guard).learn is Rail.learn)]
    made: list[Made] = []
    asked: Decision | None = None
    # As in the loop, the first sample is due at once, and the others are on a grid from there.
    due = now = clock.now()
    samples = [target.observe()]
    while True:
        for observation in samples:
            policy.learn(observation)
            for guard in keen:
                guard.learn(observation)
            if on_sample is not None:
                on_sample(observation)
        last = samples[-1]
        decision = policy.decide(last)
        for guard in guards:
            decision = guard.check(last, decision)
        if on_decision is not None:
            on_decision(last, decision)
        carried_out = decision.is_change(last, asked) and _carry_out(target, decision)
        asked = decision if carried_out else asked
        made.append(Made(last.at, decision, carried_out))
        due += policy.period * (floor((last.at - due) / policy.period) + 1)
        steps = -floor((now - due) / sample_every)  # up to the first sample at which a decision is due
        until = now + steps * sample_every
        if until >= end:
            clock.sleep(end - clock.now())
            return made
        clock.sleep(until - clock.now())
        samples = target.between(now, until, sample_every) if curious or keen else [target.observe()]
        now = until


def _carry_out(target: SimulatedTarget, decision: Decision) -> bool:
    try:
        target.reconfigure(decision)
    except Refused:  # the loop would note it and go on
        return False
    return True
