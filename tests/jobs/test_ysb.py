"""The Yahoo benchmark: its records, its campaigns, its results and its proof, without Spark."""

import json
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock import jobs
from penstock.errors import ConfigError, Unavailable
from penstock.jobs import events
from penstock.jobs.evidence import Evidence
from penstock.jobs.ysb import FIELDS, YahooBenchmark

EvidenceOf = Callable[[Sequence[Any]], Evidence]

TIMES = np.arange(20_000, dtype=np.int64) * 100 + 1_794_000_000_000_000
COLUMNS: dict[str, pa.DataType] = {"window_end": pa.int64(), "campaign": pa.string(), "aside": pa.string()}
SCHEMA = pa.schema(COLUMNS | {"count": pa.int64()})


def test_the_same_seed_makes_the_same_records() -> None:
    first, again, other = (YahooBenchmark().generator(seed)(TIMES) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first.schema == YahooBenchmark.schema
    assert first.column("timestamp").cast(pa.int64()).to_pylist() == TIMES.tolist()


def test_records_are_of_three_kinds_some_ads_busier_some_late_some_malformed() -> None:
    read = [events.read(str(line), FIELDS) for line in YahooBenchmark().generator(1)(TIMES)["value"].to_pylist()]
    fine = [one for one in read if one is not None]
    assert 0 < len(read) - len(fine) < 0.003 * len(read)
    kinds = Counter(one["event_type"] for one in fine)
    assert set(kinds) == {"view", "click", "purchase"}
    assert min(kinds.values()) > 0.3 * len(fine)
    ads = Counter(one["ad_id"] for one in fine)
    (_, most), *_ = ads.most_common()
    assert most > 10 * len(fine) / 1_000
    assert ads.keys() <= YahooBenchmark().campaign_of.keys()
    delays = TIMES[-1] // 1000 - np.array([one["event_time"] for one in fine])
    assert 0.0005 < np.mean(delays > 6_000) < 0.005


def event(ad: str, at: int, kind: str = "view") -> tuple[int, str]:
    return at, json.dumps({"ad_id": ad, "event_type": kind, "event_time": at})


def row(end: int, campaign: str | None, count: int, aside: str | None = None) -> dict[str, Any]:
    return {"window_end": end, "campaign": campaign, "aside": aside, "count": count}


A, B = "campaign-000", "campaign-001"
LINES = [
    *(event("ad-00000", 1_000), event("ad-00009", 9_999), event("ad-00010", 10_000)),
    *(event("ad-00000", 2_000, "click"), event("ad-99999", 3_000), (12_000, "oops")),
]
RIGHT = [row(10_000, A, 2), row(20_000, B, 1), row(20_000, None, 1, "oops")]


@pytest.mark.parametrize(
    ("rows", "equal", "words"),
    [
        pytest.param(RIGHT, True, "all 3 counts per campaign and window are exactly", id="right"),
        pytest.param([row(10_000, A, 1), *RIGHT], True, "all 3", id="later counts replace earlier"),
        pytest.param([row(10_000, A, 3), *RIGHT[1:]], False, "counted 3 times, the log has 2", id="twice"),
        pytest.param(RIGHT[1:], False, "counted 0 times, the log has 2", id="lost"),
        pytest.param([*RIGHT, row(30_000, A, 1)], False, "counted 1 times, the log has 0", id="made up"),
        pytest.param(RIGHT[:2], False, "counted 0 times, the log has 1", id="a malformed one lost"),
        pytest.param([*RIGHT[:2], row(20_000, A, 1, "oops")], False, "2 of 3", id="a malformed one of a campaign"),
    ],
)
def test_recount(evidence_of: EvidenceOf, rows: list[dict[str, Any]], equal: bool, words: str) -> None:
    verdict = YahooBenchmark().check(evidence_of([(LINES, 0, pa.Table.from_pylist(rows, SCHEMA))]))
    assert verdict.equal is equal
    assert words in verdict.sentence
    assert (verdict.records_in, verdict.set_aside, verdict.late) == (6, 1, 0)
    assert not equal or verdict.records_out == 6


@pytest.mark.parametrize(
    ("watermark", "late"), [pytest.param(9_999, 0, id="still open"), pytest.param(10_000, 1, id="closed")]
)
def test_a_view_is_late_when_the_batch_before_closed_its_window(
    evidence_of: EvidenceOf, watermark: int, late: int
) -> None:
    first = pa.Table.from_pylist([row(10_000, A, 1)], SCHEMA)
    second = pa.Table.from_pylist([] if late else [row(10_000, A, 2)], SCHEMA)
    batches = [(LINES[:1], watermark, first), (LINES[1:2], watermark, second)]
    verdict = YahooBenchmark().check(evidence_of(batches))
    assert (verdict.equal, verdict.late, verdict.records_out) == (True, late, 2)


def test_campaigns_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "campaigns.json"
    path.write_text('{"x": "spring", "y": "autumn"}')
    job = jobs.make("ysb", campaigns=str(path))
    ads = Counter(
        one["ad_id"]
        for line in job.generator(1)(TIMES[:1_000])["value"].to_pylist()
        if (one := events.read(str(line), FIELDS))
    )
    assert set(ads) == {"x", "y"}
    assert jobs.make(job.name, **job.settings) == job


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"campaings": "x"}, "ysb.campaings must be a parameter of ysb (redis, campaigns), got 'x'; did you mean"),
        ({"redis": "localhost"}, "ysb.redis must begin with one of redis://, rediss://, unix://, got 'localhost'"),
        ({"redis": "redis://h", "campaigns": "f"}, "ysb.campaigns must be left out where redis is given, got 'f'"),
        ({"campaigns": "none.json"}, "got 'none.json': No such file or directory"),
        ({"campaigns": 5}, "ysb.campaigns must be a text or unset, got 5"),
    ],
)
def test_what_is_wrong_is_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        jobs.make("ysb", **settings)
    assert words in str(error.value)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"x": 1}'])
def test_a_file_of_something_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "campaigns.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"ysb\.campaigns must be a file with a JSON object of ads and the campaign"):
        jobs.make("ysb", campaigns=str(path))


def test_only_jobs_with_parameters_take_any() -> None:
    with pytest.raises(ConfigError, match=r"wordcount\.lines must be left out, as wordcount takes no parameters"):
        jobs.make("wordcount", lines=5)


client = find_spec("redis") is not None
needs_client = pytest.mark.skipif(not client, reason="the Redis client is not installed: pip install 'penstock[redis]'")


@pytest.mark.skipif(client, reason="the Redis client is installed, so nothing is missing")
def test_a_missing_client_is_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"ysb\.redis must have the client.*penstock\[redis\]"):
        _ = YahooBenchmark(redis="redis://127.0.0.1:1").campaign_of


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The address of a real Redis, which keeps nothing."""
    found = shutil.which("redis-server")
    if found is None:
        pytest.skip("there is no redis-server on the PATH; on Debian: apt-get install redis-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [found, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    with (tmp_path / "redis.log").open("wb") as log, subprocess.Popen(command, stdout=log) as server:
        try:
            while server.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.02)
            assert server.poll() is None, (tmp_path / "redis.log").read_text()
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()


@needs_client
def test_campaigns_from_a_redis(redis: str) -> None:
    ads = {f"ad {n}": f"campaign {n % 7}" for n in range(2_500)}
    with import_module("redis").Redis.from_url(redis) as filled:
        filled.mset(ads)
        filled.sadd("campaigns", *set(ads.values()))  # as the benchmark's own set-up does
    job = jobs.make("ysb", redis=redis)
    assert job.settings == {"redis": redis, "campaigns": None}
    assert isinstance(job, YahooBenchmark)
    assert job.campaign_of == ads
    with import_module("redis").Redis.from_url(redis) as filled:
        filled.flushdb()
    assert job.campaign_of == ads  # read once
    with pytest.raises(ConfigError, match=r"ysb\.redis must have a key per ad with its campaign, got none at redis:"):
        _ = YahooBenchmark(redis=redis).campaign_of


@needs_client
def test_a_redis_that_is_not_there_is_unavailable_and_its_password_is_not_shown() -> None:
    with socket.socket() as held:  # bound, but nobody listens
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(Unavailable, match="the campaigns could not be read from") as error:
            _ = YahooBenchmark(redis=f"redis://me:secret@{address}/0").campaign_of
    assert f"redis://{address}/0" in str(error.value)
    assert "secret" not in str(error.value)
