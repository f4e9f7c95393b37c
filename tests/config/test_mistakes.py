"""Typical mistakes in lakejoin.yml: the message says where (file and line), what, and what to do; never a stack trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lake.cli.app import app
from lake.config.loader import load
from lake.config.models import Config, nearest
from lake.errors import ConfigError
from lake.views.refusals import refused_by_spark

GOOD = """root: ./lake
tables:
  bid: {path: bid, primary_key: [auction, bidder]}
views:
  q:
    query: SELECT * FROM bid
"""

# mistake: the text, its line, and parts of the message: what is wrong, what to do
MISTAKES: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "a key between two levels": (GOOD + "  r:\n    query: SELECT 1\n   owner: me\n", 9, ("indented by 3", "neighbours by 2 and 4")),
    "a view between two levels": (GOOD + "   r:\n    query: SELECT 1\n", 7, ("indented by 3", "neighbours by 2 and 4", "same column")),
    "a key too deep": (GOOD + "     owner: me\n", 7, ("indented by 5", "its neighbours by 4", "same column")),
    "a comment is no neighbour": (GOOD + "       # note\n     owner: me\n", 8, ("indented by 5", "its neighbours by 4")),
    "a tab": (GOOD + "\towner: me\n", 7, ("indented by a tab", "Replace the tab by spaces")),
    "a tab after spaces": (GOOD + "  \towner: me\n", 7, ("indented by a tab",)),
    "an open quote": (GOOD.replace("SELECT", "'SELECT"), 6, ("is not closed", "Close it")),
    "a quote in quotes": (GOOD.replace("SELECT * FROM bid", "'SELECT 'x' AS x'"), 6, ("text after the closing quote", "Double a quote")),
    "a colon": (GOOD.replace("SELECT *", "SELECT x: y"), 6, ("another colon", "in quotes")),
    "a character of YAML": (GOOD.replace("path: bid", "path: @bid"), 3, ("can't start with '@'", "in quotes")),
    "an alias": (GOOD.replace("SELECT", "*SELECT"), 6, ("`*`", "alias", "in quotes")),
    "a second document": (GOOD + "---\na: 1\n", 7, ("second document", "Remove it")),
    "an empty view": (GOOD + "  r:\n", 7, ("`views.r` is empty", "query: SELECT")),
    "an empty table": (GOOD.replace("{path: bid, primary_key: [auction, bidder]}", ""), 3, ("`tables.bid` is empty", "path: FOLDER")),
    "a view that is a text": (GOOD + "  r: SELECT 1\n", 7, ("must be settings by name", "is a text", "query: SELECT")),
    "a list of views": ("views:\n  - query: SELECT 1\n", 1, ("must be settings by name", "is a list", "NAME: {query")),
    "a query with a comma": (GOOD + "  r: {query: SELECT a, b FROM bid}\n", 7, ("comma", '{query: "SELECT a, b FROM bid"}')),
    "a query with two commas": (GOOD + "  r: {query: SELECT a, b, c FROM bid, owner: me}\n", 7, ('{query: "SELECT a, b, c FROM bid"}',)),
    "a name with a dash": (GOOD.replace("  q:", "  daily-orders:"), 5, ("'daily-orders' is no SQL identifier", "daily_orders")),
    "a table with a dash": (GOOD.replace("  bid:", "  my-bid:"), 3, ("'my-bid' is no SQL identifier", "my_bid")),
    "a view beside views": (GOOD.replace("  q:\n  ", "q:\n"), 5, ("`q` is not known here", "indent it below `views:`")),
    "no space after a colon": (GOOD.replace("bid: {", "bid:{"), 3, ("space is missing after the colon", "Write `bid: ...`")),
    "a setting of another tool": (
        GOOD + "    materialized: true\n",
        7,
        ("`views.q.materialized` is not known here", "There are: cluster_by"),
    ),
    "two places of views": (GOOD + "target: {path: a, schema: b}\n", 7, ("`target`", "either `path` or `schema`")),
    "a slip in a place": (GOOD + "target: {shema: b}\n", 7, ("`target.shema` is not known here", "Did you mean 'schema'?")),
    "no place": (GOOD + "target: 3\n", 7, ("`target`", "{path: FOLDER}", "{schema: catalog.schema}")),
    "a slip": (GOOD + "    scheduel: x\n", 7, ("Did you mean 'schedule'?",)),
    "a slip in real time": (GOOD + "    realtime: {triggerseconds: 5}\n", 7, ("Did you mean 'trigger_seconds'?",)),
    "a slip in an expectation": (GOOD + "    expectations:\n      - typ: x\n", 8, ("`views.q.expectations.0.typ`", "Did you mean 'type'?")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_line_and_what_to_do(tmp_path: Path, name: str) -> None:
    text, line, parts = MISTAKES[name]
    (tmp_path / "lakejoin.yml").write_text(text)
    ended = CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "refresh", "q"])
    assert (ended.exit_code, "Traceback" in ended.output) == (2, False)
    assert f"lakejoin: {tmp_path / 'lakejoin.yml'}, line {line}: " in ended.stderr
    assert [part for part in parts if part not in ended.stderr] == []


def test_an_empty_file_says_what_writes_one(tmp_path: Path) -> None:
    (tmp_path / "lakejoin.yml").write_text("")
    with pytest.raises(ConfigError, match=r"lakejoin.yml: expected keys .* the file is empty.*lakejoin init FOLDER"):
        load(tmp_path / "lakejoin.yml")


def test_only_near_names_are_suggested() -> None:
    assert nearest("materialized", ["realtime", "query"]) == "There are: query, realtime."
    assert nearest("qury", ["realtime", "query"]) == "Did you mean 'query'?"


QUERIES = {
    "lines": ("v:\n    query: |\n      SELECT a,\n        nope\n", "line 2 pos 8", 4),
    "blank lines before it": ("v:\n    query: |\n\n\n      SELECT a,\n        nope\n", "line 2 pos 8", 6),
    "one line": ("v:\n    query: SELECT nope\n", "line 1 pos 7", 2),
    "joined lines": ("v:\n    query: >\n      SELECT a,\n        nope\n", "line 1 pos 12", 3),
}


@pytest.mark.parametrize("name", QUERIES)
def test_an_error_of_a_query_names_the_line_of_the_file(tmp_path: Path, name: str) -> None:
    text, position, line = QUERIES[name]
    (tmp_path / "more.yml").write_text(text)
    (tmp_path / "lakejoin.yml").write_text("include: more.yml\n")
    said = _refused(load(tmp_path / "lakejoin.yml"), f"[UNRESOLVED_COLUMN] no `nope`. SQLSTATE: 42703; {position};")
    assert said == f"{tmp_path / 'more.yml'}, line {line}: The query of view 'v' can't be used: [UNRESOLVED_COLUMN] no `nope`."


def test_an_error_of_a_query_file_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "v.sql").write_text("\n\nSELECT a\n FRO b")
    (tmp_path / "lakejoin.yml").write_text("views: {v: {query_file: v.sql}}\n")
    said = _refused(load(tmp_path / "lakejoin.yml"), "[PARSE_SYNTAX_ERROR] Syntax error at or near 'FRO'. SQLSTATE: 42601 (line 2, pos 1)")
    assert said == f"{tmp_path / 'v.sql'}, line 4: The query of view 'v' can't be used: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FRO'."


def _refused(config: Config, text: str) -> str:
    return str(refused_by_spark("v", config, RuntimeError(text)))
