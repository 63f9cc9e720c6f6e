"""Where the records come from: the face that the embedded log shows today and Kafka shows next.

A source has numbered partitions, each an append-only sequence of records counted from 0. Offsets are exclusive at the
end, so `end - begin` is what is there and `end - committed` is what is left to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # an executor or a plain writer must not pay for these
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class SourceWriter(Protocol):
    """Appends; what `append` returned from is durable."""

    def append(self, partition: int, batch: pa.RecordBatch) -> None: ...


class Source(Protocol):
    """A partitioned log of records with offsets."""

    def begin_offsets(self) -> dict[int, int]:
        """The oldest offset still kept, per partition."""
        ...

    def end_offsets(self) -> dict[int, int]:
        """One past the newest offset, per partition."""
        ...

    def lag(self, committed: Mapping[int, int]) -> int:
        """Records beyond `committed`; a partition it does not name counts from its begin."""
        ...

    def writer(self) -> AbstractContextManager[SourceWriter]: ...

    def stream(
        self, spark: SparkSession, *, splits: int | str | Path, max_records_per_split: int | None = None
    ) -> DataFrame:
        """An unbounded DataFrame; each batch is cut into `splits` equal ranges (a number, or a file holding one)."""
        ...
