"""The number of parts, fixed or told through a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.sources.splits import Splits, publish


def test_a_number_is_fixed() -> None:
    assert Splits("3").now() == 3


@pytest.mark.parametrize("wrong", ["0", "-2"])
def test_a_number_below_one_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match="splits must be at least 1"):
        Splits(wrong)


def test_a_file_is_followed_and_its_last_number_kept(tmp_path: Path) -> None:
    file = tmp_path / "workers"
    splits = Splits(str(file))
    assert splits.now() == 1, "nobody has said yet"
    publish(file, 4)
    assert splits.now() == 4
    file.write_text("garbage")
    assert splits.now() == 4
    file.unlink()
    assert splits.now() == 4
    publish(file, 2)
    assert splits.now() == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["workers"], "no temporary file stays"
