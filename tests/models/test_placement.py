from __future__ import annotations

import pytest

from penstock.core import Decision, Node, Observation, Reason
from penstock.models.placement import ByChance, ByLatency, Choice, distance, place, resized, spread

# Milliseconds between fog nodes: a, b and c are near each other, d is far, e is farther.
APART = {"ab": 10, "ac": 20, "bc": 15, "ad": 120, "bd": 110, "cd": 100, "ae": 300, "be": 290, "ce": 280, "de": 250}


def fog(used: str, names: str = "abcde") -> tuple[Node, ...]:
    def between(one: str, other: str) -> float:
        return APART["".join(sorted(one + other))] / 1000

    return tuple(Node(n, n in used, {o: between(n, o) for o in names if o != n}) for n in names)


# name: in use, size -> chosen by latency
SIZES: dict[str, tuple[str, int, str]] = {
    "the nearest comes": ("a", 2, "ab"),
    "near all, not near one": ("ab", 3, "abc"),
    "two come": ("ab", 4, "abcd"),
    "the farthest goes": ("abde", 3, "abd"),
    "one by one": ("abcde", 2, "ab"),
    "of two the same apart, any": ("ae", 1, "a"),
    "none yet: the middle first": ("", 2, "cb"),
    "no more than there are": ("abcde", 7, "abcde"),
}


@pytest.mark.parametrize(("used", "size", "expected"), SIZES.values(), ids=SIZES)
def test_by_latency(used: str, size: int, expected: str) -> None:
    assert "".join(node.name for node in resized(fog(used), size, ByLatency())) == expected


def test_chance_is_repeatable_and_depends_on_its_seed() -> None:
    def drawn(seed: int) -> tuple[str, ...]:
        return tuple(node.name for node in resized(fog("a"), 3, ByChance(seed)))

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(40)}) > 3, "another seed draws other nodes"
    assert {drawn(seed)[0] for seed in range(40)} == {"a"}, "what is in use stays"
    assert {name for seed in range(40) for name in drawn(seed)} == set("abcde"), "none is never drawn"


def test_distances_as_either_knows_them() -> None:
    one, other = Node("one", distances={"other": 0.1}), Node("other")
    assert distance(one, other) == distance(other, one) == 0.1
    assert distance(other, Node("third")) is None
    assert spread([other, Node("third")]) == 0.0
    assert spread(fog("ad")[:4]) == 0.12


def test_an_unknown_distance_is_far() -> None:
    nodes = (Node("a", True, {"b": 0.2}), Node("b"), Node("c"))
    assert [node.name for node in resized(nodes, 2, ByLatency())] == ["a", "b"]


@pytest.mark.parametrize("choice", [ByLatency(), ByChance(3)], ids=["latency", "chance"])
def test_a_decision_gets_its_nodes(choice: Choice) -> None:
    wish = Decision(3, (Reason("test.wish", "three would be nice"),))
    placed = place(wish, Observation(0.0, 2, 2, nodes=fog("ab")), choice)
    assert (placed.workers, placed.reason.code, len(placed.nodes)) == (3, "test.wish", 3)
    assert placed.reasons[0].code == "nodes.added"
    assert place(wish, Observation(0.0, 2, 2), choice) == wish, "a number where there are no nodes"
    hold = place(wish, Observation(0.0, 3, 3, nodes=fog("abc")), choice)
    assert hold.nodes == (), "no change says nothing about nodes"


def test_no_node_left() -> None:
    wish = Decision(6, (Reason("test.wish", "six would be nice"),))
    placed = place(wish, Observation(0.0, 5, 5, nodes=fog("abcde")), ByLatency())
    assert (placed.workers, placed.reason.code, placed.nodes) == (5, "nodes.none_free", ())


def test_a_person_can_read_it() -> None:
    wish = Decision(3, (Reason("test.wish", "three would be nice"),))
    placed = place(wish, Observation(0.0, 5, 5, nodes=fog("abcde")), ByLatency())
    assert placed.nodes == ("a", "b", "c")
    assert placed.reasons[0].sentence == "Nodes d, e removed: the farthest two of the 3 are then 20 ms apart"
