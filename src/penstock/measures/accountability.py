"""How right the models were: what decisions expected against what happened, from a journal.

`capacity` is compared with the highest rate that so many workers processed while they had a backlog to work off,
`peak` with the highest input rate within the horizon of the forecast, `recovery` with the recovery that was observed.
An expectation that was never put to the test (no backlog at that scale-out, a run that ends before the horizon, time
in which nobody looked, another rescale in between) is counted, and not scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from penstock.errors import check
from penstock.journal import Decided, Record
from penstock.measures.recovery import disturbed, recoveries
from penstock.measures.series import Series, highest

Quantity = Literal["capacity", "peak", "recovery"]
COVERED = 0.9  # share of a horizon that must have been seen for its peak to be known


@dataclass(frozen=True, slots=True)
class Score:
    """One expectation and what became of it; None if that is not known. Records/s, or seconds of recovery."""

    quantity: Quantity
    at: float
    workers: int | None
    expected: float
    observed: float | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How right a model was in a run.

    made: expectations in all; scored: those that can be compared with what happened.
    error: sum of the absolute errors, as a share of the sum of what was observed (WAPE).
    bias: the same with sign: above 0 if too much was expected.
    worst: the largest error of one, as a share of what was observed.
    """

    quantity: Quantity
    made: int
    scored: int
    error: float | None
    bias: float | None
    worst: float | None


@dataclass(frozen=True, slots=True)
class Scores:
    """Every expectation of a run."""

    rows: tuple[Score, ...]

    def table(self) -> tuple[Accuracy, ...]:
        """One row per quantity of which anything was expected."""
        expected = {row.quantity for row in self.rows}
        return tuple(self.of(quantity) for quantity in get_args(Quantity) if quantity in expected)

    def of(self, quantity: Quantity) -> Accuracy:
        made = [row for row in self.rows if row.quantity == quantity]
        pairs = [(row.expected, row.observed) for row in made if row.observed is not None]
        observed = sum(seen for _, seen in pairs)
        if not pairs or observed <= 0:
            return Accuracy(quantity, len(made), len(pairs), None, None, None)
        return Accuracy(
            quantity,
            len(made),
            len(pairs),
            error=sum(abs(expected - seen) for expected, seen in pairs) / observed,
            bias=sum(expected - seen for expected, seen in pairs) / observed,
            worst=max((abs(expected - seen) / seen for expected, seen in pairs if seen > 0), default=None),
        )


def scores(records: Iterable[Record], *, horizon: float, by: str | None = None, saturated: float = 5.0) -> Scores:
    """What the policy in control (or the shadow `by`) expected, against what happened.

    horizon: seconds ahead for which an expected peak was meant.
    saturated: how many seconds of its throughput a job must have as backlog to be at its capacity.
    """
    check(horizon > 0, "horizon", "be above 0 seconds", horizon)
    check(saturated >= 0, "saturated", "be 0 seconds or more", saturated)
    records = list(records)
    series = Series.of(records)
    decided = [r for r in records if isinstance(r, Decided) and (r.role == "control" if by is None else r.by == by)]
    capacities = _capacities(series, saturated)
    rows = [
        *(
            Score("capacity", r.at, r.decision.workers, value, capacities.get(r.decision.workers))
            for r, value in _expected(decided, "capacity")
        ),
        *(
            Score("peak", r.at, r.decision.workers, value, _peak(series, r.at, horizon))
            for r, value in _expected(decided, "peak")
        ),
    ]
    if by is None or any(r.role == "control" for r in decided):  # nobody carries out what a shadow decides
        rows += _recovered(records, series)
    return Scores(tuple(rows))


def _expected(decided: Iterable[Decided], quantity: Quantity) -> Iterator[tuple[Decided, float]]:
    for record in decided:
        value = None if record.decision.expects is None else getattr(record.decision.expects, quantity)
        if value is not None:
            yield record, value


def _capacities(series: Series, saturated: float) -> dict[int | None, float]:
    """The highest rate that each number of workers processed while there was backlog."""
    busy = (series.backlog > 0) & (series.backlog >= saturated * series.processed_rate)
    found: dict[int | None, float] = {}
    for count in np.unique(series.workers[busy & ~np.isnan(series.workers)]):
        rate = highest(series.processed_rate[busy & (series.workers == count)])
        if rate is not None:
            found[int(count)] = rate
    return found


def _peak(series: Series, begin: float, horizon: float) -> float | None:
    """The highest input rate from `begin` to the horizon, if that was seen."""
    if series.end < begin + horizon:
        return None
    inside = (series.at + series.seconds > begin) & (series.at < begin + horizon)
    begins = np.maximum(series.at[inside], begin)
    ends = np.minimum(series.at[inside] + series.seconds[inside], begin + horizon)
    rates = series.input_rate[inside]
    seen = float((ends - begins)[~np.isnan(rates)].sum())
    return highest(rates) if seen >= COVERED * horizon else None


def _recovered(records: list[Record], series: Series) -> Iterator[Score]:
    """The recoveries that the last decision before each disturbance expected."""
    caused = list(disturbed(records))
    ended = recoveries(series, [disturbance for disturbance, _ in caused])
    for (disturbance, decided), recovery in zip(sorted(caused, key=lambda pair: pair[0].at), ended, strict=True):
        for record, value in _expected([decided] if decided else [], "recovery"):
            observed = None if recovery.interrupted else recovery.seconds
            yield Score("recovery", disturbance.at, record.decision.workers, value, observed)
