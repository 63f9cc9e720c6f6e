"""What an experiment's file says, and what is said of a wrong one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.experiment import simulation, spec

GOOD = """
job = "wordcount"
min_workers = 2
max_workers = 5
[workload]
kind = "sine"
low = 100
high = 500
[policy]
name = "hpa"
target_cpu = 0.7
"""


def test_a_whole_file() -> None:
    experiment = spec.parse(GOOD, "mine")
    assert experiment.head.name == "mine"
    assert experiment.initial_workers == 2
    assert experiment.load.peak() == 500
    policy = experiment.policy()
    assert (policy.name, policy.min_workers, policy.max_workers) == ("hpa", 2, 5)


def test_the_shipped_experiments_are_valid() -> None:
    found = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
    simulated = [path for path in found if "\nprofile = " in path.read_text()]
    assert simulated
    assert len(found) > len(simulated)
    for path in found:
        simulation.load(path)  # which takes those of real runs, too
        if path in simulated:
            with pytest.raises(ConfigError, match="profile must be left out of a real run"):
                spec.load(path)
        else:
            spec.load(path)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        pytest.param('"hpa"', '"hpaa"', "got 'hpaa'; did you mean 'hpa'?", id="policy"),
        pytest.param(
            "min_workers = 2", "min_workers = 9", "max_workers must be at least min_workers (9), got 5", id="bounds"
        ),
        pytest.param("min_workers = 2", "min_workers = 0", "min_workers must be at least 1, got 0", id="no workers"),
        pytest.param("low = 100", "low = -100", "sine.low must be", id="negative rate"),
        pytest.param("low = 100", "lwo = 100", "sine.lwo must be", id="misspelt in the load"),
        pytest.param(
            "target_cpu", "target_cup", "hpa.target_cup must be a parameter of hpa", id="misspelt in the policy"
        ),
        pytest.param("max_workers = 5", "max_worker = 5", "did you mean 'max_workers'?", id="misspelt above"),
        pytest.param(
            "target_cpu = 0.7", "target_cpu = 70", "hpa.target_cpu must be in [0.01, 1], got 70", id="percent"
        ),
        pytest.param(
            "target_cpu = 0.7", 'target_cpu = "x"', "hpa.target_cpu must be a finite number, got 'x'", id="type"
        ),
        pytest.param("[policy]", "[polcy]", "got 'polcy'; did you mean 'policy'?", id="misspelt table"),
        pytest.param(
            "[workload]",
            "[workload]\npeak_of_capacity = 7",
            "peak_of_capacity must be a number in (0, 2], got 7",
            id="peak",
        ),
        pytest.param(
            "[workload]", "[cluster]\ncpu = 0\n[workload]", "cluster.cpu must be between 0.01 and 64", id="cpu"
        ),
        pytest.param("[workload]", "[stream]\ntriger = 1\n[workload]", "did you mean 'trigger'?", id="misspelt stream"),
        pytest.param(
            "[workload]",
            "[stream]\nwarm_up = 0\n[workload]",
            "warm_up must be from 1 to 1000 batches, got 0",
            id="cold",
        ),
        pytest.param(
            "[policy]", "[policy]\nmax_workers = 3", "policy.max_workers must be given above the tables", id="twice"
        ),
        pytest.param('"wordcount"', '"worcount"', "got 'worcount'; did you mean 'wordcount'?", id="job"),
        pytest.param('job = "wordcount"', "", "experiment.job must be given", id="no job"),
        pytest.param(
            "[workload]",
            "[job_settings]\nlines = 3\n[workload]",
            "wordcount.lines must be left out, as wordcount takes no parameters, got 3",
            id="job without settings",
        ),
        pytest.param("[workload]", "[job_setings]\n[workload]", "did you mean 'job_settings'?", id="misspelt settings"),
        pytest.param(
            "[policy]", "[policy]\nx = 1\n[[job_settings]]", "job_settings must be a table", id="two settings"
        ),
        pytest.param("[workload]", "[workload", "experiment must be valid TOML", id="not TOML"),
        pytest.param("[workload]", "shadow = 3\n[workload]", "shadow must be a list of tables", id="shadow"),
    ],
)
def test_what_is_wrong_is_named(before: str, after: str, words: str) -> None:
    assert before in GOOD
    with pytest.raises(ConfigError) as error:
        spec.parse(GOOD.replace(before, after), "mine")
    assert words in str(error.value)


YSB = GOOD.replace('"wordcount"', '"ysb"') + '[job_settings]\nredis = "redis://cache:6379/0"\n'


def test_a_job_has_its_settings() -> None:
    assert spec.parse(YSB, "mine").job.settings == {"redis": "redis://cache:6379/0", "campaigns": None}
    assert simulation.parse(f'profile = "flink-ysb"\n{YSB}', "mine").notes == (
        "[job_settings] is for a real run and was not simulated.",
    )


@pytest.mark.parametrize(
    "parse", [spec.parse, lambda text, name: simulation.parse('profile = "flink-ysb"\n' + text, name)]
)
def test_a_wrong_setting_of_a_job_is_named(parse: Callable[[str, str], object]) -> None:
    with pytest.raises(ConfigError, match=r"ysb\.rediss must be a parameter of ysb .*; did you mean 'redis'\?"):
        parse(YSB.replace("redis =", "rediss ="), "mine")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="experiment must be a file that can be read"):
        spec.load(tmp_path / "none.toml")


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace("low = 100", "low = -1"))
    with pytest.raises(ConfigError, match=r"mine\.toml: sine\.low must"):
        spec.load(path)
