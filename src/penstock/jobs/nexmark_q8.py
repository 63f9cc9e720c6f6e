"""Nexmark query 8: new sellers, who registered and opened an auction in the same window of 10 s.

The benchmark joins persons with auctions, window by window. One aggregation over window and person does the same with
one scan of the log, one shuffle and one state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.jobs import events, nexmark
from penstock.jobs.base import Verdict
from penstock.jobs.evidence import Evidence
from penstock.jobs.nexmark_recount import Fields, Recount, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW_S = 10
WINDOW_MS = WINDOW_S * 1000
FIELDS: dict[int, Fields] = {0: {"id": int, "name": str}, 1: {"seller": int}}


@dataclass
class NexmarkQ8(nexmark.Query):
    """Of each window that is closed, the persons who registered and opened auctions in it, and how many."""

    name: ClassVar[str] = "nexmark-q8"
    summary: ClassVar[str] = "persons who registered and opened auctions in the same window of 10 s; Nexmark query 8"
    paper: ClassVar[str] = "DS2 (OSDI 2018), sec. 5.1"
    operators: ClassVar[tuple[str, ...]] = ("read and parse", "match")
    keys: ClassVar[str] = "persons: three quarters of the auctions are the hot seller's, every 5,000 events another"
    state: ClassVar[str] = "one row per open window and person who registered or opened an auction in it"

    def build(self, records: DataFrame) -> DataFrame:
        """Bids are passed over unparsed; then one aggregation, whose rows without a match are dropped as it ends."""
        from pyspark.sql import functions as F  # noqa: N812

        person = F.col("event.event_type") == nexmark.PERSON
        known = nexmark.wanted(
            records,
            [nexmark.PERSON, nexmark.AUCTION],
            "id bigint, name string, seller bigint",
            lambda e: F.when(e.event_type == nexmark.PERSON, nexmark.present(e, "id", "name")).otherwise(
                nexmark.present(e, "seller")
            ),
        ).select(
            "timestamp",
            "aside",
            "event.dateTime",
            F.when(person, F.col("event.id")).otherwise(F.col("event.seller")).alias("person"),
            F.when(person, F.col("event.name")).alias("name"),
        )
        return (
            events.event_time(known, "dateTime")
            .groupBy(F.window("at", f"{WINDOW_S} seconds"), "person", "aside")
            .agg(
                F.max("name").alias("name"),
                F.count("name").alias("registered"),
                F.count(F.lit(1)).alias("count"),
            )
            .where("aside is not null or (registered > 0 and count > registered)")
            .select(
                F.unix_millis("window.end").alias("window_end"),
                "person",
                "name",
                (F.col("count") - F.col("registered")).alias("count"),
                "aside",
            )
        )

    def check(self, evidence: Evidence) -> Verdict:
        """Match again, as windows close. The count is of auctions, or of times that a malformed line was read."""
        recount = Recount("new seller and window", weight=lambda row: int(row[3]) + (row[4] is None))
        windows: defaultdict[int, _Window] = defaultdict(_Window)
        for batch, rows in evidence.rows():
            for at, event, line in recount.events(evidence.records(batch), FIELDS):
                end = at // WINDOW_MS * WINDOW_MS + WINDOW_MS
                if end <= batch.late:
                    recount.late += 1
                elif event is None:
                    recount.set_aside += 1
                    windows[end].aside[line] += 1
                elif event["event_type"] == nexmark.PERSON:
                    names = windows[end].names
                    names[event["id"]] = max(names.get(event["id"], ""), event["name"])
                else:
                    windows[end].auctions[event["seller"]] += 1
            expected: Counter[Row] = Counter()
            for end in [end for end in windows if end <= batch.watermark]:
                expected.update(windows.pop(end).rows(end))
            recount.compare(batch.number, expected, rows)
        return recount.verdict(evidence.records_in)


class _Window:
    """What one open window holds."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.auctions: Counter[int] = Counter()
        self.aside: Counter[str] = Counter()

    def rows(self, end: int) -> list[tuple[Any, ...]]:
        sellers = self.names.keys() & self.auctions.keys()
        matched: list[Row] = [(end, seller, self.names[seller], self.auctions[seller], None) for seller in sellers]
        return matched + [(end, None, None, times, line) for line, times in self.aside.items()]
