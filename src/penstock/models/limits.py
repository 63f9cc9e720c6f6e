"""What many policies share: the user's bounds, the rest after a change of the worker count, and whether the job runs
undisturbed, as who averages over minutes must not mix what was measured before a rescale, a restart or an outage with
what is measured now.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.core import Decision, Observation, Reason

JITTER = 5.0  # seconds by which a start reckoned from the uptime may seem to move without a restart


def bounded(decision: Decision, least: int, most: int) -> Decision:
    """The decision, corrected to the nearest count that is allowed.

    >>> wish = Decision(20, (Reason("load.high", "20 workers would do"),))
    >>> bounded(wish, 1, 16).workers, bounded(wish, 1, 16).reason.code
    (16, 'bounds.max')
    """
    wanted = decision.workers
    if wanted is not None and wanted > most:
        return decision.but(most, too_many(wanted, most))
    if wanted is not None and wanted < least:
        return decision.but(least, too_few(wanted, least))
    return decision


def too_many(workers: int, most: int) -> Reason:
    return Reason("bounds.max", f"{workers} workers are more than the {most} allowed", {"max_workers": most})


def too_few(workers: int, least: int) -> Reason:
    return Reason("bounds.min", f"{workers} workers are fewer than the {least} required", {"min_workers": least})


@dataclass(slots=True)
class LastChange:
    """When the configuration last changed: how many workers were asked for, how many run, or an operator's parallelism.

    All count, as Koper's autoscalers rest while the number of registered workers has a derivative (sec. 3.3.4): a
    worker that comes late, or is lost, disturbs the measures as much as a rescale does.

    at: when; None before the first one.
    """

    at: float | None = None
    _requested: int | None = None
    _workers: int | None = None
    _parallelism: dict[str, int] = field(default_factory=dict)
    _now: float | None = None

    def learn(self, observation: Observation) -> bool:
        """Note a change; True if what was *asked for* changed."""
        now, requested, workers = observation.at, observation.requested, observation.workers
        if self._now is not None and now < self._now and self.at is not None:
            self.at = min(self.at, now)  # the clock went back: rest anew, but never longer than one rest
        self._now = now
        parallelism = {operator.name: operator.parallelism for operator in observation.operators}
        asked = requested is not None and self._requested is not None and requested != self._requested
        came = workers is not None and self._workers is not None and workers != self._workers
        if asked or came or (parallelism and self._parallelism and parallelism != self._parallelism):
            self.at = now
        self._requested = self._requested if requested is None else requested
        self._workers = self._workers if workers is None else workers
        self._parallelism = parallelism or self._parallelism
        return asked

    def ago(self, observation: Observation) -> float | None:
        """Seconds since the last change that is known of, by us or by the target."""
        known = [at for at in (self.at, observation.last_rescale_at) if at is not None and at <= observation.at]
        return observation.at - max(known) if known else None

    def rest(self, observation: Observation, cooldown: float) -> Reason | None:
        """Why nothing changes yet, if `cooldown` seconds have not passed."""
        ago = self.ago(observation)
        if ago is None or ago >= cooldown:
            return None
        sentence = f"The worker count changed {ago:.0f} s ago: no change before {cooldown:g} s have passed"
        return Reason("cooldown.resting", sentence, {"passed": ago, "cooldown": cooldown})


@dataclass(slots=True)
class Steadiness:
    """Since when the job has run as it does now: with as many workers, and without a restart."""

    since: float | None = None
    requested: int | None = None
    _started: float | None = None

    def disturbed(self, observation: Observation) -> bool:
        """Take in a sample; True when the job was rescaled or restarted since the last one, or is seen first."""
        at, before = observation.at, self.requested
        started = None if observation.uptime is None else at - observation.uptime
        restarted = started is not None and self._started is not None and started > self._started + JITTER
        rescaled = before is not None and observation.requested is not None and observation.requested != before
        first = self.since is None
        if first:
            known = [t for t in (started, observation.last_rescale_at) if t is not None]
            self.since = min(at, max(known, default=at))
        elif restarted or rescaled or (self.since or 0.0) > at:  # or the clock went back
            self.since = at
        self._started = self._started if started is None else started
        self.requested = before if observation.requested is None else observation.requested
        return first or restarted or rescaled

    def counts(self, observation: Observation, warm_up: float = 0.0) -> bool:
        """Whether a sample tells what the job can do: all its workers are there, it is up and not standing still.

        warm_up: seconds after a rescale or (re)start in which it does not.
        """
        known = observation.requested is not None and not observation.blind
        whole = observation.workers is None or observation.workers == observation.requested
        still = observation.processed_rate == 0 and (observation.input_rate or 0.0) > 0
        down = observation.uptime is None and self._started is not None  # who told it before tells it while it runs
        cold = self.since is not None and observation.at - self.since < warm_up
        return known and whole and not still and not down and not cold
