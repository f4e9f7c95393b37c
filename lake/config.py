"""What lakejoin.yml may say, validated before Spark starts. No Spark here; `config_file` reads it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from lake.errors import ConfigError

HIDDEN_PREFIX = "__lakejoin_"
PathKind = Literal["strong", "eventual", "replay"]
SUFFIXES: Mapping[PathKind, str] = {"strong": "", "eventual": "__realtime", "replay": "__replay"}
"""A view's tables are named as the view, with these after it: of the strong path, of the real-time path, of a backfill."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TableConfig(_Strict):
    """A source: `path` (relative ones start at root) or `name` in a catalog, its declared primary key, whether `lakejoin maintain`
    compacts and vacuums it, too, and the Airflow asset (by URI or name) that an upstream DAG updates when it has written the table."""

    path: str | None = None
    name: str | None = None
    primary_key: tuple[str, ...] = ()
    maintain: bool = False
    asset: str | None = None

    @field_validator("primary_key", mode="before")
    @classmethod
    def _one_column(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_place(self) -> TableConfig:
        if (self.path is None) == (self.name is None):
            raise ValueError("give either `path` or `name`")
        return self


class CacheConfig(_Strict):
    """How many keys of looked-up rows the real-time path keeps of each source: of the first that the query reads, and of the others."""

    enabled: bool = True
    left_size: int = Field(default=10_000, ge=1)
    right_size: int = Field(default=10_000, ge=1)


class RealtimeConfig(_Strict):
    """How a view's real-time path runs. `trigger_seconds`: from the start of a batch to the next one's, at least; `buffer_capacity`: rows
    changed, and `max_files`: data files changed, that one batch takes, if they are of more than one commit; `attempts`: failures in a row
    until the view has failed."""

    trigger_seconds: float = Field(default=1.0, ge=0, le=3600)
    buffer_capacity: int = Field(default=100_000, ge=1)
    max_files: int = Field(default=1_000, ge=1)
    attempts: int = Field(default=5, ge=1)
    cache: CacheConfig = CacheConfig()


class ViewConfig(_Strict):
    """A view: one of `query`, `query_file` and `function`, and what its table carries."""

    query: str | None = None
    query_file: str | None = None
    function: str | None = None
    schedule: str | None = None
    refresh: Literal["changes"] | None = None
    group: str | None = Field(default=None, pattern=r"^[\w.-]+$")
    realtime: RealtimeConfig | None = None
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: dict[str, str] = Field(default_factory=dict)
    on_definition_change: Literal["error", "rebuild"] = "error"
    refresh_mode: Literal["auto", "incremental"] = "auto"
    recompute_above: float = Field(0.1, ge=0, le=1)

    @field_validator("tags", "cluster_by", mode="before")
    @classmethod
    def _one_item(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("realtime", mode="before")
    @classmethod
    def _on_or_off(cls, value: Any) -> Any:
        return ({} if value else None) if isinstance(value, bool) else value

    @model_validator(mode="after")
    def _one_definition(self) -> ViewConfig:
        given = [k for k in ("query", "query_file", "function") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of `query`, `query_file` and `function` (given: {', '.join(given) or 'none'})")
        if self.function is not None and not re.fullmatch(r"[\w.]+:\w+", self.function):
            raise ValueError(f"`function` is written module:function, not {self.function!r}")
        return self

    @model_validator(mode="after")
    def _one_schedule(self) -> ViewConfig:
        if self.schedule is not None and self.refresh is not None:
            raise ValueError("give either `schedule` (at times) or `refresh: changes` (when a source has changed)")
        return self


class AirflowConfig(_Strict):
    """How the DAGs run.

    `prefix` of the names of DAGs and assets; `conn_id`: the Spark connection; `submit`: what SparkSubmitOperator takes besides
    (deploy_mode, executor_memory, ...); `pool`: bounds the Spark applications at a time; `runs`: where is kept what a run was pinned
    at, and what came of it (default: beside the view tables); `retries`, the first after `retry_seconds`, each next one after twice as
    long; `timeout_minutes` of one try; `start_date` and `catchup` of scheduled refreshes; `poll_seconds`: how often a table is looked
    at; `check_after_refresh`: verify each view after each refresh. When (cron; null: never) all views are verified (`quality`), their
    tables maintained (`maintenance`), and the real-time paths looked after (`heartbeat`), which are behind where their latency is
    more than `behind_seconds`.
    """

    prefix: str = Field(default="lakejoin", pattern=r"^[\w.-]+$")
    conn_id: str = "spark_default"
    pool: str = "lakejoin"
    runs: str | None = None
    submit: dict[str, Any] = Field(default_factory=dict)
    retries: int = Field(default=2, ge=0)
    retry_seconds: float = Field(default=60, ge=0)
    timeout_minutes: float = Field(default=360, gt=0)
    start_date: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    catchup: bool = False
    poll_seconds: float = Field(default=10, gt=0)
    check_after_refresh: bool = False
    quality: str | None = "0 4 * * *"
    maintenance: str | None = "0 3 * * *"
    heartbeat: str | None = "*/5 * * * *"
    behind_seconds: float = Field(default=300, gt=0)


class Config(_Strict):
    """The whole of lakejoin.yml, with one environment's overlay applied."""

    root: str = "."
    target: str | None = None
    spark: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, TableConfig] = Field(default_factory=dict)
    views: dict[str, ViewConfig] = Field(default_factory=dict)
    samples: Literal["off", "keys", "rows"] = "keys"
    single_writer: bool = False
    airflow: AirflowConfig = AirflowConfig()
    directory: Path = Path(".")

    @field_validator("spark", mode="before")
    @classmethod
    def _settings_as_text(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {k: str(v).lower() if isinstance(v, bool) else v if isinstance(v, Mapping | list) else str(v) for k, v in value.items()}

    @model_validator(mode="after")
    def _names(self) -> Config:
        for name in [*self.tables, *self.views]:
            if not _NAME.fullmatch(name):
                raise ValueError(f"the name {name!r} is no SQL identifier (letters, digits and _, not starting with a digit)")
            if name.startswith(HIDDEN_PREFIX):
                raise ValueError(f"the name {name!r} starts with the reserved prefix {HIDDEN_PREFIX!r}")
            for suffix in filter(name.endswith, filter(None, SUFFIXES.values())):
                raise ValueError(f"the name {name!r} ends with {suffix!r}, as tables do that Lakejoin makes beside a view's own")
        lowered = [n.lower() for n in [*self.tables, *self.views]]
        for name in [*self.tables, *self.views]:
            if lowered.count(name.lower()) > 1:
                raise ValueError(f"the name {name!r} is given twice among tables and views (upper and lower case count as one)")
        return self

    def source_path(self, path: str) -> str:
        """Where a source's path points: absolute paths and URIs as they are, others under the root."""
        return path if _absolute(path) else _joined(self.root_path, path)

    @property
    def root_path(self) -> str:
        return self.root if _absolute(self.root) else str((self.directory / self.root).resolve())

    def view_path(self, view: str) -> str | None:
        """Where a view's table lives, None where the target is a catalog's schema."""
        if self._target_is_schema:
            return None
        target = self.target or _joined(self.root_path, "views")
        base = target if _absolute(target) else str((self.directory / target).resolve())
        return _joined(base, view)

    def view_name(self, view: str) -> str | None:
        """The view table's name in the catalog, None where the target is a path."""
        # Spark's own catalog goes without saying: parts of Delta take no third part before the name
        return f"{self.target}.{view}".removeprefix("spark_catalog.") if self._target_is_schema else None

    @property
    def runs_path(self) -> str:
        """The folder where scheduled runs keep what they were pinned at, and what came of them."""
        if self.airflow.runs is not None:
            return self.airflow.runs if _absolute(self.airflow.runs) else str((self.directory / self.airflow.runs).resolve())
        beside = self.view_path("_lakejoin")
        return _joined(self.root_path, "_lakejoin/runs") if beside is None else f"{beside}/runs"

    @property
    def _target_is_schema(self) -> bool:
        return self.target is not None and re.fullmatch(r"\w+(\.\w+)+", self.target) is not None

    def view(self, name: str) -> ViewConfig:
        """The view of this name. Raises ConfigError with the nearest names."""
        if name not in self.views:
            raise ConfigError(f"There is no view {name!r} in the configuration. {nearest(name, self.views)}")
        return self.views[name]


def nearest(name: str, names: Any) -> str:
    names = sorted(names)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"Did you mean {' or '.join(repr(n) for n in near)}?"
    return f"There are: {', '.join(names)}." if names else "There are none."


def _absolute(path: str) -> bool:
    return path.startswith("/") or _URI.match(path) is not None


def _joined(base: str, path: str) -> str:
    return base.rstrip("/") + "/" + path.removeprefix("./")
