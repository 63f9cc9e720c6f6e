"""The jobs' pages in the docs: every job has one, with an experiment that is valid and of that job."""

import re
from pathlib import Path

import pytest

from penstock.experiment import spec
from penstock.jobs import JOBS

PAGES = Path(__file__).parents[2] / "docs" / "jobs"


@pytest.mark.parametrize("name", JOBS)
def test_the_example_of_a_page_is_an_experiment_of_its_job(name: str) -> None:
    examples = re.findall(r"```toml\n(.*?)```", (PAGES / f"{name}.md").read_text(), re.DOTALL)
    assert [spec.parse(text, "example").job.name for text in examples] == [name]
