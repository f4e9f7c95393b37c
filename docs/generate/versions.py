"""docs/reference/versions.md, from benchmarks/results/versions.json: the versions of Spark and Delta Lake that are supported."""

from __future__ import annotations

import json
from pathlib import Path

from docs.generate.text import paragraphs
from lake.spark.versions import TESTED

_RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "versions.json"
_HEAD = "# Versions of Spark and Delta Lake\n\n<!-- Generated from benchmarks/results/versions.json by `make docs`. Do not edit. -->\n\n"
_TEXT = """
    Lakejoin calls internals of Spark and Delta Lake, which change without notice, so it works with the pairs of versions that it is tested
    with. Another pair is refused, with the nearest one that works; `allow_untested: true` in lakejoin.yml uses it nevertheless.
    `lakejoin doctor` names the pair that is installed. To install an older one:
"""
_INSTALL = '```\npip install lakejoin "pyspark==4.1.*"\nlakejoin setup\n```\n'
_AFTER = """
    With Spark 4.0, three things are different. Publishing to S3 is refused, since its Hadoop has no conditional requests. A column of type
    VARIANT can't be read from files of which rows were deleted: Spark 4.0 says "Not implemented". TIME, recursive queries, collations that
    ignore trailing spaces and some functions are newer than it.

    On a cluster, the Spark of the driver must have the minor version that is installed beside Lakejoin, and the jar of Delta Lake is the
    one for it: `io.delta:delta-spark_4.1_2.13:4.4.0` for Spark 4.1.

    These tests were run with each pair: the laws of all operators, random histories, publishing and killed processes, and what is known of
    functions and types (`make versions`).
"""


def page() -> str:
    """The page."""
    found = json.loads(_RESULTS.read_text())
    rows = [_row(*pair, found["pairs"].get(pair[0])) for pair in TESTED]
    table = "| Spark | Delta Lake | Tested on | Passed | Not in this Spark | Failed |\n|---|---|---|---|---|---|\n" + "\n".join(rows)
    return f"{_HEAD}{paragraphs(_TEXT)}\n\n{_INSTALL}\n{paragraphs(_AFTER)}\n\n{table}\n{_upgrades(found['upgrades'])}"


def _row(spark: str, delta: str, found: dict[str, object] | None) -> str:
    if found is None:
        kept = "each change, by all tests of the project" if (spark, delta) == TESTED[-1] else "no run is kept"
        return f"| {spark} | {delta} | {kept} | | | |"
    failed = found["failed"]
    assert isinstance(failed, list)
    wrong = ", ".join(f"`{name}`" for name in failed) or "none"
    return f"| {found['spark']} | {found['delta']} | {found['date']} | {found['passed']:,} | {found['skipped']} | {wrong} |"


def _upgrades(found: dict[str, dict[str, bool]]) -> str:
    if not found:
        return ""
    lines = [f"- Spark {pair}: {_outcome(views)}" for pair, views in found.items()]
    text = """
        After an upgrade of Spark's minor version each view asks for a rebuild, since the same query may give other results. Views that an
        older pair had built and refreshed were rebuilt by the next one, refreshed, and compared with their queries:
    """
    return f"\n{paragraphs(text)}\n\n" + "\n".join(lines) + "\n"


def _outcome(views: dict[str, bool]) -> str:
    wrong = [view for view, ok in views.items() if not ok]
    return f"not exact: {', '.join(wrong)}" if wrong else f"all {len(views)} exact"
