"""Reads the built-in suites of Great Expectations, which say by which limits Lakejoin judges what it measures.

The suites are the JSON files in `expectations/`: names, units, severities, limits, causes, commands. `sources` and `views` measure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from lake.quality.measurements import Measurement

SuiteName = Literal["view", "realtime", "source"]


@dataclass(frozen=True)
class BuiltInSuite:
    """A built-in suite. `expectations`: each as in its file, by key; `defaults`: values of parameters that a user may override."""

    name: str
    expectations: Mapping[str, Mapping[str, Any]]
    defaults: Mapping[str, float | None]

    def measurement(self, key: str, scope: str, value: float | None, parameters: Mapping[str, Any], **observed: Any) -> Measurement:
        """A measured value with the name, unit, limits and advice of its expectation.

        `parameters`: the values of its `$PARAMETER` limits (None: no limit), and the names that stand in braces in its texts. `observed`:
        other fields of the measurement; they take precedence. Raises KeyError for an unknown key, and for a parameter without a value.
        """
        expectation = self.expectations[key]
        kwargs, meta = expectation["kwargs"], expectation["meta"]
        check, subject = kwargs["column"].format_map(parameters).split(": ", 1)
        known = {**self.defaults, **parameters}
        return Measurement(
            scope,
            check,
            subject,
            value,
            meta["unit"],
            **{
                "least": _limit(kwargs.get("min_value"), known),
                "most": _limit(kwargs.get("max_value"), known),
                "severity": expectation["severity"],
                "cause": meta["cause"].format_map(parameters),
                "command": meta["command"].format_map(parameters),
                "expectation": expectation["type"],
                "description": expectation["description"],
                **observed,
            },
        )


def _limit(value: Any, parameters: Mapping[str, Any]) -> Any:
    return parameters[value["$PARAMETER"]] if isinstance(value, Mapping) else value


@cache
def suite(name: SuiteName) -> BuiltInSuite:
    """The built-in suite of a name."""
    body = json.loads(files("lake.quality").joinpath(f"expectations/{name}.json").read_text(encoding="utf-8"))
    return BuiltInSuite(body["name"], {e["meta"]["key"]: e for e in body["expectations"]}, body.get("suite_parameters", {}))
