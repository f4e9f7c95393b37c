"""The settings of a session that Lakejoin makes."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from lake.spark.session import defaults, made_frame, own_session

FEW = {"spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"}


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4]", "local[4,2]", None])
def test_work_on_one_machine_is_planned_by_its_cores(master: str | None) -> None:
    assert defaults({"spark.master": master} if master else {}).keys() >= FEW


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]"])
def test_a_cluster_is_not_planned_like_the_drivers_machine(master: str) -> None:
    found = defaults({"spark.master": master})
    assert not FEW & found.keys()
    assert found.items() < defaults({}).items()


def test_a_frame_made_in_a_views_session_leaves_the_users_session_the_active_one(spark: SparkSession) -> None:
    schema = StructType([StructField("n", LongType())])
    spark.createDataFrame([(1,)], schema)  # makes the session the active one, for PySpark and in the JVM
    own = own_session(spark)
    assert [row.n for row in made_frame(own, [(2,)], schema).collect()] == [2]
    assert SparkSession.active() is spark
    java = SparkSession._get_j_spark_session_class(spark._jvm)
    assert java.getActiveSession().get().equals(spark._jsparkSession)
