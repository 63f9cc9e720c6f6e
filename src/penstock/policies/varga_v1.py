"""Varga v1: Kubernetes' HPA on two measures of a Flink job, of which the one that asks for more counts.

Varga, Balassi and Kiss, "Towards autoscaling of Apache Flink jobs", 2021, as run by Koper (TU Delft 2022, sec. 3.3):
utilisation (1 - idle time) and, while the lag is above a threshold, the change of the lag relative to what is consumed.
Whose lag (`lag_of`) is open: Eq. 3.2 adds up all partitions, while fig. 3.3 configures a metric of each pod, which HPA
averages; the thesis' recorded runs scale down with more than the threshold waiting in all, as only the latter does.
Without a rest after a rescale the lag of the rescale itself scales it back up (sec. 5.9): see varga-v2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from penstock.core import Decision, Fact, Observation, Policy, Reason
from penstock.errors import check
from penstock.models.hpa import Behaviour, Tolerance
from penstock.models.limits import bounded
from penstock.models.operators import seen
from penstock.models.varga import proposal, relative_lag_change, utilisation
from penstock.models.window import Window

LagOf = Literal["job", "worker"]


@dataclass
class VargaV1(Policy):
    """As many workers as bring utilisation to its target or, if more, as keep up with what arrives while records wait.

    target_utilisation: share of time in which an instance should not be idle.
    target_lag_change: what may arrive, as a multiple of what is consumed; slightly below 1 adds reserve.
    lag_threshold: records of backlog above which its change counts.
    lag_of: whose backlog that is: of the whole job, or of one worker on average, as the thesis ran it.
    tolerance: how far off its target, as a ratio, a measure may be without a change.
    scale_down_stabilisation: seconds over which the highest recommendation counts on the way down.
    window: seconds over which the slope of the lag is taken.
    """

    name: ClassVar[str] = "varga-v1"
    paper: ClassVar[str] = "Varga et al. 2021; Koper 2022, TU Delft, section 3.3"
    inputs: ClassVar[tuple[str, ...]] = ("requested", "workers", "backlog", "processed_rate", "operators.idle")

    max_workers: int = 16
    target_utilisation: float = 0.5
    target_lag_change: float = 1.0
    lag_threshold: float = 50_000.0
    lag_of: LagOf = "job"
    tolerance: float = 0.1
    scale_down_stabilisation: float = 480.0
    window: float = 60.0
    _lag: Window = field(init=False, repr=False)
    _behaviour: Behaviour = field(init=False, repr=False)
    _whole: bool = field(default=True, init=False, repr=False)  # no operators were ever seen: the job counts as one

    def __post_init__(self) -> None:
        super().__post_init__()
        check(0 < self.target_utilisation <= 1, "target_utilisation", "be in (0, 1]", self.target_utilisation)
        check(0 < self.target_lag_change <= 1, "target_lag_change", "be in (0, 1]", self.target_lag_change)
        for name in ("lag_threshold", "tolerance", "scale_down_stabilisation"):
            check(getattr(self, name) >= 0, name, "be 0 or more", getattr(self, name))
        check(self.lag_of in get_args(LagOf), "lag_of", "be job or worker", self.lag_of)
        check(self.window > 0, "window", "be above 0 seconds", self.window)
        self._lag, self._behaviour = Window(self.window), Behaviour(down_window=self.scale_down_stabilisation)

    def learn(self, observation: Observation) -> None:
        self._lag.add(observation.at, observation.backlog)
        self._behaviour.learn(observation)
        self._whole = self._whole and not observation.operators

    def decide(self, observation: Observation) -> Decision:
        current = observation.requested
        if current is None or observation.blind:
            return Decision.hold(current, Reason("varga.unknown", "Nothing is measured now: no change"))
        wish = self._wish(observation, current)
        if wish.reason.code == "varga.unknown":
            return wish
        return bounded(self._damped(wish, current, observation.at), self.min_workers, self.max_workers)

    def _wish(self, observation: Observation, current: int) -> Decision:
        """What the measures ask for; HPA takes the higher, and not the only known one on the way down."""
        used, change = self._utilisation(observation), self._lag_change(observation)
        running, near = observation.workers or current, Tolerance(self.tolerance, self.tolerance)
        asks: dict[str, int] = {}
        if used is not None:
            asks["utilisation"] = proposal(current, running, used / self.target_utilisation, near)
        if change is not None:
            asks["lag"] = proposal(current, running, change / self.target_lag_change, near)
        missing = [name for name in ("utilisation", "lag") if name not in asks]
        if not asks or (missing and max(asks.values()) < current):
            what = " and ".join("how the lag changes" if name == "lag" else name for name in missing)
            return Decision.hold(current, Reason("varga.unknown", f"{what.capitalize()} is not known: no change"))
        wanted = max(asks.values())
        facts: dict[str, Fact] = {"utilisation": used, "relative_lag_change": change}
        facts |= {f"{name}_wants": workers for name, workers in asks.items()}
        said = (
            [] if used is None else [f"utilisation is {100 * used:.0f} % (target {100 * self.target_utilisation:g} %)"]
        )
        if change is not None and change > 0:
            said.append(f"what arrives is {change:.2f} of what is consumed (target {self.target_lag_change:g})")
        elif change is not None:
            each = " per worker" if self.lag_of == "worker" else ""
            said.append(f"the lag is not above {self.lag_threshold:,.0f} records{each}")
        text = " and ".join(said)
        by = "lag" if asks.get("lag", wanted - 1) == wanted > current else "utilisation"
        code, rest = f"{by}.above_target", f"{current} -> {wanted}"
        if wanted <= current:
            code, rest = ("varga.fits", f"{current} stay") if wanted == current else ("utilisation.below_target", rest)
        return Decision(wanted, (Reason(code, f"{text[0].upper()}{text[1:]}: {rest}", facts),))

    def _damped(self, wish: Decision, current: int, now: float) -> Decision:
        desired = wish.workers or 0
        workers = self._behaviour.stabilised(current, desired, now)
        if workers != desired:
            window = self.scale_down_stabilisation
            sentence = f"{workers}, the highest recommendation of the last {window:g} s, comes before {desired}"
            return wish.but(workers, Reason("varga.stabilised", sentence, {"desired": desired, "window": window}))
        limit = self._behaviour.ceiling(current, now)
        if current < desired > limit < self.max_workers:
            sentence = f"{limit} instead of {desired}: that is as far up as one may go in 15 s"
            return wish.but(limit, Reason("varga.paced", sentence, {"desired": desired, "limit": limit}))
        return wish

    def _utilisation(self, observation: Observation) -> float | None:
        return utilisation(seen(observation) if self._whole else observation.operators)

    def _lag_change(self, observation: Observation) -> float | None:
        lag, growth, consumed = observation.backlog, self._lag.slope, observation.processed_rate
        if lag is None or growth is None or consumed is None:
            return None
        if self.lag_of == "worker":
            lag /= observation.workers or observation.requested or 1
        return relative_lag_change(lag, growth, consumed, self.lag_threshold)
