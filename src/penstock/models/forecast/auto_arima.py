"""Auto-ARIMA as in Daedalus, sec. 3.3: pmdarima on the load by the second.

An initial model is trained on the load so far, updated with what came since in every loop, and trained anew by whoever
wraps it when it is poor for long. Deviations: the window is bounded (`points`), or time and memory would grow for ever;
and the path is cut to [0, 3 x the recent maximum], because differencing twice at one second can run away.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from penstock.errors import ConfigError, check
from penstock.models.forecast.base import CEILING, Floats, Forecast, Forecaster
from penstock.models.forecast.series import Bins, bridged

LEAST = 60  # points: with fewer, the tests for differencing mean little
MOST_P = MOST_Q = 5
MOST_D = 2  # unbounded, the order of differencing runs away on noise


@dataclass(frozen=True, slots=True)
class Model:
    """What training found: the order (p, d, q), whether there is a constant, and the weights to go on from."""

    order: tuple[int, int, int]
    constant: bool
    weights: tuple[float, ...]


def train(history: Floats) -> Model | None:
    """The best model by pmdarima's stepwise search; None if none fits."""
    with _one_thread():
        try:
            found = _pmdarima().auto_arima(
                history,
                start_p=2,
                start_q=2,
                max_p=MOST_P,
                max_q=MOST_Q,
                max_d=MOST_D,
                seasonal=False,
                stepwise=True,
                error_action="ignore",
                suppress_warnings=True,
            )
        except (ValueError, np.linalg.LinAlgError):
            return None
    p, d, q = (int(part) for part in found.order)
    return Model((p, d, q), bool(found.with_intercept), tuple(float(weight) for weight in found.params()))


def _one_thread() -> AbstractContextManager[object]:
    """Its matrices are tiny: handing them to BLAS' threads takes 3 to 13 times as long on a busy machine."""
    limited: AbstractContextManager[object] = import_module("threadpoolctl").threadpool_limits(1)
    return limited  # threadpoolctl comes with pmdarima, by way of scikit-learn


def _pmdarima() -> Any:
    return import_module("pmdarima")  # takes a second or two, and only this model needs it


@dataclass
class AutoArima(Forecaster):
    """Needs the extra `arima`. Says nothing until it has been trained.

    resolution: seconds of a point; a 60th of the interval when left out, so 1 s as in the paper.
    points: the most points that it is trained on and keeps.
    """

    name: ClassVar[str] = "auto-arima"

    resolution: float | None = None
    points: int = 3600
    model: Model | None = field(init=False, default=None)
    bins: Bins = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if find_spec("pmdarima") is None:
            raise ConfigError(
                "forecaster auto-arima must have pmdarima, which is not installed: pip install 'penstock[arima]'"
            )
        if self.resolution is None:
            self.resolution = self.interval / 60
        check(0 < self.resolution <= self.interval, "resolution", "be in (0, interval] seconds", self.resolution)
        check(self.points >= LEAST, "points", f"be at least {LEAST}", self.points)
        self.bins = Bins(self.resolution, self.points, window=self.interval)

    def learn(self, at: float, rate: float | None) -> None:
        self.bins.learn(at, rate)

    @property
    def untrained(self) -> bool:
        return self.model is None

    def training(self) -> Callable[[], object] | None:
        history = self._history()
        return None if history is None else partial(train, history)

    def adopt(self, model: object) -> None:
        if isinstance(model, Model):
            self.model = model

    def forecast(self) -> Forecast | None:
        history = self._history()
        if history is None or self.model is None:
            return None
        width = self.bins.width
        path = self._updated(self.model, history, round(self.horizon / width))
        if path is None:
            return None
        path = np.clip(path, 0.0, CEILING * history.max())
        return Forecast(self.bins.end_at, width, tuple(path.tolist()), self.name)

    def _history(self) -> Floats | None:
        values = self.bins.last(self.points)
        known = np.flatnonzero(np.isfinite(values))
        if len(known) < LEAST or (len(values) - known[-1]) * self.bins.width > self.horizon:
            return None
        return bridged(values[known[0] :])

    def _updated(self, model: Model, history: Floats, steps: int) -> Floats | None:
        """Fit the same order to the window as it is now, from the weights so far, as pmdarima's own update does."""
        for start in (np.array(model.weights), None):  # old weights may be impossible for the new window
            fresh = _pmdarima().ARIMA(
                order=model.order,
                start_params=start,
                with_intercept=model.constant,
                maxiter=5,
                suppress_warnings=True,
            )
            with _one_thread():
                try:
                    fresh.fit(history)
                    path = np.asarray(fresh.predict(steps), dtype=np.float64)
                    weights = np.asarray(fresh.params(), dtype=np.float64)
                except (ValueError, np.linalg.LinAlgError):
                    continue
            if np.isfinite(path).all() and np.isfinite(weights).all():
                self.model = Model(model.order, model.constant, tuple(weights.tolist()))
                return path
        return None
