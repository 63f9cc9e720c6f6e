"""Commands on the simulator: simulate, and the papers' suites of bench.

Both make cells, run them here or on Spark, and write the same report: a page, figures, CSV, JSON and Parquet.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.cli import render
from penstock.cli.inspect import Json
from penstock.errors import ConfigError, check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.experiment.cell import Cell, Row
    from penstock.experiment.suites import Suite

MARK = "cells.parquet"  # what makes a directory one of ours, to be written again

On = Annotated[Literal["local", "spark"], Parameter(help="Where: processes of this machine, or a Spark job.")]
Master = Annotated[str | None, Parameter(help="URL of the Spark master, with --on spark. Default: local[*].")]
Processes = Annotated[int | None, Parameter(help="Local processes. Default: one per core.")]


@dataclass(frozen=True, slots=True)
class Place:
    """Where cells are run."""

    on: Literal["local", "spark"] = "local"
    master: str | None = None
    processes: int | None = None

    def __post_init__(self) -> None:
        if self.master is not None and self.on != "spark":
            raise ConfigError(f"master must be given with --on spark only, got {self.master!r}")
        check(self.processes is None or self.processes >= 1, "processes", "be at least 1", self.processes)
        if self.processes is not None and self.on == "spark":
            raise ConfigError(f"processes must be given without --on spark only, got {self.processes}")
        if self.master is not None:
            from penstock.experiment.matrix import check_master

            check_master(self.master)

    def run(self, cells: Sequence[Cell], progress: Callable[[int], None]) -> list[Row]:
        from penstock.experiment import matrix

        master = (self.master or "local[*]") if self.on == "spark" else None
        return matrix.run(cells, processes=self.processes, master=master, progress=progress)


def simulate(
    experiment: Annotated[Path, Parameter(help="A TOML file: profile, workload, policies.")],
    /,
    *,
    seeds: Annotated[int, Parameter(help="Runs of each policy that differ in their seed alone.")] = 5,
    into: Annotated[Path | None, Parameter(help="Directory of the report. Default: a new one under ./runs.")] = None,
    processes: Processes = None,
    on: On = "local",
    master: Master = None,
    as_json: Json = False,
) -> int:
    """Simulate policies on a load, hours in seconds, and report on them with means and 95 % intervals over seeds.

    The file has the words of `penstock run`, a profile and one or more [[policy]] tables. See docs/experiments.md and
    docs/simulator.md.

        penstock simulate my.toml
        penstock simulate my.toml --seeds 20 --into runs/mine --json
        penstock simulate my.toml --on spark --master spark://host:7077
    """
    from penstock.cli.reported import Told
    from penstock.experiment import simulation

    check(1 <= seeds <= 1000, "seeds", "be from 1 to 1000", seeds)
    place = Place(on, master, processes)
    found = simulation.load(experiment)
    for note in found.notes:
        warnings.warn(note, stacklevel=1)
    directory = claim(into or Path("runs") / f"{_slug(found.name)}-{time.strftime('%Y%m%d-%H%M%S')}")
    told = Told(
        title=found.name,
        source=str(experiment),
        command=f"penstock simulate {experiment} --seeds {seeds}",
        settings=found.notes,
    )
    return _do(found.cells(seeds), place, directory, told, as_json)


def suite(
    found: Suite,
    *,
    seeds: int,
    into: Path | None,
    only: Sequence[str],
    place: Place,
    as_json: bool,
) -> int:
    """Run a paper's suite and report on it."""
    from penstock.cli.reported import Told

    cells = found.cells(seeds, only)
    directory = claim(into or Path("runs") / f"bench-{found.name}")
    chosen = "".join(f" --only {name}" for name in only)
    told = Told(
        title=found.title,
        source=found.paper,
        command=f"penstock bench {found.name} --seeds {seeds}{chosen}",
        settings=found.settings,
        suite=found,
        only=tuple(only),
    )
    return _do(cells, place, directory, told, as_json)


def _do(cells: Sequence[Cell], place: Place, directory: Path, told: Any, as_json: bool) -> int:
    from penstock.cli import reported, shown
    from penstock.experiment import matrix

    console = Console(stderr=as_json, highlight=False, width=None if as_json else render.console().width)
    with _progress(console, len(cells)) as progress:
        rows = place.run(cells, progress)
    matrix.write(rows, directory / MARK)
    document = reported.write(rows, cells, directory, told)
    if as_json:
        render.emit(document)
    else:
        shown.show(console, document, directory / "report.html")
    return 0


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("simulating", total=total)

        def more(count: int) -> None:
            bar.update(task, advance=count)

        yield more


def claim(directory: Path, mark: str = MARK, what: str = "a simulation") -> Path:
    """A directory to write into: a new one, or one that holds a report of ours, which `mark` tells."""
    if directory.exists() and (
        not directory.is_dir() or (any(directory.iterdir()) and not (directory / mark).exists())
    ):
        raise ConfigError(f"into must be a new directory or one of {what}, got {str(directory)!r}")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = "be a directory that can be made"
        raise ConfigError(f"into must {rule}, got {str(directory)!r}: {error.strerror}") from None
    return directory


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-") or "run"
