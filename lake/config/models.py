"""The settings of lakejoin.yml, validated before Spark starts. No Spark here; `loader` reads the file.

The text below a setting is its description in docs/reference/configuration.md (`make docs` generates that page).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from lake.core.constants import SUFFIXES, DifferenceClass
from lake.core.redaction import Samples
from lake.errors import ConfigError

NOT_SETTINGS = frozenset({"directory", "secret_settings", "query_places", "environment", "production"})
"""Fields of `Config` that the loader fills: they are no settings of the file."""
HIDDEN_PREFIX = "__lakejoin_"
PROJECT = "lakejoin.project"
"""The property of the tables of views that names the project."""
REPORT = "report.html"
"""The name of the report beside the results of checks."""
PAGES = "docs/runs"
"""The folder, beside the results of checks, of the pages of each run of checks."""
FORGOTTEN_AFTER = timedelta(days=30)
"""How long the results of scheduled runs, and of runs of checks, are stored."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")
"""The name of a table or view, which may have a schema (and for a table a catalog): orders, silver.orders, main.silver.orders."""
_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


class Strict(BaseModel):
    """Settings of a file: a key that it does not know is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TableConfig(Strict):
    """A source table. Give either `path` or `name`."""

    path: str | None = None
    """The folder of the Delta table: a path relative to `root`, an absolute path, or a URI."""
    name: str | None = None
    """The name of the table in a catalog: `catalog.schema.table`."""
    primary_key: tuple[str, ...] = ()
    """Columns that identify a row. Lakejoin derives the keys of views from it, and reports an error if the data
    breaks it."""
    maintain: bool = False
    """`lakejoin maintain` also compacts and vacuums this table. Without it, only the tables of views are maintained."""
    asset: str | None = None
    """The Airflow asset (name or URI) that an upstream DAG updates when it has written the table. Lakejoin then does
    not poll the table."""
    fresh_seconds: float | None = Field(default=None, gt=0)
    """A check warns if the newest change of the table is older than this. Unset: any age is accepted."""
    sensitive: tuple[str, ...] = ()
    """Columns whose values are never shown in samples, errors, reports or logs; also in views that have a column of
    this name."""

    @field_validator("primary_key", "sensitive", mode="before")
    @classmethod
    def _one_column(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_place(self) -> TableConfig:
        if (self.path is None) == (self.name is None):
            raise ValueError("give either `path` or `name`")
        return self


class ExpectationConfig(Strict):
    """An expectation of Great Expectations that the rows of a view must meet."""

    type: str = Field(pattern=r"^(expect_\w+|unexpected_rows_expectation)$")
    """The expectation, for example `expect_column_values_to_not_be_null`."""
    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Its arguments, for example `{column: price, min_value: 0}`."""
    on_failure: Literal["block", "warn"] = "warn"
    """`warn` reports a finding. `block` also stops the refresh: nothing is published."""


class Limits(Strict):
    """The limits at which a check of a view fails."""

    share: str = Field(default="1/1", pattern=r"^1/[1-9]\d*$")
    """The part of the keys that one check compares with the query: `1/1` all of them, `1/64` one of 64 parts, the
    next part each time."""
    ulps: int = Field(default=1024, ge=0)
    """By how many units in the last place a sum of floating-point numbers may differ from the query run again, which adds
    in another order. 0: not at all."""
    thresholds: dict[DifferenceClass, float | None] = Field(default_factory=dict)
    """How many rows of a class of differences between the two paths are allowed: a number of rows; below 1, a share
    of the rows; null, any number."""
    converge_seconds: float = Field(default=86_400, gt=0)
    """How long the real-time table and the view may differ by the same change."""
    retention_hours: float = Field(default=48, ge=0)
    """A check warns if unread changes stay readable for less time than this."""

    @property
    def parts(self) -> int:
        """In how many parts the keys are compared."""
        return int(self.share.removeprefix("1/"))


class QualityConfig(Limits):
    """Limits for all views, and where results go. The `quality` of a view overrides `share`, `ulps`, `thresholds`,
    `converge_seconds` and `retention_hours` for that view."""

    results: str | None = None
    """The folder of results and pages. Default: `_lakejoin/quality` beside the view tables."""
    volume_factor: float = Field(default=2.0, gt=1)
    """A check warns if a source has this many times more or fewer rows than at its earlier checks."""
    webhook: str | None = None
    """A URL that receives a POST request for each finding that opens, escalates or is resolved."""
    url: str | None = None
    """The address at which the folder of results is served, for links to it."""


class TargetConfig(Strict):
    """Where the tables of views live. Give either `path` or `schema`."""

    path: str | None = None
    """A folder or a URI. A relative path starts at the folder of the configuration file."""
    schema_: str | None = Field(default=None, alias="schema")
    """A schema that exists in a catalog: `catalog.schema`, or `schema` in Spark's own catalog."""

    @model_validator(mode="after")
    def _one_place(self) -> TargetConfig:
        if (self.path is None) == (self.schema_ is None):
            raise ValueError("give either `path` or `schema`")
        if self.schema_ is not None and not re.fullmatch(r"\w+(\.\w+)*", self.schema_):
            raise ValueError(f"`schema` is written schema or catalog.schema, not {self.schema_!r}")
        return self


class CacheConfig(Strict):
    """The cache of looked-up rows on the real-time path."""

    enabled: bool = True
    """Keep looked-up rows in memory between batches."""
    left_size: int = Field(default=10_000, ge=1)
    """Keys that are cached of the first table that the query reads."""
    right_size: int = Field(default=10_000, ge=1)
    """Keys that are cached of each other table."""


class RealtimeConfig(Strict):
    """The real-time path of a view."""

    trigger_seconds: float = Field(default=1.0, ge=0, le=3600)
    """The minimum time from the start of one batch to the start of the next."""
    buffer_capacity: int = Field(default=100_000, ge=1)
    """Changed rows that one batch reads at most. One commit is always read completely."""
    max_files: int = Field(default=1_000, ge=1)
    """Changed data files that one batch reads at most. One commit is always read completely."""
    attempts: int = Field(default=5, ge=1)
    """Failures in a row after which the real-time path of the view stops with an error."""
    cache: CacheConfig = CacheConfig()
    """The cache of looked-up rows; see the settings of `cache` below."""


_NEEDED = {"delta.enabledeletionvectors": "true", "delta.appendonly": "false", "delta.columnmapping.mode": "name"}
"""Properties without which rows of a view can't be published."""


class ViewConfig(Strict):
    """A view. Give exactly one of `query`, `query_file` and `function`."""

    query: str | None = None
    """The query: one Spark SQL SELECT over the declared tables and views."""
    query_file: str | None = None
    """A file that holds the query, relative to the configuration file."""
    function: str | None = None
    """A Python function, `module:function`. It is called with DataFrames named as the tables, and returns a
    DataFrame."""
    key: tuple[str, ...] = ()
    """Columns of the query that identify a row. Lakejoin derives the key of most views from the query and the primary
    keys of the tables; declare it for a view without a derived key, or to use other columns. A refresh that would
    publish two rows with the same key fails."""
    schedule: str | None = None
    """A cron expression: the Airflow DAG refreshes the view at these times. Give either `schedule` or `refresh`."""
    refresh: Literal["changes"] | None = None
    """`changes`: the Airflow DAG refreshes the view when one of its sources has a new version."""
    group: str | None = Field(default=None, pattern=r"^[\w.-]+$")
    """Views of a group are refreshed by one DAG and one Spark application."""
    realtime: RealtimeConfig | None = None
    """`true`, or settings (see `realtime` below): the view also has a real-time table, kept up to date by `lakejoin
    realtime`."""
    description: str | None = None
    """A text that is stored with the table of the view."""
    owner: str | None = None
    """Who answers questions about the view; shown in findings and in Airflow."""
    tags: tuple[str, ...] = ()
    """Tags of the view and of its DAG."""
    cluster_by: tuple[str, ...] = ()
    """Columns by which the table of the view is clustered. Default: the key of the view."""
    properties: dict[str, str] = Field(default_factory=dict)
    """Delta table properties of the table of the view."""
    renamed_from: str | None = None
    """The earlier name of the view: `lakejoin apply` takes over the table of that name, with its rows, history and progress."""
    on_definition_change: Literal["error", "rebuild"] = "error"
    """What a refresh does if the definition has changed: `error` asks for `lakejoin apply`, `rebuild` computes all rows again."""
    refresh_mode: Literal["auto", "incremental"] = "auto"
    """`auto`: a refresh may recompute the query if that is necessary or cheaper. `incremental`: it fails instead."""
    on_recompute: Literal["difference", "replace", "auto"] = "difference"
    """What a refresh publishes if it recomputes the query. `difference`: the rows that differ, found by comparing all rows. `replace`: all
    rows, which takes about half of the CPU, and is a change of every row to what reads the view's changes. `auto`: `replace` if no other
    view reads this one."""
    recompute_above: float = Field(1.0, ge=0)
    """A refresh recomputes the query if the number of changed rows is more than this share of the rows of the tables.
    An updated row counts twice."""
    expectations: tuple[ExpectationConfig, ...] = ()
    """What the rows of the view must meet; see the settings of an expectation below."""
    expectations_file: str | None = None
    """A suite of Great Expectations as JSON. An expectation with `meta: {on_failure: block}` blocks."""
    quality: Limits | None = None
    """Limits of this view; see `quality` below."""
    sensitive: tuple[str, ...] = ()
    """Columns whose values are never shown in samples, errors, reports or logs."""

    @field_validator("key", "tags", "cluster_by", "sensitive", mode="before")
    @classmethod
    def _one_item(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("realtime", mode="before")
    @classmethod
    def _on_or_off(cls, value: Any) -> Any:
        return ({} if value else None) if isinstance(value, bool) else value

    @field_validator("properties", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        """Booleans and whole numbers of YAML as the texts that Delta stores."""
        return {k: str(v).lower() if isinstance(v, bool | int) else v for k, v in value.items()} if isinstance(value, dict) else value

    @field_validator("properties")
    @classmethod
    def _refreshable(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            needed = _NEEDED.get(name.lower(), text)
            if text.lower() != needed.lower():
                raise ValueError(f"a view's table has {name}: {needed}, not {text}: its rows are published by that. Leave it out")
            if name.startswith("lakejoin."):
                raise ValueError(f"{name} is Lakejoin's own. Give it another name")
        return value

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


class AirflowConfig(Strict):
    """The Airflow DAGs."""

    prefix: str = Field(default="lakejoin", pattern=r"^[\w.-]+$")
    """The prefix of the names of DAGs and assets."""
    server: str | None = None
    """The `lakejoin serve` that carries out the tasks: its address (`https://...`, with the token in LAKEJOIN_TOKEN of workers
    and triggerers), or the id of an Airflow connection of type HTTP, whose password is the token. Without it, each task is
    a Spark application, by spark-submit."""
    conn_id: str = "spark_default"
    """The Airflow connection to Spark."""
    server_poll_seconds: float = Field(default=2, gt=0)
    """How often Airflow asks the server whether a request has ended, and how far the refresh of a group is."""
    pool: str = "lakejoin"
    """The Airflow pool that limits how many Spark applications run at the same time."""
    runs: str | None = None
    """The folder where runs store their pinned snapshot and their results. Default: `_lakejoin/runs` beside the view
    tables."""
    submit: dict[str, Any] = Field(default_factory=dict)
    """More arguments of SparkSubmitOperator: `{deploy_mode: cluster, executor_memory: 4g, num_executors: 4}`."""
    retries: int = Field(default=2, ge=0)
    """How often a failed task is tried again."""
    retry_seconds: float = Field(default=60, ge=0)
    """The wait before the first retry. It doubles with each further retry."""
    timeout_minutes: float = Field(default=360, gt=0)
    """The time limit of one try of a task."""
    start_date: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    """The first date of scheduled refreshes."""
    catchup: bool = False
    """Scheduled refreshes also run for the intervals between `start_date` and now."""
    poll_seconds: float = Field(default=10, gt=0)
    """How often Airflow looks for a new version of a table (`refresh: changes`)."""
    check_after_refresh: bool = False
    """Check each view after each refresh. A check costs about as much as the query."""
    quality: str | None = "0 4 * * *"
    """When all views are checked: a cron expression; null: never."""
    maintenance: str | None = "0 3 * * *"
    """When the tables are maintained: a cron expression; null: never."""
    heartbeat: str | None = "*/5 * * * *"
    """When Airflow looks at the real-time paths: a cron expression; null: never."""
    behind_seconds: float = Field(default=300, gt=0)
    """The heartbeat fails if the latency of a real-time path is higher than this."""
    on_finding: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    """A Python function, `module:function`, that is called with each finding that opens, escalates or is resolved."""


@dataclass(frozen=True)
class QueryPlace:
    """Where the text of a query stands: the file, and the line (from 1) of its first line; `folded`: YAML joined its lines to one."""

    file: str
    line: int
    folded: bool = False

    def of_line(self, number: int) -> str:
        """The file and the line there of a line (from 1) of the query, or of the query's start if that is not known."""
        return f"{self.file}, line {self.line if self.folded else self.line + number - 1}"


class Config(Strict):
    """lakejoin.yml, with the overlay of one environment applied."""

    root: str = "."
    """The folder or URI at which the relative paths of tables start. A relative `root` starts at the folder of the
    configuration file."""
    target: str | TargetConfig | None = None
    """Where the tables of views live: `{path: ...}` or `{schema: ...}`; see the settings of `target` below. A text alone is a
    schema if it is `catalog.schema`, else a path. Default: `views` below `root`."""
    project: str | None = Field(default=None, pattern=r"^[\w.-]+$")
    """A name that tells the views of this configuration from those of others with the same target: `lakejoin gc` and
    `lakejoin drop` remove only tables of its own project. Refreshes store it with the tables of views."""
    drop_after_days: float = Field(default=30, ge=0)
    """`lakejoin gc` drops what is left of a view that is no longer in the configuration when it was last refreshed so
    many days ago. 0: never, unless `--older-than` asks for it."""
    spark: dict[str, str] = Field(default_factory=dict)
    """Settings of the Spark session that Lakejoin makes, for example `{spark.driver.memory: 4g}`."""
    tables: dict[str, TableConfig] = Field(default_factory=dict)
    """The source tables by name; see the settings of a table below."""
    views: dict[str, ViewConfig] = Field(default_factory=dict)
    """The views by name; see the settings of a view below."""
    functions: dict[str, str] = Field(default_factory=dict)
    """The version of a function that queries call and that is not Spark's own, by its name, for example `{plus: v2}`.
    Lakejoin notices by itself if the code of a Python function changes; declare a version for functions whose code it
    cannot read, or whose changes do not change results. Change the version if the results change: the views that call
    the function then have to be rebuilt."""
    samples: Literal["off", "keys", "rows"] = "keys"
    """How much of a row any output may show: nothing (`off`), the key columns (`keys`) or all columns (`rows`)."""
    quality: QualityConfig = QualityConfig()
    """Checks of views; see the settings of `quality` below."""
    parallel: int | None = Field(default=None, ge=1)
    """How many views a refresh of several views refreshes at once, each after the views that it reads. 1: one after the
    other. Default: the number of cores of the machine."""
    single_writer: bool = False
    """Allow publishing to S3 without conditional writes. Only safe if nobody else writes the tables of views."""
    allow_untested: bool = False
    """Use versions of Spark and Delta Lake that Lakejoin is not tested with. Compare the views with `lakejoin verify --all` then."""
    airflow: AirflowConfig = AirflowConfig()
    """The Airflow DAGs; see the settings of `airflow` below."""
    directory: Path = Path(".")
    """The folder of the configuration file. It is not a setting of the file."""
    secret_settings: frozenset[str] = frozenset()
    """The names of the Spark settings (of `spark` and of `airflow.submit.conf`) whose text has a ${VARIABLE}. Their values may be
    secrets and are never shown. It is not a setting of the file."""
    query_places: dict[str, QueryPlace] = Field(default_factory=dict)
    """Where the queries of views stand, for errors. It is not a setting of the file."""
    environment: str | None = None
    """The name of the environment, None without one. It is not a setting of the file."""
    production: Config | None = None
    """Of a development environment: the configuration that it is a development of. It is not a setting of the file."""

    @field_validator("target", mode="before")
    @classmethod
    def _place(cls, value: Any) -> Any:
        """Settings as their model at once: of a union pydantic would say what is wrong with each of its types."""
        if isinstance(value, Mapping):
            return TargetConfig.model_validate(value)
        if not isinstance(value, str | TargetConfig | None):
            raise ValueError("write `{path: FOLDER}`, `{schema: catalog.schema}`, or a folder or catalog.schema alone")
        return value

    @field_validator("spark", mode="before")
    @classmethod
    def _settings_as_text(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {k: str(v).lower() if isinstance(v, bool) else v if isinstance(v, Mapping | list) else str(v) for k, v in value.items()}

    @model_validator(mode="after")
    def _names(self) -> Config:
        for place, names in (("tables", self.tables), ("views", self.views)):
            for name in names:
                wrong = _wrong_name(name, is_view=name in self.views)
                if wrong:
                    raise PydanticCustomError("name", "{wrong}", {"wrong": f"the name {name!r} {wrong}", "at": (place, name)})
        lowered = [n.lower() for n in [*self.tables, *self.views]]
        for name in [*self.views, *self.tables]:
            if lowered.count(name.lower()) > 1:
                place = "views" if name in self.views else "tables"
                wrong = f"the name {name!r} is given twice among tables and views (upper and lower case count as one). Rename one of them"
                raise PydanticCustomError("name", "{wrong}", {"wrong": wrong, "at": (place, name)})
        return self

    @model_validator(mode="after")
    def _earlier_names(self) -> Config:
        taken = dict[str, str]()
        for name, view in self.views.items():
            earlier = view.renamed_from
            if earlier is None:
                continue
            if earlier in self.views:
                raise ValueError(f"view {name!r} is `renamed_from: {earlier}`, which is a view as well. Remove one of them")
            if wrong := _wrong_name(earlier, is_view=True):
                raise ValueError(f"view {name!r} is `renamed_from: {earlier}`: the name {wrong}")
            if earlier in taken:
                raise ValueError(f"views {taken[earlier]!r} and {name!r} are both `renamed_from: {earlier}`. Remove one of them")
            taken[earlier] = name
        return self

    @model_validator(mode="after")
    def _project_of_views(self) -> Config:
        """The project as a property of the tables of views, which reaches them as the user's own do."""
        if self.project is not None:
            for name, view in self.views.items():
                self.views[name] = view.model_copy(update={"properties": {**view.properties, PROJECT: self.project}})
        return self

    @staticmethod
    def is_view_name(name: str) -> bool:
        """Whether a view can have this name."""
        return not _wrong_name(name, is_view=True)

    def source_path(self, path: str) -> str:
        """The path of a source: absolute paths and URIs unchanged, others below the root (of a development environment: production's)."""
        if self.production is not None:
            return self.production.source_path(path)
        return path if _absolute(path) else _joined(self.root_path, path)

    def path_of(self, name: str) -> str | None:
        """The path of a table, or of a view's table, None if it is known by a name in a catalog."""
        if name in self.views:
            return self.view_path(name)
        declared = self.tables[name].path
        return None if declared is None else self.source_path(declared)

    @property
    def root_path(self) -> str:
        return self.root if _absolute(self.root) else str((self.directory / self.root).resolve())

    def view_path(self, view: str) -> str | None:
        """Where a view's table lives, None if the target is a schema of a catalog."""
        if self._schema is not None:
            return None
        target = self._target.path or _joined(self.root_path, "views")
        base = target if _absolute(target) else str((self.directory / target).resolve())
        return _joined(base, view)

    def view_name(self, view: str) -> str | None:
        """The view table's name in the catalog, None if the target is a path."""
        if self._schema is None:
            return None
        catalog = self._schema.rpartition(".")[0]
        schema = catalog if "." in view else self._schema  # a view's own schema replaces that of the target
        # without the name of Spark's own catalog: parts of Delta accept no name of three parts
        return f"{schema}.{view}".removeprefix("spark_catalog.").removeprefix(".")

    @property
    def ambiguous_target(self) -> str | None:
        """The target, if it is written as one word that is a folder here, and could be a schema as well."""
        return self.target if isinstance(self.target, str) and re.fullmatch(r"\w+", self.target) else None

    @property
    def runs_path(self) -> str:
        """The folder in which scheduled runs store their pinned snapshots and their results."""
        if self.airflow.runs is not None:
            return self.airflow.runs if _absolute(self.airflow.runs) else str((self.directory / self.airflow.runs).resolve())
        beside = self.view_path("_lakejoin")
        return _joined(self.root_path, f"{self._without_target}/runs") if beside is None else f"{beside}/runs"

    @property
    def quality_path(self) -> str:
        """The folder of the results of checks, and of the pages that show them."""
        if self.quality.results is not None:
            return self.quality.results if _absolute(self.quality.results) else str((self.directory / self.quality.results).resolve())
        beside = self.view_path("_lakejoin")
        return _joined(self.root_path, f"{self._without_target}/quality") if beside is None else f"{beside}/quality"

    @property
    def _without_target(self) -> str:
        """The folder for what is written beside views, below the root, where views are in a catalog."""
        return "_lakejoin" if self.production is None else f"_lakejoin_{self.environment}"

    @property
    def report_url(self) -> str:
        """Where a browser finds the report: under `quality.url`, else the file itself."""
        return self.page_url(REPORT)

    def page_url(self, name: str) -> str:
        """Where a browser finds a file of the folder of quality: under `quality.url`, else the file itself."""
        if self.quality.url is not None:
            return f"{self.quality.url.rstrip('/')}/{name}"
        place = f"{self.quality_path}/{name}"
        return place if _URI.match(place) else f"file://{place}"

    def limits(self, view: str) -> Limits:
        """The limits of the checks of a view: its own override those of all views."""
        own = self.view(view).quality
        given = own.model_dump(exclude_unset=True) if own is not None else {}
        common = {name: getattr(self.quality, name) for name in Limits.model_fields}
        return Limits(**{**common, **given, "thresholds": {**self.quality.thresholds, **given.get("thresholds", {})}})

    def shown(self, view: str, bases: Iterable[str]) -> Samples:
        """How much of the view's rows may be shown. `bases`: tables whose sensitive columns the view may contain."""
        tables = [self.tables[name].sensitive for name in bases]
        return Samples(self.samples, frozenset(c for columns in [self.view(view).sensitive, *tables] for c in columns))

    def in_realtime(self, view: str | None = None) -> list[str]:
        """The view, or (None) all with `realtime: true`. Raises ConfigError if there are none, or no such view."""
        if view is not None:
            self.view(view)
            return [view]
        found = [name for name, settings in self.views.items() if settings.realtime is not None]
        if not found:
            raise ConfigError("No view of the configuration has `realtime: true`.")
        return found

    @property
    def _target(self) -> TargetConfig:
        if isinstance(self.target, TargetConfig):
            return self.target
        bare = self.target or ""
        return TargetConfig(schema=bare) if re.fullmatch(r"\w+(\.\w+)+", bare) else TargetConfig(path=bare)

    @property
    def _schema(self) -> str | None:
        return self._target.schema_

    def view(self, name: str) -> ViewConfig:
        """The view of this name. Raises ConfigError with the nearest names."""
        if name not in self.views:
            raise ConfigError(f"There is no view {name!r} in the configuration. {nearest(name, self.views)}")
        return self.views[name]


def _wrong_name(name: str, is_view: bool) -> str:
    """Why a table or view can't have this name, after "the name ..."; empty if it can."""
    if not _NAME.fullmatch(name):
        instead = re.sub(r"[^A-Za-z0-9_.]", "_", name)
        said = f". Rename it, for example to {instead}" if _NAME.fullmatch(instead) else ""
        return f"is no SQL identifier (letters, digits and _, not starting with a digit; a schema with a dot){said}"
    if is_view and name.count(".") > 1:
        return "of a view has more parts than schema.view"
    if name.startswith(HIDDEN_PREFIX):
        return f"starts with the reserved prefix {HIDDEN_PREFIX!r}"
    suffix = next(filter(name.endswith, filter(None, SUFFIXES.values())), "")
    return f"ends with {suffix!r}, as tables do that Lakejoin makes beside a view's own" if suffix else ""


PIN = ".pin.json"
"""What the name of the file with a run's snapshot ends with."""


def run_file(run: str) -> str:
    """The name of a scheduled run as a file name; `NAME@PART` for a part of a run, which is named `NAME::PART`."""
    return "@".join(re.sub(r"[^A-Za-z0-9_.-]", "_", part) for part in run.split("::", 1))


def whole_run(run: str) -> str:
    """The run that a run is a part of: it has the snapshot of that run, and a result of its own."""
    return run.partition("::")[0]


def without_spark(uri: str) -> str:
    """A URI for readers other than Spark: s3a: and s3n: are schemes of Hadoop only."""
    return re.sub(r"^s3[an]:", "s3:", uri)


def nearest(name: str, names: Any) -> str:
    names = sorted(names)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.65)  # farther ones mislead
    if near:
        return f"Did you mean {' or '.join(repr(n) for n in near)}?"
    return f"There are: {', '.join(names)}." if names else "There are none."


def _absolute(path: str) -> bool:
    return path.startswith("/") or _URI.match(path) is not None


def _joined(base: str, path: str) -> str:
    return base.rstrip("/") + "/" + path.removeprefix("./")
