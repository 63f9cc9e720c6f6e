"""The Yahoo Streaming Benchmark (Chintapalli et al., 2016), as in Daedalus and Phoebe: ad views per campaign.

JSON events of ads; views only; each ad belongs to a campaign; counted per campaign and window of 10 s of event time.
As in Daedalus, the campaigns are read from Redis once, and kept in the job; without a Redis, from a file or made up.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.errors import check
from penstock.jobs import events, ysb_campaigns
from penstock.jobs.base import Generate, Job, Verdict
from penstock.jobs.evidence import Evidence
from penstock.jobs.recount import Windows
from penstock.jobs.ysb_campaigns import ADS, CAMPAIGNS, SCHEMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ZIPF = 0.6  # the benchmark draws ads evenly; some campaigns here are busier than others, so that keys are skewed
WINDOW_S = 10
KINDS = ("view", "click", "purchase")
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
POOL = 4_096  # users and pages drawn from: a generator must be far faster than the job it feeds
FIELDS = {"ad_id": str, "event_type": str, "event_time": int}


@dataclass
class YahooBenchmark(Job):
    """Count ad views per campaign and window of event time; the ads' campaigns are a table on every worker.

    redis: address of a Redis with a key per ad, its value the campaign (redis://host:port/db); unset: none.
    campaigns: JSON file with an object of ads and the campaign of each; unset: 100 campaigns of 10 ads, made up.
    """

    redis: str | None = None
    campaigns: str | None = None

    name: ClassVar[str] = "ysb"
    summary: ClassVar[str] = "ad views per campaign in windows of 10 s of event time; Yahoo Streaming Benchmark"
    paper: ClassVar[str] = "Daedalus (ICPE 2024), sec. 4.1.2; Phoebe (ICWS 2022), sec. IV"
    operators: ClassVar[tuple[str, ...]] = ("read, parse, filter and join", "count")
    keys: ClassVar[str] = f"{CAMPAIGNS} campaigns of {ADS} ads, by a Zipf law of {ZIPF}"
    state: ClassVar[str] = "one count per campaign and open window"
    schema: ClassVar[pa.Schema] = events.SCHEMA

    def __post_init__(self) -> None:
        given = self.redis
        check(given is None or given.startswith(SCHEMES), "redis", f"begin with one of {', '.join(SCHEMES)}", given)
        both = given is not None and self.campaigns is not None
        check(not both, "campaigns", "be left out where redis is given", self.campaigns)
        if self.campaigns is not None:
            self.campaign_of  # noqa: B018 - so that a wrong file is said at once

    @cached_property
    def campaign_of(self) -> dict[str, str]:
        """The campaign of each ad: read once, so that records, plan and recount go by the same."""
        if self.redis is not None:
            return ysb_campaigns.from_redis(self.redis)
        return ysb_campaigns.made_up() if self.campaigns is None else ysb_campaigns.from_file(self.campaigns)

    def generator(self, seed: int) -> Generate:
        """Views, clicks and purchases in equal shares; ads by a Zipf law of 0.6, the busy ones of many campaigns;
        users, pages and addresses evenly from pools of 4,096, 4,096 and 1,024."""
        random = np.random.default_rng(seed)
        ids = random.integers(0, 2**63, (2, POOL))
        head = pa.array([f'{{"user_id":"{u:016x}","page_id":"{p:016x}","ad_id":"' for u, p in ids.T.tolist()])
        ads = pa.array(list(self.campaign_of))
        draw, order = events.zipf(random, len(ads), ZIPF), random.permutation(len(ads))
        tail = pa.array(
            [f'","ad_type":"{ad}","event_type":"{kind}","event_time":' for ad in AD_TYPES for kind in KINDS]
        )
        address = pa.array([f',"ip_address":"10.{a}.{b}.{a ^ b}"}}' for a in range(32) for b in range(32)])

        def generate(timestamps: events.Ints) -> pa.RecordBatch:
            n = len(timestamps)
            pick = [pool.take(random.integers(0, len(pool), n)) for pool in (head, tail, address)]
            times = pa.array(events.event_times(random, timestamps))
            return events.records(
                random,
                timestamps,
                events.lines(pick[0], ads.take(order[draw(n)]), pick[1], times, pick[2]),
            )

        return generate

    def build(self, records: DataFrame) -> DataFrame:
        """The malformed go along under a key of their own: no campaign, and the line itself."""
        from pyspark.sql import functions as F  # noqa: N812

        fields = "ad_id string, event_type string, event_time bigint"
        parsed = events.parsed(
            records, fields, lambda e: e.ad_id.isNotNull() & e.event_type.isNotNull() & (e.event_time > 0)
        )
        views = parsed.where("aside is not null or event.event_type = 'view'").select(
            "timestamp", "aside", F.when(F.isnull("aside"), F.col("event.ad_id")).alias("ad_id"), "event.event_time"
        )
        table = records.sparkSession.createDataFrame(list(self.campaign_of.items()), "ad_id string, campaign string")
        known = events.event_time(views, "event_time").join(F.broadcast(table), "ad_id", "left")
        return (
            known.where("aside is not null or campaign is not null")
            .groupBy(F.window("at", f"{WINDOW_S} seconds"), "campaign", "aside")
            .count()
            .select(F.unix_millis("window.end").alias("window_end"), "campaign", "aside", "count")
        )

    def check(self, evidence: Evidence) -> Verdict:
        """Count every view again, in plain Python, but those that came too late for their window."""
        campaigns, windows = self.campaign_of, Windows(WINDOW_S * 1000)

        def counted(line: str) -> tuple[int, str] | bool | None:
            event = events.read(line, FIELDS)
            if event is None or event["event_time"] <= 0:
                return False
            campaign = campaigns.get(event["ad_id"]) if event["event_type"] == "view" else None
            return None if campaign is None else (event["event_time"], campaign)  # an ad nobody knows counts nowhere

        found: Counter[Any] = Counter()
        for batch, rows in evidence.rows():
            windows.take_in(batch, evidence.records(batch), counted)
            # A later batch's count replaces the earlier one.
            for end, campaign, aside, count in zip(
                *(rows[name].to_pylist() for name in rows.column_names), strict=True
            ):
                found[end, campaign, aside] = count
        return windows.compare(found, evidence.records_in, "campaign and window")
