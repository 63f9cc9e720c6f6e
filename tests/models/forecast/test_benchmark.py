"""The benchmark's own arithmetic, on a series that takes no time."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = spec_from_file_location("benchmark_forecast", ROOT / "benchmarks" / "forecast.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_ramp_is_a_row_of_the_table(benchmark: ModuleType) -> None:
    row = benchmark.measure("ramp", 1000.0 + np.arange(60 * 60) / 2)
    assert row.linear == pytest.approx(0.0, abs=0.1)
    # the last minute's mean is 240 s behind, on average 30 + 450 s of 0.5 records/s
    assert row.last == pytest.approx(100 * 240 / 2200, rel=0.1)
    assert row.experts < row.last
    assert row.auto_arima is None
    head, line = benchmark.table([row]).splitlines()
    assert head.split()[:2] == ["WAPE", "over"]
    assert line.startswith("ramp ")
    assert f"{row.last:.1f}" in line


def test_shapes_are_six_and_never_negative(benchmark: ModuleType) -> None:
    shapes = benchmark.shapes(1.0)
    assert len(shapes) == 6
    for rates in shapes.values():
        assert len(rates) == 3600
        assert rates.min() >= 0


def test_arrivals_are_read_where_they_are(benchmark: ModuleType) -> None:
    if not benchmark.ARRIVALS.is_dir():
        pytest.skip("the recorded arrivals are not beside the repository")
    found = benchmark.arrivals(benchmark.ARRIVALS, 1.0)
    assert {"recorded avazu", "recorded taxi", "recorded cars"} <= set(found)
    assert all(len(rates) == 3600 and rates.min() >= 0 for rates in found.values())


def test_nothing_recorded_elsewhere(benchmark: ModuleType, tmp_path: Path) -> None:
    assert benchmark.arrivals(tmp_path, 1.0) == {}
