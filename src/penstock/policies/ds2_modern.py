"""DS2 as it is run today on a reactive cluster: Koper, "Auto-scaling for stream processing" (TU Delft 2022), sec. 3.5.

DS2's model on the metrics that Flink reports itself, as means over a minute; sources are sized too, fed by what arrives
in the queue before them; the highest parallelism of any operator becomes the number of workers, and a share is added
on top. It knows nothing of the backlog, and where busy time stays low at full load it provisions too little (5.12).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar

from penstock.core import Decision, Fact, Observation, Policy, Reason
from penstock.errors import check
from penstock.models.dataflow import ROUNDING, explain, instances, plan, source_rates
from penstock.models.limits import LastChange, bounded
from penstock.models.operators import Measures


@dataclass
class Ds2Modern(Policy):
    """As many workers as the neediest operator needs instances, and some more.

    cooldown: seconds after a change of the worker count without another.
    over_provisioning: share of workers to add to what the model says.
    window: seconds over which rates and busy time are averaged.
    """

    name: ClassVar[str] = "ds2-modern"
    paper: ClassVar[str] = "Koper 2022, TU Delft, section 3.5"
    inputs: ClassVar[tuple[str, ...]] = (
        "requested",
        "input_rate",
        "operators.rate_in",
        "operators.rate_out",
        "operators.busy",
    )

    max_workers: int = 16
    interval: float = 20.0
    cooldown: float = 240.0
    over_provisioning: float = 0.33
    window: float = 60.0
    _measures: Measures = field(init=False, repr=False)
    _change: LastChange = field(default_factory=LastChange, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.cooldown >= 0, "cooldown", "be 0 seconds or more", self.cooldown)
        check(self.over_provisioning >= 0, "over_provisioning", "be 0 or more", self.over_provisioning)
        check(self.window > 0, "window", "be above 0 seconds", self.window)
        self._measures = Measures(self.window)

    def learn(self, observation: Observation) -> None:
        self._change.learn(observation)
        self._measures.add(observation)

    def decide(self, observation: Observation) -> Decision:
        current = observation.requested
        if current is None or observation.blind:
            return Decision.hold(current, Reason("dataflow.unknown", "Nothing is measured now: no change"))
        rest = self._change.rest(observation, self.cooldown)
        if rest is not None:
            return bounded(Decision.hold(current, rest), self.min_workers, self.max_workers)
        return bounded(self._sized(current, observation), self.min_workers, self.max_workers)

    def _sized(self, current: int, observation: Observation) -> Decision:
        operators, load = self._measures.operators, self._measures.input_rate
        rates = None if load is None else source_rates(operators, load)
        if load is None or rates is None:
            sentence = "What arrives at the sources is not known: no change"
            return Decision.hold(current, Reason("dataflow.unknown", sentence))
        model = plan(operators, rates, size_sources=True)
        if model is None:
            sentence = "The dataflow has a cycle, which this model cannot size: no change"
            return Decision.hold(current, Reason("dataflow.cyclic", sentence))
        if model.unknown:
            sentence = f"The true rate of {', '.join(model.unknown)} is not known: no change"
            return Decision.hold(current, Reason("dataflow.unknown", sentence))
        # Rounded up before and after the share is added, as in Koper's code.
        highest = max(instances(need) for need in model.needs.values())
        wanted = ceil(highest * (1 + self.over_provisioning) * (1 - ROUNDING))
        facts: dict[str, Fact] = {f"need_{name}": need for name, need in model.needs.items()}
        facts |= {"input_rate": load, "highest": highest, "over_provisioning": self.over_provisioning}
        share = f" and {100 * self.over_provisioning:g} % more" if self.over_provisioning else ""
        if wanted == current:
            sentence = f"{explain(operators, model)}{share}: {current} stay"
            return Decision.hold(current, Reason("dataflow.fits", sentence, facts))
        forbidden = self._forbidden(observation, current, wanted)
        if forbidden is not None:
            return Decision.hold(current, forbidden)
        code = "dataflow.below" if wanted > current else "dataflow.above"
        sentence = f"{explain(operators, model)}{share}: {current} -> {wanted}"
        return Decision(wanted, (Reason(code, sentence, facts),))

    def _forbidden(self, observation: Observation, current: int, wanted: int) -> Reason | None:  # noqa: ARG002
        """Why the change may not be made; here it always may."""
        return None
