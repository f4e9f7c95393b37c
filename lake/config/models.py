"""What lakejoin.yml may say, validated before Spark starts. No Spark here; `config_file` reads it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from lake.core.kinds import SUFFIXES, DifferenceClass
from lake.core.redaction import Samples
from lake.errors import ConfigError

HIDDEN_PREFIX = "__lakejoin_"
REPORT = "report.html"
"""The name of the report beside the results of checks."""
PAGES = "docs/runs"
"""The folder, beside the results of checks, of the pages of each run of checks."""
FORGOTTEN_AFTER = timedelta(days=30)
"""How long it is kept what came of a scheduled run, or of a run of checks."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TableConfig(_Strict):
    """A source: `path` (relative ones start at root) or `name` in a catalog, its declared primary key, whether `lakejoin maintain`
    compacts and vacuums it, too, and the Airflow asset (by URI or name) that an upstream DAG updates when it has written the table.
    `fresh_seconds`: how old its newest change may be; `sensitive`: columns whose values are never shown."""

    path: str | None = None
    name: str | None = None
    primary_key: tuple[str, ...] = ()
    maintain: bool = False
    asset: str | None = None
    fresh_seconds: float | None = Field(default=None, gt=0)
    sensitive: tuple[str, ...] = ()

    @field_validator("primary_key", "sensitive", mode="before")
    @classmethod
    def _one_column(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_place(self) -> TableConfig:
        if (self.path is None) == (self.name is None):
            raise ValueError("give either `path` or `name`")
        return self


class ExpectationConfig(_Strict):
    """An expectation of Great Expectations that a view has to meet: its `type` (expect_column_values_to_not_be_null, ...) and `kwargs`.
    `on_failure`: only warn, or block: then a refresh whose rows don't meet it publishes nothing."""

    type: str = Field(pattern=r"^(expect_\w+|unexpected_rows_expectation)$")
    kwargs: dict[str, Any] = Field(default_factory=dict)
    on_failure: Literal["block", "warn"] = "warn"


class Limits(_Strict):
    """From when on a check of a view fails.

    `share`: the part of the keys that each check compares with the query, "1/64" for one of 64, another one each time; `thresholds`: by
    class of differences between the paths, how many rows there may be (below 1: which share of the rows; null: any number);
    `converge_seconds`: how long a difference may live; `retention_hours`: warn where changes are to be read for less long than that.
    """

    share: str = Field(default="1/1", pattern=r"^1/[1-9]\d*$")
    thresholds: dict[DifferenceClass, float | None] = Field(default_factory=dict)
    converge_seconds: float = Field(default=86_400, gt=0)
    retention_hours: float = Field(default=48, ge=0)

    @property
    def parts(self) -> int:
        """In how many parts the keys are compared."""
        return int(self.share.removeprefix("1/"))


class QualityConfig(Limits):
    """The limits of all views, which a view's own `quality` overrides.

    `results`: the folder of results and pages (default: beside the view tables); `volume_factor`: warn where a source has so many times
    more or fewer rows than at its checks before; `webhook`: a URL that each finding is sent to when it opens, escalates or is resolved;
    `url`: where the folder of results is served, for links to it.
    """

    results: str | None = None
    volume_factor: float = Field(default=2.0, gt=1)
    webhook: str | None = None
    url: str | None = None


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


_NEEDED = {"delta.enabledeletionvectors": "true", "delta.appendonly": "false", "delta.columnmapping.mode": "name"}
"""Properties without which rows of a view can't be published."""


class ViewConfig(_Strict):
    """A view: one of `query`, `query_file` and `function`, what its table carries, and what its rows have to meet (`expectations`, or a
    suite of Great Expectations in `expectations_file`)."""

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
    recompute_above: float = Field(1.0, ge=0)
    expectations: tuple[ExpectationConfig, ...] = ()
    expectations_file: str | None = None
    quality: Limits | None = None
    sensitive: tuple[str, ...] = ()

    @field_validator("tags", "cluster_by", "sensitive", mode="before")
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
        """YAML's own true, false and whole numbers, as Delta has them."""
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


class AirflowConfig(_Strict):
    """How the DAGs run.

    `prefix` of the names of DAGs and assets; `conn_id`: the Spark connection; `submit`: what SparkSubmitOperator takes besides
    (deploy_mode, executor_memory, ...); `pool`: bounds the Spark applications at a time; `runs`: where is kept what a run was pinned
    at, and what came of it (default: beside the view tables); `retries`, the first after `retry_seconds`, each next one after twice as
    long; `timeout_minutes` of one try; `start_date` and `catchup` of scheduled refreshes; `poll_seconds`: how often a table is looked
    at; `check_after_refresh`: check each view after each refresh. When (cron; null: never) all views are checked (`quality`), their
    tables maintained (`maintenance`), and the real-time paths looked after (`heartbeat`), which are behind where their latency is
    more than `behind_seconds`. `on_finding`: module:function, called in the task with each finding that opens, escalates or is resolved.
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
    on_finding: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")


class Config(_Strict):
    """The whole of lakejoin.yml, with one environment's overlay applied."""

    root: str = "."
    target: str | None = None
    spark: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, TableConfig] = Field(default_factory=dict)
    views: dict[str, ViewConfig] = Field(default_factory=dict)
    samples: Literal["off", "keys", "rows"] = "keys"
    quality: QualityConfig = QualityConfig()
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
    def quality_path(self) -> str:
        """The folder of the results of checks, and of the pages that show them."""
        if self.quality.results is not None:
            return self.quality.results if _absolute(self.quality.results) else str((self.directory / self.quality.results).resolve())
        beside = self.view_path("_lakejoin")
        return _joined(self.root_path, "_lakejoin/quality") if beside is None else f"{beside}/quality"

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
        """From when on the checks of a view fail: its own limits over those of all views."""
        own = self.view(view).quality
        given = own.model_dump(exclude_unset=True) if own is not None else {}
        common = {name: getattr(self.quality, name) for name in Limits.model_fields}
        return Limits(**{**common, **given, "thresholds": {**self.quality.thresholds, **given.get("thresholds", {})}})

    def shown(self, view: str, bases: Iterable[str]) -> Samples:
        """How much of the view's rows may be shown. `bases`: the tables whose sensitive columns it may carry, under their names."""
        tables = [self.tables[name].sensitive for name in bases]
        return Samples(self.samples, frozenset(c for columns in [self.view(view).sensitive, *tables] for c in columns))

    def in_realtime(self, view: str | None = None) -> list[str]:
        """The view, or (None) all with `realtime: true`. Raises ConfigError where there are none, or there is no such view."""
        if view is not None:
            self.view(view)
            return [view]
        found = [name for name, settings in self.views.items() if settings.realtime is not None]
        if not found:
            raise ConfigError("No view of the configuration has `realtime: true`.")
        return found

    @property
    def _target_is_schema(self) -> bool:
        return self.target is not None and re.fullmatch(r"\w+(\.\w+)+", self.target) is not None

    def view(self, name: str) -> ViewConfig:
        """The view of this name. Raises ConfigError with the nearest names."""
        if name not in self.views:
            raise ConfigError(f"There is no view {name!r} in the configuration. {nearest(name, self.views)}")
        return self.views[name]


def run_file(run: str) -> str:
    """A scheduled run's name as a file may be called."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", run)


def without_spark(uri: str) -> str:
    """A URI as others than Spark call it: what Hadoop reads as s3a: is s3: elsewhere."""
    return re.sub(r"^s3[an]:", "s3:", uri)


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
