"""The page and its figures, apart from where their numbers come from."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.errors import ConfigError
from penstock.measures import Interval
from penstock.report import beside, figures, page
from penstock.report.colours import STYLES

TRACK = figures.Track(
    policy="hpa-80",
    name="hpa",
    every=60.0,
    load=[100.0, 200.0, 150.0],
    workers=[1, 2, 2],
    quantiles=[0.1, 0.5, 2.0],
    average_workers=Interval(1.7, 1.5, 1.9, 3),
    latency=Interval(0.8, 0.6, 1.0, 3),
)


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))  # noqa: S314 - made just now


def test_a_page_is_well_formed_whatever_is_in_it() -> None:
    table = page.Table("a < b", ("x & y", "n"), (("<script>", "yes"), ("'", "no")))
    section = page.Section("<h2>", ("5 < 6",), (), (table, page.Table("empty", ("a",), ())), ("a & b",))
    root = parsed(page.html(page.Page('"quoted"', "<b>", ("x > y",), (section,), ("mind & gap",))))
    assert "<script>" in "".join(root.itertext())
    assert not list(root.iter("script"))
    assert [e.get("class") for e in root.iter("span")] == ["good", "bad"]
    assert "empty" not in "".join(root.itertext()), "a table without rows is none"


def picture(*tracks: figures.Track) -> figures.Picture:
    return figures.Picture("A load of $ & <signs>", tracks, 2.0, "static", 1.5)


def test_figures_are_written_and_fit_into_a_page(tmp_path: Path) -> None:
    none = figures.Track(
        policy="oracle", name="oracle", every=1, load=[], workers=[], quantiles=[], average_workers=None, latency=None
    )
    for draw in (figures.panels, figures.scatter):
        path = tmp_path / f"{draw.__name__}.png"
        text = draw(picture(TRACK, none), path)
        assert path.read_bytes().startswith(b"\x89PNG")
        root = parsed(text)
        names = [e.get("id") for e in root.iter() if e.get("id")]
        assert all(name is not None and name.startswith(f"{path.stem}-") for name in names)
        assert "A load of $ & <signs>" in "".join(root.itertext())
        assert STYLES["hpa-80"].colour.lower() in text.lower()
        assert "#000000" not in text
        assert text == draw(picture(TRACK, none), path), "the same again"


def test_a_picture_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="picture must be a file that can be written"):
        figures.scatter(picture(TRACK), tmp_path / "nowhere" / "x.png")


def test_labels_have_the_look_of_their_policy() -> None:
    by = {label: figures.Track(**{**_fields(TRACK), "policy": label}) for label in ("mine", "hpa-85", "oracle")}  # type: ignore[arg-type]
    assert figures.look(by["mine"]) == STYLES["hpa"]
    assert figures.look(by["hpa-85"]) == STYLES["hpa-85"]
    assert figures.look(by["oracle"]) == figures.LIMIT


def _fields(track: figures.Track) -> dict[str, object]:
    return {name: getattr(track, name) for name in track.__slots__}


def test_recorded_and_simulated_are_drawn_where_there_is_something() -> None:
    unknown = [float("nan")] * 3
    lines = (
        beside.Lines("throughput", "records/s", [1.0, 2.0, 3.0], [1.0, 2.0, 2.0]),
        beside.Lines("backlog", "records", unknown, [5.0, 5.0, 5.0], least=1.0),
        beside.Lines("latency", "seconds", [0.0, 0.5, 20.0], unknown, least=0.001),
    )
    text = beside.draw(beside.Beside("a run", 15.0, [1.0, 2.0, 3.0], [1.0, 1.0, 2.0], lines), "run-1")
    words = "".join(parsed(text).itertext())
    for word in ("a run", "throughput", "records/s", "latency", "seconds", "hours", "recorded", "simulated"):
        assert word in words
    assert "backlog" not in words
