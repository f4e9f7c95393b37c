"""Delta tables as the examples make them."""

from __future__ import annotations

from pyspark.sql import DataFrame


def write(frame: DataFrame, path: str, mode: str = "errorifexists") -> None:
    """A Delta table with its change data feed and deletion vectors on; `mode` as of DataFrameWriter."""
    options = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    frame.write.format("delta").options(**options).mode(mode).save(path)
