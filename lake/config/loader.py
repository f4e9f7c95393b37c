"""Loads lakejoin.yml: included files, the overlay of an environment, `${VARIABLES}` from the environment. No Spark here.

Each error names the file, the line and the key, and what is allowed there. It shows a value as the file has it, before `${VARIABLES}` are
substituted, so that no secret of the environment is repeated.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from lake.config.environments import DEVELOPMENT_OF, base_of, inherited, refuse_places_of_production
from lake.config.mistakes import TESTS, at, in_setting, in_yaml
from lake.config.models import Config, QueryPlace, nearest
from lake.core.environments import Environment
from lake.errors import ConfigError

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a hundred views: 30 ms, in Python half a second


def load(source: str | Path | Mapping[str, Any], env: str | None = None) -> Config:
    """Load lakejoin.yml (a path) or a dict of the same shape. Raises ConfigError, which names the file, the key and the line."""
    return read_source(source, env).validated()


def load_each(source: str | Path | Mapping[str, Any], env: str | None = None) -> tuple[Config, dict[str, ConfigError]]:
    """Load the configuration with its valid views only, and the error of each other view. Raises ConfigError for any other error."""
    read = read_source(source, env)
    try:
        return read.validated(), {}  # of a thousand views, each alone takes half a minute
    except ConfigError:
        pass
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
    """The names of the environment variables that a configuration refers to."""
    return set(_VARIABLE.findall(json.dumps(read_source(source, env).data, default=str)))


@dataclass(frozen=True)
class Read:
    """The text of a configuration with the overlay of an environment, and the file and line of each key. `tests`: what it says of tests of
    views (config/view_tests.py), which no other command has to understand. `environment`: the name of the environment; `production`: of a
    development environment, what it is a development of."""

    data: dict[str, Any]
    lines: Mapping[tuple[str, ...], str]
    where: str
    directory: Path
    queries: Mapping[str, QueryPlace] = field(default_factory=dict)
    tests: Mapping[str, Any] = field(default_factory=dict)
    environment: str | None = None
    production: Read | None = None

    def validated(self, views: Mapping[str, Any] | None = None) -> Config:
        """The configuration, or the configuration with these views only."""
        data = self.data if views is None else {**self.data, "views": dict(views)}
        known = {"directory": self.directory, "secret_settings": _secret_settings(data), "query_places": self.queries}
        known |= {"environment": self.environment, "production": self._validated_production(views)}
        try:
            config = Config.model_validate({**substituted(data, self.where, self.lines), **known})
            refuse_places_of_production(config, self.where)
            return config
        except ValidationError as error:
            raise ConfigError("\n".join(dict.fromkeys(message(e, self) for e in error.errors()))) from error

    def _validated_production(self, views: Mapping[str, Any] | None) -> Config | None:
        if self.production is None:
            return None
        there = self.production.data.get("views") or {}
        return self.production.validated(None if views is None else {name: there[name] for name in views if name in there})


def read_source(source: str | Path | Mapping[str, Any], env: str | None) -> Read:
    """The text of a configuration. Raises ConfigError."""
    return _overlaid(_read(source), env)


def environments_of(source: str | Path | Mapping[str, Any]) -> list[Environment]:
    """The environments of a configuration, the settings without one first. Raises ConfigError where the file can't be read."""
    read = _read(source)
    return [_environment(read, name) for name in (None, *(read.data.get("environments") or {}))]


def _environment(read: Read, name: str | None) -> Environment:
    of = ((read.data.get("environments") or {}).get(name) or {}).get(DEVELOPMENT_OF, "")
    try:
        config = _overlaid(read, name).validated()
    except ConfigError as error:
        return Environment(name, str(of), error=str(error))
    return Environment(name, str(of), str(config.view_path("") or config.view_name("v")).removesuffix(".v").rstrip("/"))


def _read(source: str | Path | Mapping[str, Any]) -> Read:
    """The text of a configuration, with all environments."""
    if isinstance(source, Mapping):
        return Read(dict(source), {}, "the configuration", Path.cwd())
    path = Path(source)
    data, lines, queries = parsed(text_of(path, 'Write one with "lakejoin init FOLDER", or name it with --config FILE.'), path)
    included, included_lines, included_queries = _included(data.pop("include", None), path)
    if included:
        own = data.get("views") or {}
        for name in included:
            if name in own:
                here, there = lines[("views", name)], included_lines[("views", name)]
                raise ConfigError(f"{there}: the view {name!r} is already defined in {here}. Rename or remove one of the two.")
        data["views"] = {**own, **included}
        lines |= included_lines
    return Read(data, lines, str(path), path.resolve().parent, queries | included_queries)


def text_of(path: Path, remedy: str) -> str:
    """The text of a file. Raises ConfigError, which ends with `remedy`."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read ({getattr(error, 'strerror', None) or 'it is not UTF-8'}). {remedy}") from error


def _overlaid(read: Read, env: str | None) -> Read:
    overlays = read.data.get("environments") or {}
    if env is not None and env not in overlays:
        raise ConfigError(f"{read.where}: there is no environment {env!r}. {nearest(env, overlays)}")
    overlay = dict(overlays[env] or {}) if env is not None else {}
    data, production = {key: value for key, value in read.data.items() if key != "environments"}, None
    if env is not None and DEVELOPMENT_OF in overlay:
        where = read.lines.get(("environments", env, DEVELOPMENT_OF), read.where)
        production = _overlaid(read, base_of(overlays, env, where))
        data = inherited({**production.data, **production.tests})
        del overlay[DEVELOPMENT_OF]
    merged = _merged(data, overlay)
    if "target" in overlay:  # one place instead of another: of both, `path` and `schema` would be given
        merged["target"] = overlay["target"]
    tests = {key: merged.pop(key) for key in TESTS if key in merged}
    own = {key: value for key, value in merged.items() if value is not None}
    return replace(read, data=own, tests=tests, environment=env, production=production)


def parsed(text: str, path: Path) -> tuple[dict[str, Any], dict[tuple[str, ...], str], dict[str, QueryPlace]]:
    """A text of YAML, the file and line of each of its keys, and the places of queries. Raises ConfigError."""
    try:
        node = yaml.compose(text, Loader=_LOADER)
        data = yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        line, wrong = in_yaml(error, text)
        raise ConfigError(f"{path}{f', line {line}' if line else ''}: {wrong}") from error
    if not isinstance(data, dict) or node is None:
        found = "the file is empty" if data is None else "it is a list" if isinstance(data, list) else "it is a text"
        raise ConfigError(f'{path}: expected keys such as `tables:` and `views:`, and {found}. "lakejoin init FOLDER" writes such a file.')
    lines = dict[tuple[str, ...], str]()
    for loc, line in _lines(node, ()):
        if loc in lines:
            raise ConfigError(
                f"{path}, line {line}: the key `{'.'.join(loc)}` is given twice (first at {lines[loc]}). Remove one of the two."
            )
        lines[loc] = f"{path}, line {line}"
    return data, lines, dict(_queries(node, str(path)))


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


def _queries(node: yaml.Node, file: str) -> Iterator[tuple[str, QueryPlace]]:
    """The places of the queries of views. An included file may hold its views without `views:` above them."""
    top = _values(node)
    for view, settings in _values(top.get("views", node)).items():
        query = _values(settings).get("query")
        if isinstance(query, yaml.ScalarNode):
            block, folded = query.style in ("|", ">"), query.style != "|" and query.start_mark.line != query.end_mark.line
            yield view, QueryPlace(file, query.start_mark.line + (2 if block else 1), folded)


def _values(node: yaml.Node) -> dict[str, yaml.Node]:
    return {str(key.value): value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _included(patterns: Any, path: Path) -> tuple[dict[str, Any], dict[tuple[str, ...], str], dict[str, QueryPlace]]:
    views: dict[str, Any] = {}
    lines: dict[tuple[str, ...], str] = {}
    queries: dict[str, QueryPlace] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns or []:
        files = sorted(path.parent.glob(str(pattern)))
        if not files:
            raise ConfigError(f"{path}: `include: {pattern}` matches no file in {path.parent}.")
        for file in files:
            data, own, there = parsed(text_of(file, f"It is included by {path}."), file)
            queries |= there
            places = {loc if loc[0] == "views" else ("views", *loc): line for loc, line in own.items()}
            found = data.get("views", data) or {}
            if not isinstance(found, dict):
                raise ConfigError(f"{file}: `views` must map names to views, found {type(found).__name__}.")
            for name, view in found.items():
                if name in views:
                    first = lines[("views", name)]
                    raise ConfigError(f"{places[('views', name)]}: the view {name!r} is already defined in {first}. Rename or remove one.")
                views[name] = view
            lines |= places
    return views, lines, queries


def _merged(base: dict[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in overlay.items():
        own = result.get(key)
        result[key] = _merged(own, value) if isinstance(own, dict) and isinstance(value, Mapping) else value
    return result


def substituted(value: Any, where: str, lines: Mapping[tuple[str, ...], str], at: tuple[str, ...] = ()) -> Any:
    """A text of YAML with the environment's variables. Raises ConfigError for one that is not set."""
    if isinstance(value, dict):
        return {k: substituted(v, where, lines, (*at, str(k))) for k, v in value.items()}
    if isinstance(value, list):
        return [substituted(v, where, lines, (*at, str(i))) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise ConfigError(f"{lines.get(at, where)}: `{'.'.join(at)}` needs the environment variable {name}, which is not set.")
        return os.environ[name]

    return _VARIABLE.sub(variable, value)


def _secret_settings(data: Mapping[str, Any]) -> frozenset[str]:
    """The names of the Spark settings (`spark`, `airflow.submit.conf`) whose text has a ${VARIABLE}."""
    places = data.get("spark"), at(data, ("airflow", "submit", "conf"))
    return frozenset(str(k) for place in places if isinstance(place, Mapping) for k, v in place.items() if _VARIABLE.search(str(v)))


def message(error: Any, read: Read, model: type[BaseModel] = Config) -> str:
    """What pydantic found wrong with a text, in words, with the file and the line. `model`: of the whole text."""
    loc = tuple(str(part) for part in error.get("ctx", {}).get("at") or error["loc"])
    line = next((read.lines[loc[:n]] for n in range(len(loc), 0, -1) if loc[:n] in read.lines), read.where)
    return f"{line}: {in_setting(error, read.data, model)}"
