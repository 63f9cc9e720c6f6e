"""Nexmark query 3: who sells in category 10 from Oregon, Idaho or California. A join in which whoever is first waits.

Spark's own join of two streams would read the log twice, once for persons and once for auctions. One record in fifty is
left after the filter, so these few go through one stateful operator in Python instead: one scan, one shuffle, one
state, and the join itself is a pure function (`joined`).

The benchmark waits forever. Here a person and an auction belong together if at most WAIT_S of event time lie between
them: that bounds the state, and makes the answer independent of when state is dropped, as an event so old that its
match was dropped comes too late itself.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from penstock.jobs import events, nexmark
from penstock.jobs.base import Verdict
from penstock.jobs.evidence import Evidence
from penstock.jobs.nexmark_recount import Fields, Recount, Row

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

WAIT_S = 60
STATES = ("OR", "ID", "CA")
CATEGORY = 10
# Neighbours share a key: Spark calls Python once for each key and batch, which takes longer than joining a hundred
# persons does. As ids grow with time, only the newest keys are called, and their state is all that is written.
BLOCK = 100
FIELDS: dict[int, Fields] = {
    0: {"id": int, "name": str, "city": str, "state": str},
    1: {"id": int, "seller": int, "category": int},
}
RESULT = "person bigint, name string, city string, state string, auction bigint, aside string"
STATE = "waiting string"  # JSON: Spark 4.3 hands Python the state's type in lower case, where it knows no arrays
COLUMNS = ("person", "name", "city", "state", "auction", "aside")


class Waiting(NamedTuple):
    """Registrations (time, person, name, city, state) and auctions (time, person, auction), once each."""

    persons: list[Row]
    auctions: list[Row]

    def after(self, watermark: int) -> Waiting:
        """What an event after the watermark may still belong to."""
        return Waiting(*([one for one in kind if one[0] + WAIT_S * 1000 > watermark] for kind in self))


def joined(known: Waiting, fresh: Waiting) -> list[Row]:
    """The pairs that the fresh ones make, with each other and with those already known."""
    pairs = _pairs(fresh.persons, [*known.auctions, *fresh.auctions])
    return [*pairs, *_pairs(known.persons, fresh.auctions)]


def _pairs(persons: Iterable[Row], auctions: Iterable[Row]) -> Iterator[Row]:
    opened: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for at, person, auction in auctions:
        opened[person].append((at, auction))
    for at, person, *about in persons:
        for then, auction in opened.get(person, ()):
            if abs(then - at) <= WAIT_S * 1000:
                yield (person, *about, auction, None)


def split(frames: Iterable[pd.DataFrame]) -> tuple[Waiting, list[Row]]:
    """Registrations and auctions, and malformed lines as rows, from frames with the columns that `build` makes."""
    fresh = Waiting([], [])
    aside: list[Row] = []
    names = ("aside", "dateTime", "person", "auction", "name", "city", "state")
    for frame in frames:
        for line, at, person, auction, name, *place in zip(*(frame[each].tolist() for each in names), strict=True):
            if line is not None:
                aside.append((None, None, None, None, None, line))
            elif name is not None:
                fresh.persons.append((at, person, name, *place))
            else:
                fresh.auctions.append((at, person, auction))
    return fresh, aside


def step(_key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """One batch of one block of persons, or of all malformed lines; or no records, when the state's time is over."""
    import pandas as pd

    known = Waiting(*json.loads(state.get[0])) if state.exists else Waiting([], [])
    fresh, rows = split(frames)
    rows += joined(known, fresh)
    # Not before: a record of this batch may be as old as the watermark of the last one.
    left = Waiting([*known.persons, *fresh.persons], [*known.auctions, *fresh.auctions]).after(
        state.getCurrentWatermarkMs()
    )
    if any(left):
        state.update((json.dumps(left, separators=(",", ":")),))
        state.setTimeoutTimestamp(min(at for kind in left for at, *_ in kind) + WAIT_S * 1000)
    elif state.exists:
        state.remove()
    if rows:
        yield pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    """The same for a batch job, which has everything at once."""
    import pandas as pd

    fresh, rows = split([frame])
    return pd.DataFrame([*rows, *joined(Waiting([], []), fresh)], columns=list(COLUMNS), dtype=object)


@dataclass
class NexmarkQ3(nexmark.Query):
    """Join persons of three states with their auctions in one category, as either comes."""

    name: ClassVar[str] = "nexmark-q3"
    summary: ClassVar[str] = "persons of OR, ID and CA with their auctions of category 10, as they come; query 3"
    paper: ClassVar[str] = "DS2 (OSDI 2018), sec. 5.1; Koper (2022), ch. 4"
    operators: ClassVar[tuple[str, ...]] = ("read, parse and filter", "join by state")
    keys: ClassVar[str] = f"{BLOCK} neighbouring persons: three quarters of the auctions are the newest hot seller's"
    state: ClassVar[str] = (
        f"persons and auctions of the last {WAIT_S} s that passed the filter, a row per {BLOCK} persons"
    )

    def build(self, records: DataFrame) -> DataFrame:
        """Bids are passed over unparsed; what the filter keeps is joined by `step`, on a stream, or `whole`."""
        from pyspark import cloudpickle
        from pyspark.sql import functions as F  # noqa: N812

        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
        person = F.col("event.event_type") == nexmark.PERSON
        known = nexmark.wanted(
            records,
            [nexmark.PERSON, nexmark.AUCTION],
            "id bigint, name string, city string, state string, seller bigint, category bigint",
            lambda e: F.when(
                e.event_type == nexmark.PERSON, nexmark.present(e, "id", "name", "city", "state")
            ).otherwise(nexmark.present(e, "id", "seller", "category")),
        )
        kept = known.where(
            F.col("aside").isNotNull()
            | (person & F.col("event.state").isin(*STATES))
            | (~person & (F.col("event.category") == CATEGORY))
        ).select(
            "timestamp",
            "aside",
            # Without a null: pandas would make floats of whole numbers.
            F.coalesce("event.dateTime", F.lit(0)).alias("dateTime"),
            F.coalesce(F.when(person, F.col("event.id")).otherwise(F.col("event.seller")), F.lit(0)).alias("person"),
            F.coalesce(F.when(~person, F.col("event.id")), F.lit(0)).alias("auction"),
            *(F.when(person, F.col(f"event.{name}")).alias(name) for name in ("name", "city", "state")),
        )
        block = F.when(F.col("aside").isNull(), F.expr(f"person div {BLOCK}"))
        groups = events.event_time(kept, "dateTime").drop("timestamp").withColumn("block", block).groupBy("block")
        if not records.isStreaming:
            return groups.applyInPandas(whole, RESULT)
        return groups.applyInPandasWithState(step, RESULT, STATE, "append", "EventTimeTimeout")

    def check(self, evidence: Evidence) -> Verdict:
        """Join again, batch by batch, all that was in time; forget what is too old to belong to anything."""
        recount = Recount("pair")
        people: dict[int, list[Row]] = {}
        auctions: dict[int, list[Row]] = {}
        for batch, rows in evidence.rows():
            expected: Counter[Row] = Counter()
            for at, event, line in recount.events(evidence.records(batch), FIELDS):
                if at <= batch.late:
                    # What the filter drops is neither in time nor late.
                    recount.late += event is None or passes(event)
                elif event is None:
                    recount.set_aside += 1
                    expected[None, None, None, None, None, line] += 1
                elif passes(event) and event["event_type"] == nexmark.PERSON:
                    who = (event["id"], event["name"], event["city"], event["state"])
                    for then, auction in auctions.get(event["id"], ()):
                        expected[(*who, auction, None)] += abs(then - at) <= WAIT_S * 1000
                    people.setdefault(event["id"], []).append((at, who))
                elif passes(event):
                    for then, who in people.get(event["seller"], ()):
                        expected[(*who, event["id"], None)] += abs(then - at) <= WAIT_S * 1000
                    auctions.setdefault(event["seller"], []).append((at, event["id"]))
            for kept in (people, auctions):
                for key in list(kept):
                    kept[key] = [one for one in kept[key] if one[0] >= batch.watermark - WAIT_S * 1000]
                    if not kept[key]:
                        del kept[key]
            recount.compare(batch.number, expected, rows)
        return recount.verdict(evidence.records_in)


def passes(event: dict[str, Any]) -> bool:
    """Whether the recount takes the event for one that the join gets."""
    if event["event_type"] == nexmark.PERSON:
        return event["state"] in ("OR", "ID", "CA")
    return bool(event["category"] == 10)
