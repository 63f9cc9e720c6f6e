"""Expected against observed, by hand."""

from __future__ import annotations

import pytest

from penstock.core import Decision, Expectation, Observation, Reason
from penstock.errors import ConfigError
from penstock.journal import Decided, Record, Rescale, Sample, Setting, Start, Stop
from penstock.measures import Accuracy, Score, Scores, scores
from penstock.testing import sample

WHY = (Reason("capacity.below_load", "more is needed"),)


def decided(at: float, workers: int, seen: Observation | None, by: str = "daedalus", **expects: float) -> Decided:
    decision = Decision(workers, WHY, expects=Expectation(**expects) if expects else None)
    role = "control" if seen is not None else "shadow"
    return Decided(at=at, by=by, role=role, proposed=workers, decision=decision, observation=seen)  # type: ignore[arg-type]


def look(at: float, load: float | None, processed: float, backlog: float, workers: int = 2) -> Observation:
    return sample(at, workers=workers, input_rate=load, processed_rate=processed, backlog=backlog)


def run() -> list[Record]:
    """100 s at 10 s: two workers fall behind at 190/s, three work it off at 290/s; all calm from 60 s on."""
    records: list[Record] = [Start(at=0, policy=Setting("daedalus"))]
    records.append(decided(0, 2, look(0, 100, 100, 0), capacity=200, peak=150))
    records.append(decided(0, 2, None, by="shadow", peak=400, recovery=9))
    records.append(Sample(observation=look(10, 250, 180, 1000)))
    records.append(decided(20, 3, look(20, 300, 190, 2000), capacity=330, peak=330, recovery=50))
    records.append(Rescale(at=20, before=2, after=3, outcome="done", sentence="…"))
    records.append(Sample(observation=look(30, 200, 0, 4000, workers=3)))
    records.append(Sample(observation=look(40, 150, 290, 3000, workers=3)))
    records.append(Sample(observation=look(50, 150, 280, 1500, workers=3)))
    records.append(decided(60, 3, look(60, 150, 295, 10, workers=3), capacity=300, peak=160))
    records += [Sample(observation=look(at, 120, 120, 0, workers=3)) for at in (70, 80, 90)]
    records.append(Stop(at=100, reason=Reason("loop.stopped", "…")))
    return records


def test_every_score_by_hand() -> None:
    assert scores(run(), horizon=40).rows == (
        Score("capacity", 0, 2, 200, 190),
        Score("capacity", 20, 3, 330, 290),  # 295 was processed with next to no backlog, so it may not be all they can
        Score("capacity", 60, 3, 300, 290),
        Score("peak", 0, 2, 150, 300),
        Score("peak", 20, 3, 330, 300),
        Score("peak", 60, 3, 160, 150),
        Score("recovery", 20, 3, 50, 40),
    )


def test_the_table_by_hand() -> None:
    capacity, peak, recovery = scores(run(), horizon=40).table()
    assert (capacity.made, capacity.scored) == (3, 3)
    assert capacity.error == capacity.bias == pytest.approx((10 + 40 + 10) / (190 + 290 + 290))
    assert capacity.worst == pytest.approx(40 / 290)
    assert peak.error == pytest.approx((150 + 30 + 10) / 750)
    assert peak.bias == pytest.approx((-150 + 30 + 10) / 750)
    assert peak.worst == pytest.approx(0.5)
    assert recovery == Accuracy("recovery", 1, 1, 0.25, 0.25, 0.25)


def test_a_horizon_that_the_run_does_not_reach_is_not_scored() -> None:
    peak = scores(run(), horizon=41).of("peak")
    assert (peak.made, peak.scored) == (3, 2)


def test_a_shadow_is_scored_by_what_it_could_see_coming() -> None:
    assert scores(run(), horizon=40, by="shadow").rows == (Score("peak", 0, 2, 400, 300),)


def test_a_scale_out_that_was_never_at_its_limit_is_not_scored() -> None:
    records = [r for r in run() if not (isinstance(r, Sample) and r.observation.at in (10, 40, 50))]
    found = scores(records, horizon=40, saturated=20)
    assert [row.observed for row in found.rows if row.quantity == "capacity"] == [None, 0, 0]
    assert found.of("capacity").error is None


def test_a_peak_is_not_known_through_blind_time_or_a_gap() -> None:
    seen = decided(0, 2, look(0, 100, 100, 0), peak=100)
    every = [Sample(observation=look(at, 100, 100, 0)) for at in range(10, 110, 10)]
    blind = [Sample(observation=Observation(at=at, requested=2)) for at in (20, 30)]
    start = Start(at=0, policy=Setting("daedalus"))
    assert scores([start, seen, *every], horizon=100).rows[0].observed == 100
    mixed = sorted([*every[:1], *blind, *every[3:]], key=lambda record: record.observation.at)
    assert scores([start, seen, *mixed], horizon=100).rows[0].observed is None
    away: list[Record] = [*every[:5], Start(at=100, policy=Setting("daedalus"), resumed=True), *every[-1:]]
    assert scores([start, seen, *away], horizon=100).rows[0].observed is None
    assert scores([start, seen, *away], horizon=50).rows[0].observed == 100


def test_a_recovery_that_another_rescale_cuts_short_is_not_scored() -> None:
    records = run()
    index = next(i for i, r in enumerate(records) if isinstance(r, Sample) and r.observation.at == 40)
    records.insert(index, Rescale(at=35, before=3, after=4, outcome="done", sentence="…"))
    rows = [row for row in scores(records, horizon=40).rows if row.quantity == "recovery"]
    assert [row.observed for row in rows] == [None, 25]


def test_nothing_expected_is_an_empty_table() -> None:
    assert scores([Start(at=0, policy=Setting("hpa"))], horizon=1) == Scores(())
    assert Scores(()).table() == ()
    assert Scores(()).of("peak") == Accuracy("peak", 0, 0, None, None, None)


def test_a_horizon_is_ahead() -> None:
    with pytest.raises(ConfigError, match="horizon must be above 0 seconds, got 0"):
        scores([], horizon=0)
