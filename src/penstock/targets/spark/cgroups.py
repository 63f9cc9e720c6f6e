"""CPU bounds per executor through Linux control groups, v1 or v2, where this process may make them.

Twelve workers mean something on two cores only when each has a bounded, equal share. Every executor gets a group of its
own below one group per cluster; the group's accounting is also the best measure of what the executor uses, because it
includes Python workers, garbage collection and compilation, which Spark's own CPU times do not.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PERIOD_US = 50_000  # shorter than the kernel's 100 ms: a small quota is then served in smaller pauses
PARENT_SHARES = 20_480  # bounded workers come before this machine's unbounded processes
PROBE_QUOTA_US = 5_000


@dataclass(frozen=True, slots=True)
class Groups:
    """A place to make one group per worker. `cpu` limits and `usage` accounts; in v2 they are the same directory."""

    version: Literal[1, 2]
    cpu: Path
    usage: Path

    def limit_file(self, name: str) -> Path:
        return self.cpu / name / ("cpu.cfs_quota_us" if self.version == 1 else "cpu.max")

    def limit_text(self, cores: float) -> str:
        quota = int(cores * PERIOD_US)
        return str(quota) if self.version == 1 else f"{quota} {PERIOD_US}"

    def used(self, name: str) -> float | None:
        """CPU seconds used by the group so far; None once it is gone."""
        try:
            if self.version == 1:
                return int((self.usage / name / "cpuacct.usage").read_text()) / 1e9
            stat = (self.usage / name / "cpu.stat").read_text()
            return next(int(line.split()[1]) for line in stat.splitlines() if line.startswith("usage_usec")) / 1e6
        except (OSError, ValueError, StopIteration):
            return None

    def bounded(self, name: str) -> bool:
        """Whether the worker's limit is in force: it is lifted while a new worker starts."""
        try:
            return not self.limit_file(name).read_text().startswith(("-1", "max"))
        except OSError:
            return False

    def remove(self) -> None:
        """Remove the groups of workers that have ended, and the parent when none is left."""
        for root in {self.cpu, self.usage}:
            for group in [*root.glob("*/"), root]:
                with suppress(OSError):  # still has processes
                    group.rmdir()


def make(name: str) -> Groups | None:
    """Groups for the workers of the cluster `name`, or None where this process may not bound CPU."""
    return _v1(name) or _v2(name)


def _v1(name: str) -> Groups | None:
    mounts = {kind: path for kind in ("cpu", "cpuacct") if (path := _mount("cgroup", kind)) is not None}
    if len(mounts) < 2:
        return None
    roots = {kind: _own(mount, kind) / name for kind, mount in mounts.items()}
    groups = Groups(1, roots["cpu"], roots["cpuacct"])
    try:
        for root in roots.values():
            root.mkdir(exist_ok=True)
        (roots["cpu"] / "cpu.shares").write_text(str(PARENT_SHARES))
        _probe(groups)
    except OSError:
        groups.remove()
        return None
    return groups


def _v2(name: str) -> Groups | None:
    mount = _mount("cgroup2")
    if mount is None:
        return None
    # A group with processes of its own may not hand out controllers, so the root of the mount is tried as well.
    for parent in dict.fromkeys((_own(mount, ""), mount)):
        groups = Groups(2, parent / name, parent / name)
        try:
            if "cpu" not in (parent / "cgroup.subtree_control").read_text().split():
                (parent / "cgroup.subtree_control").write_text("+cpu")
            groups.cpu.mkdir(exist_ok=True)
            (groups.cpu / "cgroup.subtree_control").write_text("+cpu")
            with suppress(OSError):
                (groups.cpu / "cpu.weight").write_text("1000")
            _probe(groups)
        except OSError:
            groups.remove()
            continue
        return groups
    return None


def _probe(groups: Groups) -> None:
    """Set a limit for real: a mounted controller may still refuse it."""
    probe = groups.cpu / "probe"
    probe.mkdir(exist_ok=True)
    groups.limit_file("probe").write_text(groups.limit_text(PROBE_QUOTA_US / PERIOD_US))
    probe.rmdir()


def _mount(kind: str, controller: str | None = None) -> Path | None:
    for line in Path("/proc/mounts").read_text().splitlines():
        _, path, found, options, *_ = line.split()
        if found == kind and (controller is None or controller in options.split(",")):
            return Path(path)
    return None


def _own(mount: Path, controller: str) -> Path:
    """The group this process is in, so that limits set on it from outside go on to hold."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            own = mount / path.lstrip("/")
            return own if own.is_dir() else mount  # inside a container the path may not be visible
    return mount
