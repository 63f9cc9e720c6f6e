"""A week takes no more memory than a day, and a loop no more time than it may."""

from __future__ import annotations

import math
import pickle

from penstock.models.forecast import Experts, Scored, make
from penstock.models.forecast.base import INTERVALS_KEPT, PARTS


def test_a_week_is_no_bigger_than_a_day() -> None:
    scored = Scored(make("experts"))
    sizes = {}
    for minute in range(7 * 1440 + 1):
        scored.learn(minute * 60.0, 1000 + 500 * math.sin(minute / 229))
        if minute % 60 == 0 or minute % 1440 > 1420:
            scored.outlook()
        if minute % 1440 == 0 and minute:
            sizes[minute // 1440] = len(pickle.dumps(scored))
    assert sizes[7] <= 1.02 * sizes[1]  # the bounds' last 150 loops take some days to fill, asked so seldom
    assert sizes[7] <= 1.001 * sizes[5]
    assert isinstance(scored.forecaster, Experts)
    past = scored.forecaster.series.past()
    assert past is not None
    assert len(past.means) <= INTERVALS_KEPT
    assert len(past.fine) <= INTERVALS_KEPT * PARTS
    assert len(scored.forecaster.record.said) <= 15
