"""Says in the user's words why Spark refused a view's query."""

from __future__ import annotations

import difflib
import re

from lake.config.models import Config
from lake.errors import DefinitionError
from lake.spark.failures import root_cause

_TIME_TRAVEL = re.compile(r"\[UNSUPPORTED_FEATURE\.TIME_TRAVEL\].*`(?P<name>[^`]+)`")
_NO_TABLE = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\][^`]*`(?P<name>[^ ]+)`(?= cannot| can't)")


def refused_by_spark(name: str, config: Config, error: Exception) -> DefinitionError:
    """The error for a query that Spark can't analyse. Over placeholders: there are no rows to quote."""
    view, text = config.view(name), root_cause(error)
    missing, travel = _NO_TABLE.search(text), _TIME_TRAVEL.search(text)
    if "LAKEJOIN_PLACEHOLDER" in str(error):
        text = (
            "it asks for rows while it is being defined (count, collect, show, a pivot without its values): "
            "a view's function may only build a DataFrame"
        )
    elif travel:
        text = (
            f"it reads {travel['name']} at a version or time of its own (AS OF), but each refresh chooses the versions of all tables: "
            "remove it; `lakejoin show --at` and `lakejoin backfill` give the view as it was"
        )
    elif missing:
        text = undeclared(missing["name"].replace("`", ""), config)
    where = f" ({view.query_file})" if view.query_file else f" ({view.function})" if view.function else ""
    return DefinitionError(f"The query of view {name!r}{where} can't be used: {text}.")


def undeclared(table: str, config: Config) -> str:
    """What to do about a table that a query names and that the configuration does not declare."""
    known = [*config.tables, *config.views]
    near = difflib.get_close_matches(table.rpartition(".")[2].lower(), [n.lower() for n in known], 1)
    meant = next((f"; did you mean {n}?" for n in known if near and n.lower() == near[0]), "")
    declare = f"; declare it under `tables:` (declared: {', '.join(sorted(known)) or 'nothing'})"
    return f"it reads {table}, which is no table of lakejoin.yml{meant or declare}"
