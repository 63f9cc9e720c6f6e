"""How many parts to cut a batch into, told from one process to another through a small file.

Spark runs a streaming reader in a Python process of its own, out of reach of the one that scales. So whoever scales
publishes the number of workers in a file, and the reader looks there before each batch.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from penstock.errors import check


def publish(path: str | Path, splits: int) -> None:
    """Let readers cut their next batch into `splits` parts; they see the old number or the new, never half of one."""
    check(splits >= 1, "splits", "be at least 1", splits)
    path = Path(path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(f"{splits}\n")
    temporary.rename(path)


class Splits:
    """The current number: fixed, or what a file holds; while it cannot be read, the last one known, at first 1."""

    def __init__(self, option: str) -> None:
        self._fixed = option.isascii() and option.lstrip("-").isdigit()
        self._path = Path(option)
        self._known = int(option) if self._fixed else 1
        check(self._known >= 1, "splits", "be at least 1 or name a file that holds a number", option)

    def now(self) -> int:
        if not self._fixed:
            with suppress(OSError, ValueError):  # not there yet, or for a moment not
                self._known = max(int(self._path.read_text()), 1)
        return self._known
