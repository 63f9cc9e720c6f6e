from __future__ import annotations

import struct
from math import isnan
from pathlib import Path

import pytest

from penstock.core import Observation, Reason
from penstock.errors import ConfigError
from penstock.journal import Record, Rescale, Sample, Setting, Start
from penstock.report.picture import HEIGHT, WIDTH, Run, draw
from penstock.testing import history

START = Start(at=1_000_000, policy=Setting("hpa"))
LOST = Reason("worker.lost", "worker 3 was lost")


def size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", head[16:24])
    return width, height


JOURNALS: dict[str, list[Record]] = {
    "half an hour with all that goes wrong": [
        START,
        *(Sample(observation=o) for o in history(4)),
        Rescale(at=1_001_800, before=4, after=6, outcome="done", sentence="Asked for 6"),
        *(Sample(observation=o) for o in history(6, start=1_002_500)),
    ],
    "one look": [START, Sample(observation=Observation(at=1_000_000, workers=2, requested=2, input_rate=10.0))],
    "nothing known": [START, *(Sample(observation=Observation(at=1_000_000 + t)) for t in range(9))],
    "a worker lost unseen": [START, Sample(observation=Observation(at=1_000_000, requested=2, events=(LOST,)))],
}


@pytest.mark.parametrize("name", JOURNALS)
def test_a_picture_of_the_right_size(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.png"
    draw(JOURNALS[name], path, title=name, max_workers=8, capacity_per_worker=1000)
    assert size(path) == (WIDTH, HEIGHT)


def test_unknown_is_a_gap_and_so_is_a_restart() -> None:
    rates = {0: 1.0, 1: None, 2: 3.0, 103: 4.0}
    run = Run([START, *(Sample(observation=Observation(at=t, input_rate=rate)) for t, rate in rates.items())])
    assert [minute * 60 for minute in run.times] == pytest.approx([0, 1, 2, 2, 103])
    values = run.values(lambda o: o.input_rate)
    assert [None if isnan(value) else value for value in values] == [1.0, None, 3.0, None, 4.0]


def test_blind_periods_join() -> None:
    seen = [Observation(at=t * 60.0, input_rate=None if t in (1, 2, 4) else 1.0) for t in range(6)]
    run = Run([START, *(Sample(observation=o) for o in seen)])
    assert run.blind == [pytest.approx((1, 3)), pytest.approx((4, 5))]


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="journal must have at least one observation to draw, got none"):
        draw([START], tmp_path / "run.png", title="", max_workers=3)


def test_nowhere_to_draw_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"picture must be a file that can be written, got '.*nowhere/run\.png': No such"
    ):
        draw(JOURNALS["one look"], tmp_path / "nowhere" / "run.png", title="", max_workers=3)
