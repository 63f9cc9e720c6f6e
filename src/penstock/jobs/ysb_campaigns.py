"""The campaign of each ad, for the Yahoo Streaming Benchmark: from Redis, from a file, or made up."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.errors import ConfigError, Unavailable

CAMPAIGNS = 100
ADS = 10  # of each campaign
SCHEMES = ("redis://", "rediss://", "unix://")
AT_ONCE = 1_000  # keys asked for in one go
PATIENCE_S = 10


def made_up() -> dict[str, str]:
    """100 campaigns of 10 ads."""
    return {f"ad-{n:05}": f"campaign-{n // ADS:03}" for n in range(CAMPAIGNS * ADS)}


def from_file(path: str) -> dict[str, str]:
    """A JSON object: ads, and the campaign of each."""
    rule = "ysb.campaigns must be a file with a JSON object of ads and the campaign of each"
    try:
        table = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{rule}, got {path!r}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{rule}, got {path!r}: {error}") from None
    if not isinstance(table, dict) or not table or not all(isinstance(campaign, str) for campaign in table.values()):
        raise ConfigError(f"{rule}, got {path!r}, which has something else")
    return table


def from_redis(url: str) -> dict[str, str]:
    """A key per ad, its value the campaign, as the benchmark's own set-up writes them; keys of other types are left."""
    if find_spec("redis") is None:
        raise ConfigError("ysb.redis must have the client, which is not installed: pip install 'penstock[redis]'")
    redis: Any = import_module("redis")
    try:
        with redis.Redis.from_url(
            url, decode_responses=True, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S
        ) as client:
            ads = sorted(set(client.scan_iter(count=AT_ONCE, _type="string")))
            campaigns: list[str | None] = []
            for first in range(0, len(ads), AT_ONCE):
                campaigns += client.mget(ads[first : first + AT_ONCE])
    except (redis.RedisError, ValueError, UnicodeDecodeError) as error:
        raise Unavailable(f"the campaigns could not be read from {shown(url)}: {error}") from None
    # An ad that went in between has none.
    table = {ad: campaign for ad, campaign in zip(ads, campaigns, strict=True) if campaign is not None}
    if not table:
        raise ConfigError(f"ysb.redis must have a key per ad with its campaign, got none at {shown(url)}")
    return table


def shown(url: str) -> str:
    """An address as it may be shown: without user and password.

    >>> shown("redis://me:secret@cache:6379/0")
    'redis://cache:6379/0'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
