"""Dhalion made global, for a job behind a queue: Koper 2022, sec. 3.4, parameters sec. 4.6.

Up when records wait and ever more of them do, by the ratio of what arrives to what is read; down by a share when
nothing waits, nothing is held back and CPU is low. Rates, backpressure, CPU and the slope of the lag are over a minute,
as in Koper's code; latency is the last sample. (That code compares lag with 0.2 s of input on the way down, the thesis
latency with its threshold: we follow the thesis.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor
from typing import ClassVar, Literal, get_args

from penstock.core import Decision, Fact, Observation, Policy, Reason
from penstock.errors import check
from penstock.models.dataflow import ROUNDING
from penstock.models.limits import LastChange, bounded
from penstock.models.operators import Measures, sink_rate, waiting
from penstock.models.window import Window

Throughput = Literal["sink", "read"]


@dataclass
class DhalionAdapted(Policy):
    """Up by what arrives over what is read while latency is high and lag grows; down by a share when all is quiet.

    cooldown: seconds after a change of the worker count without another.
    latency_threshold: seconds of latency above which the job may be short of workers, and below which it is not.
    over_provisioning: share of workers to add on the way up.
    backpressure_threshold: share of time in which the most held-back operator may wait on the way down.
    cpu_threshold: CPU below which there may be too many workers.
    scale_down_share: share of the workers to remove on the way down.
    throughput: sink: records that reach the sinks, as in the thesis; read: records that the job reads.
    window: seconds over which rates, CPU, backpressure and the slope of the lag are taken.
    """

    name: ClassVar[str] = "dhalion-adapted"
    paper: ClassVar[str] = "Koper 2022, TU Delft, section 3.4"
    inputs: ClassVar[tuple[str, ...]] = (
        "requested",
        "workers",
        "latency",
        "backlog",
        "input_rate",
        "processed_rate",
        "per_worker.cpu",
        "operators.backpressure",
        "operators.rate_in",
    )

    max_workers: int = 16
    interval: float = 10.0
    cooldown: float = 120.0
    latency_threshold: float = 5.0
    over_provisioning: float = 0.2
    backpressure_threshold: float = 0.1
    cpu_threshold: float = 0.6
    scale_down_share: float = 0.2
    throughput: Throughput = "sink"
    window: float = 60.0
    _measures: Measures = field(init=False, repr=False)
    _lag: Window = field(init=False, repr=False)
    _cpu: Window = field(init=False, repr=False)
    _change: LastChange = field(default_factory=LastChange, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("cooldown", "latency_threshold", "over_provisioning"):
            check(getattr(self, name) >= 0, name, "be 0 or more", getattr(self, name))
        for name in ("backpressure_threshold", "cpu_threshold"):
            check(0 < getattr(self, name) <= 1, name, "be in (0, 1]", getattr(self, name))
        check(0 < self.scale_down_share < 1, "scale_down_share", "be in (0, 1)", self.scale_down_share)
        check(self.throughput in get_args(Throughput), "throughput", "be sink or read", self.throughput)
        check(self.window > 0, "window", "be above 0 seconds", self.window)
        self._measures, self._lag, self._cpu = Measures(self.window), Window(self.window), Window(self.window)

    def learn(self, observation: Observation) -> None:
        self._change.learn(observation)
        self._measures.add(observation)
        self._lag.add(observation.at, observation.backlog)
        self._cpu.add(observation.at, observation.cpu)

    def decide(self, observation: Observation) -> Decision:
        current, latency = observation.requested, waiting(observation)
        if current is None or observation.blind:
            return Decision.hold(current, _unknown("Nothing is measured now"))
        rest = self._change.rest(observation, self.cooldown)
        if rest is not None:
            return bounded(Decision.hold(current, rest), self.min_workers, self.max_workers)
        if latency is None:
            return Decision.hold(current, _unknown("Latency is not known"))
        high = latency > self.latency_threshold
        decision = self._up(observation, current, latency) if high else self._down(current, latency)
        return bounded(decision, self.min_workers, self.max_workers)

    def _up(self, observation: Observation, current: int, latency: float) -> Decision:
        growth, load, throughput = self._lag.slope, self._measures.input_rate, self._throughput()
        if growth is None or load is None or not throughput:
            return Decision.hold(current, _unknown("Whether the lag grows, or how fast records are read, is not known"))
        facts: dict[str, Fact] = {
            "latency": latency,
            "growth": growth,
            "input_rate": load,
            "processed_rate": throughput,
        }
        if growth <= 0:
            sentence = (
                f"Latency {latency:.1f} s is high, but the lag shrinks by {-growth:,.0f} records/s: {current} stay"
            )
            return Decision.hold(current, Reason("dhalion.catching_up", sentence, facts))
        running = observation.workers or current
        ratio = load / throughput
        wanted = ceil(running * ratio * (1 + self.over_provisioning) * (1 - ROUNDING))
        sentence = (
            f"Latency {latency:.1f} s is above {self.latency_threshold:g} s and the lag grows: {running}"
            f" worker{'s' * (running != 1)} x {load:,.0f} arriving / {throughput:,.0f} processed"
            f" x {1 + self.over_provisioning:g} -> {wanted}"
        )
        return Decision(max(wanted, current), (Reason("dhalion.under_provisioned", sentence, facts),))

    def _down(self, current: int, latency: float) -> Decision:
        cpu, backpressure = self._cpu.mean, self._backpressure()
        if cpu is None or backpressure is None:
            return Decision.hold(current, _unknown("CPU or backpressure is not known"))
        facts: dict[str, Fact] = {"latency": latency, "cpu": cpu, "backpressure": backpressure}
        seen = f"latency {latency:.1f} s, backpressure {100 * backpressure:.0f} %, CPU {100 * cpu:.0f} %"
        quiet = backpressure < self.backpressure_threshold and latency < self.latency_threshold
        if not quiet or cpu >= self.cpu_threshold:
            return Decision.hold(
                current, Reason("dhalion.fits", f"Neither too few nor too many ({seen}): no change", facts)
            )
        wanted = floor(current * (1 - self.scale_down_share) * (1 + ROUNDING))
        sentence = f"All is quiet ({seen}): {100 * self.scale_down_share:g} % fewer, {current} -> {wanted}"
        return Decision(wanted, (Reason("dhalion.over_provisioned", sentence, facts),))

    def _throughput(self) -> float | None:
        sunk = sink_rate(self._measures.operators) if self.throughput == "sink" else None
        return self._measures.processed_rate if sunk is None else sunk

    def _backpressure(self) -> float | None:
        """Of the most held-back operator. A job seen as a whole has nothing downstream that could hold it back: 0."""
        if self._measures.whole:
            return 0.0
        known = [o.backpressure for o in self._measures.operators if o.backpressure is not None]
        return max(known, default=None)


def _unknown(what: str) -> Reason:
    return Reason("dhalion.unknown", f"{what}: no change")
