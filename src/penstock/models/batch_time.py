"""How long a batch takes that is larger than those seen, stage by stage.

A batch of a micro-batch engine lasts as long as its stages, one after another, and what comes between them. What a
worker does in a stage is a fixed part and a part for each record that it takes in:

    seconds = rest + sum over stages of (fixed + cost x records per worker)

Not every stage gets more records in a larger batch: one that merges counts by word takes as many as there are words.
Its time is that of now, however large the batch, and only the others are a line to be followed beyond what was seen.
So each stage has two lines, one for the records that it takes in and one for its seconds. That is the useful time per
record of DS2 (Kalavri et al., OSDI 2018, sec. 3.2), with the fixed part that a batch has and a dataflow has not.

Now and then a batch waits for a garbage collector or for a neighbour on the machine. Nothing makes one faster by
accident, so only those that are slower than expected count for less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.core import Batch, Stage
from penstock.models.streak import Streak
from penstock.models.welford import Paired

FIXED = 0.2  # of the records of a full batch: what a stage takes besides its own is as long as these, until seen
SPREAD = 0.2  # how far off the cost of a record may be then, as a share
NOISE = 0.1  # of a stage's time: fewer batches may happen to show less, and slower ones waited for something
PRIOR = 2.0  # batches that this noise counts as
CORRELATED = 2.0  # neighbours of a machine come and go over several batches: so many count as one
FEWEST = 4  # batches before any is thought slow


@dataclass(slots=True)
class _Stage:
    """One place in a batch: records per worker of the batch against those that it takes in, and these against time."""

    _taken: Paired = field(default_factory=Paired)
    _times: Paired = field(default_factory=Paired)

    def add(self, size: float, taken: float, seconds: float, weight: float) -> None:
        self._taken.add(size, taken, weight)
        self._times.add(taken, seconds, weight)

    def fade(self, share: float) -> None:
        self._taken.fade(share)
        self._times.fade(share)

    def at(self, size: float, full: float) -> float:
        """Seconds in a batch with so many records per worker, where one may have `full`."""
        mean, taken = self._taken.x_mean or 0.0, self._taken.y_mean or 0.0
        usual, slope = taken / mean if mean > 0 else 0.0, self._taken.slope
        # Fewer in a larger batch it does not get, nor more for each record of the batch.
        more = usual if slope is None else min(max(slope, 0.0), usual)
        return (self._times.y_mean or 0.0) + self._cost(FIXED * full * usual) * more * (size - mean)

    def _cost(self, fixed: float) -> float:
        """Seconds of a record: least squares, leaning on a fixed part of so many records as the noise asks for."""
        mean, seconds, weight = self._times.x_mean or 0.0, self._times.y_mean or 0.0, self._times.weight
        if mean <= 0 or seconds <= 0:
            return 0.0
        squares, products = weight * (self._times.x_variance or 0.0), weight * (self._times.covariance or 0.0)
        left = max(0.0, weight * (self._times.y_variance or 0.0) - (products**2 / squares if squares > 0 else 0.0))
        noise = CORRELATED * (left + PRIOR * (NOISE * seconds) ** 2) / (max(weight - 2, 0.0) + PRIOR)
        prior = seconds / (mean + fixed)
        believed = 1 / (SPREAD * prior) ** 2
        cost = (products / noise + believed * prior) / (squares / noise + believed)
        return min(max(cost, 0.0), seconds / mean)


@dataclass(slots=True)
class _Kind:
    """Batches of so many stages: what comes between these, and each of them."""

    places: tuple[_Stage, ...]
    full: float = 0.0  # records that one may have for each worker
    weight: float = 0.0
    streak: Streak = field(default_factory=Streak)

    def add(self, size: float, seconds: Sequence[float], taken: Sequence[float]) -> None:
        weight = 1.0
        if self.weight >= FEWEST:
            expected, lasted = self.at(size), sum(seconds)
            if self.streak.goes_on(lasted, expected):
                self.fade(0.5)
            if lasted > (1 + NOISE) * expected > 0:
                weight = NOISE * expected / (lasted - expected)
        self.weight += weight
        for place, records, lasted in zip(self.places, taken, seconds, strict=True):
            place.add(size, records, lasted, weight)

    def fade(self, share: float) -> None:
        self.weight *= share
        for place in self.places:
            place.fade(share)

    def at(self, size: float) -> float:
        return sum(place.at(size, self.full) for place in self.places)


@dataclass(slots=True)
class BatchTime:
    """Learns from batches; `at(records)` is how long one with so many for each worker takes.

    >>> from penstock.core import Batch, Stage
    >>> model = BatchTime()
    >>> for number in range(60):
    ...     records = 10_000 + 200 * number
    ...     stages = Stage(0.3 + records / 20_000, records), Stage(0.6, 1_000)
    ...     seconds = 0.1 + stages[0].seconds + stages[1].seconds
    ...     model.learn(Batch(number, 3.0 * number, seconds, records, stages=stages), workers=1)
    >>> round(model.at(60_000), 1)  # 0.1 + 0.3 + 3 + 0.6
    4.0
    """

    _kinds: dict[int, _Kind] = field(default_factory=dict)

    def learn(self, batch: Batch, workers: int) -> None:
        """Take in a batch that so many warm workers did; where no stages are known, it is one."""
        if batch.records <= 0:
            return
        stages = batch.stages or (Stage(batch.seconds, batch.records),)
        together = sum(stage.seconds for stage in stages)
        apart = min(1.0, batch.seconds / together) if together > 0 else 1.0  # some may run at once, as before a join
        seconds = [max(0.0, batch.seconds - apart * together), *(apart * stage.seconds for stage in stages)]
        taken = [0.0, *(stage.records / workers for stage in stages)]
        kind = self._kinds.setdefault(len(stages), _Kind(tuple(_Stage() for _ in seconds)))
        kind.full = (batch.limit or batch.records) / workers
        kind.add(batch.records / workers, seconds, taken)

    def fade(self, share: float) -> None:
        for kind in self._kinds.values():
            kind.fade(share)

    @property
    def weight(self) -> float:
        """Batches that it goes by, faded with age."""
        return 0.0 if self._usual is None else self._usual.weight

    def at(self, records: float) -> float | None:
        """Seconds of a batch with so many records for each worker; None before any was seen."""
        return None if self._usual is None else self._usual.at(records)

    @property
    def _usual(self) -> _Kind | None:
        """A batch now and then has a stage more or less, as when one side of a join has nothing."""
        return max(self._kinds.values(), key=lambda kind: kind.weight, default=None)
