"""Definitions: what is refused, in which words, and what a changed definition does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lake import open_lake
from lake.config.models import Config
from lake.core.plan import differing
from lake.errors import ConfigError, DefinitionChangedError, DefinitionError, QueryError, SourceError
from lake.views import registry
from lake.views.user_functions import load_function
from tests.lakes import SPARK, TestLake, multiset

A = "SELECT * FROM VALUES (1, 'x', 10), (2, 'y', 20) t(id, s, v)"

REFUSED = {
    "SELECT id, nope FROM a": r"nope.*`?id`?",
    "SELECT id FROM missing": r"missing",
    "DELETE FROM a": r"must be one SELECT",
    "CREATE TABLE x AS SELECT 1": r"must be one SELECT",
    "SELECT 1; SELECT 2": r"can't be used",
    "SELECT id, rand() AS r FROM a": r"not a function of its tables: it uses rand",
    "SELECT id, uuid() AS u FROM a": r"uses uuid",
    "SELECT id FROM a WHERE current_timestamp() > '2020-01-01'": r"uses current_timestamp",
    "SELECT id, current_date() AS d FROM a": r"uses current_date",
    "SELECT id, now() AS d FROM a": r"uses now",
    "SELECT id FROM a WHERE CAST(s AS TIMESTAMP) < CAST(' Now ' AS TIMESTAMP)": r"uses CAST\(' Now ' AS timestamp\)",
    "SELECT id, to_date('today') AS d FROM a": r"uses CAST\('today' AS date\)",
    "SELECT id, CAST(concat('to', 'day') AS date) AS d FROM a": r"uses CAST\('today' AS date\)",
    "SELECT id FROM a WHERE CAST(s AS DATE) > date 'Yesterday'": r"uses date 'Yesterday'",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r": r"has a recursive CTE",
    "SELECT id, TIMESTAMP'12:30' AS t FROM a": r"uses TIMESTAMP'12:30'",
    "SELECT id FROM a WHERE CAST(s AS TIMESTAMP) < 'T9:05:00'": r"uses CAST\('T9:05:00' AS timestamp\)",
    "SELECT id, current_user() AS u FROM a": r"uses current_user",
    "SELECT id, version() AS v FROM a": r"uses version",
    "SELECT id FROM a WHERE length(version()) > 100": r"uses version",
    "SELECT a.id, k.keyword FROM a JOIN sql_keywords() k ON a.s = k.keyword": r"uses sql_keywords",
    "SELECT id FROM a WHERE s IN (SELECT name FROM collations())": r"uses collations",
    "SELECT * FROM a TABLESAMPLE (50 PERCENT)": r"TABLESAMPLE",
    "SELECT id, id FROM a": r"two columns named 'id'",
    "SELECT id, s AS ID FROM a": r"two columns named 'ID'",
    "SELECT id AS __lakejoin_x FROM a": r"reserved",
    "SELECT id AS _Change_Type FROM a": r"reserved",
    "SELECT NULL AS n FROM a": r"type void.*CAST",
    "SELECT s COLLATE UTF8_LCASE AS c FROM a": r"collate UTF8_LCASE.*CAST",
    "SELECT make_interval(1) AS i FROM a": r"type interval",
    "SELECT TIME'01:02:03' AS t FROM a": r"type time.*CAST",
    "SELECT struct(ST_GeogFromWKB(X'0101000000000000000000F03F0000000000000040') AS g) AS s FROM a": r"type struct<g:geography.*CAST",
    "SELECT id FROM aa": r"it reads aa, which is no table of lakejoin\.yml; did you mean a\?",
    "SELECT id FROM a WHERE id IN (SELECT id FROM other.elsewhere)": r"elsewhere, which.*declare it under `tables:` \(declared: a, v\)",
    "SELECT id FROM a VERSION AS OF 0": r"it reads a at a version or time of its own \(AS OF\).*remove it",
    "SELECT id FROM a TIMESTAMP AS OF '2020-01-01'": r"AS OF",
}


ACCEPTED = [
    "SELECT id FROM a WHERE to_timestamp('12:30', 'HH:mm') < to_timestamp(s)",
    "SELECT id, CAST(right('on 2026-01-01', 10) AS DATE) AS d, CAST('12:30' AS STRING) AS t FROM a -- TIMESTAMP'12:30'",
]


@pytest.fixture
def simple(lake: TestLake) -> TestLake:
    lake.table("a", A)
    return lake


NEWER = {"RECURSIVE": (4, 1), "TIME'": (4, 1), "ST_Geog": (4, 2)}
"""What older versions of Spark do not know, and the first that does."""


@pytest.mark.parametrize("query", [q for q in REFUSED if all(since <= SPARK for word, since in NEWER.items() if word in q)])
def test_a_query_that_cannot_be_maintained_is_refused_with_the_reason(simple: TestLake, query: str) -> None:
    simple.view("v", query)
    with pytest.raises(DefinitionError, match=f"(?s){REFUSED[query]}"):
        simple.refresh("v")
    assert not (simple.folder / "views" / "v").exists()


@pytest.mark.parametrize("query", ACCEPTED)
def test_constants_that_only_look_like_the_current_time_are_accepted(simple: TestLake, query: str) -> None:
    simple.view("v", query)
    with simple.open.opened("v") as state:
        assert simple.open.prepare("v", state)[0].columns


def test_a_missing_table_and_a_folder_that_is_none(lake: TestLake) -> None:
    lake.tables["gone"] = {"path": "gone"}
    (lake.folder / "plain").mkdir()
    lake.tables["plain"] = {"path": "plain"}
    lake.view("g", "SELECT * FROM gone")
    lake.view("p", "SELECT * FROM plain")
    for name, table in (("g", "gone"), ("p", "plain")):
        with pytest.raises(SourceError, match=f"{table} .* is not a Delta table"):
            lake.refresh(name)


def test_reformatting_changes_nothing_and_another_query_is_refused_until_rebuilt(simple: TestLake) -> None:
    simple.view("v", "SELECT id, s FROM a WHERE v > 5 AND id < 100")
    simple.refresh("v")
    simple.view("v", "select  id,\n s from a -- same, as of DATE 'today'\n where (v > 5) and id < 100;")
    assert simple.refresh("v").mode == "none"
    simple.view("v", "SELECT id, s FROM a WHERE v > 15")
    with pytest.raises(DefinitionChangedError, match=r"the query changed.*lakejoin rebuild v"):
        simple.refresh("v")
    assert multiset(simple.open.read("v")) == {(1, "x"): 1, (2, "y"): 1}
    simple.open.rebuild("v")
    simple.assert_exact("v")
    simple.view("v", "SELECT id, s, v FROM a", on_definition_change="rebuild")
    assert simple.refresh("v").mode == "recompute"
    simple.assert_exact("v")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM a UNION ALL SELECT {} FROM a",
        "SELECT id, (SELECT max({}) FROM a WHERE w > 1 AND v > 1) AS m FROM a",
        "SELECT id, (SELECT {} FROM a WHERE s = 'y') AS m FROM a",
        "SELECT {} AS x FROM a",
        "SELECT id FROM a WHERE id IN (SELECT {} FROM a)",
    ],
)
def test_another_column_in_the_same_place_is_another_query(lake: TestLake, query: str) -> None:
    lake.table("a", "SELECT * FROM VALUES (1, 'x', 10, 11), (2, 'y', 20, 21) t(id, s, v, w)")
    lake.view("q", query.format("v"))
    prepared = lake.open
    of_v = prepared.fingerprint_of("q")["query"]
    lake.view("q", query.format("w"))
    of_w = lake.open.fingerprint_of("q")["query"]
    assert of_v != of_w
    lake.sql("ALTER TABLE {a} ADD COLUMN more int")
    assert lake.open.fingerprint_of("q")["query"] == of_w


@pytest.mark.slow
def test_another_time_zone_is_another_definition(simple: TestLake) -> None:
    simple.view("v", "SELECT id, CAST(timestamp_micros(v) AS string) AS t FROM a")
    simple.refresh("v")
    other = simple.spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with pytest.raises(DefinitionChangedError, match=r"spark.sql.session.timeZone was 'UTC', now 'Asia/Tokyo'"):
        open_lake(simple.config, spark=other).refresh("v")


@pytest.mark.slow
def test_a_column_that_the_view_gains_from_its_source_is_a_changed_definition(simple: TestLake) -> None:
    simple.view("v", "SELECT * FROM a")
    simple.refresh("v")
    simple.sql("ALTER TABLE {a} ADD COLUMN extra int")
    with pytest.raises(DefinitionChangedError, match="schema of a source changed"):
        simple.refresh("v")


@pytest.mark.slow
def test_a_function_of_dataframes_is_a_view(simple: TestLake, module: Callable[[str, str], None]) -> None:
    module(
        "my_views",
        "def big(a):\n    return a.where('v > 5').groupBy('s').count()\n"
        "def counting(a):\n    return a.where('v > 5').limit(a.count())\n"
        "def wrong(b):\n    return b\n",
    )
    simple.view("v", function="my_views:big")
    simple.view("counting", function="my_views:counting")
    simple.view("wrong", function="my_views:wrong")
    simple.refresh("v")
    simple.sql("INSERT INTO {a} VALUES (3, 'x', 30)")
    assert simple.refresh("v").mode == "incremental"
    assert multiset(simple.open.read("v")) == {("x", 2): 1, ("y", 1): 1}
    assert simple.open.verify("v").exact
    with pytest.raises(DefinitionError, match="may only build a DataFrame"):
        simple.refresh("counting")
    with pytest.raises(DefinitionError, match="parameter 'b', which is no table"):
        simple.refresh("wrong")


@pytest.mark.slow
def test_two_lakehouses_have_each_their_own_module_of_functions(simple: TestLake, tmp_path: Path) -> None:
    helper = "def bound():\n    return {}\n"
    text = "import pyspark.sql.functions as F\nimport bounds\nlimit = bounds.bound()\n@F.udf('int')\ndef plus(v):\n    return v + limit\n"
    text += "def big(a):\n    return a.select('s', plus('v').alias('v'))\n"
    found = []
    for name, bound in (("one", 5), ("other", 50)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "same_name.py").write_text(text)
        (folder / "bounds.py").write_text(helper.format(bound))
        views = {"v": {"function": "same_name:big"}}
        (folder / "lakejoin.yml").write_text(yaml.safe_dump({**simple.config, "views": views, "target": str(folder / "views")}))
        opened = open_lake(folder / "lakejoin.yml", spark=simple.spark)
        opened.refresh("v")
        found.append(opened)
    for opened, bound in zip(found, (5, 50), strict=True):
        wanted = multiset(simple.spark.read.format("delta").load(simple.path("a")).selectExpr("s", f"v + {bound}"))
        assert multiset(opened.read("v")) == wanted
        assert opened.verify("v").exact
    assert "same_name" not in sys.modules
    file = tmp_path / "one" / "same_name.py"
    file.write_text(text.replace("v + limit", "v - limit"))
    with pytest.raises(DefinitionChangedError, match="the function plus changed"):
        found[0].refresh("v")
    found[0].rebuild("v")
    assert found[0].verify("v").exact


@pytest.mark.slow
def test_a_package_of_functions_beside_the_configuration_may_import_its_own_modules(tmp_path: Path) -> None:
    package = tmp_path / "of_mine"
    package.mkdir()
    (package / "__init__.py").write_text("from .below import f\n")
    (package / "below.py").write_text("from . import other\ndef f(a):\n    return other.g(a)\n")
    (package / "other.py").write_text("def g(a):\n    return a\n")
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose" / "functions.py").write_text("def h(a):\n    return a\n")
    for function in ("of_mine:f", "of_mine.below:f", "loose.functions:h", "json:dumps"):
        config = Config.model_validate({"root": str(tmp_path), "views": {"v": {"function": function}}, "directory": tmp_path})
        assert load_function(config.view("v"), config)("x") in ("x", '"x"')
    (tmp_path / "broken.py").write_text("import nowhere_at_all\n")
    config = Config.model_validate({"root": str(tmp_path), "views": {"v": {"function": "broken:f"}}, "directory": tmp_path})
    with pytest.raises(ConfigError, match="No module named 'nowhere_at_all'"):
        load_function(config.view("v"), config)


@pytest.mark.slow
def test_python_functions_are_given_their_rows_under_the_querys_names(simple: TestLake, module: Callable[[str, str], None]) -> None:
    module(
        "of_names",
        "def mapped(a):\n"
        "    def doubled(frames):\n        for f in frames:\n            yield f.assign(v=f.v * 2)[['s', 'v']]\n"
        "    return a.select('s', 'id', 'v').mapInPandas(doubled, 's string, v long')\n"
        "def grouped(a):\n"
        "    def summed(f):\n        return f.groupby('s', as_index=False)['v'].sum()\n"
        "    return a.groupBy('s').applyInPandas(summed, 's string, v long')\n",
    )
    simple.view("mapped", function="of_names:mapped")
    simple.view("grouped", function="of_names:grouped")
    for view in simple.views:
        simple.refresh(view)
    simple.sql("INSERT INTO {a} VALUES (3, 'x', 30), (4, 'w', 5)", "DELETE FROM {a} WHERE s = 'y'")
    for view in simple.views:
        result = simple.refresh(view)
        assert (result.mode, "whose Python function is given rows in any order" in result.reason) == ("recompute", True)
        assert simple.open.verify(view).exact
    sums = simple.spark.sql(f"SELECT s, sum(v) FROM delta.`{simple.path('a')}` GROUP BY s")
    assert multiset(simple.open.read("grouped")) == multiset(sums)


def test_a_primary_key_column_that_is_missing_names_the_columns(simple: TestLake) -> None:
    simple.tables["a"]["primary_key"] = ["nope"]
    simple.view("v", "SELECT id FROM a")
    with pytest.raises(ConfigError, match=r"a has no column 'nope'. It has: id, s, v"):
        simple.refresh("v")


@pytest.mark.slow
def test_a_temp_view_of_the_caller_is_neither_read_nor_touched(simple: TestLake) -> None:
    simple.spark.sql("SELECT 1 AS mine").createOrReplaceTempView("a")
    simple.spark.sql("SELECT 1 AS mine").createOrReplaceTempView("not_declared")
    simple.view("v", "SELECT id FROM a")
    simple.view("w", "SELECT mine FROM not_declared")
    simple.refresh("v")
    simple.open.verify("v")
    assert simple.spark.sql("SELECT * FROM a").columns == ["mine"]
    with pytest.raises(DefinitionError, match="not_declared"):
        simple.refresh("w")
    simple.spark.catalog.dropTempView("a")
    simple.spark.catalog.dropTempView("not_declared")


@pytest.mark.slow
def test_a_query_that_fails_on_the_data_says_so_and_leaves_the_view_as_it_was(simple: TestLake) -> None:
    simple.view("v", "SELECT id, 10 / v AS q FROM a")
    simple.refresh("v")
    held = multiset(simple.open.read("v"))
    simple.sql("INSERT INTO {a} VALUES (7, 'z', 0)")
    with pytest.raises(QueryError, match=r"Computing view 'v' failed: .*DIVIDE_BY_ZERO.*Nothing was written"):
        simple.refresh("v")
    assert multiset(simple.open.read("v")) == held
    simple.sql("DELETE FROM {a} WHERE id = 7")
    simple.refresh("v")
    simple.assert_exact("v")


@pytest.mark.slow
def test_what_fails_only_on_rows_of_both_ends_of_the_interval_is_computed_anew(lake: TestLake) -> None:
    lake.table("orders", "SELECT * FROM VALUES (1, 'EUR', 10), (2, 'USD', 20) t(id, currency, amount)", key=["id"])
    lake.table("rates", "SELECT * FROM VALUES ('EUR', 2), ('USD', 4) t(currency, rate)", key=["currency"])
    query = "SELECT o.id, o.amount / r.rate AS price FROM orders o JOIN rates r ON o.currency = r.currency"
    lake.view("v", query)
    lake.view("never_anew", query, refresh_mode="incremental")
    for view in ("v", "never_anew"):
        lake.refresh(view)
    lake.sql("DELETE FROM {orders} WHERE currency = 'USD'", "UPDATE {rates} SET rate = 0 WHERE currency = 'USD'")
    result = lake.refresh("v")
    assert (result.mode, "DIVIDE_BY_ZERO" in result.reason) == ("recompute", True)
    lake.assert_exact("v")
    with pytest.raises(QueryError, match="DIVIDE_BY_ZERO"):
        lake.refresh("never_anew")
    lake.sql("INSERT INTO {orders} VALUES (3, 'USD', 30)")
    with pytest.raises(QueryError, match="DIVIDE_BY_ZERO"):
        lake.refresh("v")


@pytest.mark.slow
def test_a_table_that_is_not_declared_is_refused_also_where_its_log_would_do(lake: TestLake) -> None:
    lake.table("a", "SELECT 1 AS id")
    lake.spark.range(3).write.format("delta").save(lake.path("other"))
    for expression in ("(SELECT count(*) FROM delta.`{}`)", "(SELECT max(id) FROM delta.`{}`)"):
        lake.view("v", f"SELECT id, {expression.format(lake.path('other'))} AS n FROM a")
        with pytest.raises(DefinitionError, match=r"which is no table of lakejoin\.yml"):
            lake.refresh("v")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        ("SELECT id FROM a WHERE s = {}", "'Brand#12'", "'Brand#23'"),
        ("SELECT id FROM a WHERE s IN ({})", "'a', 'b,c'", "'a,b', 'c'"),
        ("SELECT id FROM a WHERE s IN ({})", ", ".join(f"'#{n}'" for n in range(20)), ", ".join(f"'#{n}'" for n in range(1, 21))),
        ("SELECT a.id, t.s FROM a JOIN VALUES {} t(n, s) ON a.id = t.n", "(1, 'one')", "(1, 'uno')"),
        ("SELECT id, array({}) AS l FROM a", "'#1'", "'#2'"),
        ("SELECT id, {} AS x FROM a", "'%23'", "'#'"),
        ("SELECT id, {} AS x FROM a", "X'00'", "X'01'"),
        ("SELECT id, {} AS x FROM a", "0.0D", "-0.0D"),
    ],
)
def test_other_values_in_a_query_are_another_query(simple: TestLake, query: str, one: str, other: str) -> None:
    simple.view("v", query.format(one))
    simple.refresh("v")
    simple.view("v", query.replace("SELECT", "select  ").format(one))
    assert simple.refresh("v").mode == "none"
    simple.view("v", query.format(other))
    with pytest.raises(DefinitionChangedError, match="the query changed"):
        simple.refresh("v")


@pytest.mark.slow
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize(
    ("picked", "mode"),
    [
        ("SELECT id, k FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY at DESC) AS n FROM picks) WHERE n = 1", "incremental"),
        ("SELECT id, first(k) AS k FROM picks GROUP BY id", "recompute"),
    ],
)
def test_what_a_tie_was_broken_for_is_found_by_what_it_is_joined_to(lake: TestLake, join: str, picked: str, mode: str) -> None:
    pairs = [(i, f"{letter}{i}") for i in range(1, 7) for letter in "pq"]

    def rows(some: list[tuple[int, str]]) -> str:
        values = ", ".join(f"({i}, 10, '{k}')" for i, k in some)
        return f"SELECT /*+ COALESCE(1) */ * FROM VALUES {values} t(id, at, k)"

    lake.table("picks", rows(pairs))
    lake.table("names", f"SELECT k, concat('n', k) AS n FROM ({rows(pairs)})")
    lake.view("v", f"SELECT x.id, x.k, names.n FROM ({picked}) x {join} names ON x.k = names.k")
    lake.refresh("v")
    held = ", ".join(f"'{row.k}'" for row in lake.open.read("v").collect())
    lake.spark.sql(rows(pairs[::-1])).coalesce(1).write.format("delta").mode("overwrite").save(lake.path("picks"))  # the same rows
    lake.sql(f"UPDATE {{names}} SET n = 'other' WHERE k IN ({held})")
    assert lake.refresh("v").mode == mode
    names = {row.k: row.n for row in lake.spark.read.format("delta").load(lake.path("names")).collect()}
    found = sorted(lake.open.read("v").collect())
    assert [(row.id, row.n) for row in found] == [(i, names[row.k]) for i, row in zip(range(1, 7), found, strict=True)]


@pytest.mark.slow
def test_results_that_depend_on_the_order_of_rows_are_explained_and_refreshed_by_their_keys(simple: TestLake) -> None:
    simple.view("v", "SELECT id, collect_list(s) AS l FROM a GROUP BY id")
    simple.view("w", "SELECT collect_list(s) AS l FROM a")
    for name in ("v", "w"):
        simple.refresh(name)
    simple.sql("INSERT INTO {a} VALUES (1, 'x', 1)")
    assert simple.refresh("v").mode == "incremental"
    simple.assert_exact("v")
    explanation = simple.open.explain("v")
    assert explanation.incremental
    assert explanation.scope == ("id",)
    if SPARK >= (4, 2):  # which has the third argument
        simple.view("u", "SELECT s, max_by(id, v, 2) AS newest FROM a GROUP BY s")
        assert "max_by" in simple.open.explain("u").warning
    assert "collect_list" in explanation.warning
    result = simple.refresh("w")
    assert result.mode == "recompute"
    assert "collect_list" in result.reason
    assert not simple.open.explain("w").incremental


@pytest.mark.slow
def test_rows_numbered_within_what_the_query_does_not_select(simple: TestLake) -> None:
    simple.view("v", "SELECT v, row_number() OVER (PARTITION BY id ORDER BY v) AS n FROM a")
    simple.refresh("v")
    simple.sql("INSERT INTO {a} VALUES (1, 'z', 1), (NULL, 'n', 4), (NULL, 'm', 3)")
    assert simple.refresh("v").mode == "incremental"
    simple.assert_exact("v")
    simple.sql("UPDATE {a} SET id = 1 WHERE id IS NULL")
    simple.refresh("v")
    simple.assert_exact("v")
    assert simple.open.read("v").columns == ["v", "n"]


def test_a_view_that_must_be_incremental_is_refused_where_it_is_not(simple: TestLake) -> None:
    simple.view("ranked", "SELECT id, v, row_number() OVER (ORDER BY v) AS n FROM a", refresh_mode="incremental")
    with pytest.raises(DefinitionError, match=r"refresh_mode: incremental.*is not incremental: it uses a window frame of ROWS"):
        simple.refresh("ranked")


def test_a_patch_release_of_spark_is_no_other_definition() -> None:
    older = {"query": "q", "spark": "4.2.0"}  # as earlier versions of Lakejoin stamped it
    assert differing(older, {"query": "q", "spark": "4.2"}) == []
    assert differing(older, {"query": "q", "spark": "4.2.1"}) == []
    assert differing(older, {"query": "q", "spark": "4.3"}) == ["spark"]


@pytest.mark.slow
def test_a_view_built_with_another_patch_release_of_spark_is_refreshed(simple: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    simple.view("v", "SELECT id, v FROM a")
    define = registry.define

    def as_stamped_before(*arguments: Any) -> Any:
        found = define(*arguments)
        return replace(found, fingerprint={**found.fingerprint, "spark": f"{found.fingerprint['spark']}.99"})

    with monkeypatch.context() as patched:
        patched.setattr(registry, "define", as_stamped_before)
        simple.refresh("v")
        simple._open = None
    simple.sql("INSERT INTO {a} VALUES (3, 'x', 30)")
    assert simple.refresh("v").mode == "incremental"
    simple.assert_exact("v")


def test_a_source_without_columns_is_refused(simple: TestLake) -> None:
    simple.spark.sql(f"CREATE TABLE delta.`{simple.path('empty')}` USING delta")
    simple.tables["empty"] = {"path": "empty"}
    simple.view("v", "SELECT * FROM empty")
    with pytest.raises(SourceError, match=r"empty \(.*\) has no columns yet"):
        simple.refresh("v")
