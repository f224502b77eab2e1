"""A real cluster of Spark for tests: a driver, two workers in processes of their own, and where they write their logs.

One at a time on a machine, whatever other processes of pytest do: a lock is held as long as it stands. Spark's home is
a folder of links, so that nothing is written beside the package, and its workers' logs are where they can be read.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.locks import FileLock

REQUIRED = "SFUMATO_NEEDS_SPARK"
"""Set where Java could be installed: what then keeps the cluster from starting is an error, and no reason to skip."""
ROOM = 4 << 30
JAVA = 17
_PATIENCE = 300.0  # a crowded machine is slow

ON_SPARK = (
    pytest.mark.slow,  # a cluster of three processes, and work for each
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark.*"),  # of pandas 3
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark.*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets that PySpark leaves to the collector
)
"""The marks of every test on the cluster."""

_LOG4J = """
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n%ex
"""


@dataclass
class Cluster:
    """A session, and where its processes write."""

    session: Any
    home: Path
    driver_log: Path

    @property
    def logs(self) -> dict[str, str]:
        """All that the driver and its workers have written, by where."""
        files = [self.driver_log, *self.home.glob("work/*/*/std*"), *self.home.glob("events/**/*")]
        return {str(path): path.read_text(errors="replace") for path in files if path.is_file()}

    def executors(self) -> list[int]:
        """The processes of the workers, by their ids."""
        driver = self.session.sparkContext._gateway.proc.pid
        return [pid for pid in _descendants(driver) if "CoarseGrainedExecutorBackend" in _command(pid)]

    def kill_one(self, nth: int = 0) -> None:
        """End a worker at once, in the middle of whatever it does. Spark starts another one."""
        running = self.executors()
        if running:
            os.kill(running[nth % len(running)], signal.SIGKILL)


_standing = contextlib.ExitStack()
_shared: list[Cluster] = []


def shared() -> Cluster:
    """The one cluster of all tests of this process, started when the first one needs it."""
    if not _shared:
        _shared.append(_standing.enter_context(started()))
        atexit.register(end)
    return _shared[0]


def end() -> None:
    """Nobody needs it any longer."""
    _shared.clear()
    _standing.close()


def on_spark(table: pa.Table, folder: Path, cluster: Cluster, parts: int = 3) -> Any:
    """A table as a frame of Spark in some parts, with the names that it has, however Spark likes them."""
    path = folder / f"records{parts}"
    path.mkdir(exist_ok=True)
    plain = table.rename_columns([f"p{i}" for i in range(table.num_columns)])
    edges = [len(table) * i // parts for i in range(parts + 1)]
    for i in range(parts):
        pq.write_table(plain[edges[i] : edges[i + 1]], path / f"{i}.parquet")
    return cluster.session.read.parquet(str(path)).toDF(*table.column_names)


def missing() -> str | None:
    """Why no cluster can be started here, if so."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed (pip install 'sfumato[spark]')"
    java_home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{java_home}/bin" if java_home else None)
    if java is None:
        return (
            f"there is no Java, which Spark needs: version {JAVA} or later (on Debian apt install default-jre-headless)"
        )
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA:
        return f"Java is older than {JAVA}, which Spark needs"
    return None


def crowded() -> str | None:
    """Whether too little memory is free for two workers and a driver."""
    about = Path("/proc/meminfo")
    free = re.search(r"MemAvailable: +(\d+) kB", about.read_text()) if about.exists() else None
    return f"less than {ROOM >> 30} GB of memory are free" if free and int(free[1]) << 10 < ROOM else None


def skip_where_none() -> None:
    """Skip with the reason, or fail where the cluster has to be there."""
    reason = missing()
    if reason and os.environ.get(REQUIRED):
        pytest.fail(f"Spark's tests must run here, and {reason}")
    reason = reason or crowded()
    if reason:
        pytest.skip(reason)


@contextlib.contextmanager
def started() -> Iterator[Cluster]:
    """The cluster for the length of a block."""
    skip_where_none()
    with alone(), home() as folder:
        with _environment(folder), _written_to(folder / "driver.log"):
            interrupted = signal.getsignal(signal.SIGINT)
            session = _session(folder)
        try:
            cluster = Cluster(session, folder, folder / "driver.log")
            _wait_for_workers(cluster)
            yield cluster
        finally:
            gateway = session.sparkContext._gateway
            with contextlib.suppress(Exception):  # of a driver that is gone
                session.stop()
            _end(gateway)
            signal.signal(signal.SIGINT, interrupted)  # PySpark has put its own there


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Nobody else on this machine has a cluster meanwhile."""
    lock = FileLock(Path(tempfile.gettempdir()) / "sfumato-spark.lock", float("inf"))
    try:
        yield
    finally:
        lock.release()


def _session(home: Path) -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.executor.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",  # to be read here
        "spark.eventLog.dir": str(home / "events"),
        "spark.sql.session.timeZone": "America/New_York",  # which must not matter
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("sfumato")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@contextlib.contextmanager
def home() -> Iterator[Path]:
    """Spark's home as links to what is installed, but for what it writes."""
    import pyspark

    with tempfile.TemporaryDirectory(prefix="sfumato-spark-", ignore_cleanup_errors=True) as folder:
        found = Path(folder)
        for path in Path(pyspark.__file__).parent.iterdir():
            if path.name not in ("work", "conf", "logs"):
                (found / path.name).symlink_to(path)
        for name in ("conf", "events", "work"):
            (found / name).mkdir()
        (found / "conf" / "log4j2.properties").write_text(_LOG4J)
        yield found


@contextlib.contextmanager
def _environment(home: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        patch.setenv("SPARK_CONF_DIR", str(home / "conf"))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        for name in ("SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "SPARK_CONNECT_MODE_ENABLED"):
            patch.delenv(name, raising=False)
        logging.getLogger("py4j").setLevel(logging.ERROR)
        yield


@contextlib.contextmanager
def _written_to(log: Path) -> Iterator[None]:
    """Whatever a process that begins in the block writes to its standard error."""
    before = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)


def _wait_for_workers(cluster: Cluster) -> None:
    until = time.monotonic() + _PATIENCE
    while len(cluster.executors()) < 2:
        if time.monotonic() > until:
            said = f"two workers of Spark did not come to life within {_PATIENCE:.0f} s"
            pytest.fail(said) if os.environ.get(REQUIRED) else pytest.skip(said)
        time.sleep(0.2)


def _end(gateway: Any) -> None:
    """The driver's process, and what is left of it, by their ids."""
    from pyspark import SparkContext

    left = _descendants(gateway.proc.pid)
    with contextlib.suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # the next one starts a process of its own
    gateway.proc.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        gateway.proc.wait(20)
    for pid in (gateway.proc.pid, *left):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    gateway.proc.wait()


def _descendants(pid: int) -> list[int]:
    """All processes that a process has begun, directly or not."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
