"""A forecaster held to account: judged in every loop, replaced while it is poor, trained anew when it stays so.

Daedalus, sec. 3.3: the last forecast is compared with what came, by WAPE; from 25 % on, a line through the latest load
is used instead; after 15 poor loops the model is trained anew in the background. Added to the paper: forecasts are
also judged once their whole horizon has come (the first minute flatters everybody), on means and not on noisy seconds;
and there are upper bounds. A new model is swapped in a fixed number of loops after its training began, ready or not,
so that a replay does the same as the live run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.errors import check
from penstock.models.forecast.band import Band
from penstock.models.forecast.base import INTERVALS_AHEAD, PARTS, Floats, Forecast, Forecaster
from penstock.models.forecast.later import Later
from penstock.models.forecast.linear import Linear, onward
from penstock.models.forecast.series import Past

INTERVALS_NEXT = 2  # "until the next loop" is over when that loop's decision has taken effect
LOOP = PARTS - 1  # fine bins that make it a new loop; one of jitter is forgiven


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a planner may go by.

    forecast: the path; by whom is in `by`.
    wape: of the forecaster's last forecast, over what came since; matured_wape: of what was said a horizon ago.
    upper_next, upper_horizon: not exceeded until after the next loop, and over the whole horizon, as means of an
        interval, with the confidence asked for.
    poor_loops: so many poor forecasts in a row.
    fell_back: the fall-back speaks, because the forecaster was poor or has nothing to say.
    onward: the load straight on, as it went over the last half horizon.
    """

    forecast: Forecast
    by: str
    wape: float | None
    matured_wape: float | None
    upper_next: float
    upper_horizon: float
    poor_loops: int
    fell_back: bool
    onward: Forecast


@dataclass
class Scored:
    """Wraps a forecaster; give it every sample, and ask for the outlook once per loop.

    forecaster: who is judged.
    max_wape: from here on a forecast is poor.
    retrain_after: poor loops in a row until it is trained anew.
    swap_after: loops from the beginning of a training until its result is used.
    level: confidence of the upper bounds.
    """

    forecaster: Forecaster
    max_wape: float = 0.25
    retrain_after: int = 15
    swap_after: int = 3
    level: float = 0.9
    wape: float | None = field(init=False, default=None)
    matured_wape: float | None = field(init=False, default=None)
    poor_loops: int = field(init=False, default=0)
    retrained: int = field(init=False, default=0)
    linear: Linear = field(init=False, repr=False)
    _said: tuple[int, Forecast | None] | None = field(init=False, default=None, repr=False)
    _used: list[tuple[int, Forecast]] = field(init=False, default_factory=list, repr=False)
    _later: Later[object] | None = field(init=False, default=None, repr=False)
    _loops_to_swap: int = field(init=False, default=0, repr=False)
    _next: Band = field(init=False, repr=False)
    _horizon: Band = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check(self.max_wape > 0, "max_wape", "be above 0", self.max_wape)
        check(self.retrain_after >= 1, "retrain_after", "be at least 1 loop", self.retrain_after)
        check(self.swap_after >= 1, "swap_after", "be at least 1 loop", self.swap_after)
        check(0.5 <= self.level < 1, "level", "be in [0.5, 1)", self.level)
        self.linear = Linear(self.forecaster.interval)
        self._next, self._horizon = Band(INTERVALS_NEXT, self.level), Band(INTERVALS_AHEAD, self.level)

    def learn(self, at: float, rate: float | None) -> None:
        """Take in a sample; None is unknown."""
        self.forecaster.learn(at, rate)
        self.linear.learn(at, rate)

    def outlook(self) -> Outlook | None:
        """What comes; None while nothing is known, or nothing lately. Asked again too soon it judges nothing anew."""
        past = self.linear.series.past()
        fall_back = self.linear.forecast()
        if past is None or fall_back is None:
            return None
        turn = self._said is None or past.end - self._said[0] >= LOOP
        if turn:
            self._judge(past)
            self._train()
        said = self.forecaster.forecast()
        poor = self.wape is not None and self.wape >= self.max_wape
        forecast = fall_back if said is None or poor else said
        soon = self._next.bound(past, forecast.max(INTERVALS_NEXT * self.forecaster.interval))
        whole = self._horizon.bound(past, forecast.max(self.forecaster.horizon))
        if turn:
            self._said = (past.end, said)
            self._used.append((past.end, forecast))
            self._next.keep(soon)
            self._horizon.keep(whole)
        return Outlook(
            forecast,
            forecast.by,
            self.wape,
            self.matured_wape,
            soon.upper,
            max(soon.upper, whole.upper),
            self.poor_loops,
            forecast is not said,
            onward(past, self.forecaster.step),
        )

    def _judge(self, past: Past) -> None:
        series, parts = self.linear.series, INTERVALS_AHEAD * PARTS
        if self._said is not None:
            then, forecast = self._said
            passed = min(past.end - then, parts)
            actual = series.bins.between(then, passed)
            self.wape = None if forecast is None else wape(actual, forecast.means(self.forecaster.step, passed))
            # A model that is trained and silent is poor; where what came is unknown, nothing is proved either way.
            silent = forecast is None and not self.forecaster.untrained
            if self.wape is not None or silent:
                poor = silent or (self.wape is not None and self.wape >= self.max_wape)
                self.poor_loops = self.poor_loops + 1 if poor else 0
        due = [used for used in self._used if past.end - used[0] >= parts]
        if due:
            then, forecast = due[-1]
            actual = series.actual(then, INTERVALS_AHEAD)
            self.matured_wape = wape(actual, forecast.means(self.forecaster.interval, INTERVALS_AHEAD))
            self._used = [used for used in self._used if used[0] > then]
        self._next.judge(series, past.end)
        self._horizon.judge(series, past.end)

    def _train(self) -> None:
        if self._later is not None:
            self._loops_to_swap -= 1
            if self._loops_to_swap <= 0:
                self.forecaster.adopt(self._later.result())
                self._later, self.poor_loops = None, 0
                self.retrained += 1
        elif self.forecaster.untrained or self.poor_loops >= self.retrain_after:
            work = self.forecaster.training()
            if work is not None:
                self._later, self._loops_to_swap = Later(work), self.swap_after


def wape(actual: Floats, said: Floats) -> float | None:
    """The weighted absolute percentage error, as a share: the sum of errors to the sum of what came.

    Unknown (NaN) is left out; None if all is. Where nothing came, a forecast of nothing is right, any other all wrong.

    >>> wape(np.array([100.0, 300.0, np.nan]), np.array([120.0, 280.0, 5.0]))
    0.1
    """
    known = np.isfinite(actual)
    if not known.any():
        return None
    error, total = float(np.abs(actual - said)[known].sum()), float(actual[known].sum())
    if total > 0:
        return error / total
    return 0.0 if error == 0 else 1.0
