"""Word count: its records, its results and its proof, without Spark."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock import jobs
from penstock.errors import ConfigError
from penstock.jobs.evidence import Batch, Evidence
from penstock.jobs.wordcount import WORDS_PER_LINE, WordCount
from penstock.sources.log import EmbeddedLog

TIMES = np.arange(5_000, dtype=np.int64) + 1_000_000


def test_the_same_seed_makes_the_same_records() -> None:
    first, again, other = (WordCount().generator(seed)(TIMES) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first.schema == WordCount.schema
    assert first.column("timestamp").cast(pa.int64()).to_pylist() == TIMES.tolist()


def test_words_are_skewed() -> None:
    lines = WordCount().generator(1)(TIMES).column("line").to_pylist()
    counts = Counter(word.strip(".,").lower() for line in lines for word in str(line).split(" "))
    assert sum(counts.values()) == len(TIMES) * WORDS_PER_LINE
    (_, most), *_, (_, least) = counts.most_common()
    assert most > 50 * least


def evidence(log: EmbeddedLog, until: dict[int, int], batches: list[dict[str, int]]) -> Evidence:
    """The first batch read nothing but what the last did not."""
    results = [pa.table({"word": list(c), "count": pa.array(list(c.values()), pa.int64())}) for c in batches]
    empty, last = log.begin_offsets(), len(batches) - 1
    read = [Batch(n, empty, until if n == last else empty, watermark=0, late=0) for n in range(len(batches))]
    return Evidence(log, read, results.__getitem__)


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    made = EmbeddedLog.create(tmp_path / "log", WordCount.schema, 2)
    with made.writer() as writer:
        for partition, line in enumerate(("B a, b.", "a b c")):
            times = pa.array([1], WordCount.schema.field(0).type)
            writer.append(partition, pa.RecordBatch.from_arrays([times, pa.array([line])], schema=WordCount.schema))
    return made


@pytest.mark.parametrize(
    ("batches", "equal", "words"),
    [
        pytest.param([{"a": 2, "b": 3, "c": 1}], True, "exactly", id="right"),
        pytest.param([{"a": 1, "b": 2}, {"a": 2, "b": 3, "c": 1}], True, "exactly", id="later counts replace earlier"),
        pytest.param([{"a": 2, "b": 3, "c": 1}, {"a": 3}], False, "'a' was counted 3 times, the log has 2", id="twice"),
        pytest.param([{"a": 2, "b": 3}], False, "'c' was counted 0 times", id="lost"),
        pytest.param([{"a": 2, "b": 3, "c": 1, "d": 1}], False, "'d' was counted 1 times, the log has 0", id="made up"),
    ],
)
def test_recount(
    log: EmbeddedLog,
    batches: list[dict[str, int]],
    equal: bool,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.jobs.wordcount.WORDS_PER_LINE", 3)
    verdict = WordCount().check(evidence(log, log.end_offsets(), batches))
    assert verdict.equal is equal
    assert words in verdict.sentence
    assert verdict.records_in == 2


def test_recount_only_up_to_where_the_results_go(log: EmbeddedLog) -> None:
    assert "exactly" in WordCount().check(evidence(log, {0: 1, 1: 0}, [{"a": 1, "b": 2}])).sentence


def test_unknown_job() -> None:
    with pytest.raises(
        ConfigError, match=r"job must be one of .*wordcount.*, got 'wordcout'; did you mean 'wordcount'\?"
    ):
        jobs.make("wordcout")
