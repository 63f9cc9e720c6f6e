"""Who feeds whom in a dataflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.core import Operator


def upstream(operators: Sequence[Operator]) -> dict[str, tuple[str, ...]]:
    """By operator, those that feed it; none for a source. Where nobody says, they are a chain in the order given.

    >>> upstream([Operator("read", 1, downstream=("count",)), Operator("count", 1)])
    {'read': (), 'count': ('read',)}
    """
    if not any(operator.downstream for operator in operators):
        names = [operator.name for operator in operators]
        return {name: tuple(names[max(0, i - 1) : i]) for i, name in enumerate(names)}
    return {o.name: tuple(other.name for other in operators if o.name in other.downstream) for o in operators}


def in_order(feeds: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Sources first, each after all that feed it; what is in a circle is left out."""
    done: list[str] = []
    while True:
        ready = [name for name, above in feeds.items() if name not in done and all(a in done for a in above)]
        if not ready:
            return done
        done += ready
