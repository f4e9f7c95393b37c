"""Jobs on a real Spark standalone cluster, while one of its two workers is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from lake.spark.preflight import jars
from spark_jobs import job
from spark_jobs.cluster import Cluster, cluster
from tests.lakes import TestLake, until

WITHIN = 600.0
Submit = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def on() -> Iterator[Cluster]:
    with cluster(workers=2, cores=1) as found:
        yield found


@pytest.fixture
def submit(on: Cluster, lake: TestLake) -> Submit:
    """Starts the command on the cluster by spark-submit, as Airflow does."""

    def start(*arguments: str) -> subprocess.Popen[str]:
        file = lake.folder / "lakejoin.yml"
        few = {"spark.sql.shuffle.partitions": "4", "spark.databricks.delta.snapshotPartitions": "2"}  # two cores run all tasks
        file.write_text(yaml.safe_dump({**lake.config, "spark": few}))
        bin_folder = Path(sys.executable).parent
        env = {**os.environ, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        command = [str(bin_folder / "spark-submit"), "--master", on.url, "--jars", ",".join(jars()), "--conf", "spark.ui.enabled=false"]
        command += [job.__file__, "--config", str(file), *arguments]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def answered(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=WITHIN)
    assert process.returncode == 0, err[-3000:]
    return out


def executors(on: Cluster) -> list[Path]:
    """The folders of the executors that the workers have started, each with what it said."""
    return list(on.folder.glob("app-*/*/stderr"))


@pytest.mark.slow
def test_a_worker_is_killed_in_the_middle_and_the_view_is_exact(lake: TestLake, on: Cluster, submit: Submit) -> None:
    lake.table("bid", "SELECT id % 997 AS auction, id AS bidder, id % 89 AS price FROM range(20000)", key=["auction", "bidder"])
    lake.table("auction", "SELECT id, concat('item ', id) AS item, id % 7 AS category FROM range(900)", key=["id"])
    lake.view("q20", "SELECT b.auction, b.bidder, b.price, a.item, a.category FROM bid b JOIN auction a ON b.auction = a.id")
    building = submit("refresh", "q20", "--json")
    until(lambda: len(executors(on)) >= 2)
    os.killpg(on.workers[0].pid, signal.SIGKILL)
    assert json.loads(answered(building))[0]["mode"] == "build"
    lake.assert_exact("q20")

    lake.sql(
        "UPDATE {bid} SET price = price + 1 WHERE bidder % 50 = 0",
        "DELETE FROM {auction} WHERE id % 31 = 0",
        "UPDATE {bid} SET auction = auction + 1 WHERE bidder % 997 = 5",
    )
    assert json.loads(answered(submit("refresh", "q20", "--json")))[0]["mode"] == "incremental"
    lake.assert_exact("q20")
