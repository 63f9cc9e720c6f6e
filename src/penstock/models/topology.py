"""Who feeds whom in a dataflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from penstock.core import Operator


def upstream(operators: Iterable[Operator]) -> dict[str, tuple[str, ...]]:
    """By operator, those that feed it; none for a source. A downstream that is no operator here does not count.

    >>> upstream([Operator("read", 1, downstream=("count",)), Operator("count", 1)])
    {'read': (), 'count': ('read',)}
    """
    operators = tuple(operators)
    return {o.name: tuple(other.name for other in operators if o.name in other.downstream) for o in operators}


def chained(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """The operators, as a chain in the order given where nobody says who feeds whom."""
    if not operators or any(operator.downstream for operator in operators):
        return tuple(operators)
    return (*(replace(one, downstream=(other.name,)) for one, other in pairwise(operators)), operators[-1])


def sources(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """Those that have nothing upstream."""
    operators = tuple(operators)
    feeds = upstream(operators)
    return tuple(operator for operator in operators if not feeds[operator.name])


def in_order(feeds: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Sources first, each after all that feed it; what is in a cycle, or behind one, is left out.

    >>> in_order({"sink": ("left", "right"), "left": ("read",), "right": ("read",), "read": (), "mad": ("mad",)})
    ['read', 'left', 'right', 'sink']
    """
    waiting = {name: len(above) for name, above in feeds.items()}
    ready = [name for name, count in waiting.items() if count == 0]
    for name in ready:  # grows while it is walked
        for below, above in feeds.items():
            if name in above:
                waiting[below] -= 1
                if waiting[below] == 0:
                    ready.append(below)
    return ready
