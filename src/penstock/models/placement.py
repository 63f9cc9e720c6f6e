"""Which nodes: by their network distance to each other, or by chance. One worker runs on a node.

Gesscale (Arkian et al., ICCCN 2021), sec. IV-E: up takes the free node with the lowest latency to the others, down
gives back the one with the greatest. Its latency-unaware baselines (sec. V-A) take any from an unsorted list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import fsum, inf
from typing import Protocol

from penstock.core import Decision, Fact, Node, Observation, Reason


class Choice(Protocol):
    """Who comes next, and who goes first."""

    def add(self, chosen: Sequence[Node], free: Sequence[Node]) -> Node: ...

    def remove(self, chosen: Sequence[Node]) -> Node: ...


@dataclass(frozen=True, slots=True)
class ByLatency:
    """The nearest comes, the farthest goes: by the greatest distance to another, which is what the law counts,
    then by the sum of distances. Without any chosen yet, the most central comes. An unknown distance is far."""

    def add(self, chosen: Sequence[Node], free: Sequence[Node]) -> Node:
        if not chosen:
            return min(free, key=lambda node: (_remoteness(node, free)[1], node.name))
        return min(free, key=lambda node: (*_remoteness(node, chosen), node.name))

    def remove(self, chosen: Sequence[Node]) -> Node:
        return max(chosen, key=lambda node: (*_remoteness(node, chosen), node.name))


@dataclass(frozen=True, slots=True)
class ByChance:
    """Any; the same seed gives the same choice in the same place."""

    seed: int

    def add(self, chosen: Sequence[Node], free: Sequence[Node]) -> Node:
        return min(free, key=lambda node: self._lot("add", len(chosen), node))

    def remove(self, chosen: Sequence[Node]) -> Node:
        return min(chosen, key=lambda node: self._lot("remove", len(chosen), node))

    def _lot(self, way: str, size: int, node: Node) -> tuple[bytes, str]:
        # A hash instead of a generator: nothing to keep, so a replay or a dry run draws the same lots.
        return blake2b(f"{self.seed}/{way}/{size}/{node.name}".encode(), digest_size=8).digest(), node.name


def distance(one: Node, other: Node) -> float | None:
    """Seconds between two nodes, as either of them knows."""
    there, back = one.distances.get(other.name), other.distances.get(one.name)
    return back if there is None else there if back is None else max(there, back)


def spread(nodes: Sequence[Node]) -> float:
    """The greatest known distance between any two of them: the paper's NDmax; 0 where none is known.

    >>> a, b = Node("a", distances={"b": 0.02, "c": 0.3}), Node("b", distances={"a": 0.02})
    >>> spread([a, b])
    0.02
    """
    pairs = [distance(one, other) for i, one in enumerate(nodes) for other in nodes[i + 1 :]]
    return max((d for d in pairs if d is not None), default=0.0)


def resized(nodes: Sequence[Node], size: int, choice: Choice) -> tuple[Node, ...]:
    """The nodes in use, added to or taken from until they are `size`; fewer where there are not so many."""
    chosen = [node for node in nodes if node.used]
    free = [node for node in nodes if not node.used]
    while len(chosen) > size:
        chosen.remove(choice.remove(chosen))
    while len(chosen) < size and free:
        node = choice.add(chosen, free)
        free.remove(node)
        chosen.append(node)
    return tuple(chosen)


def shrinking(nodes: Sequence[Node], size: int, choice: Choice) -> Iterator[float]:
    """The spread of `size` nodes, then of one fewer, and so on."""
    chosen = list(resized(nodes, size, choice))
    while True:
        yield spread(chosen)
        if chosen:
            chosen.remove(choice.remove(chosen))


def place(decision: Decision, observation: Observation, choice: Choice) -> Decision:
    """The same decision with its nodes, where the target has nodes and their number changes."""
    workers, current = decision.workers, observation.requested
    if not observation.nodes or workers is None or current is None or workers == current:
        return decision
    chosen = resized(observation.nodes, workers, choice)
    if len(chosen) < workers:
        facts: dict[str, Fact] = {"nodes": len(observation.nodes), "desired": workers}
        sentence = f"{workers} workers need as many nodes, and there are {len(observation.nodes)}: no change"
        return decision.but(current, Reason("nodes.none_free", sentence, facts))
    return replace(decision, reasons=(*_moves(observation.nodes, chosen), *decision.reasons), nodes=_names(chosen))


def _moves(nodes: Sequence[Node], chosen: Sequence[Node]) -> list[Reason]:
    delay = 1000 * spread(chosen)
    moves = []
    for way, moved in (
        ("added", [n for n in chosen if not n.used]),
        ("removed", [n for n in nodes if n.used and n not in chosen]),
    ):
        if moved:
            names = ", ".join(_names(moved))
            sentence = (
                f"Node{'s' * (len(moved) > 1)} {names} {way}: the farthest two of the {len(chosen)} are then"
                f" {delay:.0f} ms apart"
            )
            moves.append(Reason(f"nodes.{way}", sentence, {"nodes": names, "delay_ms": delay}))
    return moves


def _names(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes)


def _remoteness(node: Node, others: Sequence[Node]) -> tuple[float, float]:
    known = [distance(node, other) for other in others if other.name != node.name]
    far = [inf if d is None else d for d in known]
    return max(far, default=0.0), fsum(far)  # exact, so that equal sums are equal
