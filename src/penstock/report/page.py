"""One self-contained page for a suite or a simulation: words, figures and tables, light or dark as the reader likes.

It opens from disk and loads nothing: figures are SVG within it. What it shows is given as plain values; where they come
from is not its business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from penstock.measures import Interval

CSS = """
:root { color-scheme: light dark; --text: #1b1b1b; --back: #ffffff; --faint: #666666; --line: #dddddd; --good: #00614a;
  --bad: #a03c00; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --back: #16181b; --faint: #a0a0a0; --line: #3a3d42;
  --good: #4fd1ac; --bad: #ff9b66; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: var(--text); background: var(--back);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line);
  padding-top: 1rem; }
p.source, .note { color: var(--faint); font-size: 0.9rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; color: var(--text); }
figure svg text { fill: currentColor; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.88rem; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; font-variant-numeric: tabular-nums; vertical-align: top; }
th.word, td.word { text-align: left; white-space: normal; }
th.word:first-child, td.word:first-child { white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first `words` columns are text, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


@dataclass(frozen=True, slots=True)
class Section:
    """What belongs together: a heading, sentences, figures as SVG, tables."""

    title: str
    words: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A report. `source` is the paper or the file, `alarms` is what the reader has to know first."""

    title: str
    source: str
    words: tuple[str, ...]
    sections: tuple[Section, ...]
    alarms: tuple[str, ...] = ()


def html(page: Page) -> str:
    """The page as one HTML document that is well-formed XML, too."""
    parts = [
        f"<h1>{escape(page.title)}</h1>",
        f'<p class="source">{escape(page.source)}</p>',
        *(f'<p class="bad">{escape(alarm)}</p>' for alarm in page.alarms),
        _list(page.words),
        *(_section(section) for section in page.sections),
    ]
    head = (
        '<meta charset="utf-8"/>\n<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{escape(page.title)}</title>\n<style>{CSS}</style>"
    )
    body = "\n".join(part for part in parts if part)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def _section(section: Section) -> str:
    parts = [
        f"<h2>{escape(section.title)}</h2>",
        _list(section.words),
        *(f"<figure>{figure}</figure>" for figure in section.figures),
        *(_table(table) for table in section.tables if table.rows),
        *(f'<p class="note">{escape(note)}</p>' for note in section.notes),
    ]
    return "\n".join(part for part in parts if part)


def _list(words: Iterable[str]) -> str:
    items = "\n".join(f"<li>{escape(word)}</li>" for word in words)
    return f"<ul>\n{items}\n</ul>" if items else ""


def _table(table: Table) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        made = []
        for place, cell in enumerate(cells):
            kind = ' class="word"' if place < table.words else ""
            made.append(f"<{tag}{kind}>{_cell(cell)}</{tag}>")
        return f"<tr>{''.join(made)}</tr>"

    lines = "\n".join(row(cells, "td") for cells in table.rows)
    head = row(table.columns, "th")
    return (
        f'<div class="scroll"><table>\n<caption>{escape(table.title)}</caption>\n'
        f"<thead>{head}</thead>\n<tbody>\n{lines}\n</tbody>\n</table></div>"
    )


def _cell(text: str) -> str:
    kind = {"yes": "good", "no": "bad", "not run": "bad"}.get(text)
    return escape(text) if kind is None else f'<span class="{kind}">{escape(text)}</span>'


def number(value: float | None, digits: int = 2, unit: str = "") -> str:
    """A number for a table.

    >>> number(1234.5, 1), number(None), number(0.5, 0, " s")
    ('1,234.5', 'unknown', '0 s')
    """
    return "unknown" if value is None else f"{value:,.{digits}f}{unit}"


def share(value: float | None) -> str:
    """A share as a percentage.

    >>> share(0.256), share(None)
    ('26 %', 'unknown')
    """
    return "unknown" if value is None else f"{100 * value:.0f} %"


def times(value: float | None) -> str:
    """A multiple.

    >>> times(1.256), times(None)
    ('1.26 ×', 'unknown')
    """
    return "unknown" if value is None else f"{value:.2f} ×"


def mean(interval: Interval | None, digits: int = 2) -> str:
    """A mean and its 95 % interval.

    >>> mean(Interval(5.3, 4.8, 5.8, 3), 1), mean(Interval(5.3, None, None, 1), 1), mean(None)
    ('5.3 ± 0.5', '5.3', 'unknown')
    """
    if interval is None:
        return "unknown"
    half = "" if interval.high is None else f" ± {interval.high - interval.mean:,.{digits}f}"
    return f"{interval.mean:,.{digits}f}{half}"


def verdict(kept: bool | None) -> str:
    """Whether something was found again."""
    return "not run" if kept is None else "yes" if kept else "no"
