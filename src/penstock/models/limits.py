"""What many policies share: the user's bounds, and the rest after a change of the worker count."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.core import Decision, Observation, Reason


def bounded(decision: Decision, least: int, most: int) -> Decision:
    """The decision, corrected to the nearest count that is allowed.

    >>> wish = Decision(20, (Reason("load.high", "20 workers would do"),))
    >>> bounded(wish, 1, 16).workers, bounded(wish, 1, 16).reason.code
    (16, 'bounds.max')
    """
    wanted = decision.workers
    if wanted is not None and wanted > most:
        sentence = f"{wanted} workers are more than the {most} allowed"
        return replace(decision.but(most, Reason("bounds.max", sentence, {"max_workers": most})), parallelism={})
    if wanted is not None and wanted < least:
        sentence = f"{wanted} workers are fewer than the {least} required"
        return replace(decision.but(least, Reason("bounds.min", sentence, {"min_workers": least})), parallelism={})
    return decision


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
