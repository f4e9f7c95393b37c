"""Finds the views that are no longer in lakejoin.yml, by what is kept of them where the configuration puts the tables of views.

Two configurations may have one target. Their views are told apart by `project`, which the tables of views have as a property: only those of
this configuration's project are looked at (without a project: only tables without one).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from pyspark.sql import SparkSession

from lake.config.models import Config
from lake.core.constants import LEASE_FOLDER, SUFFIXES
from lake.core.removals import RemovedView
from lake.delta.own_folder import OwnFolder
from lake.delta.sidecar import Folder
from lake.delta.tables import Table
from lake.errors import TargetError
from lake.operations.view_files import kept_tables
from lake.spark.failures import SPARK_ERRORS
from lake.views.table import DROPPING, open_log


class Lake(Protocol):
    """What is asked of the lakehouse."""

    config: Config

    @property
    def spark(self) -> SparkSession: ...


def removed_views(lake: Lake) -> list[RemovedView]:
    """The views that are not in the configuration and of which there are tables in its target, by name.

    Tables that Lakejoin did not make there, and those of another project, are left out.
    """
    found = []
    for view in sorted(set(_names(lake))):
        with suppress(TargetError):  # made by somebody else, or of another project
            tables = kept_tables(lake.spark, lake.config, view)
            found += [RemovedView(view, tuple(tables))] if tables else []
    return found


def tables_in_target(lake: Lake) -> Iterator[Table]:
    """What is where the configuration puts the tables of views, under its name there: tables, and in a folder also anything else."""
    return _in_catalog(lake.spark, lake.config) if lake.config.view_path("") is None else _in_folder(lake.spark, lake.config)


def _names(lake: Lake) -> Iterator[str]:
    """The names of views that are not in the configuration, by the tables in its target that have the property of one."""
    spark, config = lake.spark, lake.config
    earlier = [view.renamed_from for view in config.views.values() if view.renamed_from is not None]  # `apply` takes these over
    known = {(view + end).lower() for view in (*config.views, *earlier) for end in SUFFIXES.values()}
    for table in tables_in_target(lake):
        if table.label.lower() in known:
            continue
        view = view_of(spark, table)
        named = {(view + end).lower() for end in SUFFIXES.values()}
        if config.is_view_name(view) and table.label.lower() in named:
            yield view


def view_of(spark: SparkSession, table: Table) -> str:
    """The view that a table was made for, empty if it was not made for one; of a folder without a log, by the folder's name."""
    try:
        log = open_log(spark, table)
        properties = log.head().properties if log is not None else None
    except (TargetError, *SPARK_ERRORS):  # what is left of it says whether its drop was begun
        properties = None
    if properties is not None:
        return properties.get("lakejoin.view") or properties.get(DROPPING, "")
    if table.path is None:
        return ""
    end = next(filter(table.label.endswith, filter(None, SUFFIXES.values())), "")
    leases = Folder(spark, f"{table.path}/{LEASE_FOLDER}").names()
    return OwnFolder(spark, table.path).newest_properties().get(DROPPING, table.label.removesuffix(end) if end and leases else "")


def _in_folder(spark: SparkSession, config: Config) -> Iterator[Table]:
    """What is in the folder of views, under its name there."""
    folder = str(config.view_path("")).rstrip("/")
    for name in Folder(spark, folder).names():
        yield Table(name, f"{folder}/{name}", None)


def _in_catalog(spark: SparkSession, config: Config) -> Iterator[Table]:
    """The tables of the schemas in which views are: of the target, and of views that have schemas of their own. Their names are in lower
    case; labels are as in the configuration."""
    own = {view.rpartition(".")[0] for view in config.views}
    for schema in sorted(own | {""}):
        prefix = f"{schema}." if schema else ""
        where = str(config.view_name(f"{prefix}t")).rpartition(".")[0]
        with suppress(*SPARK_ERRORS):  # there is no such schema yet
            for row in spark.sql(f"SHOW TABLES IN {where}").collect():
                if not row.isTemporary:
                    yield Table(f"{prefix}{row.tableName}", None, f"{where}.{row.tableName}")
