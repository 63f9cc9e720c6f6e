from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from penstock.core import Decision, Observation, Option, Reason
from penstock.journal import Decided, Event, Record, Rescale, Sample, Setting, Start, Stop
from penstock.report.story import Begun, Entry, Happened, Judged, tell
from penstock.report.terminal import seen, story

GONE = Reason("metrics.unavailable", "The job cannot be observed: test")
NEAR = Reason("cpu.in_tolerance", "CPU 78 % is near its target of 80 %")
ABOVE = Reason("cpu.above_target", "CPU 95 % is above its target of 80 %")
COOLING = Reason("cooldown.up", "The last rescale was 5 s ago: not up to 4 before 60 s have passed")
STOPPED = Reason("loop.stopped", "The loop was asked to stop")


def start(at: float = 0, resumed: bool = False) -> Start:
    return Start(at=at, policy=Setting("hpa"), resumed=resumed)


def sample(at: float, *events: Reason) -> Sample:
    return Sample(observation=Observation(at=at, requested=3, events=events))


def control(
    at: float, workers: int | None, *reasons: Reason, proposed: int | None = None, requested: int = 3
) -> Decided:
    observation = Observation(at=at, workers=requested, requested=requested, backlog=0)
    decision = Decision(workers, reasons or (NEAR,))
    wanted = workers if proposed is None else proposed
    return Decided(at=at, by="hpa", role="control", proposed=wanted, decision=decision, observation=observation)


def shadow(at: float, workers: int) -> Decided:
    return Decided(at=at, by="static", role="shadow", proposed=workers, decision=Decision(workers, (NEAR,)))


def rescale(at: float, after: int, outcome: str = "done") -> Rescale:
    return Rescale(at=at, before=3, after=after, outcome=outcome, sentence="Asked for it")  # type: ignore[arg-type]


def shape(entries: list[Entry]) -> str:
    """One word an entry: what it is, and how often."""
    return " ".join(
        "again" if isinstance(e, Begun) and e.again
        else "start" if isinstance(e, Begun)
        else f"{e.reason.code}*{e.count}" if isinstance(e, Happened)
        else f"{e.decided.by}:{e.requested}>{e.decided.decision.workers}*{e.count}"
        for e in entries
    )  # fmt: skip


STORIES: dict[str, tuple[list[Record], str]] = {
    "holds alike fold": (
        [start(), control(0, 3), sample(1), control(15, 3), control(30, 3)],
        "start hpa:3>3*3",
    ),
    "another reason does not": (
        [start(), control(0, 3), control(15, 3, ABOVE, COOLING), control(30, 3)],
        "start hpa:3>3*1 hpa:3>3*1 hpa:3>3*1",
    ),
    "a change stands alone": (
        [start(), control(0, 3), control(15, 4, ABOVE), rescale(15, 4), control(30, 4, requested=4)],
        "start hpa:3>3*1 hpa:3>4*1 hpa:4>4*1",
    ),
    "advice that repeats folds": (
        [start(), control(0, 4), rescale(0, 4, "dry-run"), control(15, 4), rescale(15, 4, "dry-run")],
        "start hpa:3>4*2",
    ),
    "but not with another outcome": (
        [start(), control(0, 4), rescale(0, 4, "unavailable"), control(15, 4), rescale(15, 4, "done")],
        "start hpa:3>4*1 hpa:3>4*1",
    ),
    "an outage is told once": (
        [start(), sample(1, GONE), sample(2, GONE), control(3, 3), sample(4, GONE)],
        "start metrics.unavailable*2 hpa:3>3*1 metrics.unavailable*1",
    ),
    "two outages are two": (
        [start(), sample(1, GONE), sample(2), sample(3, GONE)],
        "start metrics.unavailable*1 metrics.unavailable*1",
    ),
    "an event ends a run of holds": (
        [start(), control(0, 3), sample(1, GONE), control(15, 3)],
        "start hpa:3>3*1 metrics.unavailable*1 hpa:3>3*1",
    ),
    "shadows fold apart": (
        [start(), control(0, 3), shadow(0, 6), control(15, 3), shadow(15, 6), control(30, 3), shadow(30, 5)],
        "start hpa:3>3*3 static:3>6*2 static:3>5*1",
    ),
    "a restart ends everything": (
        [start(), control(0, 3), start(60, True), control(60, 3), Stop(at=70, reason=STOPPED)],
        "start hpa:3>3*1 again hpa:3>3*1 loop.stopped*1",
    ),
    "killed before the outcome": (
        [
            start(),
            control(0, 4),
            start(60, True),
            Event(at=60, reason=Reason("loop.unfinished", "The last loop decided on 4")),
        ],
        "start hpa:3>4*1 again loop.unfinished*1",
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_stories(name: str) -> None:
    records, expected = STORIES[name]
    assert shape(tell(records)) == expected


def test_unfolded_every_decision_is_told() -> None:
    records, _ = STORIES["holds alike fold"]
    assert shape(tell(records, fold=False)) == "start hpa:3>3*1 hpa:3>3*1 hpa:3>3*1"


def test_a_folded_entry_has_its_first_and_last_instant() -> None:
    _, entry = tell(STORIES["holds alike fold"][0])
    assert isinstance(entry, Judged)
    assert (entry.at, entry.until, entry.decided.at) == (0, 30, 30)


def shown(records: list[Record]) -> str:
    out = StringIO()
    Console(file=out, width=100, highlight=False).print(story(tell(records), 0))
    return " ".join(out.getvalue().split())


def test_the_guards_word_is_told() -> None:
    text = shown([start(), control(15, 3, ABOVE, COOLING, proposed=4)])
    assert "hold 3 hpa wants 4, but the guards make it 3: CPU 95 % is above its target of 80 %" in text
    assert "[cooldown.up]" in text


def test_options_are_a_table() -> None:
    options = (Option(3, False, ABOVE), Option(4, True, NEAR))
    decided = Decided(at=0, by="hpa", role="control", proposed=4, decision=Decision(4, (ABOVE,), options))
    text = shown([start(), sample(0), decided, rescale(0, 4)])
    assert "workers verdict 3 CPU 95 % is above its target of 80 % [cpu.above_target] 4 chosen CPU 78 %" in text


def test_the_numbers_of_options_are_columns() -> None:
    options = (
        Option(2, False, Reason("capacity.below_load", "not above the 2,500 that arrive", {"capacity": 2000.0})),
        Option(3, True, Reason("daedalus.in", "the fewest", {"capacity": 3000.0, "recovery": 61.5, "by": "experts"})),
    )
    decided = Decided(at=0, by="daedalus", role="control", proposed=4, decision=Decision(4, (ABOVE,), options))
    text = shown([start(), sample(0), decided, rescale(0, 4)])
    assert "workers capacity recovery verdict 2 2,000 not above the 2,500" in text
    assert "3 3,000 62 chosen the fewest [daedalus.in]" in text


def test_an_outcome_that_nobody_noted() -> None:
    assert "The journal does not say how it went" in shown(STORIES["killed before the outcome"][0])


def test_a_number_that_nobody_knows() -> None:
    decided = Decided(at=0, by="hpa", role="control", proposed=None, decision=Decision(None, (NEAR,)))
    assert "hold ?" in shown([start(), decided])
    assert seen(Observation(at=0, requested=3)) == (
        "load unknown, CPU unknown, backlog unknown, unknown of 3 workers up"
    )
