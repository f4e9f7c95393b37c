"""docs/reference/configuration.md, from the pydantic models of lakejoin.yml and the texts below their settings."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from docs.generate.text import cell, paragraphs
from lake.config.models import (
    NOT_SETTINGS,
    AirflowConfig,
    CacheConfig,
    Config,
    ExpectationConfig,
    Limits,
    QualityConfig,
    RealtimeConfig,
    TableConfig,
    TargetConfig,
    ViewConfig,
)
from lake.config.view_tests import ChangeConfig, GivenConfig, RowsConfig, StepConfig, TestsFile, UpdateConfig, ViewTest

_SECTIONS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("The file", "", Config),
    ("A table", "tables.NAME", TableConfig),
    ("The target", "target", TargetConfig),
    ("A view", "views.NAME", ViewConfig),
    ("The real-time path of a view", "views.NAME.realtime", RealtimeConfig),
    ("The cache of the real-time path", "views.NAME.realtime.cache", CacheConfig),
    ("An expectation", "views.NAME.expectations[]", ExpectationConfig),
    ("Checks", "quality", QualityConfig),
    ("Checks of one view", "views.NAME.quality", Limits),
    ("Airflow", "airflow", AirflowConfig),
    ("A file of tests", "tests/*.yml", TestsFile),
    ("A test of a view", "tests[]", ViewTest),
    ("Given rows", "tests[].given.NAME", GivenConfig),
    ("Expected and inserted rows", "tests[].expect", RowsConfig),
    ("A step of a test", "tests[].steps[]", StepConfig),
    ("A change of a table", "tests[].steps[].change.NAME", ChangeConfig),
    ("An update of a table", "tests[].steps[].change.NAME.update[]", UpdateConfig),
)
_UNITS = {"_seconds": "seconds", "_hours": "hours", "_minutes": "minutes", "_size": "keys", "_capacity": "rows", "_files": "files"}
_HEAD = """# lakejoin.yml

<!-- Generated from lake/config/models.py and view_tests.py by `make docs`. Do not edit. -->

Every setting of the configuration file, with its default and its unit. Unknown settings are errors.

```yaml
root: ./lakehouse
tables:
  orders: {path: orders, primary_key: [order_id]}
views:
  big_orders:
    query: SELECT order_id, amount FROM orders WHERE amount > 100
environments:
  prod: {root: "s3a://lake", target: main.views}
  dev: {development_of: prod, target: main.dev}
```

- `${VARIABLE}` is replaced by an environment variable. A missing variable is an error. Keep secrets there, not in the
  file.
- `environments.NAME` holds settings that replace those of the file when you give `--env NAME` (or `LAKEJOIN_ENV`).
- `environments.NAME.development_of` makes a [development environment](../how-to/environments.md) of another
  environment, or of `default`, the settings without one: it reads that one's tables, and has views of its own in its
  `target`.
- `include: views/*.yml` reads more views from other files. Such a file holds views by name, as `views:` does.
- `tests` holds [tests of views](../how-to/test-views.md), and `test_files` names files that hold more of them (default:
  `tests/*.yml`). Only `lakejoin test` reads them.
- A list with one item may be written as the item: `primary_key: id`.
"""


def page() -> str:
    """The whole page."""
    sections = [line for title, place, model in _SECTIONS for line in _section(title, place, model)]
    return "\n".join([_HEAD, *sections, ""])


def _section(title: str, place: str, model: type[BaseModel]) -> Iterator[str]:
    yield from (f"## {title}", "")
    if place:
        yield from (f"`{place}`", "")
    yield from (paragraphs(model.__doc__), "")
    yield from ("| Setting | Value | Default | Meaning |", "|---|---|---|---|")
    texts = _texts(model)
    for name, field in model.model_fields.items():
        if model is not Config or name not in NOT_SETTINGS:
            yield f"| `{field.alias or name}` | {_value(name, field)} | {_default(field)} | {texts[name]} |"
    yield ""


def _texts(model: type[BaseModel]) -> dict[str, str]:
    """Setting → the text below it in the source, inherited settings included."""
    found: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if owner is BaseModel or not issubclass(owner, BaseModel):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[ast.unparse(field.target)] = cell(str(text.value.value))
    return found


def _value(name: str, field: FieldInfo) -> str:
    unit = next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")
    limits = [_limit(m) for m in field.metadata if _limit(m)]
    return ", ".join([_kind(field.annotation), *([unit] if unit else []), *limits])


def _limit(rule: Any) -> str:
    for name, sign in (("gt", ">"), ("ge", "≥"), ("le", "≤"), ("lt", "<")):
        if getattr(rule, name, None) is not None:
            return f"{sign} {getattr(rule, name):g}"
    return ""


def _kind(annotation: Any) -> str:
    """A type, as a person who writes YAML calls it."""
    origin, inner = get_origin(annotation), [a for a in get_args(annotation) if a is not type(None)]
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_kind, inner)))
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in inner)
    if origin is tuple:
        return f"list of {_plural(inner[0])}"
    if origin is dict:
        return "settings by name"
    names = {str: "text", bool: "`true` or `false`", int: "whole number", float: "number"}
    return names.get(annotation, "settings" if inspect.isclass(annotation) and issubclass(annotation, BaseModel) else "date and time")


def _plural(annotation: Any) -> str:
    return "texts" if annotation is str else "settings"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default if field.default is not PydanticUndefined else field.default_factory() if field.default_factory else None  # type: ignore[call-arg]
    if value is None or value in ((), {}) or isinstance(value, BaseModel):
        return ""
    text = f"{value:%Y-%m-%d}" if hasattr(value, "strftime") else str(value).lower() if isinstance(value, bool) else f"{value}"
    return f"`{text.removesuffix('.0')}`"
