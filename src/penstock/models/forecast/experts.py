"""The default: simple models that each speak, weighed by what they got right lately.

No single model wins on every load, and each is right for a while. Every forecast is kept and scored as its horizon
arrives, near and far apart; weights are the loss to the power of -3, and the weighted median is the forecast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock.models.forecast import lags, season, small_arima, trend
from penstock.models.forecast.base import CEILING, INTERVALS_AHEAD, PARTS, Floats, Forecast, Forecaster
from penstock.models.forecast.series import Past, Series

HALF_LIFE = 20.0  # intervals
POWER = 3.0
NEAR = 3  # intervals ahead that count as near
PRIOR = 2.0  # loops that an expert's loss counts as middling before it has a record


def last(past: Past) -> Floats | None:
    """As in the last interval."""
    return np.full(INTERVALS_AHEAD, past.fine[-PARTS:].mean())


EXPERTS: Mapping[str, Callable[[Past], Floats | None]] = {
    "last": last,
    "trend": trend.coarse_trend,
    "fine trend": trend.fine_trend,
    "long lags": lags.long_lags,
    "short lags": lags.short_lags,
    "season": season.season,
    "long arima": small_arima.long_arima,
    "short arima": small_arima.short_arima,
}


@dataclass
class Said:
    """What the experts said at bin `end`: a row each, NaN for one that was silent; `scored` intervals are judged."""

    end: int
    paths: Floats
    scored: int = 0


@dataclass
class Record:
    """How far off each expert was lately, in shares of the load: a row for near, one for far."""

    count: int
    lost: Floats = field(init=False)
    weight: Floats = field(init=False)
    said: list[Said] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.lost = np.zeros((2, self.count))
        self.weight = np.zeros((2, self.count))

    def judge(self, series: Series, end: int) -> None:
        """Score what has come true by bin `end`."""
        sums, counts = np.zeros((2, self.count)), np.zeros((2, self.count))
        passed = 0.0
        for said in self.said:
            ready = min((end - said.end) // PARTS, INTERVALS_AHEAD)
            if ready <= said.scored:
                continue
            actual = series.actual(said.end, ready)[said.scored :]
            errors = np.abs(said.paths[:, said.scored : ready] - actual)
            heard = np.isfinite(errors)
            near = np.arange(said.scored, ready) < NEAR
            for row, chosen in enumerate((near, ~near)):
                sums[row] += np.where(heard, errors, 0.0)[:, chosen].sum(axis=1)
                counts[row] += heard[:, chosen].sum(axis=1)
            passed = max(passed, float(ready - said.scored))
            said.scored = ready
        self.said = [said for said in self.said if said.scored < INTERVALS_AHEAD]
        if passed:
            keep = 0.5 ** (passed / HALF_LIFE)
            self.lost *= keep
            self.weight *= keep
            self.lost += np.where(counts > 0, sums / np.maximum(counts, 1.0), 0.0)
            self.weight += counts > 0

    def keep(self, end: int, paths: Floats) -> None:
        """Remember what was said, once per interval."""
        if not self.said or end - self.said[-1].end >= PARTS:
            self.said.append(Said(end, paths))

    def weights(self, scale: float) -> Floats:
        """A row for near, one for far. Who has no record yet counts as middling."""
        floor = 1e-6 * scale + 1e-300
        rows = []
        for lost, weight in zip(self.lost, self.weight, strict=True):
            known = weight > 0
            middling = float(np.median(lost[known] / weight[known])) if known.any() else floor
            loss = np.maximum((lost + PRIOR * middling) / (weight + PRIOR), floor)
            rows.append((loss / loss.min()) ** -POWER)
        return np.array(rows)


def weighted_median(values: Floats, weights: Floats) -> Floats:
    """Per column: the value at which half of the weight is reached, half-way between two that share it.

    >>> [float(v) for v in weighted_median(np.array([[1.0], [2.0], [9.0]]), np.array([[1.0], [1.0], [1.0]]))]
    [2.0]
    """
    if len(values) == 1:
        return np.asarray(values[0])
    order = np.argsort(values, axis=0)
    ranked, sizes = np.take_along_axis(values, order, axis=0), np.take_along_axis(weights, order, axis=0)
    total = np.cumsum(sizes, axis=0)
    middle, half = total - sizes / 2, total[-1] / 2
    columns = np.arange(values.shape[1])
    above = np.clip((middle < half).sum(axis=0), 1, len(values) - 1)
    low, high = middle[above - 1, columns], middle[above, columns]
    share = np.clip((half - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)
    return np.asarray(ranked[above - 1, columns] * (1 - share) + ranked[above, columns] * share)


@dataclass
class Experts(Forecaster):
    """The experts of this package, weighed by their record."""

    name: ClassVar[str] = "experts"

    series: Series = field(init=False, repr=False)
    record: Record = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.series = Series(self.interval)
        self.record = Record(len(EXPERTS))

    def learn(self, at: float, rate: float | None) -> None:
        self.series.learn(at, rate)

    def forecast(self) -> Forecast | None:
        past = self.series.past()
        if past is None:
            return None
        ceiling = CEILING * past.ceiling
        paths = np.full((len(EXPERTS), INTERVALS_AHEAD), np.nan)
        for row, expert in enumerate(EXPERTS.values()):
            path = expert(past)
            if path is not None and np.isfinite(path).all():
                paths[row] = np.clip(path, 0.0, ceiling)
        self.record.judge(self.series, past.end)
        self.record.keep(past.end, paths)
        speaking = np.isfinite(paths[:, 0])
        near, far = self.record.weights(past.ceiling)[:, speaking]
        share = np.clip((np.arange(INTERVALS_AHEAD) - NEAR + 1) / NEAR, 0.0, 1.0)
        weights = near[:, None] ** (1 - share) * far[:, None] ** share
        middle = weighted_median(paths[speaking], weights)
        return Forecast(past.at, self.step, refined(float(past.fine[-PARTS:].mean()), middle, ceiling), self.name)

    def training(self) -> Callable[[], object] | None:
        """The models are fitted anew in every loop; what can be stale is the record."""
        return FreshRecord(len(EXPERTS))

    def adopt(self, model: object) -> None:
        if isinstance(model, Record):
            model.said = self.record.said
            self.record = model


@dataclass(frozen=True, slots=True)
class FreshRecord:
    """Makes a record that knows nothing."""

    count: int

    def __call__(self) -> Record:
        return Record(self.count)


def refined(now: float, path: Floats, ceiling: float) -> tuple[float, ...]:
    """From interval means to fine steps, straight from middle to middle."""
    ends = np.concatenate(([now], path, [2 * path[-1] - path[-2]]))
    places = (np.arange(INTERVALS_AHEAD * PARTS) + 0.5) / PARTS
    fine = np.interp(places, np.arange(-1, INTERVALS_AHEAD + 1) + 0.5, ends)
    return tuple(np.clip(fine, 0.0, ceiling).tolist())
