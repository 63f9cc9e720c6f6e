"""What a failure costs, from recoveries that were watched: seconds down, and seconds until it shows that it is over.

Phoebe (ICWS 2022) sec. III-B assumes an average downtime D "based on observations", and sec. IV-E takes a recovery to
be over when the latency metric is normal again. At a constant rate w that is R = D + (I + D) w / (T_max - w).

Deviation: a metric that is a mean over a minute or two is normal again only when the last late record has left it,
which takes the same time at any load. As a part of D it would be multiplied with the load; so it has a term of its own,
R = lag + D + (I + D) w / (T_max - w), fitted without negative values where the recoveries can tell the two apart. On
the published recoveries of the static configurations (table II), predicting each from the others, the mean error is 6 %
with and without it for top speed windowing, and 6 % with it against 11 to 15 % without for the Yahoo benchmark, with
T_max of 16 to 17.4 K per worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.models.profiling import ObservedRecovery
from penstock.models.regression import nnls

LONGEST = 600.0  # seconds of downtime; nothing beyond is believed
ENOUGH = 4  # recoveries, and
SPREAD = 0.15  # standard deviation of w / (T_max - w), from which on lag and downtime can be told apart


@dataclass(frozen=True, slots=True)
class Outage:
    """What to expect of the next failure: seconds without processing, and seconds by which the end shows later."""

    down: float
    lag: float = 0.0

    def recovery(self, rate: float, capacity: float, replay: float) -> float | None:
        """The closed form at a constant rate; None: it never catches up.

        >>> Outage(30.0).recovery(1000.0, 1500.0, replay=10.0)
        110.0
        """
        if capacity <= rate:
            return None
        return self.lag + self.down + (replay + self.down) * rate / (capacity - rate)


def downtime(seen: ObservedRecovery, capacity: float, replay: float, lag: float = 0.0) -> float | None:
    """D of the closed form, from one recovery; None where the job could not have caught up.

    >>> downtime(ObservedRecovery(workers=12, rate=1000.0, seconds=110.0), capacity=1500.0, replay=10.0)
    30.0
    """
    if capacity <= seen.rate:
        return None
    found = ((seen.seconds - lag) * (capacity - seen.rate) - replay * seen.rate) / capacity
    return min(max(found, 0.0), LONGEST)


def outage(
    recoveries: Sequence[ObservedRecovery], capacity: Callable[[int], float], replay: float, otherwise: float
) -> Outage:
    """What explains the recoveries best; a downtime of `otherwise` where there are none.

    >>> seen = [ObservedRecovery(4, w, 60 + 30 + 40 * w / (1000 - w)) for w in (200.0, 400.0, 500.0, 600.0)]
    >>> found = outage(seen, lambda workers: 1000.0, replay=10.0, otherwise=60.0)
    >>> round(found.down, 6), round(found.lag, 6)
    (30.0, 60.0)
    """
    known = [each for each in recoveries if capacity(each.workers) > each.rate]
    if not known:
        return Outage(otherwise)
    load = np.array([each.rate / (capacity(each.workers) - each.rate) for each in known])
    if len(known) < ENOUGH or load.std() < SPREAD:
        each_down = [downtime(each, capacity(each.workers), replay) or 0.0 for each in known]
        return Outage(sum(each_down) / len(each_down))
    seconds = np.array([each.seconds for each in known])
    lag, down = nnls(np.column_stack([np.ones(len(load)), 1 + load]), seconds - replay * load)
    return Outage(min(float(down), LONGEST), float(lag))


@dataclass(slots=True)
class Watch:
    """Waits for latency to be normal again after a failure; the same in a profiling phase and at run time.

    began_at: when the failure was. normal: seconds of latency before it. hold: seconds for which it has to stay normal.
    tolerance, slack: how far above, as a share and in seconds, is still normal.

    >>> watch = Watch(began_at=100.0, normal=1.0, hold=2.0)
    >>> [watch.learn(at, latency) for at, latency in ((130, 40.0), (150, 1.5), (151, None), (152, 1.0), (155, 1.2))]
    [None, None, None, None, 52.0]
    """

    began_at: float
    normal: float
    hold: float = 30.0
    tolerance: float = 0.2
    slack: float = 1.0
    hurt: bool = False
    _since: float | None = None

    def learn(self, at: float, latency: float | None) -> float | None:
        """Seconds that it took, once that is known."""
        fine = latency is not None and latency <= self.normal * (1 + self.tolerance) + self.slack
        if not fine:
            self.hurt, self._since = True, None
            return None
        if not self.hurt:  # what is seen before it shows is still that of before
            return None
        self._since = at if self._since is None else self._since
        return self._since - self.began_at if at - self._since >= self.hold else None
