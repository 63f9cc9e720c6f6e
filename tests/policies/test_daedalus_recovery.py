"""Recovery times, predicted and observed, on the simulated word count of the paper, with a worker lost every hour."""

from __future__ import annotations

from statistics import median

from penstock import guards, workloads
from penstock.core import Decision, Observation, Reason
from penstock.policies.daedalus import Daedalus
from penstock.targets.simulated import SimulatedTarget, run

HOURS = 6


def test_recovery_is_predicted_to_a_quarter_of_what_is_observed() -> None:
    """Its rates are means of a minute and 15 s old, so that most of a recovery is lag, the same at every load."""
    load = workloads.make("sine", low=2_900.0, high=57_600.0, periods=2, duration=HOURS * 3600.0)
    target = SimulatedTarget("flink-wordcount", load, workers=4, seed=1)
    for hour in range(1, HOURS):
        target.fail(target.clock.now() + 3600.0 * hour)
    told: list[Reason] = []

    def note(_: Observation, decision: Decision) -> None:
        told.extend(reason for reason in decision.reasons if reason.code == "recovery.observed")

    policy = Daedalus(max_workers=18)
    run(target, policy, guards.default(1, 18), duration=HOURS * 3600.0, on_decision=note)
    errors = []
    for reason in told:
        observed, predicted = reason.facts["observed"], reason.facts["predicted"]
        if isinstance(observed, float) and isinstance(predicted, float) and observed > 0:
            errors.append(abs(predicted - observed) / observed)
    assert {reason.facts["way"] for reason in told} == {"out", "in", "failure"}
    assert len(errors) >= 12
    assert median(errors) <= 0.25
    for way in ("out", "in"):
        stop = policy._known.downtimes.anticipated(way)
        assert stop.lag >= 60, "the window of its meters at least"
        assert stop.downtime <= 20, "and what they smear is not taken for a stop"
