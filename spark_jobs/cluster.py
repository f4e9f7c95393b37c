"""Starts a Spark standalone cluster on this machine, for tests: `python -m spark_jobs.cluster` runs until Ctrl-C.

The pip package of Spark has the classes of a cluster, but not the scripts that start them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark

_SPARK = Path(pyspark.__file__).parent
_STARTS_WITHIN = 300.0


@dataclass(frozen=True)
class Cluster:
    """A running cluster. `url`: the master; `workers`: the processes of the workers; `folder`: their logs."""

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]
    folder: Path


@contextmanager
def cluster(workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """Start a master and workers with this number of cores and this memory each; all end with the block. Raises RuntimeError."""
    with TemporaryDirectory(prefix="spark-cluster-") as place:
        folder, started = Path(place), list[subprocess.Popen[bytes]]()
        try:
            local = ["--host", "127.0.0.1", "--webui-port", "0"]
            started.append(_start("master.Master", [*local, "--port", "0"], folder / "master.log"))
            url = _value_in(folder / "master.log", "Starting Spark master at ", started[0])
            options = [*local, "--cores", str(cores), "--memory", memory, "--work-dir", str(folder), url]
            for number in range(workers):
                started.append(_start("worker.Worker", options, folder / f"worker-{number}.log"))
                _value_in(folder / f"worker-{number}.log", "Successfully registered with master ", started[-1])
            yield Cluster(url, tuple(started[1:]), folder)
        finally:
            for process in started:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)
            for process in started:
                process.wait(_STARTS_WITHIN)


def _start(name: str, options: list[str], log: Path) -> subprocess.Popen[bytes]:
    command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *options]
    env = {**os.environ, "SPARK_HOME": str(_SPARK), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    with log.open("w") as out:
        return subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)


def _value_in(log: Path, words: str, process: subprocess.Popen[bytes]) -> str:
    """The word that follows a text in the log of a process. Raises RuntimeError if the process ends before."""
    deadline = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        text = log.read_text()
        if words in text:
            return text.split(words, 1)[1].split()[0]
        time.sleep(0.1)
    raise RuntimeError(f"The Spark cluster did not start. The end of {log.name}:\n{log.read_text()[-2000:]}")


def main() -> int:
    """Run until Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell starts background jobs with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        with cluster() as found:
            print(f"Master: {found.url} (two workers of one core each). Ctrl-C ends it.", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
