"""What a run's failures are measured by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from penstock.core import Decision, Observation, Policy, Reason
from penstock.experiment.failures import Witness, as_shown
from penstock.measures import Recovery
from penstock.policies import make
from penstock.testing import sample


@dataclass
class Seer(Policy):
    """Says what it was given."""

    says: float | None = 100.0

    def decide(self, observation: Observation) -> Decision:
        return Decision.hold(observation.requested, Reason("test.hold", "As it is"))

    def recovery_now(self, observation: Observation) -> float | None:
        return None if self.says is None else self.says + observation.at


def told(policy: Policy, *failures: float) -> Witness:
    witness = Witness(policy, failures)
    for at in range(0, 100, 5):
        witness(sample(float(at), requested=2))
    return witness


def test_a_policy_is_asked_once_as_each_failure_begins() -> None:
    assert told(Seer(), 12.0, 50.0, 500.0).told == [(12.0, 115.0), (50.0, 150.0)]


@pytest.mark.parametrize("policy", [Seer(says=None), make("static")], ids=["it does not know", "it does not foretell"])
def test_nothing_is_told_where_nothing_is_known(policy: Policy) -> None:
    witness = told(policy, 12.0)
    assert witness.told == []
    assert witness.error([Recovery(12.0, "failure", 100.0, 500.0, False)]) is None


def test_the_error_is_a_mean_share_of_what_was_told() -> None:
    ended = [
        Recovery(15.0, "failure", 138.0, 35.0, False),  # 115 was told: 20 % more
        Recovery(30.0, "rescale", 10.0, 20.0, False),
        Recovery(50.0, "failure", 135.0, 500.0, False),  # 150: 10 % less
    ]
    assert told(Seer(), 12.0, 50.0).error(ended) == pytest.approx(0.15)


def test_a_recovery_that_never_ended_is_left_out() -> None:
    assert told(Seer(), 50.0).error([Recovery(50.0, "failure", None, 500.0, False)]) is None


def test_shown_latency_is_a_mean_of_what_is_known_while_the_job_is_up() -> None:
    latency = np.array([1.0, 1.0, np.nan, np.nan, 9.0, 5.0])
    up = np.array([True, True, False, False, True, True])
    assert as_shown(latency, up, 4.0).tolist() == pytest.approx([1, 1, np.nan, np.nan, 5, 7], nan_ok=True)
    assert as_shown(latency, up, 1.0) is latency
