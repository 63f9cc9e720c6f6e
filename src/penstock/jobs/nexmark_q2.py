"""Nexmark query 2: the bids on a selection of auctions. Stateless, and few results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.jobs import nexmark
from penstock.jobs.base import Verdict
from penstock.jobs.evidence import Evidence
from penstock.jobs.nexmark_recount import Recount, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SELECTION = 123  # every auction whose id this divides, as in the benchmark
FIELDS = {2: {"auction": int, "price": int}}


@dataclass
class NexmarkQ2(nexmark.Query):
    """Keep the bids on auctions of a selection."""

    name: ClassVar[str] = "nexmark-q2"
    summary: ClassVar[str] = f"auction and price of the bids on every auction whose id {SELECTION} divides; query 2"
    paper: ClassVar[str] = "DS2 (OSDI 2018), sec. 5.1"
    operators: ClassVar[tuple[str, ...]] = ("read, parse and select",)
    keys: ClassVar[str] = "none"
    state: ClassVar[str] = "none"

    def build(self, records: DataFrame) -> DataFrame:
        """One pass, without a shuffle; what is kept is parsed a second time, but that is one bid in a hundred."""
        bids = nexmark.wanted(
            records, [nexmark.BID], "auction bigint, price bigint", lambda e: nexmark.present(e, "auction", "price")
        )
        kept = bids.where(f"aside is not null or event.auction % {SELECTION} = 0")
        return kept.select("event.auction", "event.price", "aside")

    def check(self, evidence: Evidence) -> Verdict:
        """Select again, batch by batch."""
        recount = Recount("bid of the selection")
        for batch, rows in evidence.rows():
            expected: Counter[Row] = Counter()
            for _, bid, line in recount.events(evidence.records(batch), FIELDS):
                if bid is None:
                    recount.set_aside += 1
                    expected[None, None, line] += 1
                elif not bid["auction"] % SELECTION:
                    expected[bid["auction"], bid["price"], None] += 1
            recount.compare(batch.number, expected, rows)
        return recount.verdict(evidence.records_in)
