"""What a Spark session must be started with so that it can be scaled, and how to tell that it was not.

Standalone clusters ignore `spark.executor.instances`; the first size is given there by dynamic allocation pinned to
one number, whose manager then never moves the target again. One that really manages would be a second master.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import ConfigError, Refused, check

NEVER = "1000000000s"

# Scaling in must lose nothing: an executor is drained, its blocks move on, and then it goes.
GRACEFUL = {
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.rddBlocks.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    # With the default of 30 s between looks for blocks left to move, every executor lingers half a minute.
    "spark.storage.decommission.replicationReattemptInterval": "1s",
    # The last resort, kept by the driver itself, so that it holds also when Penstock is gone.
    "spark.executor.decommission.forceKillTimeout": "120s",
}

# State tasks prefer the executors that held their state; with the default of 3 s new executors stay nearly idle.
SPREADING = {"spark.locality.wait": "0s"}

SIZES = ("spark.executor.cores", "spark.executor.memory")


def conf(workers: int = 1, *, cores: int = 1, memory: str = "1g") -> dict[str, str]:
    """Settings for a session that Penstock can scale, starting with `workers` executors of the given size.

    >>> conf(workers=2)["spark.dynamicAllocation.maxExecutors"]
    '2'
    """
    check(workers >= 1, "workers", "be at least 1", workers)
    check(cores >= 1, "cores", "be at least 1", cores)
    n = str(workers)
    return {
        "spark.executor.cores": str(cores),
        "spark.executor.memory": memory,
        **GRACEFUL,
        **SPREADING,
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": n,
        "spark.dynamicAllocation.initialExecutors": n,
        "spark.dynamicAllocation.maxExecutors": n,
        "spark.dynamicAllocation.executorIdleTimeout": NEVER,
        "spark.dynamicAllocation.cachedExecutorIdleTimeout": NEVER,
        "spark.dynamicAllocation.shuffleTracking.timeout": NEVER,
    }


def check_session(settings: Mapping[str, str], master: str) -> None:
    """Raise where the session cannot be scaled: Refused for what it is, ConfigError for each setting it lacks."""
    if master.startswith("local") and not master.startswith("local-cluster"):
        raise Refused(
            f"master {master!r} runs everything in one process: there are no workers to add; "
            "use a cluster, for example one started with penstock.spark.cluster()"
        )
    if settings.get("spark.dynamicAllocation.enabled", "false") == "true" and not _pinned(settings):
        raise Refused(
            "spark.dynamicAllocation manages the executors of this session already, and two masters would fight: "
            "start the session with penstock.spark.conf(), or without dynamic allocation"
        )
    missing = [f"{key} must be true, got {settings.get(key, 'nothing')}" for key in _off(settings)]
    missing += [
        f"{key} must be set, got nothing" for key in (*GRACEFUL, *SIZES) if key not in {*settings, *_off(settings)}
    ]
    if not settings.get("spark.locality.wait", "3s").startswith("0"):
        missing.append(f"spark.locality.wait must be 0s, got {settings.get('spark.locality.wait', 'nothing')}")
    if missing:
        raise ConfigError("this session cannot be scaled; start it with penstock.spark.conf(): " + "; ".join(missing))


def _off(settings: Mapping[str, str]) -> list[str]:
    return [key for key, value in GRACEFUL.items() if value == "true" and settings.get(key) != "true"]


def _pinned(settings: Mapping[str, str]) -> bool:
    prefix = "spark.dynamicAllocation."
    least = settings.get(prefix + "minExecutors", "0")
    return (
        least == settings.get(prefix + "maxExecutors")
        and settings.get(prefix + "executorIdleTimeout") == NEVER
        and int(least) >= 1
    )
