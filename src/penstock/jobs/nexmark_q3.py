"""Nexmark query 3: who sells in category 10 from Oregon, Idaho or California. A join in which whoever is first waits.

Spark's own join of two streams would read the log twice, once for persons and once for auctions. One record in fifty is
left after the filter, so these few go, keyed by person, through one stateful operator in Python instead: one scan, one
shuffle, one state, and the join itself is a pure function (`joined`).

The benchmark waits forever. Here a person and an auction belong together if at most WAIT_S of event time lie between
them: that bounds the state, and makes the answer independent of when state is dropped, as an event so old that its
match was dropped comes too late itself.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pyarrow as pa

from penstock.jobs import events, nexmark
from penstock.jobs.base import Generate, Job, Verdict
from penstock.jobs.evidence import Evidence
from penstock.jobs.nexmark_recount import Recount, Row

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

WAIT_S = 60
STATES = ("OR", "ID", "CA")
CATEGORY = 10
FIELDS = {
    0: {"id": int, "name": str, "city": str, "state": str},
    1: {"id": int, "seller": int, "category": int},
}
RESULT = "person bigint, name string, city string, state string, auction bigint, aside string"
STATE = (
    "persons array<struct<at: bigint, name: string, city: string, state: string>>, "
    "auctions array<struct<at: bigint, auction: bigint>>"
)
COLUMNS = ("person", "name", "city", "state", "auction", "aside")


class Waiting(NamedTuple):
    """What is kept of one person: registrations (time, name, city, state) and auctions (time, id), once each."""

    persons: Sequence[Row]
    auctions: Sequence[Row]

    def after(self, watermark: int) -> Waiting:
        """What an event after the watermark may still belong to."""
        return Waiting(
            [person for person in self.persons if person[0] + WAIT_S * 1000 > watermark],
            [auction for auction in self.auctions if auction[0] + WAIT_S * 1000 > watermark],
        )


def joined(known: Waiting, fresh: Waiting) -> list[Row]:
    """The pairs that the fresh ones make, with each other and with those already known."""
    pairs = [(person, auction) for person in fresh.persons for auction in (*known.auctions, *fresh.auctions)]
    pairs += [(person, auction) for person in known.persons for auction in fresh.auctions]
    return [(*person[1:], auction[1]) for person, auction in pairs if abs(person[0] - auction[0]) <= WAIT_S * 1000]


def split(frames: Iterable[pd.DataFrame]) -> Waiting:
    """Registrations and auctions of one person, from frames with the columns that `build` makes."""
    persons: list[Row] = []
    auctions: list[Row] = []
    for frame in frames:
        columns = (frame[name].tolist() for name in ("dateTime", "auction", "name", "city", "state"))
        for at, auction, name, *place in zip(*columns, strict=True):
            if name is None:
                auctions.append((at, auction))
            else:
                persons.append((at, name, *place))
    return Waiting(persons, auctions)


def step(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """One batch of one person, or of one malformed line; or no records, when the state waits no longer."""
    import pandas as pd

    person, line = key
    if line is not None:
        times = sum(len(frame) for frame in frames)
        yield pd.DataFrame([(None, None, None, None, None, line)] * times, columns=list(COLUMNS), dtype=object)
        return
    known = Waiting(*state.get) if state.exists else Waiting([], [])
    fresh = split(frames)
    rows = [(int(person), *row, None) for row in joined(known, fresh)]
    # Not before: a record of this batch may be as old as the watermark of the last one.
    left = Waiting([*known.persons, *fresh.persons], [*known.auctions, *fresh.auctions]).after(
        state.getCurrentWatermarkMs()
    )
    if any(left):
        state.update((list(left.persons), list(left.auctions)))
        state.setTimeoutTimestamp(min(at for at, *_ in (*left.persons, *left.auctions)) + WAIT_S * 1000)
    elif state.exists:
        state.remove()
    if rows:
        yield pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)


def whole(key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The same for a batch job, which has everything at once."""
    import pandas as pd

    person, line = key
    if line is not None:
        rows: list[Row] = [(None, None, None, None, None, line)] * len(frame)
    else:
        rows = [(int(person), *row, None) for row in joined(Waiting([], []), split([frame]))]
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)


@dataclass
class NexmarkQ3(Job):
    """Join persons of three states with their auctions in one category, as either comes."""

    name: ClassVar[str] = "nexmark-q3"
    summary: ClassVar[str] = "persons of OR, ID and CA with their auctions of category 10, as they come; query 3"
    paper: ClassVar[str] = "DS2 (OSDI 2018), sec. 5.1; Koper (2022), ch. 4"
    operators: ClassVar[tuple[str, ...]] = ("read, parse and filter", "join by state")
    keys: ClassVar[str] = "persons: three quarters of the auctions are the hot seller's, every 5,000 events another"
    state: ClassVar[str] = f"persons and auctions of the last {WAIT_S} s that passed the filter, one row per person"
    schema: ClassVar[pa.Schema] = events.SCHEMA
    output_mode: ClassVar[str] = "append"

    def generator(self, seed: int) -> Generate:
        """Persons, auctions and bids: see `nexmark.generator`."""
        return nexmark.generator(seed)

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
            F.when(person, F.col("event.id")).otherwise(F.col("event.seller")).alias("person"),
            # Without a null: pandas would make floats of whole numbers.
            F.coalesce("event.dateTime", F.lit(0)).alias("dateTime"),
            F.when(person | F.col("aside").isNotNull(), F.lit(0)).otherwise(F.col("event.id")).alias("auction"),
            *(F.when(person, F.col(f"event.{name}")).alias(name) for name in ("name", "city", "state")),
        )
        groups = events.event_time(kept, "dateTime").drop("timestamp").groupBy("person", "aside")
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
