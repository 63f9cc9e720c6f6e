"""Many cells at once: over processes of this machine, or as a Spark job; the same rows either way, to the byte.

Every cell is independent and deterministic, so where and in which order they are made does not matter, and a task that
Spark makes again because its executor was lost gives what it would have given. Rows are sorted by cell and written to
Parquet in one place, with a fixed schema.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, fields
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from penstock.errors import ConfigError, Unavailable, check
from penstock.experiment.cell import Cell, Row, execute

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext

Progress = Callable[[int], None]  # how many more are done


def run(
    cells: Sequence[Cell],
    *,
    processes: int | None = None,
    master: str | None = None,
    progress: Progress = lambda _: None,
) -> list[Row]:
    """The rows of all cells, in their order.

    processes: of this machine; unset: one per core. master: the URL of a Spark master, which is used instead.
    """
    numbers = [cell.number for cell in cells]
    check(len(set(numbers)) == len(numbers), "cells", "be numbered, each apart", numbers)
    rows = _here(cells, processes or _cores(), progress) if master is None else _on_spark(cells, master, progress)
    return sorted(rows, key=lambda row: row.number)


def check_master(master: str) -> None:
    """A ConfigError unless this may be a Spark master; whether it is there, only trying tells."""
    if not master.startswith(("local", "spark://", "yarn", "k8s://")):
        raise ConfigError(f"master must be the URL of a Spark master, as spark://host:7077 or local[2], got {master!r}")


def write(rows: Sequence[Row], path: Path) -> None:
    """The rows as Parquet: equal rows, equal bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = _schema()
    columns = [pa.array([getattr(row, name) for row in rows], schema.field(name).type) for name in schema.names]
    table = pa.Table.from_arrays(columns, schema=schema)
    partial = path.with_suffix(".partial")
    parquet.write_table(table, partial, compression="zstd", compression_level=3, version="2.6", row_group_size=1024)
    partial.rename(path)


def read(path: Path) -> list[Row]:
    """The rows of a Parquet file."""
    from pyarrow import parquet

    return [Row(**row) for row in parquet.read_table(path, schema=_schema()).to_pylist()]


def _schema() -> pa.Schema:
    import pyarrow as pa

    kinds: dict[Any, Any] = {
        int: pa.int64(),
        int | None: pa.int64(),
        float: pa.float64(),
        float | None: pa.float64(),
        str: pa.string(),
    }
    hints = get_type_hints(Row)
    return pa.schema([pa.field(each.name, kinds[hints[each.name]]) for each in fields(Row)])


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make(text: str) -> dict[str, Any]:
    """A cell's JSON in, a row's fields out: what another process is asked for."""
    return asdict(execute(Cell.of(text)))


def _here(cells: Sequence[Cell], processes: int, progress: Progress) -> list[Row]:
    check(processes >= 1, "processes", "be at least 1", processes)
    rows: list[Row] = []
    if processes == 1 or len(cells) == 1:
        for cell in cells:
            rows.append(Row(**make(cell.to_json())))
            progress(1)
        return rows
    # Not forked: this process may have threads (a progress bar), and what they hold would be held forever.
    with ProcessPoolExecutor(min(processes, len(cells)), mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(make, cell.to_json()) for cell in cells]
        try:
            for future in as_completed(futures):
                rows.append(Row(**future.result()))
                progress(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return rows


def _on_spark(cells: Sequence[Cell], master: str, progress: Progress) -> list[Row]:
    with _context(master) as context, _watched(context, len(cells), progress):
        texts = [cell.to_json() for cell in cells]
        try:
            made = context.parallelize(texts, len(texts)).map(make).collect()
        except Exception as error:
            raise Unavailable(f"the Spark job on {master} ended without a result: {_said(error)}") from error
    return [Row(**row) for row in made]


def _said(error: Exception) -> str:
    """The line of a Java error that says what happened, without its trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith((": ", "Caused by"))), lines[0] if lines else repr(error))


@contextmanager
def _context(master: str) -> Iterator[SparkContext]:
    """A Spark session of its own, with this package sent along: executors need Python and numpy, nothing of ours."""
    from pyspark.sql import SparkSession

    from penstock.java import java_home

    check_master(master)
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings: dict[str, Any] = {
        "spark.app.name": "penstock simulate",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.task.maxFailures": "8",
    }
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
        try:
            session = SparkSession.builder.config(map=settings).getOrCreate()
        except Exception as error:  # whatever the JVM has to say
            raise Unavailable(f"there is no Spark at {master}: {_said(error)}") from error
        try:
            if not master.startswith("local[") and master != "local":  # whose executors are other processes
                session.sparkContext.addPyFile(str(_packed(Path(directory))))
            yield session.sparkContext
        finally:
            session.stop()


def _packed(directory: Path) -> Path:
    """This package as a zip."""
    home = Path(__file__).resolve().parents[1]
    path = directory / "penstock.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(home.rglob("*")):
            if file.is_file() and file.suffix in (".py", ".toml", ".typed"):
                archive.write(file, Path("penstock") / file.relative_to(home))
    return path


@contextmanager
def _watched(context: SparkContext, cells: int, progress: Progress) -> Iterator[None]:
    """Tell how many tasks are done while somebody else waits for the job; all of them once it is over."""
    over = threading.Event()
    tracker = context.statusTracker()
    told = 0

    def watch() -> None:
        nonlocal told
        while not over.wait(1.0):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None and info.numCompletedTasks > told:
                    progress(info.numCompletedTasks - told)
                    told = info.numCompletedTasks

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    progress(cells - told)
