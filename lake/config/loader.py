"""lakejoin.yml read: includes, environments, `${VARIABLES}`, and where in it something is wrong. No Spark here.

Errors name file, key and line, and what is allowed there. `${VARIABLES}` come from the environment; a missing one is an error.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from lake.config.models import AirflowConfig, Config, QualityConfig, TableConfig, ViewConfig, nearest
from lake.errors import ConfigError

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a hundred views: 30 ms, in Python half a second
_SECRET = re.compile(r"(secret|password|token|credential|account\.key|access\.key)", re.IGNORECASE)


def load(source: str | Path | Mapping[str, Any], env: str | None = None) -> Config:
    """lakejoin.yml (a path) or a dict of the same shape. Raises ConfigError naming file, key and line."""
    return _read(source, env).validated()


def load_each(source: str | Path | Mapping[str, Any], env: str | None = None) -> tuple[Config, dict[str, ConfigError]]:
    """The same with the views that are valid, and what is wrong with each of the others. Raises ConfigError for what is wrong elsewhere."""
    read = _read(source, env)
    views, wrong = read.data.get("views") or {}, dict[str, ConfigError]()
    for name, view in views.items() if isinstance(views, dict) else ():
        try:
            read.validated({name: view})
        except ConfigError as error:
            wrong[name] = error
    if wrong:
        read.validated({})
        return read.validated({name: view for name, view in views.items() if name not in wrong}), wrong
    return read.validated(), wrong


def variables(source: str | Path | Mapping[str, Any], env: str | None = None) -> set[str]:
    """The names of the environment variables that a configuration needs."""
    return set(_VARIABLE.findall(json.dumps(_read(source, env).data, default=str)))


@dataclass(frozen=True)
class _Read:
    """A configuration as it was written, an environment's overlay applied, and the place of each key in its files."""

    data: dict[str, Any]
    lines: Mapping[tuple[str, ...], str]
    where: str
    directory: Path

    def validated(self, views: Mapping[str, Any] | None = None) -> Config:
        """The configuration (with only these views)."""
        data = self.data if views is None else {**self.data, "views": dict(views)}
        try:
            return Config.model_validate({**_substituted(data, self.where, self.lines), "directory": self.directory})
        except ValidationError as error:
            raise ConfigError("\n".join(_worded(e, self.lines, self.where) for e in error.errors())) from error


def _read(source: str | Path | Mapping[str, Any], env: str | None) -> _Read:
    if isinstance(source, Mapping):
        return _overlaid(_Read(dict(source), {}, "the configuration", Path.cwd()), env)
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
    return _overlaid(_Read(data, {**lines, **view_lines}, str(path), path.resolve().parent), env)


def _overlaid(read: _Read, env: str | None) -> _Read:
    data = dict(read.data)
    overlays = data.pop("environments", None) or {}
    if env is not None and env not in overlays:
        raise ConfigError(f"{read.where}: there is no environment {env!r}. {nearest(env, overlays)}")
    merged = _merged(data, overlays[env] if env else {})
    return replace(read, data={key: value for key, value in merged.items() if value is not None})


def _parsed(text: str, path: Path) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    try:
        node = yaml.compose(text, Loader=_LOADER)
        data = yaml.load(text, Loader=_LOADER)
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
        return f"{at}: `{key}` is not known here. {nearest(loc[-1], allowed)}"
    message = str(error["msg"]).removeprefix("Value error, ")
    given = error.get("input")
    shown = "" if isinstance(given, Mapping | Config) or _SECRET.search(key) else f" (given: {str(given)[:80]!r})"
    return f"{at}: `{key or 'the file'}`: {message}{shown}."


def _allowed(loc: tuple[str, ...]) -> list[str]:
    models: dict[str, type[BaseModel]] = {"tables": TableConfig, "views": ViewConfig, "airflow": AirflowConfig, "quality": QualityConfig}
    model = models.get(loc[0] if loc else "", Config)
    extra = ["include", "environments"] if model is Config else []
    return [n for n in model.model_fields if n != "directory"] + extra
