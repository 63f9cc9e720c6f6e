"""Nexmark: the stream of persons, auctions and bids, and how a recount reads it, without Spark."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.jobs import events, nexmark
from penstock.jobs.nexmark_recount import read

TIMES = np.arange(30_000, dtype=np.int64) * 1_000 + 1_790_000_000_000_000
FIELDS = {
    nexmark.PERSON: "id name emailAddress creditCard city state dateTime extra",
    nexmark.AUCTION: "id itemName description initialBid reserve dateTime expires seller category extra",
    nexmark.BID: "auction bidder price channel url dateTime extra",
}


def parse(line: str) -> dict[str, Any] | None:
    try:
        event: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return event or None


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [str(line) for line in nexmark.generator(1)(TIMES).column("value").to_pylist()]


@pytest.fixture(scope="module")
def whole(lines: list[str]) -> list[dict[str, Any] | None]:
    return [parse(line) for line in lines]


def of(whole: list[dict[str, Any] | None], kind: int) -> list[dict[str, Any]]:
    return [event for event in whole if event is not None and event["event_type"] == kind]


def test_the_same_seed_makes_the_same_records() -> None:
    first, again, other = (nexmark.generator(seed)(TIMES[:5_000]) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first.schema == events.SCHEMA
    assert first.column("timestamp").cast(pa.int64()).to_pylist() == TIMES[:5_000].tolist()


def test_events_in_the_benchmarks_proportions_with_its_fields(whole: list[dict[str, Any] | None]) -> None:
    for start in range(0, 5_000, 50):
        kinds = [event["event_type"] for event in whole[start : start + 50] if event is not None]
        assert kinds == sorted(kinds)
    shares = {kind: len(of(whole, kind)) / len(whole) for kind in nexmark.KINDS}
    assert shares == pytest.approx({0: 0.02, 1: 0.06, 2: 0.92}, rel=0.01)
    for kind, names in FIELDS.items():
        assert all(list(event) == ["event_type", *names.split()] for event in of(whole, kind))
    assert {person["state"] for person in of(whole, 0)} == set(nexmark.STATES)
    assert {auction["category"] for auction in of(whole, 1)} == set(nexmark.CATEGORIES)
    assert all(100 <= bid["price"] <= 100 * 10**6 for bid in of(whole, 2))


def test_ids_grow_and_are_used_once() -> None:
    generate = nexmark.generator(1)
    parts = [generate(TIMES[:3_010]), generate(TIMES[3_010:3_010]), generate(TIMES[3_010:9_000])]
    parts.append(nexmark.generator(2)(TIMES[:5_000] + 60_000_000))  # a minute later, begun anew
    found = [parse(str(line)) for part in parts for line in part.column("value").to_pylist()]
    for kind in (nexmark.PERSON, nexmark.AUCTION):
        ids = [event["id"] for event in of(found, kind)]
        assert ids == sorted(set(ids))


def test_some_keys_are_hot(whole: list[dict[str, Any] | None]) -> None:
    bids, auctions = of(whole, nexmark.BID), of(whole, nexmark.AUCTION)
    hot = [
        (sum(bid["auction"] % 100 == 0 for bid in bids) / len(bids), 0.5),
        (sum(bid["bidder"] % 100 == 1 for bid in bids) / len(bids), 0.75),
        (sum(auction["seller"] % 100 == 0 for auction in auctions) / len(auctions), 0.75),
    ]
    for share, meant in hot:
        assert share == pytest.approx(meant, abs=0.04)
    (_, most), *_ = Counter(bid["bidder"] for bid in bids).most_common()
    assert most > 3_000  # of 5,000 events
    newest = max(auction["id"] for auction in auctions)
    assert max(bid["auction"] for bid in bids) <= newest + nexmark.LEAD


def test_some_lines_are_malformed_and_some_events_late(lines: list[str], whole: list[dict[str, Any] | None]) -> None:
    assert 0.0005 < sum(event is None for event in whole) / len(whole) < 0.002
    delays = [at // 1000 - event["dateTime"] for at, event in zip(TIMES.tolist(), whole, strict=True) if event]
    assert min(delays) >= 0
    assert 0.001 < sum(delay > 5_000 for delay in delays) / len(delays) < 0.003
    every = {kind: {"dateTime": int} for kind in nexmark.KINDS}
    assert [read(line, every) or None for line in lines] == whole


BID = '{"event_type":2,"auction":7,"dateTime":1000}'


@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param(BID, {"event_type": 2, "auction": 7, "dateTime": 1000}, id="wanted"),
        pytest.param('{"event_type":0,"id":1}', None, id="another kind, by how it opens and closes"),
        pytest.param('{"event_type":1,"id":1,"ext', False, id="another kind, cut off"),
        pytest.param('{"id":1,"event_type":0}', False, id="another kind that opens otherwise"),
        pytest.param(BID[:-3], False, id="cut off"),
        pytest.param("{}", False, id="empty"),
        pytest.param('["event_type"]', False, id="no object"),
        pytest.param("", False, id="nothing"),
        pytest.param(BID.replace("7", '"7"'), False, id="a number in quotes"),
        pytest.param(BID.replace("7", "true"), False, id="no number"),
        pytest.param(BID.replace("7", str(2**63)), False, id="a number too large"),
        pytest.param(BID.replace("1000", "null"), False, id="without its time"),
        pytest.param(BID.replace("1000", "253402300800000"), False, id="after the year 9999"),
        pytest.param(BID.replace('"event_type":2,', ""), False, id="of no kind"),
    ],
)
def test_a_line_as_a_recount_reads_it(line: str, found: dict[str, Any] | bool | None) -> None:
    assert read(line, {2: {"auction": int}}) == found
