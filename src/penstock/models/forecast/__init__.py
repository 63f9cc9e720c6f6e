"""Load forecasting behind one face: fifteen intervals ahead, judged, with upper bounds.

Daedalus, sec. 3.3, with the default that was measured to be faster and better than its auto-ARIMA.

>>> outlooks = Scored(make("experts", interval=60.0))
>>> for second in range(3600):
...     outlooks.learn(float(second), 1000.0 + second)
...     outlook = outlooks.outlook() if second % 60 == 59 else None
>>> [round(outlook.forecast.rate(ahead), -1) for ahead in (0, 300, 890)], outlook.by
([4600.0, 4900.0, 5490.0], 'experts')
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.models.forecast.auto_arima import AutoArima
from penstock.models.forecast.band import Band
from penstock.models.forecast.base import Forecast, Forecaster
from penstock.models.forecast.experts import Experts
from penstock.models.forecast.later import Later
from penstock.models.forecast.linear import Last, Linear
from penstock.models.forecast.scored import Outlook, Scored, wape
from penstock.models.forecast.series import Series
from penstock.settings import build

__all__ = [
    "FORECASTERS",
    "AutoArima",
    "Band",
    "Experts",
    "Forecast",
    "Forecaster",
    "Last",
    "Later",
    "Linear",
    "Outlook",
    "Scored",
    "Series",
    "make",
    "wape",
]

FORECASTERS: Mapping[str, type[Forecaster]] = {kind.name: kind for kind in (AutoArima, Experts, Last, Linear)}


def make(name: str, interval: float = 60.0) -> Forecaster:
    """The forecaster of that name, or a ConfigError that says which there are.

    >>> make("oracle")
    Traceback (most recent call last):
    penstock.errors.ConfigError: forecaster must be one of auto-arima, experts, last, linear, got 'oracle'
    """
    return build("forecaster", FORECASTERS, name, {"interval": interval})
