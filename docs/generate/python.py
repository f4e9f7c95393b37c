"""docs/reference/python.md, from the signatures and docstrings of the public API. It loads PySpark, but starts no JVM."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from docs.generate.text import paragraphs
from lake import open_lake
from lake.core import adoption, environments, removals, results
from lake.lakehouse import Lakehouse
from lake.quality import check

VERBS = (
    "refresh",
    "refresh_all",
    "rebuild",
    "catch_up",
    "read",
    "explain",
    "verify",
    "status",
    "history",
    "backfill",
    "rebuild_at",
    "adopt",
    "maintain",
    "drop",
    "removed_views",
    "gc",
    "promote",
    "drop_environment",
    "agreement",
    "on",
)
RESULTS = (
    results.RefreshResult,
    results.BackfillResult,
    results.BackfillStep,
    results.Explanation,
    results.Differences,
    results.SourceStatus,
    results.Maintenance,
    results.Maintained,
    results.Agreement,
    adoption.Adoption,
    adoption.RowsApart,
    removals.Dropped,
    removals.RemovedView,
    removals.Collected,
    environments.PromotedView,
    environments.DroppedEnvironment,
    environments.KeptFiles,
)
_HEAD = """# Python

<!-- Generated from the docstrings of lake/ by `make docs`. Do not edit. -->

```python
from lake import open_lake

lake = open_lake("lakejoin.yml")
lake.refresh("orders_with_customers")
lake.read("orders_with_customers").show()
```

`lake` is safe to use from several threads. Every error is a `LakeError`: see [I got this error](../how-to/errors.md).
A result has `to_json()`, which gives what `--json` prints.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, "## Open", "", *_function("open_lake", open_lake), "## Verbs", ""]
    for verb in VERBS:
        parts += _function(verb, getattr(Lakehouse, verb), "lake.")
    parts += ["## Checks", "", "```python", "from lake.quality import check", "```", "", *_function("check", check)]
    parts += ["## Results", ""]
    for result in RESULTS:
        names = ", ".join(f"`{field.name}`" for field in fields(result))
        parts += [f"### {result.__name__}", "", paragraphs(inspect.getdoc(result)), "", paragraphs(f"Fields: {names}."), ""]
    return "\n".join(parts)


def _function(name: str, function: Callable[..., Any], owner: str = "") -> Iterator[str]:
    signature = inspect.signature(function)
    given = [p for p in signature.parameters.values() if p.name != "self"]
    texts = list[str]()
    for parameter in given:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        texts.append(_parameter(parameter))
    line, result = f"{owner}{name}({', '.join(texts)})", f" -> {signature.return_annotation}"
    if len(line) + len(result) > 100:
        line = "\n    ".join([f"{owner}{name}(", *[f"{text}," for text in texts]]) + "\n)"
    yield from (f"### {name}", "", "```python", f"{line}{result}", "```", "", paragraphs(inspect.getdoc(function)), "")


def _parameter(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    text = f"{star}{parameter.name}: {parameter.annotation}"
    if parameter.default is parameter.empty:
        return text
    return f"{text} = {'...' if callable(parameter.default) else repr(parameter.default)}"
