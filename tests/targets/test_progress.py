"""What a query says of its batches, as values."""

import json
from typing import Any

import pytest

from penstock.targets.spark.progress import Counter, parse


def progress(**changes: Any) -> str:
    source = {"startOffset": {"0": 10, "1": 10}, "endOffset": {"0": 60, "1": 30}, "latestOffset": {"0": 100, "1": 40}}
    raw = {
        "timestamp": "2026-11-15T12:00:00.000Z",
        "batchId": 7,
        "numInputRows": 105,  # a retried task's rows are in it twice
        "durationMs": {"triggerExecution": 2500},
        "sources": [source | changes.pop("source", {})],
        "observedMetrics": {"penstock": {"event_time_p05": 1794744001.0}},
    }
    return json.dumps(raw | changes)


def test_batch_is_counted_by_its_offsets() -> None:
    found = parse(progress())
    assert (found.number, found.records, found.end, found.latest) == (7, 70, 90, 140)
    assert found.seconds == 2.5
    assert found.ended_at == found.started_at + 2.5


def test_latency_is_from_the_slowest_events_to_the_end_of_the_batch() -> None:
    assert parse(progress()).latency == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("offsets", "total"),
    [
        pytest.param({"0": 5, "1": 7}, 12, id="embedded log"),
        pytest.param({"topic": {"0": 5}, "other": {"0": 1, "1": 2}}, 8, id="Kafka"),
        pytest.param('{"topic": {"0": 5}}', 5, id="Kafka, as text"),
        pytest.param({"logOffset": 3}, None, id="files: no count of records"),
        pytest.param(7, None, id="rate source: seconds, no records"),
        pytest.param("not json", None, id="somebody's own"),
        pytest.param(None, None, id="none"),
    ],
)
def test_offsets_count_only_where_they_count_records(offsets: object, total: int | None) -> None:
    source = {"startOffset": offsets, "endOffset": offsets, "latestOffset": offsets}
    assert parse(progress(source=source)).end == total


def test_first_batch_starts_at_zero() -> None:
    assert parse(progress(source={"startOffset": None})).records == 90


def test_rows_are_spark_s_own_where_offsets_do_not_count() -> None:
    source = {"startOffset": 1, "endOffset": 2, "latestOffset": 2}
    assert parse(progress(source=source)).records == 105


def test_unobserved_query_has_no_latency() -> None:
    assert parse(progress(observedMetrics={})).latency is None


@pytest.mark.parametrize(
    ("seen", "rate"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([(0, 5)], None, id="once"),
        pytest.param([(0, 0), (4, 40)], 10.0, id="twice"),
        pytest.param([(0, 0), (0, 40)], None, id="twice at once"),
        pytest.param([(0, 0), (30, 300)], 10.0, id="long ago is better than nothing"),
        pytest.param([(0, 0), (5, 1000), (15, 1000), (16, 1100)], 100 / 11, id="the window slides"),
        pytest.param([(0, 900), (5, 10), (10, 60)], 10.0, id="begun anew: no negative rate"),
    ],
)
def test_counter(seen: list[tuple[float, float]], rate: float | None) -> None:
    counter = Counter(window=10)
    for at, total in seen:
        counter.saw(at, total)
    assert counter.rate() == pytest.approx(rate) if rate is not None else counter.rate() is None
