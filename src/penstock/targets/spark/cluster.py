"""A real Spark cluster on this machine: a standalone Master and Worker, and equal, bounded executors.

One Worker hosts all the executors; each is a process of its own with one core's slot and, where control groups are
permitted, a bounded share of CPU. Everything listens on loopback only, and everything ends with its owner (`reaper`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import pyspark

from penstock.errors import Unavailable, check
from penstock.java import java_home
from penstock.targets.spark import cgroups, reaper
from penstock.targets.spark.conf import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
START_TIMEOUT = 120.0
WARM_UP = 30.0  # CPU seconds a new executor may use unbounded: starting and compiling under a small quota takes minutes

# Small heaps with the plainest collector and compiler: about 240 MB each, so that a dozen fit on a laptop.
EXECUTOR_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -XX:ReservedCodeCacheSize=64m"

# Hadoop's default way to commit a file on a local disk starts a `readlink` process for every path it touches, several
# per state partition and batch; without them a bounded worker did half as much again (docs/decisions/0005).
CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Else every row that is written is read once more, only to know whether it was there (docs/tuning.md).
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}

DRIVER_LOG = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


class SparkCluster:
    """A Master and a Worker, started on entry and ended on exit, on Ctrl-C and when the owner crashes.

    directory: where logs and the executors' work directories go.
    max_workers: how many executors there may be at once.
    cpu: share of a core that each executor is bounded to.
    memory: heap of each executor.
    """

    def __init__(self, directory: Path, *, max_workers: int, cpu: float = 0.2, memory: str = "512m") -> None:
        check(max_workers >= 1, "max_workers", "be at least 1", max_workers)
        check(0.01 <= cpu <= 64, "cpu", "be between 0.01 and 64 cores", cpu)
        self.directory = directory.resolve()
        self.cpu = cpu
        self.memory = memory
        self.token = uuid.uuid4().hex
        self.groups: cgroups.Groups | None = None
        self.notice: str | None = None
        self.max_workers = max_workers
        self._reaper: subprocess.Popen[bytes] | None = None
        self._logs: list[IO[bytes]] = []
        self.master = ""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything that was started, and wait until it is gone."""
        if self._reaper is not None and self._reaper.stdin is not None:
            self._reaper.stdin.close()
            self._reaper.wait()
            self._reaper = None
        for log in self._logs:
            log.close()
        self._logs.clear()

    def session(self, name: str, workers: int, extra: Mapping[str, str] | None = None) -> SparkSession:
        """A session on this cluster, starting with `workers` executors."""
        from pyspark.sql import SparkSession

        os.environ["JAVA_HOME"] = str(java_home())
        os.environ["PYSPARK_PYTHON"] = sys.executable  # sources run in Python workers beside the driver, too
        settings: dict[str, Any] = {"spark.app.name": name, **self.settings(workers), **(extra or {})}
        return SparkSession.builder.config(map=settings).getOrCreate()

    def settings(self, workers: int) -> dict[str, str]:
        """What a session needs to run on this cluster, starting with `workers` executors."""
        settings = {
            **conf(workers, cores=1, memory=self.memory),
            "spark.master": self.master,
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile=file:{self.directory}/log4j2.properties"',
            "spark.executor.extraJavaOptions": EXECUTOR_JAVA,
            "spark.executorEnv.OMP_NUM_THREADS": "1",
            "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
            **CHECKPOINTS,
            # An executor of bounded speed answers late under load; that is no reason to give it up.
            "spark.network.timeout": "300s",
            "spark.executor.heartbeatInterval": "10s",
        }
        if self.groups is not None:
            settings["spark.executorEnv.JAVA_HOME"] = str(self.directory / "java")
        return settings

    def group(self, app: str, executor: str) -> str:
        """The name of an executor's control group."""
        return f"{app}-{executor}"

    def _bound(self) -> None:
        """Make the control groups; without them more workers than cores would only share what there is."""
        self.groups = cgroups.make(f"penstock-{self.token[:12]}")
        if self.groups is None:
            asked, self.max_workers = self.max_workers, min(self.max_workers, os.cpu_count() or 1)
            self.notice = (
                "CPU cannot be bounded on this machine (no control groups for this user): workers are unbounded, "
                f"and at most one per core, so {self.max_workers} instead of {asked}"
            )

    def _start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._bound()
        roots = [str(path) for path in {self.groups.cpu, self.groups.usage}] if self.groups else []
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", reaper.__file__, self.token, *roots],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        home = java_home()
        (self.directory / "log4j2.properties").write_text(DRIVER_LOG.format(file=self.directory / "driver.log"))
        if self.groups is not None:
            _write_wrapper(self.directory / "java", home, self.groups, self.cpu)
        env = {
            **os.environ,
            reaper.TOKEN: self.token,
            "JAVA_HOME": str(home),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            # The executors' Python must be this one, with the same packages.
            "PYSPARK_PYTHON": sys.executable,
        }
        here = ["--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
        log, process = self._launch("master", ["org.apache.spark.deploy.master.Master", *here], env)
        self.master = _await(log, process, r"Starting Spark master at (spark://\S+)")
        # Twice the slots: an executor that is being drained keeps its slot while its successor starts.
        slots = ["--cores", str(2 * self.max_workers), "--memory", f"{2 * self.max_workers}g"]
        work = ["--work-dir", str(self.directory / "work")]
        command = ["org.apache.spark.deploy.worker.Worker", *here, *slots, *work, self.master]
        log, process = self._launch("worker", command, env)
        _await(log, process, r"Successfully registered with master (\S+)")

    def _launch(self, name: str, command: list[str], env: Mapping[str, str]) -> tuple[Path, subprocess.Popen[bytes]]:
        path = self.directory / f"{name}.log"
        out = path.open("wb")
        self._logs.append(out)
        process = subprocess.Popen(
            [f"{env['SPARK_HOME']}/bin/spark-class", *command],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C is the owner's to handle
        )
        return path, process


def _await(log: Path, process: subprocess.Popen[bytes], pattern: str) -> str:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found.group(1)
        time.sleep(0.1)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
    raise Unavailable(f"the Spark {log.stem} did not start; the end of {log}:\n{tail}")


def _write_wrapper(home: Path, real: Path, groups: cgroups.Groups, cpu: float) -> None:
    """A JAVA_HOME whose `java` puts each executor into a control group of its own, without touching Spark."""
    v1 = groups.version == 1
    usage = "cat $usage/cpuacct.usage" if v1 else "sed -n 's/^usage_usec //p' $usage/cpu.stat"
    credit = int(WARM_UP * (1e9 if v1 else 1e6))
    period = f"echo {cgroups.PERIOD_US} > $cpu/cpu.cfs_period_us" if v1 else ":"
    limit = groups.limit_file("x").name
    script = f"""#!/bin/sh
for word in "$@"; do
  [ "$last" = --executor-id ] && id=$word
  [ "$last" = --app-id ] && app=$word
  last=$word
done
if [ -n "$id" ]; then
  cpu={quote(str(groups.cpu))}/$app-$id usage={quote(str(groups.usage))}/$app-$id
  mkdir -p $cpu $usage && {period}
  # Starting is on the house: the bound holds from the moment that the credit is used up, or after a minute.
  (
    tries=0
    while [ $tries -lt 240 ] && [ -d $cpu ] && [ "$({usage})" -lt {credit} ]; do sleep 0.25; tries=$((tries + 1)); done
    echo "{groups.limit_text(cpu)}" > $cpu/{limit}
  ) </dev/null >/dev/null 2>&1 &
  echo $$ > $cpu/cgroup.procs
  echo $$ > $usage/cgroup.procs
fi
exec {quote(str(real))}/bin/java "$@"
"""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(script)
    java.chmod(0o755)
