"""make airflow: Airflow on one machine, on a small Nexmark lake, with the DAGs that Lakejoin builds from its lakejoin.yml.

`--change` (in another terminal) commits a change to the bids: the watch of the table sees it, and the views on it are refreshed.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import yaml
from deltalake import DeltaTable

from examples.nexmark.generator import Nexmark
from examples.nexmark.writer import make_tables
from lake import open_lake

_CONFIG = Path(__file__).with_name("lakejoin.yml")
_DAGS = Path(__file__).resolve().parents[2] / "dags"
_SILENT_AT_MOST = 180.0
_ENDS_WITHIN = 20.0
_VIEWS = {
    "prices_by_category": {
        "description": "The bids of each category, from q20",
        "query": "SELECT category, count(*) AS bids, max(price) AS highest, sum(price) AS total FROM q20 GROUP BY category",
        "group": "bids",
        "refresh": "changes",
    },
    "sellers": {
        "description": "Each person with the auctions that they opened",
        "query": "SELECT p.id, p.name, p.city, a.id AS auction, a.item_name FROM person p LEFT JOIN auction a ON a.seller = p.id",
        "schedule": "*/10 * * * *",
    },
}


def configuration(home: Path) -> dict[str, object]:
    """The lakejoin.yml of the demo: q20 and a view on it are refreshed on changes, another view on a schedule."""
    settings = yaml.safe_load(_CONFIG.read_text())
    views = {"q20": {**settings["views"]["q20"], "group": "bids", "refresh": "changes", "realtime": True}, **_VIEWS}
    return {**settings, "root": str(home / "lake"), "views": views, "airflow": {"poll_seconds": 2, "heartbeat": None}}


def make_lake(home: Path, events: int, seed: int) -> None:
    """Make a lake and its lakejoin.yml. It runs in a process of its own, because that of Airflow needs no JVM."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / "lakejoin.yml").write_text(yaml.safe_dump(configuration(home), sort_keys=False))
    lake = open_lake(home / "lakejoin.yml")
    make_tables(lake.spark, Nexmark(seed=seed), events, home / "lake")
    lake.spark.stop()


def environment(home: Path, port: int) -> dict[str, str]:
    """The settings of Airflow: SQLite and LocalExecutor, reachable from this machine only."""
    address = f"http://127.0.0.1:{port}"
    wanted = {
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(_DAGS),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "LAKEJOIN_CONFIG": str(home / "lakejoin.yml"),
    }
    return {**os.environ, **wanted, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}


@contextmanager
def standalone(env: Mapping[str, str]) -> Iterator[Path]:
    """Start Airflow with its pool; all its processes end with the block. Yields its log. Raises RuntimeError if it does not start."""
    home = Path(env["AIRFLOW_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    log = home / "standalone.log"
    with log.open("w") as out:
        pool = ["pools", "set", "lakejoin", "1", "Spark applications of Lakejoin at a time"]
        for command in (["db", "migrate"], pool):
            if subprocess.run(["airflow", *command], env=env, stdout=out, stderr=subprocess.STDOUT).returncode:
                raise RuntimeError(f"airflow {' '.join(command)} failed. See {log}.")
        process = subprocess.Popen(["airflow", "standalone"], env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        _until_ready(process, env["AIRFLOW__API__BASE_URL"], log)
        yield log
    finally:
        _end(process)


def _until_ready(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Wait until all parts are healthy, for as long as the log shows progress."""
    last, lines = time.monotonic(), 0
    while process.poll() is None and time.monotonic() - last < _SILENT_AT_MOST:
        with suppress(URLError, OSError, ValueError), urlopen(f"{address}/api/v2/monitor/health", timeout=5) as answer:
            parts = json.load(answer)
            if all(part.get("status") == "healthy" for part in parts.values() if part.get("status") is not None):
                return
        own = sum("monitor/health" not in line for line in log.read_text(errors="replace").splitlines())  # without the requests above
        last, lines = (time.monotonic(), own) if own > lines else (last, lines)
        time.sleep(0.5)
    why = f"wrote nothing to its log for {_SILENT_AT_MOST:.0f} seconds" if process.poll() is None else "ended"
    raise RuntimeError(f"Airflow is not ready: it {why}. See {log}.")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group, first with SIGTERM: a signal to Airflow's own process would leave its children."""
    deadline = time.monotonic() + _ENDS_WITHIN
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            process.poll()
            os.killpg(process.pid, 0)  # raises if no process of the group is left
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def password(env: Mapping[str, str]) -> str:
    """The password that Airflow generated for its user admin."""
    return str(json.loads(Path(env["AIRFLOW_HOME"], "simple_auth_manager_passwords.json.generated").read_text())["admin"])


def change(home: Path) -> None:
    """Some bidders raise their bids: one commit, written without Spark."""
    table = DeltaTable(str(home / "lake" / "bid"))
    table.update(updates={"price": "price + 500"}, predicate="bidder % 23 = 0")
    print(f"bid is now at version {table.version()}")


def main(arguments: list[str]) -> int:
    """Run until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path(__file__).resolve().parents[2] / ".demo" / "airflow")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--change", action="store_true", help="commit a change to the bids of a running demo, and end")
    parser.add_argument("--make-lake", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.change:
        change(options.home)
        return 0
    if options.make_lake:
        make_lake(options.home, options.events, options.seed)
        return 0
    if not (options.home / "lake" / "bid").exists():
        print(f"Creating a lake of {options.events:,} Nexmark events in {options.home / 'lake'}", flush=True)
        subprocess.run([sys.executable, "-m", "examples.nexmark.airflow", "--make-lake", *arguments], check=True)
    env = environment(options.home, options.port)
    print("Starting Airflow (20 seconds or more)", flush=True)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts background jobs with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        with standalone(env) as log:
            print(f"\nAirflow is at {env['AIRFLOW__API__BASE_URL']}: log in as admin with the password {password(env)}")
            print(f"Its log: {log}")
            print("The DAGs now build the views. To see a change start a refresh, run in another terminal:")
            print("  .venv/bin/python -m examples.nexmark.airflow --change")
            print("Ctrl-C ends Airflow and all its processes.", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("Airflow has ended.")
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
