"""The suite on the real cluster, without the cluster: its cases, their files, its order and how it goes on."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from penstock import policies
from penstock.errors import ConfigError
from penstock.experiment import bench, spec
from penstock.experiment.bench import CASES, Calibration, Case

PEAK, MINUTES, MOST, STATIC = 9876.5, 12.0, 6, 4
NAMES = [
    "sine-daedalus",
    "sine-hpa-80",
    "sine-hpa-85",
    "sine-static",
    "advertising-daedalus",
    "advertising-hpa-80",
    "sine-hpa-80-of-limit",
]
KNOWN = [case for case in CASES if bench.POLICIES[case.policy]["name"] in policies.POLICIES]
CALIBRATION = Calibration(MINUTES, MOST, STATIC, STATIC, PEAK / bench.PEAK, 0.02, 5, PEAK, "a machine")


def text(case: Case) -> str:
    return bench.toml(case, peak=PEAK, minutes=MINUTES, most=MOST, static=STATIC)


def raw(case: Case) -> dict[str, Any]:
    return tomllib.loads(text(case))


def calibrated(into: Path) -> None:
    into.mkdir(exist_ok=True)
    (into / "capacity.json").write_text(json.dumps(asdict(CALIBRATION)))


def finish(into: Path, case: Case, *, finished: bool = True) -> None:
    (into / case.name).mkdir(exist_ok=True)
    (into / case.name / "experiment.toml").write_text(text(case))
    (into / case.name / "summary.json").write_text(json.dumps({"finished": finished}))


class Doer:
    """Stands where a process would run a case: notes what it was asked for and leaves behind what the real one does."""

    def __init__(self, into: Path, codes: dict[str, int] | None = None) -> None:
        self.into, self.codes = into, codes or {}
        self.done: list[str] = []
        self.titles: list[str] = []

    def __call__(self, case: Case | None, title: str) -> int:
        name = case.name if case else "calibration"
        self.done.append(name)
        self.titles.append(title)
        if code := self.codes.get(name, 0):
            return code
        if case is None:
            calibrated(self.into)
        else:
            finish(self.into, case)
        return 0


def run(into: Path, doer: Doer, cases: tuple[Case, ...] | None = None, **other: Any) -> int:
    how: dict[str, Any] = {"minutes": MINUTES, "most": MOST, "static": STATIC, **other}
    return bench.run(tuple(KNOWN) if cases is None else cases, into, do=doer, **how)


def test_the_cases_are_those_of_the_paper_in_order() -> None:
    assert [case.name for case in CASES] == NAMES
    assert bench.choose() == CASES
    assert [case.name for case in bench.choose(["sine-static", "sine-daedalus"])] == ["sine-daedalus", "sine-static"]
    with pytest.raises(ConfigError, match=r"only must be one of sine-daedalus, .*, got 'sine'"):
        bench.choose(["sine"])


def test_all_policies_get_the_very_same_load() -> None:
    for load in bench.LOADS:
        tables = [raw(case)["workload"] for case in CASES if case.load == load]
        assert len(tables) >= 2
        assert all(table == tables[0] for table in tables)
        assert tables[0]["scale_to"] == PEAK
        made = bench.load(load, peak=PEAK, minutes=MINUTES)
        assert made.duration == MINUTES * 60
        assert made.peak() == PEAK
        assert max(made.rate(float(t)) for t in range(721)) == pytest.approx(PEAK, rel=0.06)
        assert max(made.rate(float(t)) for t in range(721)) <= PEAK


def test_the_most_workers_are_half_as_many_again_as_static_has() -> None:
    """12 and 18 in the paper; two thirds of any other number."""
    assert [bench.static_of(most) for most in (18, 12, 6, 4, 2)] == [12, 8, 4, 3, 1]


def test_only_static_begins_with_its_workers_and_all_else_is_alike() -> None:
    heads = {}
    for case in CASES:
        document = raw(case)
        assert document.pop("name") == case.name
        assert document.pop("initial_workers") == (STATIC if case.policy == "static" else 2)
        del document["policy"], document["workload"]
        heads[case.name] = document
    assert all(
        head
        == {
            "job": "wordcount",
            "min_workers": 1,
            "max_workers": MOST,
            "stream": {"warm_up": 12, "max_records_per_worker": 60_000},
            "guards": {"settle": 10},
        }
        for head in heads.values()
    )


def test_every_policy_is_as_many_times_faster() -> None:
    assert raw(Case("sine", "daedalus"))["policy"] == {"name": "daedalus", "time_scale": 15.0}
    for label, target in (("hpa-80", 0.80), ("hpa-85", 0.85)):
        hpa = spec.parse(text(Case("sine", label)), "x").policy().config()
        wanted = {
            "target_cpu": target,
            "cpu_request": 0.5,
            "interval": 1.0,
            "scale_up_period": 1.0,
            "scale_down_period": 1.0,
        }
        wanted |= {"scale_up_stabilisation": 20.0, "scale_down_stabilisation": 20.0, "max_workers": MOST}
        assert {key: hpa[key] for key in wanted} == wanted
    assert spec.parse(text(Case("sine", "static")), "x").policy().config()["workers"] == STATIC


def test_every_case_is_an_experiment() -> None:
    for case, experiment in bench.experiments(KNOWN, peak=PEAK, minutes=MINUTES, most=MOST, static=STATIC).items():
        assert experiment.peak_of_capacity is None, "the calibration is the suite's, not the run's"
        assert experiment.load.peak() == PEAK
        assert experiment.head.name == case.name


def test_daedalus_is_known_and_faster() -> None:
    assert spec.parse(text(Case("sine", "daedalus")), "x").policy().period == 4
    assert len(KNOWN) == len(CASES)


def test_a_new_suite_calibrates_once_and_runs_all_in_order(tmp_path: Path) -> None:
    into = tmp_path / "suite"
    told: list[str] = []
    doer = Doer(into)
    assert run(into, doer, tell=told.append) == 0
    assert doer.done == ["calibration", *(case.name for case in KNOWN)]
    assert doer.titles[2] == f"run 2 of {len(KNOWN)}: {KNOWN[1].policy} on {KNOWN[1].load}"
    assert "the peak of every load is 9,876 of 12,346 records/s" in told
    again = Doer(into)
    assert run(into, again) == 0
    assert again.done == []


def test_a_stopped_suite_goes_on_with_what_has_not_finished(tmp_path: Path) -> None:
    into, cases = tmp_path / "suite", (Case("sine", "hpa-80"), Case("sine", "hpa-85"), Case("sine", "static"))
    first = Doer(into, {"sine-hpa-85": 130})
    assert run(into, first, cases) == 130
    assert first.done == ["calibration", "sine-hpa-80", "sine-hpa-85"]
    finish(into, cases[1], finished=False)  # as one that was stopped in good order leaves it
    told: list[str] = []
    second = Doer(into)
    assert run(into, second, cases, tell=told.append) == 0
    assert second.done == ["sine-hpa-85", "sine-static"]
    assert "run 1 of 3: hpa-80 on sine: finished before, kept" in told


def test_a_run_is_finished_only_when_it_says_so(tmp_path: Path) -> None:
    case = Case("sine", "static")
    experiment = spec.parse(text(case), case.name)
    assert not bench.finished(tmp_path / case.name, experiment)
    finish(tmp_path, case, finished=False)
    assert not bench.finished(tmp_path / case.name, experiment)
    (tmp_path / case.name / "summary.json").write_text('{"finished": true}')
    assert bench.finished(tmp_path / case.name, experiment)
    (tmp_path / case.name / "experiment.toml").write_text(text(case).replace("settle = 10", "settle = 30"))
    with pytest.raises(ConfigError, match=r"into must be .*, where sine-static has run with other settings"):
        bench.finished(tmp_path / case.name, experiment)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "other minutes": ({"minutes": 5.0}, r"minutes must be 12, as '.*' began with, got 5"),
    "other workers": ({"most": 4}, r"max must be 6, as '.*' began with, got 4"),
    "other static": ({"static": 6}, r"static must be 4, as '.*' began with, got 6"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_resumed_suite_must_be_the_same(name: str, tmp_path: Path) -> None:
    other, message = WRONG[name]
    calibrated(tmp_path)
    doer = Doer(tmp_path)
    with pytest.raises(ConfigError, match=message):
        run(tmp_path, doer, **other)
    assert doer.done == []


def test_somebody_s_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear aunt")
    for into in (tmp_path, tmp_path / "letters.txt"):
        doer = Doer(into)
        with pytest.raises(ConfigError, match="into must be a new directory or one of a suite"):
            run(into, doer)
        assert doer.done == []


def test_a_calibration_that_was_stopped_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "calibration").mkdir()
    assert bench.claim(tmp_path, minutes=MINUTES, most=MOST, static=STATIC) is None
    calibrated(tmp_path)
    assert bench.calibrate(tmp_path, minutes=MINUTES, most=MOST, static=STATIC) == CALIBRATION
    assert CALIBRATION.per_worker == pytest.approx(PEAK / 0.8 / 4)


@pytest.mark.parametrize("text", ["", "[]", '{"minutes": 12}'])
def test_another_capacity_file_is_said(text: str, tmp_path: Path) -> None:
    (tmp_path / "capacity.json").write_text(text)
    with pytest.raises(ConfigError, match=r"into must have the capacity\.json of a suite"):
        bench.recall(tmp_path)
