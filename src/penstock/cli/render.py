"""How results look: tables for people, one JSON document for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.settings import Parameter

WIDTH = 100  # of what is no terminal


def console() -> Console:
    """The terminal, or whatever stdout is now."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)


def emit(document: object) -> None:
    """One JSON document on stdout."""
    print(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False))


def table(*columns: str, title: str = "") -> Table:
    """A table without lines: the eye needs only the columns."""
    return Table(
        *columns, title=title or None, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0)
    )


def parameters(title: str, settings: Iterable[Parameter]) -> Table:
    """The settings of one thing."""
    shown = table("parameter", "type", "default", "meaning", title=title)
    for setting in settings:
        shown.add_row(f"[bold]{setting.name}[/]", escape(setting.type), escape(default(setting)), escape(setting.doc))
    return shown


def default(setting: Parameter) -> str:
    """What a setting is when it is not given."""
    if setting.default is None:
        return "unset" if "unset" in setting.type else "required"
    return str(setting.default)
