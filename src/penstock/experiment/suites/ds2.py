"""DS2 in one step and in at most three: Kalavri et al., OSDI 2018, sec. 5.2 (Heron) and table 4 (Flink)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.experiment.cell import Cell, Row
from penstock.experiment.suites.base import Comparison, Finding, Published, Sheet, Suite, Summary, with_oracle
from penstock.measures import Interval, over_seeds

HERON = "heron-wordcount"
SENTENCES = 1_000_000 / 60  # records/s (sec. 5.2)
OPERATORS = 64  # the most instances of one operator on Heron's machine
SLOTS = 36  # and on the Flink cluster
RUN = 900.0  # seconds; five minutes in sec. 5.4, too few for three restarts with their warm-up and five quiet intervals
STARTS = (8, 12, 16, 20, 24, 28)
# Heron: instances of both operators, steps, and seconds until the last.
FIGURES: dict[str, dict[str, float]] = {
    "ds2": {"flatmap": 10, "count": 20, "steps": 1, "seconds": 60},
    "dhalion": {"flatmap": 22, "count": 30, "steps": 6, "seconds": 2000},
}
# Table 3: records/s. Table 4: instances of the main operator, step by step, from each start.
QUERIES: dict[str, tuple[float, str, dict[int, tuple[int, ...]]]] = {
    "q1": (4e6, "map", {8: (12, 16), 12: (16,), 16: (16,), 20: (16,), 24: (16,), 28: (16,)}),
    "q2": (4e6, "filter", {8: (11, 13, 14), 12: (14,), 16: (12, 14), 20: (13, 14), 24: (14,), 28: (14,)}),
    "q3": (6e5, "join", {8: (16, 20), 12: (18, 20), 16: (20,), 20: (20,), 24: (20,), 28: (20,)}),
    "q5": (5e5, "window", {8: (14, 15, 16), 12: (16,), 16: (16,), 20: (14, 16), 24: (14, 16), 28: (13, 16)}),
    "q8": (5.4e5, "join", {8: (10,), 12: (10,), 16: (8, 10), 20: (8, 10), 24: (8, 10), 28: (8, 10)}),
    "q11": (1e6, "session", {8: (12, 22, 28), 12: (22, 28), 16: (26, 28), 20: (28,), 24: (28,), 28: (28,)}),
}
STAGES = {  # of the profiles, source first
    "q1": ("source", "map"),
    "q2": ("source", "filter"),
    "q3": ("source", "filter", "join"),
    "q5": ("source", "window"),
    "q8": ("source", "join"),
    "q11": ("source", "session"),
}


def _cells() -> Iterator[Cell]:
    heron: dict[str, dict[str, Any]] = {
        "ds2": {"name": "ds2", "interval": 60.0, "warm_up": 0},
        # The policy in Heron's public code, on which Dhalion was run, registers no resolver that scales down.
        "dhalion": {"name": "dhalion", "scale_down_share": 0.0},
    }
    for policy, settings in heron.items():
        yield Cell(
            group=HERON,
            policy=policy,
            settings=settings,
            profile=HERON,
            workload={"kind": "constant", "level": SENTENCES, "duration": 4800.0},
            seed=0,
            max_workers=3 * OPERATORS,
            initial_workers=3,
            parallelism={"source": 1, "flatmap": 1, "count": 1},
            latency_target=300.0,
        )
    for query, (rate, _, starts) in QUERIES.items():
        for start in starts:
            yield Cell(
                group=query,
                policy=f"ds2-from-{start}",
                settings={"name": "ds2", "interval": 30.0, "warm_up": 1},
                profile=f"nexmark-{query}-ds2",
                workload={"kind": "constant", "level": rate, "duration": RUN},
                seed=0,
                max_workers=SLOTS * len(STAGES[query]),
                initial_workers=start * len(STAGES[query]),
                parallelism=dict.fromkeys(STAGES[query], start),
                latency_target=300.0,
            )


def steps(row: Row, operator: str, start: int) -> list[int]:
    """How many instances an operator got, one number per change; none where its start was right."""
    found = [start]
    for _, _, parallelism in json.loads(row.lines).get("decisions", []):
        if operator in parallelism and found[-1] != parallelism[operator]:
            found.append(int(parallelism[operator]))
    return found[1:]


def changes(row: Row) -> list[tuple[float, Mapping[str, int]]]:
    """Every change of any operator's instances."""
    found: list[tuple[float, Mapping[str, int]]] = []
    for at, _, parallelism in json.loads(row.lines).get("decisions", []):
        if not found or found[-1][1] != parallelism:
            found.append((float(at), parallelism))
    return found


def _heron(row: Row) -> dict[str, float]:
    made = changes(row)
    last: Mapping[str, int] = made[-1][1] if made else {}
    return {
        "flatmap": float(last.get("flatmap", 1)),
        "count": float(last.get("count", 1)),
        "steps": float(len(made)),
        "seconds": made[-1][0] if made else 0.0,
    }


def _start(policy: str) -> int:
    return int(policy.rsplit("-", 1)[1])


def _compare(suite: Suite, summary: Summary) -> list[Comparison]:
    found = []
    for p in suite.published:
        rows = summary.rows(p.group, p.policy)
        measured: Interval | None = None
        if rows and p.group == HERON:
            measured = over_seeds(_heron(row)[p.measure] for row in rows)
        elif rows:
            start = _start(p.policy)
            measured = over_seeds([start, *steps(row, p.measure, start)][-1] for row in rows)
        found.append(Comparison(p.group, p.policy, p.measure, "s" if p.measure == "seconds" else "", p.value, measured))
    return found


def _published() -> Iterator[Published]:
    for policy, figures in FIGURES.items():
        for measure, value in figures.items():
            yield Published(HERON, policy, measure, value)
    for query, (_, main, starts) in QUERIES.items():
        for start, reached in starts.items():
            yield Published(query, f"ds2-from-{start}", main, reached[-1])


def _judge(suite: Suite, summary: Summary) -> list[Finding]:
    found = []
    by = {(c.policy, c.measure): c for c in suite.compare(suite, summary) if c.group == HERON}
    for measure, value in FIGURES["ds2"].items():
        c = by["ds2", measure]
        mean = None if c.measured is None else c.measured.mean
        kept = None if mean is None else mean == value
        found.append(Finding(HERON, f"ds2: {measure} is {value:g}", "not run" if mean is None else f"{mean:g}", kept))
    one, other = by["ds2", "steps"].measured, by["dhalion", "steps"].measured
    if one is not None and other is not None:
        text = f"{one.mean:g} against {other.mean:g}"
        found.append(Finding(HERON, "ds2 takes fewer steps than dhalion (1 against 6)", text, one.mean < other.mean))
    for operator in ("flatmap", "count"):
        ended, published = by["dhalion", operator].measured, FIGURES["dhalion"][operator]
        if ended is not None:
            claim = f"dhalion ends with more {operator} instances than are needed (published: {published:g})"
            found.append(Finding(HERON, claim, f"{ended.mean:g}", ended.mean > FIGURES["ds2"][operator]))
    for query, (_, main, starts) in QUERIES.items():
        made = {
            start: [steps(row, main, start) for row in summary.rows(query, f"ds2-from-{start}")] for start in starts
        }
        if any(made.values()):
            found += _converged(query, main, made)
    return found


def _converged(query: str, main: str, made: Mapping[int, Sequence[Sequence[int]]]) -> list[Finding]:
    """Table 4 of one query, over all seeds."""
    final = QUERIES[query][2][STARTS[0]][-1]
    most = max(len(each) for runs in made.values() for each in runs)
    ended = sorted({[start, *each][-1] for start, runs in made.items() for each in runs})
    return [
        Finding(query, f"{main}: at most three steps from every start", f"{most} at most", most <= 3),
        Finding(query, f"{main}: {final} in the end from every start", _listed(ended), ended == [final]),
    ]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(str(n) for n in numbers)


def _sheets(rows: Sequence[Row]) -> list[Sheet]:
    """Table 4: the first seed's steps of the main operator, measured and published."""
    first = {(row.group, row.policy): row for row in reversed(rows)}
    lines = []
    for start in STARTS:
        cells = [str(start)]
        for query, (_, main, starts) in QUERIES.items():
            row = first.get((query, f"ds2-from-{start}"))
            made = "not run" if row is None else " → ".join(str(n) for n in steps(row, main, start)) or f"{start} stay"
            cells.append(f"{made} (published {' → '.join(str(n) for n in starts[start])})")
        lines.append(tuple(cells))
    title = "Instances of the main operator, step by step (first seed), beside table 4"
    return [Sheet(title, ("start", *QUERIES), tuple(lines))]


SUITE = Suite(
    name="ds2",
    title="DS2: convergence on Heron and Flink",
    paper="Kalavri et al., Three steps is all you need, OSDI 2018, sec. 5.2 and table 4",
    settings=(
        "Heron: 1,000,000 sentences a minute, one instance of each operator at first, DS2 every 60 s without warm-up.",
        "Dhalion only scales up, as the policy in Heron's public code; it diagnoses every 300 s. Its steps come of "
        "queues of 100 MiB that have to fill before there is backpressure; bytes per sentence and word are assumed.",
        f"Flink: the rates of table 3, DS2 every 30 s with 30 s of warm-up, runs of {RUN / 60:g} minutes; all "
        "operators start alike. Sources make their records at that rate, and what they cannot send is lost.",
        "Each query has one profile. Three of its quantities (what an instance does, how that falls with the instances "
        "at work, how much faster it seems when idle) are fitted to table 4: that one law fits all starts is the "
        "result.",
        "The published first steps of q2 from 16 and 20, and of q11 from 8, do not follow such a law. The last is left "
        "out of the fit: with it, q11 needs five steps from 8.",
    ),
    plan=with_oracle(_cells()),
    published=tuple(_published()),
    compare=_compare,
    judge=_judge,
    sheets=_sheets,
)
