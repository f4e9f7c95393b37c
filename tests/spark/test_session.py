"""The settings of a session that Lakejoin makes."""

from __future__ import annotations

import pytest

from lake.spark.session import defaults

FEW = {"spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"}


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4]", "local[4,2]", None])
def test_work_on_one_machine_is_planned_by_its_cores(master: str | None) -> None:
    assert defaults({"spark.master": master} if master else {}).keys() >= FEW


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]"])
def test_a_cluster_is_not_planned_like_the_drivers_machine(master: str) -> None:
    found = defaults({"spark.master": master})
    assert not FEW & found.keys()
    assert found.items() < defaults({}).items()
