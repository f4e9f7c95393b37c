"""Lets Spark Connect clients of this machine use the driver's JVM: Spark's own plugin, bound to the loopback address, with a token."""

from __future__ import annotations

import os

_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"


def connect_settings(port: int, token: str) -> dict[str, str]:
    """The settings of a session that serves Connect clients. The token goes to the JVM in the environment of this process, since arguments
    of processes can be read by everybody."""
    os.environ[_TOKEN] = token
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
