"""Word count, the job of the Daedalus paper (sec. 4.1.1): lines from the log, split, a running count per word."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.jobs.base import Generate, Job, Verdict
from penstock.jobs.evidence import Evidence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VOCABULARY = 1_000
ZIPF = 1.1  # natural language is near 1; a little steeper makes the busiest keys clearly busier
WORDS_PER_LINE = 12
POOL = 8_192  # lines made once and drawn from: the generator must be far faster than the job it feeds


@dataclass
class WordCount(Job):
    """Count words over all lines so far, in RocksDB state, restored exactly after any failure."""

    name: ClassVar[str] = "wordcount"
    summary: ClassVar[str] = "running count per word of a stream of lines; words follow a Zipf law, so keys are skewed"
    paper: ClassVar[str] = "Daedalus (ICPE 2024), sec. 4.1.1"
    operators: ClassVar[tuple[str, ...]] = ("read and split", "count")
    keys: ClassVar[str] = f"{VOCABULARY:,} words by a Zipf law of {ZIPF}"
    state: ClassVar[str] = f"one count per word, up to {VOCABULARY:,} words"
    schema: ClassVar[pa.Schema] = pa.schema(
        [pa.field("timestamp", pa.timestamp("us", "UTC")), pa.field("line", pa.string())]  # type: ignore[arg-type]
    )

    def generator(self, seed: int) -> Generate:
        """Lines of 12 words drawn by a Zipf law from 1,000 words, with a capital, a comma and a full stop."""
        random = np.random.default_rng(seed)
        ranks = np.arange(1, VOCABULARY + 1)
        weights = ranks**-ZIPF
        words = np.array([f"word{rank:04}" for rank in ranks])
        drawn = random.choice(words, size=(POOL, WORDS_PER_LINE), p=weights / weights.sum())
        half = WORDS_PER_LINE // 2
        lines = pa.array([f"{' '.join(line[:half])}, {' '.join(line[half:])}.".capitalize() for line in drawn])

        def generate(timestamps: npt.NDArray[np.int64]) -> pa.RecordBatch:
            chosen = random.integers(0, POOL, len(timestamps))
            times = pa.array(timestamps, pa.int64()).cast(self.schema.field("timestamp").type)
            return pa.RecordBatch.from_arrays([times, lines.take(chosen)], schema=self.schema)

        return generate

    def build(self, records: DataFrame) -> DataFrame:
        """Lower case, split at anything that is no letter or digit, count: all in Spark's own expressions."""
        from pyspark.sql import functions as F  # noqa: N812

        words = records.select(F.explode(F.split(F.lower("line"), "[^a-z0-9]+")).alias("word"))
        return words.where("word != ''").groupBy("word").count()

    def check(self, evidence: Evidence) -> Verdict:
        """Recount every line in plain Python and demand the same count for every word."""
        lines: Counter[str] = Counter()
        found: dict[str, int] = {}
        for batch, rows in evidence.rows():
            for records in evidence.records(batch):
                lines.update(map(str, records.column("line").to_pylist()))
            # A later batch's count of a word replaces the earlier one.
            found.update((row["word"], row["count"]) for row in rows.to_pylist())
        expected: Counter[str] = Counter()
        for line, times in lines.items():
            for word in re.findall(r"[a-z0-9]+", line.lower()):
                expected[word] += times
        wrong = sorted(word for word in expected.keys() | found.keys() if expected[word] != found.get(word, 0))
        records_in = sum(lines.values())
        records_out, rest = divmod(sum(found.values()), WORDS_PER_LINE)
        if wrong:
            word = wrong[0]
            return Verdict(
                False,
                records_in,
                records_out,
                f"{len(wrong)} of {len(expected)} words have a wrong count: "
                f"{word!r} was counted {found.get(word, 0)} times, the log has {expected[word]}",
            )
        return Verdict(rest == 0, records_in, records_out, f"all {len(expected)} words have exactly the log's count")
