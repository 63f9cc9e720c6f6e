"""The join of Nexmark query 3 as the pure function it is, and its step with a state that is only remembered."""

from typing import Any, cast

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.state import GroupState

from penstock.jobs.nexmark_q3 import WAIT_S, Waiting, joined, step

WAIT_MS = WAIT_S * 1000
Event = tuple[int, int | None]  # time, and the auction; None: a registration


class Remembered:
    """What Spark keeps for one key between two calls."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None
        self.watermark = 0
        self.timeout: int | None = None

    exists = property(lambda self: self.value is not None)
    get = property(lambda self: self.value)

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def remove(self) -> None:
        self.value = None

    def getCurrentWatermarkMs(self) -> int:  # noqa: N802 - Spark's name
        return self.watermark

    def setTimeoutTimestamp(self, at: int) -> None:  # noqa: N802
        assert at > self.watermark, "Spark refuses a time that is over"
        self.timeout = at


def frame(events: list[Event]) -> pd.DataFrame:
    person = [None if auction is not None else "Ann" for _, auction in events]
    return pd.DataFrame(
        {
            "aside": pd.Series([None] * len(events), dtype=object),
            "person": [7] * len(events),
            "dateTime": [at for at, _ in events],
            "auction": [auction or 0 for _, auction in events],
            "name": pd.Series(person, dtype=object),
            "city": pd.Series(person, dtype=object),
            "state": pd.Series(person, dtype=object),
        }
    )


def run(batches: list[list[Event]], patience: int = 0) -> tuple[list[int], Remembered]:
    """The auctions that found their seller; with a watermark that follows the events, and drops those behind it."""
    state, found, late = Remembered(), [], 0
    for batch in batches:
        in_time = [event for event in batch if event[0] > late]
        # Spark calls for a key with records, or without any once the time that it set is over.
        if in_time or (state.timeout is not None and state.exists and state.timeout < state.watermark):
            for out in step((0,), iter([frame(in_time)] if in_time else []), cast(GroupState, state)):
                assert out["person"].tolist() == [7] * len(out)
                found += out["auction"].tolist()
        late = state.watermark
        state.watermark = max([state.watermark, *(at - patience for at, _ in batch)])
    return found, state


@pytest.mark.parametrize(
    ("batches", "found"),
    [
        pytest.param([[(1_000, None), (2_000, 5)]], [5], id="together"),
        pytest.param([[(1_000, None)], [(2_000, 5)], [(3_000, 6)]], [5, 6], id="the seller waits"),
        pytest.param([[(1_000, 5), (1_500, 6)], [(2_000, None)]], [5, 6], id="auctions wait"),
        pytest.param([[(1_000, None)], [(1_000 + WAIT_MS, 5)]], [5], id="as long as they may"),
        pytest.param([[(1_000, None)], [(1_001 + WAIT_MS, 5)]], [], id="too long"),
        pytest.param([[(1_000, None)], [(90_000, 9)], [(95_000, 5)], [(95_001, 6)]], [], id="forgotten"),
        pytest.param([[(1_000, None), (1_000, None)], [(2_000, 5)]], [5, 5], id="registered twice"),
    ],
)
def test_whoever_is_first_waits(batches: list[list[Event]], found: list[int]) -> None:
    assert run(batches)[0] == found


def test_nothing_is_kept_forever() -> None:
    # The last batch has no records: Spark then calls for those whose time is over.
    found, state = run([[(1_000, 5)], [(1_000 + 2 * WAIT_MS, None)], [(1_000 + 4 * WAIT_MS, None)], []])
    assert found == []
    assert state.value == (f'[[[{1_000 + 4 * WAIT_MS},7,"Ann","Ann","Ann"]],[]]',)


def test_malformed_lines_pass_as_often_as_they_came() -> None:
    state = Remembered()
    lines = frame([(0, None)] * 3).assign(aside=["{}", "{}", "garbage"])
    (out,) = step((None,), iter([lines]), cast(GroupState, state))
    assert out["aside"].tolist() == ["{}", "{}", "garbage"]
    assert out.drop(columns="aside").isna().all().all()
    assert not state.exists


def test_neighbours_are_not_each_other() -> None:
    known = Waiting([(1_000, 7, "Ann", "Bend", "OR"), (1_000, 8, "Bo", "Boise", "ID")], [])
    assert joined(known, Waiting([], [(1_000, 8, 5), (1_000, 9, 6)])) == [(8, "Bo", "Boise", "ID", 5, None)]


EVENTS = st.lists(st.tuples(st.integers(1, 4 * WAIT_MS), st.none() | st.integers(1, 9)), max_size=12)


@given(st.lists(EVENTS, max_size=5))
def test_dropping_state_changes_nothing(batches: list[list[Event]]) -> None:
    """The same pairs as if everything in time had been there at once."""
    found, _ = run(batches, patience=10_000)
    late = watermark = 0
    persons: list[tuple[Any, ...]] = []
    auctions: list[tuple[Any, ...]] = []
    for batch in batches:
        persons += [(at, 7, "Ann", "Ann", "Ann") for at, auction in batch if auction is None and at > late]
        auctions += [(at, 7, auction) for at, auction in batch if auction is not None and at > late]
        late, watermark = watermark, max([watermark, *(at - 10_000 for at, _ in batch)])
    whole = [auction for *_, auction, _ in joined(Waiting([], []), Waiting(persons, auctions))]
    assert sorted(found) == sorted(whole)
