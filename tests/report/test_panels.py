"""Several runs side by side: their numbers, in words, and as four panels."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, isnan, pi, sin
from pathlib import Path
from typing import Any

import pytest

from penstock.core import Observation, Reason
from penstock.errors import ConfigError
from penstock.journal import Record, Rescale, Sample, Setting, Start, Stop
from penstock.report import markdown, results
from penstock.report.colours import STYLES, Style, style
from penstock.report.panels import HEIGHT, WIDTH, _line, draw
from penstock.report.results import Goal, Ran, Result, collect, judge, latencies, looks, ratios

BEGAN = 1_800_000_000.0
WHY = Reason("loop.stopped", "The loop was asked to stop")


def start(at: float = BEGAN, *, resumed: bool = False) -> Start:
    return Start(at=at, policy=Setting("hpa"), resumed=resumed)


def stop(at: float) -> Stop:
    return Stop(at=at, reason=WHY)


def seen(t: float, workers: int | None, latency: float | None = 1.0, load: float | None = 100.0) -> Sample:
    return Sample(observation=Observation(BEGAN + t, workers, workers, input_rate=load, latency=latency, backlog=0.0))


def summary(*, equal: bool = True, finished: bool = True, lost: int = 0, **more: Any) -> dict[str, Any]:
    sentence = "every word counted once" if equal else f"{lost} records are missing"
    verdict = {"equal": equal, "records_in": 5000, "records_out": 5000 - lost, "sentence": sentence}
    return {"max_workers": 6, "finished": finished, "failed_tasks": 0, "verdict": verdict, **more}


def steady(workers: int, latency: float | None, seconds: int = 100) -> list[Record]:
    """The same for all its seconds."""
    return [start(), *(seen(t, workers, latency) for t in range(seconds)), stop(BEGAN + seconds)]


def wave(wanted: Callable[[float], int], worst: float = 3.0) -> list[Record]:
    """Twelve minutes of a sine of two periods; workers come 20 s after they were asked for."""
    records: list[Record] = [start()]
    before = 2
    for t in range(720):
        load = 5000 * (0.55 - 0.45 * sin(pi / 2 + 4 * pi * t / 720))
        asked = wanted(load / 5000)
        if asked != before:
            records.append(Rescale(at=BEGAN + t, before=before, after=asked, outcome="done", sentence="asked"))
            before = asked
        workers = wanted(0.55 - 0.45 * sin(pi / 2 + 4 * pi * max(0, t - 20) / 720))
        latency = None if t < 6 else 1.2 + worst * max(0.0, load / 5000 - workers / 7.5) * 5 + 0.3 * (t % 7) / 7
        records.append(seen(t, workers, latency, load))
    return [*records, stop(BEGAN + 720)]


RUNS = (
    Ran("sine", "daedalus", wave(lambda x: max(1, ceil(6 * x * 0.85))), summary()),
    Ran("sine", "hpa-80", wave(lambda x: max(2, min(6, ceil(7.5 * x))), 1.0), summary()),
    Ran("sine", "hpa-85", wave(lambda x: max(2, min(6, ceil(7 * x))), 1.5), summary()),
    Ran("sine", "static", wave(lambda _: 6, 0.5), summary()),
)


def test_the_numbers_of_a_run() -> None:
    records: list[Record] = [
        start(),
        *(seen(t, 2, 1.0) for t in range(90)),
        Rescale(at=BEGAN + 90, before=2, after=4, outcome="done", sentence="asked"),
        Rescale(at=BEGAN + 90, before=4, after=6, outcome="refused", sentence="no"),
        *(seen(t, 4, 3.0) for t in range(90, 96)),
        *(seen(t, 4, None) for t in range(96, 100)),
        Rescale(at=BEGAN + 100, before=4, after=3, outcome="done", sentence="asked"),
    ]
    (result,) = collect([Ran("sine", "hpa-80", records, summary(failed_tasks=2))], 4)
    assert (result.duration, result.worker_seconds, result.average_workers) == (100, 2 * 90 + 4 * 10, 2.2)
    assert result.share_of_static == pytest.approx(2.2 / 4), "no static run: against its workers all the time"
    assert result.latency_average == pytest.approx((90 * 1.0 + 6 * 3.0) / 96)
    assert (result.latency_p50, result.latency_p95, result.latency_p99) == (1.0, 3.0, 3.0)
    assert result.latency_known == pytest.approx(0.96)
    assert (result.rescales_out, result.rescales_in, result.failed_tasks) == (1, 1, 2)
    assert result.sound


def test_a_pause_is_neither_cost_nor_time() -> None:
    later = 50_000
    records: list[Record] = [
        start(),
        *(seen(t, 2, 1.0) for t in range(50)),
        stop(BEGAN + 50),
        start(BEGAN + later, resumed=True),
        *(seen(later + t, 4, 2.0) for t in range(50)),
        stop(BEGAN + later + 50),
    ]
    (result,) = collect([Ran("sine", "hpa-80", records, summary())], 4)
    assert (result.duration, result.worker_seconds, result.pauses) == (100, 2 * 50 + 4 * 50, 1)
    assert result.latency_average == pytest.approx(1.5)
    assert [look.t for look in looks(records)] == list(range(100))
    assert "**sine-hpa-80 was stopped and went on once**" in page([result])


def test_latency_is_weighted_by_time() -> None:
    records: list[Record] = [
        start(),
        *(seen(t, 1, latency) for t, latency in ((0, 1.0), (2, 5.0), (3, None), (5, 1.0), (7, 9.0))),
    ]
    records.append(stop(BEGAN + 8))
    assert [latency for latency, _ in latencies(records)] == [1.0, 5.0, 9.0]
    assert [share for _, share in latencies(records)] == pytest.approx([4 / 6, 5 / 6, 1])


@pytest.mark.parametrize("latency", [None, 2.0])
def test_what_was_never_known_stays_unknown(latency: float | None) -> None:
    records: list[Record] = [start(), *(seen(t, None, latency) for t in range(9)), stop(BEGAN + 9)]
    (result,) = collect([Ran("sine", "hpa-80", records, summary())], 4)
    assert (result.worker_seconds, result.average_workers, result.share_of_static) == (None, None, None)
    assert (result.latency_average, result.latency_known) == (latency, 0.0 if latency is None else 1.0)
    assert "unknown" in page([result])


def test_a_journal_without_observations_is_said() -> None:
    with pytest.raises(ConfigError, match="journal must have at least one observation, got none in sine-hpa-80"):
        collect([Ran("sine", "hpa-80", [start()], summary())], 4)


def four() -> tuple[Result, ...]:
    return collect(
        [
            Ran("sine", "daedalus", steady(3, 2.0), summary()),
            Ran("sine", "hpa-80", steady(5, 2.5), summary()),
            Ran("sine", "static", steady(6, 1.0, seconds=110), summary()),
            Ran("advertising", "daedalus", steady(2, 2.0), summary()),
        ],
        static_workers=4,
    )


def test_shares_and_ratios() -> None:
    found = four()
    shares = [r.share_of_static for r in found]
    assert shares == pytest.approx([300 / 660, 500 / 660, 1.0, 2 / 4]), "of the static run where there is one"
    ratio = {(r.load, r.policy): r for r in ratios(found)}
    assert set(ratio) == {("sine", "daedalus"), ("sine", "static")}, "advertising has no hpa-80 here"
    assert ratio["sine", "daedalus"].cost == pytest.approx(0.6)
    assert ratio["sine", "daedalus"].latency == pytest.approx(0.8)
    assert ratio["sine", "daedalus"].rescales is None, "0 of 0 is no ratio"


def test_goals() -> None:
    by = {(check.load, check.goal): check for check in judge(four(), Goal())}
    assert by["sine", "daedalus: worker-seconds at most 0.75 × those of hpa-80"].kept is True
    assert by["sine", "daedalus: average latency at most 1.25 × that of hpa-80"].measured == "0.80 ×"
    assert by["sine", "daedalus: fewer rescales than hpa-80"].kept is False, "as many are not fewer"
    strict = {check.goal: check.kept for check in judge(four(), Goal(cost=0.5, latency=0.5))}
    assert strict["daedalus: worker-seconds at most 0.5 × those of hpa-80"] is False
    assert strict["daedalus: average latency at most 0.5 × that of hpa-80"] is False


def page(found: Sequence[Result], **how: Any) -> str:
    given = {"title": "Words", "command": "penstock bench spark", "setting": ["2 cores."], "pictures": {}, **how}
    return markdown.page(found, judge(found, Goal()), **given)


def test_the_page_says_it_in_words() -> None:
    text = page(four(), pictures={"sine": "sine.png"}, missing=["advertising-hpa-80"])
    assert (
        "- On sine, daedalus used 60 % of the worker-seconds of hpa-80 (3.0 against 5.0 workers on average); "
        "average latency 2.00 s against 2.50 s, 0.80 ×; 0 rescales against 0.\n"
    ) in text
    assert "![sine: load, workers, latency and resource use](sine.png)" in text
    assert "| daedalus | 3.00 | 300 | 45 % | 2.00 s | 2.00 s | 2.00 s | 2.00 s | 100 % | 0 / 0 | 5,000 | 0 |" in text
    assert "Not run, or not finished: advertising-hpa-80." in text
    assert "- `penstock bench spark`\n- Run from 2027-01-15 08:00 to 2027-01-15 08:01 UTC.\n- 2 cores." in text
    assert "on advertising, where there is none, against its workers" in text
    widths = [len(line.split("|")) for line in text.splitlines() if line.startswith("| policy") or "3.00" in line[:20]]
    assert len(set(widths)) == 1


def test_what_is_wrong_is_bold() -> None:
    runs = [
        Ran("sine", "hpa-80", steady(5, 2.5), summary(equal=False, lost=7)),
        Ran("sine", "static", steady(6, 2.5), summary(finished=False, failed_tasks=3)),
    ]
    text = page(collect(runs, 4))
    assert "**sine-hpa-80: the recount is not equal: 7 records are missing**" in text
    assert "| **5,000 ≠ 4,993** |" in text
    assert "**sine-static: the load was not worked off in time.**" in text
    assert "| **3** |" in text
    assert [r.sound for r in collect(runs, 4)] == [False, False]


def test_csv_and_json() -> None:
    found = four()
    rows = list(csv.DictReader(io.StringIO(results.table(found))))
    assert [(row["load"], row["policy"]) for row in rows] == [(r.load, r.policy) for r in found]
    assert float(rows[0]["worker_seconds"]) == 300
    plain = json.loads(json.dumps(results.document(found, judge(found, Goal()), command="c"), allow_nan=False))
    assert plain["command"] == "c"
    assert plain["results"][0]["average_workers"] == 3
    assert plain["ratios"][0]["base"] == "hpa-80"
    assert {check["kept"] for check in plain["checks"]} <= {True, False, None}


def test_unknown_and_unwatched_times_are_gaps() -> None:
    records: list[Record] = [start(), seen(0, 1), seen(1, None), seen(2, 3), seen(60, 4), stop(BEGAN + 61)]
    times, values = _line(looks(records), lambda o: o.workers)
    assert [round(60 * t) for t in times] == [0, 1, 2, 2, 60]
    assert [None if isnan(value) else value for value in values] == [1, None, 3, None, 4]


PICTURES: dict[str, Sequence[Ran]] = {
    "all four": RUNS,
    "without static": RUNS[:2],
    "nothing known": [
        Ran("sine", "hpa-80", [start(), seen(0, None, None, None), seen(1, None, None, None)], summary())
    ],
    "one look": [Ran("sine", "hpa-80", [start(), seen(0, 2)], summary())],
    "no latency at all is no delay": [Ran("sine", "hpa-80", steady(2, 0.0), summary())],
    "dearer than static": [RUNS[3], replace(RUNS[3], policy="mine", records=steady(9, 2.0, seconds=900))],
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_right_size(name: str, tmp_path: Path) -> None:
    path = tmp_path / "sine.png"
    planned = [(t, 5000 * (0.55 - 0.45 * sin(pi / 2 + 4 * pi * t / 720))) for t in range(0, 721, 4)]
    draw(PICTURES[name], path, title=name, static=4, planned=planned, capacity=6250)
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", head[16:24]) == (WIDTH, HEIGHT)


def test_nothing_or_nowhere_to_draw_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="runs must be at least one to draw, got none"):
        draw([], tmp_path / "x.png", title="", static=4)
    with pytest.raises(
        ConfigError, match=r"picture must be a file that can be written, got '.*nowhere/x\.png': No such"
    ):
        draw(RUNS[:1], tmp_path / "nowhere" / "x.png", title="", static=4)


def test_no_two_policies_look_alike() -> None:
    looks_of = [look for name, look in STYLES.items() if name != "hpa"]  # hpa is hpa-80, by its default
    assert len(set(looks_of)) == len(looks_of)
    assert style("hpa") == style("hpa-80")
    assert style("somebody's own") not in STYLES.values()
    assert style("keda_lag") == STYLES["keda-lag"] == Style("#56B4E9", "--")
