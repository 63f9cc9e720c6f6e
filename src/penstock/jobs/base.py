"""What a job is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.sources.log import EmbeddedLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Generate = Callable[[npt.NDArray[np.int64]], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a recount found: the job's results against the log's own contents."""

    equal: bool
    records_in: int
    records_out: int
    sentence: str


@dataclass
class Job(ABC):
    """A streaming query with its records and its proof.

    A record's event time is in the column `timestamp`; records are made for given event times, in microseconds.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    operators: ClassVar[tuple[str, ...]]
    state: ClassVar[str]
    schema: ClassVar[pa.Schema]
    output_mode: ClassVar[str] = "update"

    @abstractmethod
    def generator(self, seed: int) -> Generate:
        """Makes records for event times; the same seed makes the same records."""

    @abstractmethod
    def build(self, records: DataFrame) -> DataFrame:
        """The streaming plan."""

    @abstractmethod
    def check(self, log: EmbeddedLog, results: Path, until: dict[int, int]) -> Verdict:
        """Recompute the answer from the log up to the offsets `until`, with other code, and compare."""
