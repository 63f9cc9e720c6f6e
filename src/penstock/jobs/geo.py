"""Distances on the globe, twice: as a Spark expression for plans, in numpy for recounts.

Both take sines and arc sines from different libraries, which may differ in the last bit: 1e-15 of a distance or so.
Angles are subtracted in degrees and multiplied once, so that nothing else differs. Recounts compare within `CLOSE`.
"""

from __future__ import annotations

from math import cos, pi
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pyspark.sql import Column

RADIUS_M = 6_371_000.0  # of the earth, as a ball
CLOSE = 1e-9  # relative: a micrometre in a kilometre

Floats = npt.NDArray[np.float64]


class Point(NamedTuple):
    """Degrees north and east."""

    latitude: float
    longitude: float


def haversine(latitude: Column, longitude: Column, point: Point) -> Column:
    """The haversine of the angle to a point: it grows with the distance, and is cheaper."""
    from pyspark.sql import functions as F  # noqa: N812

    north = F.sin((latitude - point.latitude) * (pi / 360))
    east = F.sin((longitude - point.longitude) * (pi / 360))
    return north * north + F.cos(latitude * (pi / 180)) * cos(point.latitude * (pi / 180)) * east * east


def metres(haversine: Column) -> Column:
    """The distance of which this is the haversine."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.asin(F.sqrt(haversine)) * (2 * RADIUS_M)


def distances(latitude: Floats, longitude: Floats, point: Point) -> Floats:
    """Metres from each place to a point.

    >>> distances(np.array([52.52]), np.array([13.405]), Point(48.137, 11.575)).round().tolist()  # Berlin to Munich
    [504338.0]
    """
    north, east = np.deg2rad(latitude - point.latitude) / 2, np.deg2rad(longitude - point.longitude) / 2
    scale = np.cos(np.deg2rad(latitude)) * np.cos(np.deg2rad(point.latitude))
    return np.asarray(2 * RADIUS_M * np.arcsin(np.hypot(np.sin(north), np.sqrt(scale) * np.sin(east))))
