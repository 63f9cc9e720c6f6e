from __future__ import annotations

import copy
from importlib.util import find_spec

import numpy as np
import pytest

from penstock.errors import ConfigError
from penstock.models.forecast import AutoArima, Scored, make
from penstock.models.forecast.auto_arima import Model, train

installed = find_spec("pmdarima") is not None
needs_it = pytest.mark.skipif(not installed, reason="pmdarima is not installed: pip install 'penstock[arima]'")


@pytest.mark.skipif(installed, reason="pmdarima is installed, so nothing is missing")
def test_it_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'penstock\[arima\]'"):
        make("auto-arima")


def fed(seconds: int, interval: float = 60.0, points: int = 600) -> AutoArima:
    model = AutoArima(interval, points=points)
    rng = np.random.default_rng(10)
    for second in range(seconds):
        model.learn(float(second), float(1000 + 2 * second + rng.normal(0, 5)))
    return model


@needs_it
def test_it_needs_sixty_points_and_training() -> None:
    model = fed(50)
    assert model.training() is None
    assert model.untrained
    assert model.forecast() is None
    model = fed(90)
    assert model.training() is not None
    assert model.forecast() is None


@needs_it
def test_trained_it_goes_on_with_a_ramp_by_the_second() -> None:
    model = fed(180)
    work = model.training()
    assert work is not None
    model.adopt(work())
    assert not model.untrained
    said = model.forecast()
    assert said is not None
    assert (said.step, len(said.path), said.by) == (1.0, 900, "auto-arima")
    assert said.mean(60) == pytest.approx(1000 + 2 * 210, rel=0.03)
    assert said.max() <= 3 * (1000 + 2 * 180) * 1.05
    for second in range(180, 240):  # the update: the same order, the newest points
        model.learn(float(second), 1360.0)
    later = model.forecast()
    assert later is not None
    assert later.at == 240.0


@needs_it
def test_training_is_bounded_and_pure() -> None:
    model = fed(300, points=100)
    work = model.training()
    assert work is not None
    first, second = work(), copy.deepcopy(work)()
    assert isinstance(first, Model)
    assert first == second
    assert max(first.order[0], first.order[2]) <= 5
    assert first.order[1] <= 2
    assert len(model.bins.last(10_000)) == 100


@needs_it
def test_time_compressed_has_as_many_points() -> None:
    model = AutoArima(10.0)
    assert model.resolution == pytest.approx(10 / 60)


@needs_it
def test_what_cannot_be_fitted_is_no_model() -> None:
    model = fed(300)
    model.adopt(None)
    assert model.untrained
    assert train(np.full(100, 5.0)) is not None  # constant: a model of order 0


@needs_it
def test_in_the_loop_it_is_trained_in_the_background_and_replayed() -> None:
    def run(copied_at: int | None) -> list[str]:
        scored = Scored(AutoArima(60.0, points=120))
        said = []
        for minute in range(7):
            for second in range(60):
                scored.learn(minute * 60.0 + second, 1000.0 + (minute * 60 + second) * 7919 % 101)
            said.append(repr(scored.outlook()))
            if minute == copied_at:
                scored = copy.deepcopy(scored)
        return said

    live = run(None)
    assert "auto-arima" not in live[2]
    assert "auto-arima" in live[-1]
    assert run(None) == live
    assert run(1) == live


@needs_it
@pytest.mark.parametrize(("setting", "value"), [("resolution", 0.0), ("resolution", 61.0), ("points", 59)])
def test_settings_are_checked(setting: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{setting} must"):
        AutoArima(60.0, **{setting: value})  # type: ignore[arg-type]
