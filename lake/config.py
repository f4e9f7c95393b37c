"""lakejoin.yml, validated before Spark starts. No Spark here.

Errors name file, key and line, and what is allowed there. `${VARIABLES}` come from the environment; a missing one is an error.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lake.errors import ConfigError

HIDDEN_PREFIX = "__lakejoin_"
PathKind = Literal["strong", "eventual", "replay"]
SUFFIXES: Mapping[PathKind, str] = {"strong": "", "eventual": "__realtime", "replay": "__replay"}
"""A view's tables are named as the view, with these after it: of the strong path, of the real-time path, of a backfill."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SECRET = re.compile(r"(secret|password|token|credential|account\.key|access\.key)", re.IGNORECASE)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TableConfig(_Strict):
    """A source: `path` (relative ones start at root) or `name` in a catalog, its declared primary key, and whether `lakejoin maintain`
    compacts and vacuums it, too."""

    path: str | None = None
    name: str | None = None
    primary_key: tuple[str, ...] = ()
    maintain: bool = False

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


class Config(_Strict):
    """The whole of lakejoin.yml, with one environment's overlay applied."""

    root: str = "."
    target: str | None = None
    spark: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, TableConfig] = Field(default_factory=dict)
    views: dict[str, ViewConfig] = Field(default_factory=dict)
    samples: Literal["off", "keys", "rows"] = "keys"
    single_writer: bool = False
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
    def _target_is_schema(self) -> bool:
        return self.target is not None and re.fullmatch(r"\w+(\.\w+)+", self.target) is not None

    def view(self, name: str) -> ViewConfig:
        """The view of this name. Raises ConfigError with the nearest names."""
        if name not in self.views:
            raise ConfigError(f"There is no view {name!r} in the configuration. {_nearest(name, self.views)}")
        return self.views[name]


def load(source: str | Path | Mapping[str, Any], env: str | None = None) -> Config:
    """lakejoin.yml (a path) or a dict of the same shape. Raises ConfigError naming file, key and line."""
    if isinstance(source, Mapping):
        return _validated(dict(source), {}, "the configuration", Path.cwd(), env)
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f'{path} can\'t be read ({error.strerror}). Write one with "lakejoin init FOLDER", or name it with --config FILE.'
        ) from error
    data, lines = _parsed(text, path)
    views, view_lines = _included(data.pop("include", None), path)
    if views:
        data["views"] = {**(data.get("views") or {}), **views}
    return _validated(data, {**lines, **view_lines}, str(path), path.resolve().parent, env)


def _parsed(text: str, path: Path) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{where}: not valid YAML: {getattr(error, 'problem', error)}.") from error
    if not isinstance(data, dict) or node is None:
        raise ConfigError(f"{path}: expected keys such as `tables:` and `views:`, found {type(data).__name__}.")
    return data, {loc: f"{path}, line {line}" for loc, line in _lines(node, ())}


def _lines(node: yaml.Node, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*at, str(key.value))
            yield here, key.start_mark.line + 1
            yield from _lines(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield (*at, str(i)), value.start_mark.line + 1
            yield from _lines(value, (*at, str(i)))


def _included(patterns: Any, path: Path) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    views: dict[str, Any] = {}
    lines: dict[tuple[str, ...], str] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns or []:
        files = sorted(path.parent.glob(str(pattern)))
        if not files:
            raise ConfigError(f"{path}: `include: {pattern}` matches no file in {path.parent}.")
        for file in files:
            data, own = _parsed(file.read_text(encoding="utf-8"), file)
            for name, view in data.get("views", data).items():
                if name in views:
                    raise ConfigError(f"{file}: the view {name!r} is defined twice among the included files.")
                views[name] = view
            lines |= {loc if loc[0] == "views" else ("views", *loc): line for loc, line in own.items()}
    return views, lines


def _validated(data: dict[str, Any], lines: Mapping[tuple[str, ...], str], where: str, directory: Path, env: str | None) -> Config:
    overlays = data.pop("environments", None) or {}
    if env is not None and env not in overlays:
        raise ConfigError(f"{where}: there is no environment {env!r}. {_nearest(env, overlays)}")
    data = {key: value for key, value in _merged(data, overlays[env] if env else {}).items() if value is not None}
    try:
        return Config.model_validate({**_substituted(data, where, lines), "directory": directory})
    except ValidationError as error:
        raise ConfigError("\n".join(_worded(e, lines, where) for e in error.errors())) from error


def _merged(base: dict[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in overlay.items():
        own = result.get(key)
        result[key] = _merged(own, value) if isinstance(own, dict) and isinstance(value, Mapping) else value
    return result


def _substituted(value: Any, where: str, lines: Mapping[tuple[str, ...], str], at: tuple[str, ...] = ()) -> Any:
    if isinstance(value, dict):
        return {k: _substituted(v, where, lines, (*at, str(k))) for k, v in value.items()}
    if isinstance(value, list):
        return [_substituted(v, where, lines, (*at, str(i))) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise ConfigError(f"{lines.get(at, where)}: `{'.'.join(at)}` needs the environment variable {name}, which is not set.")
        return os.environ[name]

    return _VARIABLE.sub(variable, value)


def _worded(error: Any, lines: Mapping[tuple[str, ...], str], where: str) -> str:
    loc = tuple(str(part) for part in error["loc"])
    at = next((lines[loc[:n]] for n in range(len(loc), 0, -1) if loc[:n] in lines), where)
    key = ".".join(loc)
    if error["type"] == "extra_forbidden":
        allowed = _allowed(loc[:-1])
        return f"{at}: `{key}` is not known here. {_nearest(loc[-1], allowed)}"
    message = str(error["msg"]).removeprefix("Value error, ")
    given = error.get("input")
    shown = "" if isinstance(given, Mapping | Config) or _SECRET.search(key) else f" (given: {str(given)[:80]!r})"
    return f"{at}: `{key or 'the file'}`: {message}{shown}."


def _allowed(loc: tuple[str, ...]) -> list[str]:
    models: dict[str, type[BaseModel]] = {"tables": TableConfig, "views": ViewConfig}
    model = models.get(loc[0] if loc else "", Config)
    extra = ["include", "environments"] if model is Config else []
    return [n for n in model.model_fields if n != "directory"] + extra


def _nearest(name: str, names: Any) -> str:
    names = sorted(names)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"Did you mean {' or '.join(repr(n) for n in near)}?"
    return f"There are: {', '.join(names)}." if names else "There are none."


def _absolute(path: str) -> bool:
    return path.startswith("/") or _URI.match(path) is not None


def _joined(base: str, path: str) -> str:
    return base.rstrip("/") + "/" + path.removeprefix("./")
