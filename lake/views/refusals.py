"""Says in the user's words why Spark refused a view's query."""

from __future__ import annotations

import difflib
import re

from lake.config.models import Config, QueryPlace
from lake.config.view_sources import query_text
from lake.errors import DefinitionError
from lake.spark.failures import root_cause

_POSITION = re.compile(r"(?: SQLSTATE: \w{5})?(?:; line | \(line )(?P<line>\d+),? pos \d+\)?;?$")
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
    text, place = _in_the_file(text, name, config)
    where = f" ({view.function})" if view.function else ""
    return DefinitionError(f"{place}The query of view {name!r}{where} can't be used: {text.rstrip('.')}.")


def _in_the_file(text: str, name: str, config: Config) -> tuple[str, str]:
    """Spark's words without the position in the query, and the position in the file before them; empty if that is not known."""
    found, view = _POSITION.search(text), config.view(name)
    file = QueryPlace(str(config.directory / view.query_file), 1) if view.query_file else config.query_places.get(name)
    if file is None or view.function is not None:
        return text, ""
    blank = query_text(view, config)
    blank = blank[: len(blank) - len(blank.lstrip())]  # Spark gets the query without the blank lines before it
    number = int(found["line"]) + blank.count("\n") if found else 1
    return _POSITION.sub("", text) if found else text, f"{file.of_line(number)}: "


def undeclared(table: str, config: Config) -> str:
    """What to do about a table that a query names and that the configuration does not declare."""
    known = [*config.tables, *config.views]
    near = difflib.get_close_matches(table.rpartition(".")[2].lower(), [n.lower() for n in known], 1)
    meant = next((f"; did you mean {n}?" for n in known if near and n.lower() == near[0]), "")
    declare = f"; declare it under `tables:` (declared: {', '.join(sorted(known)) or 'nothing'})"
    return f"it reads {table}, which is no table of lakejoin.yml{meant or declare}"
