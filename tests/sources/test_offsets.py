"""The arithmetic of offsets: exact, fair, never starving a partition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.sources.offsets import advance, cut, lag, parse, render

positions = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=6)


def between(pairs: list[tuple[int, int]]) -> tuple[dict[int, int], dict[int, int]]:
    return {p: at for p, (at, _) in enumerate(pairs)}, {p: at + ahead for p, (at, ahead) in enumerate(pairs)}


@given(positions, st.integers(1, 17))
def test_a_cut_holds_each_record_once_in_equal_parts(pairs: list[tuple[int, int]], splits: int) -> None:
    start, end = between(pairs)
    parts = cut(start, end, splits)
    seen = [(r.partition, i) for part in parts for r in part for i in range(r.start, r.end)]
    assert seen == [(p, i) for p in end for i in range(start[p], end[p])]
    sizes = [sum(r.end - r.start for r in part) for part in parts]
    assert len(parts) == min(splits, lag(start, end))
    assert not sizes or max(sizes) - min(sizes) <= 1


@given(positions, st.integers(1, 500))
def test_a_limit_is_kept_and_used_up(pairs: list[tuple[int, int]], limit: int) -> None:
    start, end = between(pairs)
    reached = advance(start, end, limit)
    assert lag(start, reached) == min(limit, lag(start, end))
    assert all(start[p] <= reached[p] <= end[p] for p in end)
    if limit >= len(end):
        assert all(reached[p] > start[p] for p in end if end[p] > start[p]), "a partition starves"


@given(positions, st.integers(1, 5))
def test_a_limit_below_the_number_of_partitions_starves_none(pairs: list[tuple[int, int]], limit: int) -> None:
    start, end = between([(at, ahead + 100) for at, ahead in pairs])
    reached = start
    for _ in range(len(end)):
        reached = advance(reached, end, limit)
    assert all(reached[p] > start[p] for p in end)


def test_partitions_move_together_through_what_they_hold() -> None:
    reached = advance({0: 0, 1: 0, 2: 5}, {0: 6000, 1: 3000, 2: 5}, 900)
    assert reached == {0: 599, 1: 301, 2: 5}


def test_without_a_limit_a_batch_goes_to_the_end() -> None:
    assert advance({0: 1}, {0: 9}, None) == {0: 9}


def test_offsets_survive_json() -> None:
    assert parse(render({10: 1, 2: 3})) == {2: 3, 10: 1}
