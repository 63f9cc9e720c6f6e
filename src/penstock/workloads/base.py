"""What every load has: a rate at each instant, a duration and a peak."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from hashlib import blake2b
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import check


class Load(ABC):
    """A load as a pure function of time: the same instant always has the same rate.

    Its dataclass fields are its configuration. Before its start it has its first rate, after its end its last.
    """

    __slots__ = ()

    kind: ClassVar[str]
    duration: float

    def rate(self, t: float) -> float:
        """Records per second at `t` seconds after the start."""
        return self.at(min(max(t, 0.0), self.duration))

    def rates(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same at many instants at once; equal to `rate` but for rounding."""
        return self.along(np.clip(np.asarray(ts, dtype=np.float64), 0.0, self.duration))

    @abstractmethod
    def at(self, t: float) -> float:
        """The rate at `t` in 0..duration."""

    def along(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rates at instants in 0..duration; a load whose formula fits arrays overrides this loop."""
        return np.array([self.at(float(t)) for t in ts], dtype=np.float64)

    @abstractmethod
    def peak(self) -> float:
        """A rate that is never exceeded; the highest one, but for noise that just might not reach it."""


def check_rate(field: str, value: float) -> None:
    """A rate is a number of records per second, 0 or more."""
    check(math.isfinite(value) and value >= 0, field, "be 0 records/s or more", value)


def check_above_zero(field: str, value: float) -> None:
    """For durations, intervals and factors."""
    check(math.isfinite(value) and value > 0, field, "be above 0", value)


def uniform(seed: int, index: int) -> float:
    """A number in [0, 1) that depends on `seed` and `index` alone, so that no noise has a state.

    >>> uniform(1, 7) == uniform(1, 7) != uniform(2, 7)
    True
    """
    digest = blake2b(f"{seed}/{index}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def uniforms(seed: int, indices: NDArray[np.float64]) -> NDArray[np.float64]:
    """`uniform` at many whole numbers, each of which is drawn once."""
    known, where = np.unique(indices, return_inverse=True)
    return np.array([uniform(seed, int(index)) for index in known], dtype=np.float64)[where]
