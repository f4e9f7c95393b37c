"""docs/reference/sql.md, from the queries that the law is tested on: `make docs`. Each law test checks its own line of it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from pyspark.sql import SparkSession

from lake.relations.additive import AddedAggregate
from lake.relations.base import Relation
from lake.relations.first_rows import FirstRows
from lake.relations.joins import InnerJoin
from lake.relations.keyed import Keyed
from lake.relations.null_aware import NullAwareJoin
from lake.relations.stored import stored_of
from lake.relations.total import Total
from lake.spark.session import make_session
from lake.views.explain import explain
from tests.conftest import QUICK
from tests.relations.cases import QUERIES, SCHEMAS, SECTIONS, UNSCOPED
from tests.relations.laws import View

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "reference" / "sql.md"


class Answer(StrEnum):
    """Whether a construct is incremental, best first."""

    INCREMENTAL = "Yes"
    BY_KEY = "Yes, by key"
    UNTIL = "Yes, with exceptions"
    PARTLY = "Partly recomputed"
    RECOMPUTED = "Recomputed"


# what a reader looks for → the queries that show it, and what else there is to say
_SUMMARY: Mapping[str, tuple[Sequence[str], str]] = {
    "`SELECT`, `WHERE`, expressions, `UNION ALL`": (["filter", "project_of_expressions", "union_all", "higher_order"], ""),
    "`explode`, `LATERAL VIEW`, `UNPIVOT`, `stack`": (["explode", "posexplode", "inline", "unpivot", "stack"], ""),
    "Inner joins": (["inner_join", "three_way", "self_join", "using"], ""),
    "Inner joins without an equality, `CROSS JOIN`": (["cross_join", "range_only_join"], "The other table is read in full."),
    "`LEFT`, `RIGHT`, `FULL` joins with an equality": (["left_join", "right_join", "full_join", "interval_left_join"], ""),
    "`LEFT`, `RIGHT`, `FULL` joins without an equality": (["left_join_range_only"], ""),
    "As-of joins, joins in a time interval": (["as_of_join", "interval_join"], ""),
    "`EXISTS`, `NOT EXISTS`, `IN`, semi and anti joins": (["semi_join", "anti_join", "exists_or", "in_two_columns"], ""),
    "`NOT IN`": (["not_in_with_nulls", "not_in_under_or"], "Recomputed if the subquery returns a NULL. Use `NOT EXISTS`."),
    "`GROUP BY` with `COUNT`, `SUM`, `MIN`, `MAX`": (["group_by", "added_decimals", "extremes", "aggregate_of_join"], ""),
    "`AVG` of integers and decimals": (["added", "added_decimals"], "By key if an operator stands above the aggregate."),
    "`SUM` and `AVG` of doubles": (["sums_of_doubles", "sum_of_doubles"], "A sum of doubles depends on the order of rows."),
    "`HAVING`, `COUNT(DISTINCT)`, `DISTINCT`": (["having", "distinct_counts", "distinct"], ""),
    "`COUNT(DISTINCT)` without `GROUP BY`": (["distinct_over_all_rows", "distincts_alone"], ""),
    "`COUNT(DISTINCT)` of several columns beside other functions, without `GROUP BY`": (
        ["distincts_of_all_rows"],
        "Make a view of the others.",
    ),
    "`ROLLUP`, `CUBE`, `GROUPING SETS`": (["rollup", "cube_with_grouping_id", "grouping_sets"], ""),
    "`percentile`, `median`, `approx_count_distinct`": (["percentiles", "approximate_count"], ""),
    "`collect_list`, `listagg`, `max_by`": (["collected", "listagg", "max_by"], ""),
    "Windows with `PARTITION BY`": (["window", "rank", "ntile"], ""),
    "`row_number` in an order without ties": (["row_number_in_a_total_order", "first_row_in_a_total_order"], ""),
    "`row_number` in an order with ties": (["row_number", "first_row_of_a_key"], "Make the `ORDER BY` unique: add columns to it."),
    "Windows without `PARTITION BY`": (["window_without_partition", "rows_numbered"], ""),
    "`RANGE` frames between two values, also without `PARTITION BY`": (
        ["range_frame", "range_frame_without_partition"],
        "Only rows within reach of a change.",
    ),
    "`ORDER BY ... LIMIT`": (
        ["order_by_limit", "order_by_limit_of_groups"],
        "Recomputed if more than fifty rows leave the top.",
    ),
    "`LIMIT ... OFFSET`, `LIMIT` inside a query": (
        ["order_by_limit_offset", "limit_joined"],
        "Of up to 1,000 rows, in 8,000 characters when packed. Recomputed if more than fifty of the first rows are deleted.",
    ),
    "`rank() OVER (ORDER BY ...) <= n`": (
        ["rank_of_all", "dense_rank_of_groups", "row_number_of_all"],
        "Likewise; `row_number` in an order without ties.",
    ),
    "Aggregates over all rows inside a query": (["total_of_a_join", "total_twice"], "Of integers, decimals, dates and strings."),
    "Correlated subqueries, `LATERAL`": (["correlated_scalar", "correlated_count", "lateral_join"], ""),
    "Uncorrelated scalar subqueries": (
        ["scalar_subquery", "scalar_subquery_in_select"],
        "If the value changes, its table is read once, or a range of it (`WHERE`).",
    ),
    "`INTERSECT`, `EXCEPT`, with and without `ALL`": (["intersect", "except", "intersect_all", "except_all"], ""),
    "`PIVOT`": (["pivot"], "With a column to group by it is incremental."),
    "Tumbling, hopping and session windows with a key": (["tumbling_window_join", "hopping_window", "session_window"], ""),
    "Session windows without another key": (["session_window_without_another_key"], ""),
}
_TERMS = {
    "changes only": "the operator is applied to the changed rows; no table is read",
    "lookups": "the keys of the changed rows are looked up in the other tables (the bilinear rule)",
    "affected keys": "all rows with a changed key are looked up, and the operator is recomputed for these keys; of a window whose "
    "frames are a `RANGE` between two values, only the rows within reach of a changed row",
    "stored rows": "the changes are added to the stored rows of the view; a group is read only if its minimum or maximum is deleted",
    "totals": "the changes are added to the row of an aggregate over all rows, which the view's last commit keeps; its table is read "
    "only if its minimum or maximum is deleted",
    "first rows": "the changes are merged with the first rows in an order, which the view's last commit keeps; all rows are read only if "
    "too many of these are deleted",
}


def _wrapped(item: str) -> str:
    """A list item in lines of documentation, which have at most 120 characters."""
    return textwrap.fill(item, 120, subsequent_indent="  ", break_on_hyphens=False)


_LABELS = {
    "groups_of_what_may_be_padded": "groups of null-extended columns",
    "groups_of_what_may_be_padded_and_not": "groups of null-extended and other columns",
    "left_join_on_what_a_scalar_made": "left join on a column from a scalar subquery",
    "left_join_with_a_scalar_in_its_equality": "left join with a scalar subquery in its condition",
    "newest_joined_by_what_it_took": "first row of a key, joined by another column of it",
    "first_joined_by_what_it_took": "`first`, joined by its value",
    "order_by_limit_of_more_than_there_are": "limit larger than the table",
    "order_by_limit_of_elements": "limit over the elements of an array",
    "order_by_limit_not_selected": "order by a column that is not selected, limit",
    "row_number_by_what_is_not_selected": "row number by a column that is not selected",
    "average_by_what_is_not_selected": "average by a column that is not selected",
    "rows_numbered": "row number over all rows",
    "scalars_of_every_type": "scalar subqueries of every type",
    "scalar_of_no_row": "scalar subquery without a row",
    "lags_aggregated": "aggregate of `lag`",
    "not_in_where_nulls_are_filtered": "not in, NULL filtered out",
    "averages_that_exist_elsewhere": "averages in `NOT EXISTS`",
    "averages_with_a_row_of_another_key": "averages joined by another column",
    "averages_fully_joined": "averages in a full join",
    "averages_exploded": "averages in `explode`",
    "average_of_all": "average of doubles over all rows",
    "averages_united": "averages in a union",
    "joined_after": "join above an aggregate",
    "subquery_above": "scalar subquery above an aggregate",
    "collected": "`collect_list`",
    "distinct_over_all_rows": "`COUNT(DISTINCT)` over all rows",
    "distinct_average_over_all_rows": "`AVG(DISTINCT)` over all rows",
    "distinct_strings_over_all_rows": "`COUNT(DISTINCT)` of an expression over all rows",
    "distinct_beside_averages": "`COUNT(DISTINCT)` beside averages over all rows",
    "distinct_beside_averages_in_a_query": "`COUNT(DISTINCT)` beside averages over all rows, in a query",
    "distinct_in_a_subquery": "`COUNT(DISTINCT)` over all rows, in a subquery",
    "distincts_of_all_rows": "`COUNT(DISTINCT)` of several columns and another function over all rows",
    "distincts_alone": "`COUNT(DISTINCT)` of several columns over all rows",
    "newest_rows": "filter from a maximum on",
    "between_two_values": "filter between two scalar subqueries",
    "filter_by_a_value_of_strings": "filter by a scalar subquery of strings",
    "total_of_a_join": "aggregate over all rows of a join, in a query",
    "total_over_groups": "aggregate over all groups, in a query",
    "share_of_a_total": "share of a total",
    "total_twice": "the same total twice",
    "total_with_having": "`HAVING` without `GROUP BY`",
    "total_with_filter": "aggregates over all rows with `FILTER`, in a query",
    "extremes_of_every_type": "minima and maxima over all rows, in a query",
    "added": "`count`, `sum` and `avg`",
    "added_decimals": "sums of decimals",
    "added_expressions": "expressions over aggregates",
    "added_globally": "aggregates without `GROUP BY`",
    "added_over_joins": "aggregates over a join",
    "added_over_outer_joins": "aggregates over an outer join",
    "distinct_added": "distinct over two columns",
    "groups_only": "groups without an aggregate",
}
_HEAD = f"""# Can I use this SQL?

<!-- Generated from tests/relations/cases.py by `make docs`. Do not edit. -->

Almost certainly: **every deterministic Spark query can be a view**, as one SELECT or as a Python function from
DataFrames to a DataFrame, and every view is exact. What differs is the cost of a refresh. This page says what is
incremental. It is generated from {len(QUERIES) + len(UNSCOPED)} queries on which every operator is tested.

For a view of your own, `lakejoin explain VIEW` gives the same answer. With `refresh_mode: incremental`, or
`lakejoin explain VIEW --strict`, a view that is not fully incremental is an error.
"""
_REFUSED = """
## Not allowed

| Construct | Why | Instead |
|---|---|---|
| `rand()`, `uuid()`, `shuffle()`, `TABLESAMPLE` | The result is not a function of the tables. | Store the value in a table. |
| `current_date`, `now()`, `current_timestamp`, `DATE'today'` | The result changes without a change of a table. | Compare with \
the time when you read the view, or put the date into a table. |
| `current_user()`, `current_timezone()`, `version()`, session variables | The result depends on who asks, and where. | The same. |
| `TIMESTAMP'12:30'`, `CAST('12:30' AS TIMESTAMP)` | A time without a date is a time of the current day. | Write the date, too. |
| A table that is not declared in lakejoin.yml, a path in the query | Lakejoin cannot know its version. | Declare it under `tables:`. |
| Several statements, `INSERT`, `CREATE` | A view is one SELECT. | One view for each SELECT. |
| `count()`, `collect()`, `show()` in a Python function | The function runs on empty tables when the view is defined. | Build a \
DataFrame only. |
| Columns of intervals, of `VOID`, or with a collation | A Delta table cannot store them. | `CAST` them. |
| Two columns of the same name, names with the prefix `__lakejoin_` | A Delta table cannot store them; the prefix is reserved. | \
Rename them with `AS`. |
"""
_TEXTS = {
    Answer.RECOMPUTED: """
## Not incremental

Each refresh computes the whole query, compares the result with the stored rows, and publishes the difference.
""",
    Answer.PARTLY: """
## Partly recomputed

One operator of these queries has no keys. It is recomputed when one of its tables changes. All other operators are
incremental.
""",
    Answer.UNTIL: """
## Incremental, with exceptions

These are incremental unless the data forces a recompute: `NOT IN` when a NULL appears, `ORDER BY ... LIMIT` and
ranks of all rows when more rows leave the top than come into it and than the last commit keeps after it (fifty), a
scalar subquery when its value changes.
""",
    Answer.BY_KEY: """
## Incremental by key

The result of these queries depends on the order of rows, which Spark does not define: sums of doubles, ties, lists. A
refresh recomputes the rows of the changed keys and compares them with the stored rows of these keys. The columns in
brackets are the keys.
""",
    Answer.INCREMENTAL: f"""
## Incremental

{chr(10).join(_wrapped(f"- **{term}**: {text}") for term, text in _TERMS.items())}

Aggregates, and `LIMIT` without `OFFSET`, use stored rows if no other operator is above them, except a projection.
""",
}
_PLAIN = ("Source", "LocalRelation")


def line(name: str, view: View) -> str:
    """A query's row of its table: what it is, how it is refreshed, the query itself."""
    query = re.sub(r"\s+", " ", view.query).replace("|", "\\|")
    return f"| {_LABELS.get(name, name.replace('_', ' '))} | {how(view)} | `{query}` |"


def answer(view: View) -> Answer:
    """Whether the query is incremental."""
    definition, relations = view.definition, list(view.definition.relation.walk())
    if definition.recomputed:
        return Answer.RECOMPUTED
    if any(isinstance(r, Keyed) and r.reason for r in relations):
        return Answer.PARTLY
    if definition.scope:
        return Answer.BY_KEY
    stored = stored_of(definition.relation) if definition.carried else None
    until = any(isinstance(r, NullAwareJoin | FirstRows) or r.subqueries for r in relations) or (
        stored is not None and not isinstance(stored, AddedAggregate)
    )
    return Answer.UNTIL if until else Answer.INCREMENTAL


def how(view: View) -> str:
    """How the query is refreshed, in a few words."""
    definition, found = view.definition, answer(view)
    if definition.recomputed:
        return definition.recomputed
    if found == Answer.PARTLY:
        steps = explain(definition, {}).steps
        return "; ".join(dict.fromkeys(f"{s.operator}: {s.reason}" for s in steps if s.reason))
    if found == Answer.BY_KEY:
        names = ["a hidden column" if name.startswith("__lakejoin_") else name for name in explain(definition, {}).scope]
        return f"({', '.join(names)})"
    stored = stored_of(definition.relation) if definition.carried else None
    terms = [_term(r, stored) for r in definition.relation.walk()]
    return (
        ", ".join(term for term in ("stored rows", "totals", "first rows", "lookups", "affected keys") if term in terms) or "changes only"
    )


def _term(relation: Relation, stored: Relation | None) -> str:
    if relation is stored:
        return "stored rows"
    if isinstance(relation, Total):
        return "totals"
    if isinstance(relation, FirstRows):
        return "first rows"
    return "lookups" if isinstance(relation, InnerJoin) else "affected keys" if isinstance(relation, Keyed) else "changes only"


def text(spark: SparkSession) -> str:
    """The whole document."""
    views = {name: View(spark, SCHEMAS, query) for name, query in {**QUERIES, **UNSCOPED}.items()}
    answers = {name: answer(view) for name, view in views.items()}
    parts = [_HEAD, *_summary(answers), _REFUSED]
    for kind in reversed(Answer):
        parts.append(_TEXTS[kind])
        among = [name for name in views if answers[name] == kind]
        if kind == Answer.INCREMENTAL:
            for title, names in _families(among).items():
                parts += _table(f"\n### {title}\n", names, views)
        else:
            parts += _table("", among, views)
    tables = "\n".join(f"- `{t}({ddl})`" for t, ddl in SCHEMAS.items())
    parts.append(f"\n## The tables of the examples\n\n{tables}\n")
    return "".join(parts)


def _summary(answers: Mapping[str, Answer]) -> Iterator[str]:
    worst = list(Answer)
    rows = {what: max((answers[name] for name in names), key=worst.index) for what, (names, _) in _SUMMARY.items()}
    yield "\n## In short\n\n| Construct | Incremental? | |\n|---|---|---|\n"
    yield "| `rand()`, `current_date`, `current_user()` and similar | [Not allowed](#not-allowed) | |\n"
    for what in sorted(rows, key=lambda w: -worst.index(rows[w])):
        anchor = _TEXTS[rows[what]].split("## ", 1)[1].split("\n", 1)[0].lower().replace(" ", "-").replace(",", "")
        yield f"| {what} | [{rows[what]}](#{anchor}) | {_SUMMARY[what][1]} |\n"


def _families(names: Sequence[str]) -> dict[str, list[str]]:
    """Title of a section → those of the names that it has; a section of more of the same is one with the first."""
    merged = {"Sums, counts and extremes at the root": "Aggregates", "Aggregates that are not added": "Aggregates"}
    merged["More generators"] = next(iter(SECTIONS))
    found: dict[str, list[str]] = {}
    for title, queries in SECTIONS.items():
        family = merged.get(title, title.removeprefix("More ").capitalize() if title.startswith("More ") else title)
        found.setdefault(family, []).extend(name for name in queries if name in names)
    return {title: found[title] for title in found if found[title]}


def _table(title: str, names: Sequence[str], views: Mapping[str, View]) -> Iterator[str]:
    yield f"{title}\n| Construct | How | Example |\n|---|---|---|\n"
    yield from (line(name, views[name]) + "\n" for name in names)


if __name__ == "__main__":
    DOCUMENT.write_text(text(make_session(QUICK)), encoding="utf-8")
