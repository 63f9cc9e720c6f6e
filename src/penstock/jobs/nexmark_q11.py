"""Nexmark query 11: how many bids each bidder made in a session, which ends with 10 s without a bid."""

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

GAP_S = 10
GAP_MS = GAP_S * 1000
FIELDS = {2: {"bidder": int}}
Session = tuple[int, int, int]  # begin and end in milliseconds, bids
Key = tuple[int | None, str | None, int]  # bidder; or a malformed line and its arrival


@dataclass
class NexmarkQ11(nexmark.Query):
    """Count bids per bidder and session, when the session is closed."""

    name: ClassVar[str] = "nexmark-q11"
    summary: ClassVar[str] = "bids per bidder and session, which ends with 10 s without a bid; Nexmark query 11"
    paper: ClassVar[str] = "DS2 (OSDI 2018), sec. 5.1; Koper (2022), ch. 4"
    operators: ClassVar[tuple[str, ...]] = ("read and parse", "merge sessions")
    keys: ClassVar[str] = "bidders: three quarters of the bids are the hot one's, every 5,000 events another"
    state: ClassVar[str] = "one row per bidder and open session"

    def build(self, records: DataFrame) -> DataFrame:
        """Spark's own session windows."""
        from pyspark.sql import functions as F  # noqa: N812

        bids = nexmark.wanted(records, [nexmark.BID], "bidder bigint", lambda e: nexmark.present(e, "bidder")).select(
            "timestamp", "aside", "event.bidder", "event.dateTime"
        )
        # Equal malformed lines come so often that their session would never end: each arrival has one of its own.
        arrival = F.when(F.col("aside").isNotNull(), F.col("timestamp")).alias("arrival")
        return (
            events.event_time(bids, "dateTime")
            .groupBy(F.session_window("at", f"{GAP_S} seconds"), "bidder", "aside", arrival)
            .count()
            .select(
                F.unix_millis("session_window.start").alias("begin"),
                F.unix_millis("session_window.end").alias("end"),
                "bidder",
                "count",
                "aside",
            )
        )

    def check(self, evidence: Evidence) -> Verdict:
        """Merge sessions again, batch by batch: one that is closed is out, and a late bid near it begins another."""
        recount = Recount("session", weight=lambda row: int(row[3]))
        sessions: dict[Key, list[Session]] = {}
        for batch, rows in evidence.rows():
            fresh: defaultdict[Key, list[Session]] = defaultdict(list)
            for at, bid, line in recount.events(evidence.records(batch), FIELDS):
                if at + GAP_MS <= batch.late:
                    recount.late += 1
                    continue
                recount.set_aside += bid is None
                key: Key = (None, line, at) if bid is None else (bid["bidder"], None, 0)
                fresh[key].append((at, at + GAP_MS, 1))
            for key, more in fresh.items():
                sessions[key] = merge(sessions.get(key, []) + more)
            expected: Counter[Row] = Counter()
            for key in list(sessions):
                for begin, end, bids in sessions[key]:
                    if end <= batch.watermark:
                        expected[begin, end, key[0], bids, key[1]] += 1
                sessions[key] = [session for session in sessions[key] if session[1] > batch.watermark]
                if not sessions[key]:
                    del sessions[key]
            recount.compare(batch.number, expected, rows)
        return recount.verdict(evidence.records_in)


def merge(sessions: list[Session]) -> list[Session]:
    """Those that touch become one.

    >>> merge([(25, 35, 1), (0, 10, 2), (10, 20, 1)])
    [(0, 20, 3), (25, 35, 1)]
    """
    merged: list[Session] = []
    for begin, end, bids in sorted(sessions):
        if merged and begin <= merged[-1][1]:
            first, until, before = merged[-1]
            merged[-1] = (first, max(until, end), before + bids)
        else:
            merged.append((begin, end, bids))
    return merged
