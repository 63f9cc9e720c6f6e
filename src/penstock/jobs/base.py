"""What a job is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.jobs.evidence import Evidence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Generate = Callable[[npt.NDArray[np.int64]], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a recount found: the job's results against the log's own contents.

    equal: None where no results were kept to compare.
    records_out: records that the results account for.
    set_aside: of these, malformed ones, which are among the results as they came.
    late: of these, ones that came after their window was closed, and count nowhere.
    """

    equal: bool | None
    records_in: int
    records_out: int
    sentence: str
    set_aside: int = 0
    late: int = 0


@dataclass
class Job(ABC):
    """A streaming query with its records and its proof.

    Its fields are its settings, which an experiment gives under [job_settings]; most jobs have none.
    A record's time of arrival is in the column `timestamp`; records are made for given times, in microseconds.

    keys: what the records are grouped by, and how that is distributed.
    output_mode: of the query, as Spark calls it.
    bulky: the results are about as many as the records, and are not brought to the driver.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    operators: ClassVar[tuple[str, ...]]
    keys: ClassVar[str]
    state: ClassVar[str]
    schema: ClassVar[pa.Schema]
    output_mode: ClassVar[str] = "update"
    bulky: ClassVar[bool] = False

    @property
    def settings(self) -> dict[str, Any]:
        """What makes the same job again, in another process."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}

    @abstractmethod
    def generator(self, seed: int) -> Generate:
        """Makes records for times of arrival; the same seed makes the same records."""

    @abstractmethod
    def build(self, records: DataFrame) -> DataFrame:
        """The plan; it works on a stream and, to know what it costs without one, on a batch too."""

    @abstractmethod
    def check(self, evidence: Evidence) -> Verdict:
        """Recompute the answer from the log, with other code, and compare."""
