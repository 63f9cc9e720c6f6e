"""Results on disk, one Arrow file per batch, written whole or not at all.

A batch that Spark runs again after a failure replaces the file of the same number, so every result counts once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.feather as feather

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ResultFiles:
    """The results of one query. `write` is what `foreachBatch` takes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def write(self, results: DataFrame, number: int) -> None:
        """Bring a batch's (few) result rows to the driver and put them on disk."""
        table = results.toArrow()
        fresh = self.directory / f"{number:09}.tmp"
        with fresh.open("wb") as out:
            feather.write_feather(table, out, compression="uncompressed")
            out.flush()
            os.fsync(out.fileno())
        fresh.rename(self.directory / f"{number:09}.arrow")

    def read(self) -> Iterator[pa.Table]:
        """Every batch's results, in the order of the batches."""
        for path in sorted(self.directory.glob("*.arrow")):
            yield feather.read_table(path, memory_map=False)
