from __future__ import annotations

import pytest

from penstock.core import Observation
from penstock.policies.static import Static

ROWS = {
    "sets its number": (Static(workers=4), Observation(at=0, requested=2, backlog=0), 4, "static.set"),
    "keeps its number": (Static(workers=4), Observation(at=0, requested=4, backlog=0), 4, "static.kept"),
    "the most when unset": (Static(max_workers=7), Observation(at=0, requested=2, backlog=0), 7, "static.set"),
    "holds when blind": (Static(workers=4), Observation(at=0, requested=2), 2, "static.blind"),
    "asks for nothing when lost": (Static(workers=4), Observation(at=0, backlog=0), None, "static.blind"),
}


@pytest.mark.parametrize(("policy", "observation", "workers", "code"), ROWS.values(), ids=ROWS)
def test_static(policy: Static, observation: Observation, workers: int | None, code: str) -> None:
    decision = policy.decide(observation)
    assert (decision.workers, decision.reason.code) == (workers, code)
