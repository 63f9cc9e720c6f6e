"""Nexmark query 5: the hot items, the auctions with the most bids in a sliding window.

The benchmark's windows are 60 minutes long, one every minute. Here they are 10 s, one every 2 s, as in the benchmark's
later versions, so that windows close within minutes: a bid counts in 5 of them instead of in 60.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.jobs import events, nexmark
from penstock.jobs.base import Verdict
from penstock.jobs.evidence import Evidence
from penstock.jobs.nexmark_recount import Recount, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW_S, SLIDE_S = 10, 2
WINDOW_MS, SLIDE_MS = WINDOW_S * 1000, SLIDE_S * 1000
FIELDS = {2: {"auction": int}}


@dataclass
class NexmarkQ5(nexmark.Query):
    """Count bids per auction and sliding window, and of each window that is closed tell the auctions with the most."""

    name: ClassVar[str] = "nexmark-q5"
    summary: ClassVar[str] = "the auctions with the most bids in sliding windows of 10 s, every 2 s; Nexmark query 5"
    paper: ClassVar[str] = "DS2 (OSDI 2018), sec. 5.1"
    operators: ClassVar[tuple[str, ...]] = ("read and parse", "count per auction", "the most per window")
    keys: ClassVar[str] = "auctions: half of the bids are for the hot one, which every 1,667 events becomes another"
    state: ClassVar[str] = "one count per auction and open window; five windows overlap"

    def build(self, records: DataFrame) -> DataFrame:
        """Two aggregations in a row: the second gets a window whole, in the batch in which the first one closes it."""
        from pyspark.sql import functions as F  # noqa: N812

        bids = nexmark.wanted(records, [nexmark.BID], "auction bigint", lambda e: nexmark.present(e, "auction")).select(
            "timestamp", "aside", "event.auction", "event.dateTime"
        )
        windows = events.event_time(bids, "dateTime").select(
            F.window("at", f"{WINDOW_S} seconds", f"{SLIDE_S} seconds").alias("window"), "at", "auction", "aside"
        )
        # A malformed line is set aside once: in the last to begin of the windows that it falls into.
        once = windows.where(f"aside is null or window.start > at - interval {SLIDE_S} seconds")
        counts = once.groupBy("window", "auction", "aside").count()
        # All counts of a window, to find every auction with the most: `max_by` would name one of them.
        most = counts.groupBy("window", "aside").agg(
            F.max("count").alias("count"), F.collect_list(F.struct("auction", "count")).alias("all")
        )
        hot = F.explode(F.filter("all", lambda one: one["count"] == F.col("count"))).alias("hot")
        return most.select("window", "aside", hot).select(
            F.unix_millis("window.end").alias("window_end"), "hot.auction", "hot.count", "aside"
        )

    def check(self, evidence: Evidence) -> Verdict:
        """Count every bid again in each of its windows that is still open, and find the most as windows close."""
        recount = Recount("hot item and window", weight=lambda row: int(row[2]))
        counts: defaultdict[int, Counter[tuple[int | None, str | None]]] = defaultdict(Counter)
        for batch, rows in evidence.rows():
            for at, bid, line in recount.events(evidence.records(batch), FIELDS):
                last = at // SLIDE_MS * SLIDE_MS + WINDOW_MS
                ends = [last] if bid is None else range(last - WINDOW_MS + SLIDE_MS, last + 1, SLIDE_MS)
                still = [end for end in ends if end > batch.late]
                recount.late += not still
                recount.set_aside += bid is None and bool(still)
                for end in still:
                    counts[end][(None, line) if bid is None else (bid["auction"], None)] += 1
            expected: Counter[Row] = Counter()
            for end in [end for end in counts if end <= batch.watermark]:
                closed = counts.pop(end)
                most = max((n for (_, aside), n in closed.items() if aside is None), default=0)
                expected.update(
                    (end, auction, n, aside) for (auction, aside), n in closed.items() if aside is not None or n == most
                )
            recount.compare(batch.number, expected, rows)
        return recount.verdict(evidence.records_in)
