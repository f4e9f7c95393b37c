"""Reads the results of checks from a table on this machine, without a JVM: the rows of lake.quality.results.QualityResults.recent."""

from __future__ import annotations

from dataclasses import Field, fields
from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from lake.config.models import Config
from lake.delta.local_log import local_folder
from lake.quality.measurements import MOST_ROWS, PER_FINDING, READ_BACK, Row, in_order

_RECENT = """
WITH found AS (SELECT {columns} FROM results WHERE "time" > {since} OR ("kind" = 'snooze' AND "until" > {now})),
ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY "finding", "kind", coalesce("status" IN ('passed', 'failed'), false) ORDER BY "time" DESC
  ) AS nth FROM found
)
SELECT {chosen} FROM ranked WHERE nth <= {each} ORDER BY "time" DESC LIMIT {most}
"""


def recent(config: Config) -> list[Row] | None:
    """The newest rows of each finding; none before the first check. None if only a JVM can read them."""
    folder = local_folder(f"{config.quality_path}/quality_results")
    if folder is None:
        return None
    if not (folder / "_delta_log").is_dir():
        return []
    try:
        return in_order(Row(*values) for values in _read(DeltaTable(folder)))
    except (DeltaError, OSError, ValueError, LookupError, TypeError):
        return None


def _read(table: DeltaTable) -> list[tuple[Any, ...]]:
    there, now = {field.name for field in table.schema().fields}, datetime.now(UTC)
    query = _RECENT.format(
        columns=", ".join(f'"{f.name}"' if f.name in there else f'{_null(f)} AS "{f.name}"' for f in fields(Row)),
        chosen=", ".join(f"CASE WHEN nth = 1 THEN {f.name} ELSE '' END" if f.name == "samples" else f'"{f.name}"' for f in fields(Row)),
        since=_moment(now - READ_BACK),
        now=_moment(now),
        each=PER_FINDING,
        most=MOST_ROWS,
    )
    found = QueryBuilder().register("results", table).execute(query).read_all()
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _null(field: Field[Any]) -> str:
    """What stands for a column that is unknown to an older Lakejoin."""
    return f"CAST(NULL AS {'TIMESTAMP' if 'datetime' in str(field.type) else 'VARCHAR'})"


def _moment(time: datetime) -> str:
    return f"TIMESTAMP '{time.isoformat()}'"
