"""Phoebe: a profile, models of latency and recovery fitted to it, and the fewest workers that keep both promises.

Geldenhuys, Scheinert, Kao, Thamsen, ICWS 2022. What is known is in penstock.models.phoebe, with Algorithm 1; how a
profile is judged in penstock.models.profiling, and made by `penstock profile`. Here are the constants of sec. IV-B, and
what keeps it from deciding.

Beyond the paper: a restart that came from a rescale counts from the rescale. The paper's next step starts an interval
after the last one *ended*; on a fixed rhythm every second decision would find a job that is too young by seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from penstock.core import Decision, Fact, Observation, Policy, Reason
from penstock.errors import check
from penstock.models.forecast import Outlook
from penstock.models.limits import bounded
from penstock.models.phoebe import SETTLED, Experience, Foresight, Situation, plan, projected
from penstock.models.profiling import profile_from
from penstock.models.recovery import recovery_time
from penstock.models.sanity import checked

JITTER = 0.05  # of min_uptime: what carrying out a rescale and looking again may take


@dataclass
class Phoebe(Policy):
    """The fewest workers that, at the forecast load, recover from a failure in time and have normal latency.

    profile: JSON text of a profiling phase, as `penstock profile` writes it; without one it holds.
    recovery_target: seconds in which a failure must be over.
    interval: seconds between optimisations.
    min_uptime: seconds that a job must have run since a failure or rescale to be looked at.
    horizon: seconds that the load is forecast for.
    forecaster: experts: many small models, weighed by what they got right; auto-arima: the authors'; linear; last.
    checkpoint_interval: seconds of work that a restart repeats at worst.
    downtime: seconds without processing to expect of a failure, where the profile has none.
    least_step_in: remove at least so many workers, or none; the authors' code has 3.
    """

    name: ClassVar[str] = "phoebe"
    paper: ClassVar[str] = "https://arxiv.org/abs/2206.09679"
    inputs: ClassVar[tuple[str, ...]] = (
        "requested",
        "workers",
        "uptime",
        "input_rate",
        "processed_rate",
        "backlog",
        "latency",
    )

    profile: str = field(default="", repr=False)
    recovery_target: float = 180.0
    interval: float = 600.0
    min_uptime: float = 600.0
    horizon: float = 600.0
    forecaster: Literal["experts", "auto-arima", "linear", "last"] = "experts"
    checkpoint_interval: float = 10.0
    downtime: float = 60.0
    least_step_in: int = 1
    _known: Experience | None = field(init=False, repr=False, default=None)
    _ahead: Foresight = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("recovery_target", "horizon"):
            check(getattr(self, name) > 0, name, "be above 0 seconds", getattr(self, name))
        for name in ("min_uptime", "checkpoint_interval", "downtime"):
            check(getattr(self, name) >= 0, name, "be 0 seconds or more", getattr(self, name))
        check(self.least_step_in >= 1, "least_step_in", "be at least 1 worker", self.least_step_in)
        self._ahead = Foresight(self.forecaster, self.horizon)
        if self.profile:
            self._known = Experience(profile_from(self.profile), self.checkpoint_interval, self.downtime)

    def learn(self, observation: Observation) -> None:
        seen = checked(observation)
        if seen is None:
            return
        self._ahead.learn(seen.observation.at, seen.observation.input_rate)
        if self._known is not None:
            self._known.learn(seen.observation)

    def decide(self, observation: Observation) -> Decision:
        """Algorithm 1 on the models as they are now, or hold and say what is missing."""
        if self._known is None:
            sentence = "There is no profile to go by: no change; `penstock profile` makes one"
            return Decision.hold(observation.requested, Reason("profile.missing", sentence))
        self._known.refit()
        notes = tuple(self._known.notes)
        self._known.notes.clear()
        decision = self._decide(observation, self._known)
        return replace(decision, reasons=(*notes, *decision.reasons))

    def _decide(self, observation: Observation, known: Experience) -> Decision:
        seen = checked(observation)
        o = None if seen is None else seen.observation
        if o is None or o.requested is None:
            unknown = Reason("requested.unknown", "How many workers were asked for is not known: no change")
            return Decision.hold(None, unknown)
        current = o.requested
        if not self.min_workers <= current <= self.max_workers:
            reason = Reason("phoebe.not_looked_at", f"{current} workers are out of bounds before anything is looked at")
            return bounded(Decision(current, (reason,)), self.min_workers, self.max_workers)
        if o.blind:
            return Decision.hold(current, Reason("metrics.blind", "Nothing is measured now: no change"))
        young = self._young(o)
        if young is not None:
            return Decision.hold(current, young)
        outlook = self._ahead.now()
        if outlook is None:
            return Decision.hold(current, Reason("load.unknown", "No load was measured lately: no change"))
        rate = projected(outlook.forecast, self.horizon)

        situation = Situation(
            current=current,
            least=self.min_workers,
            most=self.max_workers,
            rate=rate,
            capacity=known.capacities.at,
            recovery=lambda workers: self._recovery(workers, o, outlook, known),
            latency=lambda workers: known.latencies.latency(workers, rate),
            valid=lambda workers: known.latencies.valid(workers, rate),
            target=self.recovery_target,
            least_step_in=self.least_step_in,
        )
        decision = plan(situation)
        return replace(decision, reasons=(self._view(o, outlook, rate, known), *decision.reasons))

    def recovery_now(self, observation: Observation) -> float | None:
        """Seconds that a failure now would take to be over, by the models as they are; None: never, or not known."""
        outlook, workers = self._ahead.outlook, observation.requested
        if self._known is None or outlook is None or workers is None:
            return None
        return self._recovery(workers, observation, outlook, self._known)

    def _recovery(self, workers: int, o: Observation, outlook: Outlook, known: Experience) -> float | None:
        """M_R, sec. III-B."""
        caught_up = recovery_time(
            outlook.forecast.path,
            outlook.forecast.step,
            capacity=known.capacities.at(workers),
            downtime=known.outage.down,
            replay=self.checkpoint_interval,
            recent_rate=o.input_rate,
        )
        return None if caught_up is None else caught_up + known.outage.lag

    def _young(self, o: Observation) -> Reason | None:
        """Why the job is left alone: it may be recovering, and would be measured while it does."""
        if o.uptime is None:
            return Reason("uptime.unknown", "Since when the job has run is not known: it may be restarting, no change")
        rested, least = o.uptime, self.min_uptime
        since = None if o.last_rescale_at is None else max(0.0, o.at - o.last_rescale_at)
        if since is not None:
            own = 0 <= since - o.uptime <= SETTLED  # the restart came from the rescale
            rested = since if own else min(o.uptime, since)
            least = self.min_uptime * (1 - JITTER) if own else least
        if rested >= least:
            return None
        sentence = f"The job runs undisturbed for {rested:,.0f} s only, not for {self.min_uptime:,.0f} s: no change"
        return Reason("phoebe.recovering", sentence, {"uptime": o.uptime, "since_rescale": since})

    def _view(self, o: Observation, outlook: Outlook, rate: float, known: Experience) -> Reason:
        facts: dict[str, Fact] = {
            "load": o.input_rate,
            "projected": rate,
            "by": outlook.by,
            "downtime": known.outage.down,
        }
        how = f"{outlook.by}, instead of {self.forecaster}" if outlook.fell_back else outlook.by
        now = "An unknown load" if o.input_rate is None else f"{o.input_rate:,.0f} records/s"
        sentence = f"{now} now, {rate:,.0f} records/s in the highest part of the next {self.horizon:,.0f} s (by {how})"
        return Reason("phoebe.view", sentence, facts | {"lag": known.outage.lag, "wape": outlook.wape})
