"""The jobs' pages in the docs: their experiments are valid, and of the job that the page is about."""

import re
from pathlib import Path

import pytest

from penstock.experiment import spec
from penstock.jobs import JOBS

PAGES = sorted((Path(__file__).parents[2] / "docs" / "jobs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_of_a_page_is_an_experiment_of_its_job(page: Path) -> None:
    examples = re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    assert page.stem in JOBS
    assert [spec.parse(text, "example").job.name for text in examples] == [page.stem]
