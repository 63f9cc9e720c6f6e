"""Which sessions can be scaled, and what the others are told."""

import pytest

from penstock.errors import ConfigError, Refused
from penstock.targets.spark.conf import GRACEFUL, check_session, conf

CLUSTER = "spark://127.0.0.1:7077"
PLAIN = {key: value for key, value in conf(2).items() if "dynamicAllocation" not in key}


def test_our_own_settings_pass() -> None:
    check_session(conf(2), CLUSTER)


def test_a_cluster_without_dynamic_allocation_passes() -> None:
    check_session(PLAIN, "yarn")


@pytest.mark.parametrize(
    ("settings", "master", "words"),
    [
        pytest.param(conf(2), "local[*]", "local[*]", id="everything in one process"),
        pytest.param(conf(2), "local", "no workers to add", id="local without a number"),
        pytest.param(PLAIN | {"spark.dynamicAllocation.enabled": "true"}, CLUSTER, "two masters", id="really dynamic"),
        pytest.param(conf(2) | {"spark.dynamicAllocation.maxExecutors": "9"}, CLUSTER, "two masters", id="a range"),
        pytest.param(
            conf(2) | {"spark.dynamicAllocation.executorIdleTimeout": "60s"}, CLUSTER, "two masters", id="lets idle go"
        ),
    ],
)
def test_refused(settings: dict[str, str], master: str, words: str) -> None:
    with pytest.raises(Refused) as refused:
        check_session(settings, master)
    assert words in str(refused.value)


@pytest.mark.parametrize("key", [*GRACEFUL, "spark.locality.wait", "spark.executor.cores", "spark.executor.memory"])
def test_each_missing_setting_is_named(key: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_session({k: v for k, v in conf(2).items() if k != key}, CLUSTER)
    assert f"{key} must be" in str(error.value)
    assert "got nothing" in str(error.value)


def test_other_lengths_of_time_are_the_users_choice() -> None:
    check_session(
        conf(2) | {"spark.executor.decommission.forceKillTimeout": "300s", "spark.locality.wait": "0"}, CLUSTER
    )


def test_all_missing_settings_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        check_session({}, CLUSTER)
    assert all(key in str(error.value) for key in GRACEFUL)


@pytest.mark.parametrize(("field", "value"), [("workers", 0), ("cores", -1)])
def test_bad_sizes(field: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"{field} must be at least 1, got {value}"):
        conf(**{field: value})  # type: ignore[arg-type]
