"""Nexmark query 1: every bid in euros. Stateless, and nearly as many results as records."""

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

EUROS = 0.908  # for a dollar, as in the benchmark
FIELDS = {2: {"auction": int, "bidder": int, "price": int, "extra": str}}


@dataclass
class NexmarkQ1(nexmark.Query):
    """Convert the price of every bid from dollars to euros."""

    name: ClassVar[str] = "nexmark-q1"
    summary: ClassVar[str] = "every bid with its price in euros; Nexmark query 1"
    paper: ClassVar[str] = "DS2 (OSDI 2018), sec. 5.1; Koper (2022), ch. 4"
    operators: ClassVar[tuple[str, ...]] = ("read, parse and convert",)
    keys: ClassVar[str] = "none"
    state: ClassVar[str] = "none"
    bulky: ClassVar[bool] = True

    def build(self, records: DataFrame) -> DataFrame:
        """One pass, without a shuffle; prices are doubles, the same to the last bit on every machine."""
        from pyspark.sql import functions as F  # noqa: N812

        bids = nexmark.wanted(
            records,
            [nexmark.BID],
            "auction bigint, bidder bigint, price bigint, extra string",
            lambda e: nexmark.present(e, "auction", "bidder", "price", "extra"),
        )
        price = (F.col("event.price") * F.lit(EUROS)).alias("price")
        return bids.select("event.auction", "event.bidder", price, "event.dateTime", "event.extra", "aside")

    def check(self, evidence: Evidence) -> Verdict:
        """Convert every bid again, and compare batch by batch, as the results are about as many as the records."""
        recount = Recount("bid")
        for batch, rows in evidence.rows():
            expected: Counter[Row] = Counter()
            for at, bid, line in recount.events(evidence.records(batch), FIELDS):
                if bid is None:
                    recount.set_aside += 1
                    expected[None, None, None, None, None, line] += 1
                else:
                    expected[bid["auction"], bid["bidder"], bid["price"] * EUROS, at, bid["extra"], None] += 1
            recount.compare(batch.number, expected, rows)
        return recount.verdict(evidence.records_in)
