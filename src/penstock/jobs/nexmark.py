"""Nexmark (Tucker et al., 2002), an auction house: the one stream of persons, auctions and bids that its queries read.

Proportions, hot keys and fields are those of the benchmark as it is used with Beam and Flink. Events are flat JSON
objects that open with their type, so a job can tell what it does not need from the first characters, without parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.jobs import events
from penstock.jobs.base import Generate, Job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PERSON, AUCTION, BID = KINDS = (0, 1, 2)
PERSONS, AUCTIONS, ALL = 1, 3, 50  # of 50 events in a row, the first is a person, three are auctions, 46 are bids
FIRST = 1_000  # the lowest id
CATEGORIES = range(10, 15)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Bend", "Boise", "Fresno", "Kent", "Laramie", "Mesa", "Oakland", "Salem", "Tacoma", "Tucson")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

HOT = 100  # one id in so many is hot: the newest of these is,
HOT_AUCTIONS, HOT_BIDDERS, HOT_SELLERS = 1 / 2, 3 / 4, 3 / 4  # for this share of bids, bids and auctions;
IN_FLIGHT, ACTIVE, LEAD = 100, 1_000, 10  # the others take one of the newest auctions or persons, or of the next few
TOP_PRICE = 6.0  # prices are 10 to the power of 0 to this, evenly, in dollars
OPEN_MS = 20_000  # auctions expire within this; no query here asks
POOL = 4_096  # texts made once and drawn from: a generator must be far faster than the job it feeds
NEVER_MS = 253_402_300_800_000  # the year 10000: no event is so late, and Spark could not tell the time


def opening(kind: int) -> str:
    """How a line of that kind begins."""
    return f'{{"event_type":{kind},'


@dataclass
class Query(Job):
    """What the queries share: the stream, and results that come out once."""

    schema: ClassVar[pa.Schema] = events.SCHEMA
    output_mode: ClassVar[str] = "append"

    def generator(self, seed: int) -> Generate:
        """Persons, auctions and bids: see `nexmark.generator`."""
        return generator(seed)


def generator(seed: int) -> Generate:
    """Of 50 events a person, three auctions and 46 bids, in this order.

    Ids grow with the records, from a number that is the time of the first one: a load that is begun anew, or comes
    after a warm-up, uses none a second time. Half of the bids are for the hot auction, three quarters from the hot
    bidder, three quarters of the auctions by the hot seller: the newest id that is a multiple of 100 (bidders: plus 1).
    The others take one of the last 100 auctions or 1,000 persons, or of the 10 to come, with equal chances. Prices run
    evenly over the powers of ten from 1 to a million dollars, in cents; states, cities and categories are as likely as
    each other; names, prices, texts and addresses come from pools of 4,096.
    """
    random = np.random.default_rng(seed)
    pools = _pools(random)
    number = -1

    def generate(timestamps: events.Ints) -> pa.RecordBatch:
        nonlocal number
        n = len(timestamps)
        if number < 0 < n:
            number = int(timestamps[0]) // ALL * ALL
        numbers = np.arange(n, dtype=np.int64) + number
        number += n
        times = events.event_times(random, timestamps)
        place = numbers % ALL
        person, auction = place < PERSONS, (place >= PERSONS) & (place < PERSONS + AUCTIONS)
        where = [np.flatnonzero(kind) for kind in (person, auction, ~(person | auction))]
        makers = zip((_persons, _auctions, _bids), where, strict=True)
        made = [make(random, pools, numbers[at], times[at]) for make, at in makers]
        order = np.empty(n, dtype=np.int64)
        order[np.concatenate(where)] = np.arange(n)
        return events.records(random, timestamps, pa.concat_arrays(made).take(order))

    return generate


def _pools(random: np.random.Generator) -> dict[str, pa.Array[Any]]:
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))

    def words(length: int) -> list[str]:
        return ["".join(row) for row in random.choice(letters, (POOL, length)).tolist()]

    def prices() -> list[int]:
        return [round(100 * 10**power) for power in (random.random(POOL) * TOP_PRICE).tolist()]

    first, last, item, text, path = words(6), words(8), words(10), words(60), words(5)
    cards = random.integers(0, 10_000, (POOL, 4)).tolist()
    places = zip(random.choice(CITIES, POOL).tolist(), random.choice(STATES, POOL).tolist(), strict=True)
    channels = random.choice(CHANNELS, POOL).tolist()
    pools = {
        "person": [
            f',"name":"{a.title()} {b.title()}","emailAddress":"{a}@{b}.example",'
            f'"creditCard":"{" ".join(f"{part:04}" for part in card)}","city":"{city}","state":"{state}","dateTime":'
            for a, b, card, (city, state) in zip(first, last, cards, places, strict=True)
        ],
        "item": [
            f',"itemName":"{a}","description":"{b}","initialBid":{low},"reserve":{low + more},"dateTime":'
            for a, b, low, more in zip(item, text, prices(), prices(), strict=True)
        ],
        "category": [f',"category":{category},"extra":"' for category in CATEGORIES],
        "price": [
            f',"price":{price},"channel":"{channel}","url":"https://www.nexmark.example/{a}/item.htm?query=1","dateTime":'
            for price, channel, a in zip(prices(), channels, path, strict=True)
        ],
        # The benchmark pads its persons, auctions and bids to about 200, 500 and 100 bytes.
        "person extra": [f',"extra":"{word}"}}' for word in words(90)],
        "auction extra": [f'{word}"}}' for word in words(300)],
        "bid extra": [f',"extra":"{word}"}}' for word in words(50)],
    }
    return {name: pa.array(pool) for name, pool in pools.items()}


def _persons(
    random: np.random.Generator, pools: dict[str, pa.Array[Any]], numbers: events.Ints, times: events.Ints
) -> pa.Array[Any]:
    return events.lines(
        f'{opening(PERSON)}"id":',
        pa.array(FIRST + _last_person(numbers)),
        _draw(random, pools["person"], len(numbers)),
        pa.array(times),
        _draw(random, pools["person extra"], len(numbers)),
    )


def _auctions(
    random: np.random.Generator, pools: dict[str, pa.Array[Any]], numbers: events.Ints, times: events.Ints
) -> pa.Array[Any]:
    n = len(numbers)
    last = _last_person(numbers)
    sellers = _hot_or(random, HOT_SELLERS, last // HOT * HOT, _recent(random, last, ACTIVE))
    return events.lines(
        f'{opening(AUCTION)}"id":',
        pa.array(FIRST + _last_auction(numbers)),
        _draw(random, pools["item"], n),
        pa.array(times),
        ',"expires":',
        pa.array(times + random.integers(1, OPEN_MS, n)),
        ',"seller":',
        pa.array(FIRST + sellers),
        _draw(random, pools["category"], n),
        _draw(random, pools["auction extra"], n),
    )


def _bids(
    random: np.random.Generator, pools: dict[str, pa.Array[Any]], numbers: events.Ints, times: events.Ints
) -> pa.Array[Any]:
    n = len(numbers)
    auction, person = _last_auction(numbers), _last_person(numbers)
    auctions = _hot_or(random, HOT_AUCTIONS, auction // HOT * HOT, _recent(random, auction, IN_FLIGHT))
    bidders = _hot_or(random, HOT_BIDDERS, person // HOT * HOT + 1, _recent(random, person, ACTIVE))
    return events.lines(
        _named(f'{opening(BID)}"auction":', FIRST + auctions, ',"bidder":'),
        _named("", FIRST + bidders, ""),
        _draw(random, pools["price"], n),
        pa.array(times),
        _draw(random, pools["bid extra"], n),
    )


def _last_person(numbers: events.Ints) -> events.Ints:
    return numbers // ALL * PERSONS


def _last_auction(numbers: events.Ints) -> events.Ints:
    """Of those up to this event: a bid comes after all three of its fifty, the person before any of them."""
    newest: events.Ints = numbers // ALL * AUCTIONS + np.minimum(numbers % ALL, AUCTIONS) - PERSONS
    return newest


def _recent(random: np.random.Generator, last: events.Ints, known: int) -> events.Ints:
    drawn: events.Ints = np.maximum(last - known + random.integers(1, known + LEAD + 1, len(last)), 0)
    return drawn


def _hot_or(random: np.random.Generator, share: float, hot: events.Ints, other: events.Ints) -> events.Ints:
    return np.where(random.random(len(hot)) < share, hot, other)


def _named(before: str, ids: events.Ints, after: str) -> pa.Array[Any]:
    """Each id between two texts. Bids are for a few recent ones: those are written once, and taken where they occur."""
    if not len(ids):
        return pa.array([], pa.string())
    first = int(ids.min())
    return events.lines(before, pa.array(np.arange(first, int(ids.max()) + 1)), after).take(ids - first)


def _draw(random: np.random.Generator, pool: pa.Array[Any], count: int) -> pa.Array[Any]:
    return pool.take(random.integers(0, len(pool), count))


def wanted(records: DataFrame, kinds: Sequence[int], fields: str, valid: Callable[[Column], Column]) -> DataFrame:
    """The events of these kinds as columns `timestamp` (whole milliseconds), `event` (null: malformed) and `aside`.

    A line that opens and closes as an event of another kind is passed over unread. All others must be valid events of
    these kinds: those that are not are malformed.
    """
    from pyspark.sql import functions as F  # noqa: N812

    line = F.col("value")
    other = reduce(or_, (line.startswith(opening(kind)) for kind in KINDS if kind not in kinds))

    def fine(event: Column) -> Column:
        return event.event_type.isin(*kinds) & (event.dateTime > 0) & (event.dateTime < NEVER_MS) & valid(event)

    # No filter may come after this one that needs the event of every line: Spark would move it before the parsing,
    # and parse twice.
    parsed = events.parsed(
        records.where(~(other & line.endswith("}"))), f"event_type int, dateTime bigint, {fields}", fine
    )
    return parsed.select(
        F.timestamp_millis(F.unix_millis("timestamp")).alias("timestamp"),
        F.when(F.col("aside").isNull(), F.col("event")).alias("event"),
        "aside",
    )


def present(event: Column, *names: str) -> Column:
    """None of these fields is missing."""
    from pyspark.sql import functions as F  # noqa: N812

    found = F.lit(True)
    for name in names:
        found = found & event[name].isNotNull()
    return found
