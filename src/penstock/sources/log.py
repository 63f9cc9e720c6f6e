"""The embedded log: a partitioned, durable, append-only log in a directory, with no service to run.

    <log>/log.json                            format version, number of partitions, schema
    <log>/writer.lock                         held by the one writer
    <log>/<partition>/<segment>.arrow         what was appended, see `segments`

Readers take no lock and need no coordination: a segment becomes visible whole, by a rename, and never changes.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from penstock.errors import Damaged, Unsupported, check
from penstock.sources import retention, segments
from penstock.sources.listing import Listing, bounds
from penstock.sources.segments import Piece
from penstock.sources.writer import Lock, LogWriter, inline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = 1


class EmbeddedLog:
    """A log on disk; implements `Source`. Made by `create` or `open`.

    >>> import tempfile
    >>> log = EmbeddedLog.create(Path(tempfile.mkdtemp()) / "log", pa.schema({"id": pa.int64()}), partitions=2)
    >>> with log.writer() as writer:
    ...     writer.append(0, pa.record_batch({"id": [1, 2, 3]}))
    >>> log.end_offsets(), log.lag({0: 1})
    ({0: 3, 1: 0}, 2)
    >>> [batch.to_pydict() for batch in log.read(0, 1, 3)]
    [{'id': [2, 3]}]
    """

    def __init__(self, path: Path, schema: pa.Schema, partitions: int) -> None:
        self.path = path
        self.schema = schema
        self.partitions = partitions
        self._listings = {partition: Listing(path / str(partition)) for partition in range(partitions)}

    @classmethod
    def create(cls, path: str | Path, schema: pa.Schema, partitions: int = 4) -> Self:
        """Make a new, empty log in an empty or absent directory."""
        path = Path(path)
        check(partitions >= 1, "partitions", "be at least 1", partitions)
        check(len(schema) > 0, "schema", "have at least one field", inline(schema))
        check(not path.exists() or path.is_dir(), "path", "be a directory, or not exist yet", str(path))
        path.mkdir(parents=True, exist_ok=True)
        lock = Lock(path)  # of two that create at once, one is told so
        try:
            check(not (path / "log.json").exists(), "path", "not hold a log already: open it", str(path))
            strangers = [entry.name for entry in path.iterdir() if entry.name != "writer.lock"]
            check(not strangers, "path", "be an empty directory for a new log", f"{path} with {strangers[:3]}")
            for partition in range(partitions):
                (path / str(partition)).mkdir()
            description = {
                "format": FORMAT,
                "partitions": partitions,
                "fields": inline(schema),  # for people; the next line is for us
                "schema": base64.b64encode(schema.serialize().to_pybytes()).decode(),
            }
            temporary = path / "log.json.tmp"
            temporary.write_text(json.dumps(description, indent=2) + "\n")
            temporary.rename(path / "log.json")
            segments.sync(path)
        finally:
            lock.release()
        return cls(path, schema, partitions)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open an existing log, to read or to write."""
        path = Path(path)
        described = path / "log.json"
        check(described.is_file(), "path", "be a directory that holds a log (log.json)", str(path))
        description = parse(described)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(description["schema"])))
        return cls(path, schema, description["partitions"])

    def begin_offsets(self) -> dict[int, int]:
        return {partition: begin for partition, (begin, _) in self._bounds().items()}

    def end_offsets(self) -> dict[int, int]:
        return {partition: end for partition, (_, end) in self._bounds().items()}

    def lag(self, committed: Mapping[int, int]) -> int:
        held = self._bounds()
        return sum(end - committed.get(partition, begin) for partition, (begin, end) in held.items())

    def _bounds(self) -> dict[int, tuple[int, int]]:
        return {partition: bounds(listing.segments()) for partition, listing in self._listings.items()}

    def pieces(self, partition: int, start: int, end: int) -> list[Piece]:
        """Where the offsets from `start` up to `end` lie."""
        check(partition in self._listings, "partition", f"be one of 0 to {self.partitions - 1}", partition)
        return self._listings[partition].covering(start, end)

    def read(self, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The records from `start` up to `end`, exactly; raises before the first one if some are not there."""
        found = self.pieces(partition, start, end)
        return (batch for piece in found for batch in segments.read(self.path, piece))

    def writer(self, *, durable: bool = True) -> LogWriter:
        """The one writer; raises Locked, naming the process, while there is another."""
        lock = Lock(self.path)
        try:
            for partition in self._listings:
                for torn in (self.path / str(partition)).glob(f"*{segments.TEMPORARY}"):
                    torn.unlink()  # a writer was killed before it could say that this was written
            return LogWriter(self.path, self.schema, self.end_offsets(), lock, durable)
        except BaseException:
            lock.release()
            raise

    def retain(
        self,
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        keep_from: Mapping[int, int] | None = None,
        now: float | None = None,
    ) -> int:
        """Delete the oldest segments until what is left fits; how many went.

        max_bytes: of the whole log; max_age: in seconds since a segment was written.
        keep_from: per partition, the first offset that a reader still needs; nothing from there on is deleted, even if
            the log then stays too large or too old.
        """
        held = {p: retention.stored(each.directory, each.segments()) for p, each in self._listings.items()}
        at = time.time() if now is None else now
        doomed = list(retention.expired(held, max_bytes=max_bytes, max_age=max_age, keep_from=keep_from, now=at))
        for one in doomed:
            one.path.unlink(missing_ok=True)
        return len(doomed)

    def stream(
        self, spark: SparkSession, *, splits: int | str | Path, max_records_per_split: int | None = None
    ) -> DataFrame:
        """Read as an unbounded stream from the oldest record kept; see `penstock.sources.spark_log`."""
        from penstock.sources.spark_log import stream

        return stream(spark, self.path, splits, max_records_per_split)

    def batch(self, spark: SparkSession, *, splits: int | None = None) -> DataFrame:
        """What the log holds now, as a bounded DataFrame in `splits` parts (by default as many as Spark has cores)."""
        from penstock.sources.spark_log import batch

        return batch(spark, self.path, splits)


def parse(described: Path) -> dict[str, Any]:
    """The contents of log.json, if this Penstock understands them."""
    try:
        description = json.loads(described.read_text())
        version = description["format"]
        if version == FORMAT:
            return {name: description[name] for name in ("partitions", "schema")}
    except (ValueError, TypeError, KeyError) as error:
        raise Damaged(f"{described} does not describe a log: {error!r}") from error
    raise Unsupported(f"{described} has format {version!r}, this Penstock knows format {FORMAT} only")
