"""A view's fingerprint is a function of its definition alone: the same in every process, whatever happened in it before.

Run as a script, the module writes the normal form's digest of each query of the law tests, TPC-H and Nexmark, as JSON.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lake.catalyst import DEFINITION_SETTINGS, Catalyst
from lake.config.loader import load
from lake.config.models import Config
from lake.errors import DefinitionError
from lake.spark.session import make_session, own_session, settings
from lake.spark.session_digest import digest
from lake.views.definition import define
from lake.views.query import view_frame
from tests.conftest import QUICK
from tests.relations.cases import ADDED, NOT_ADDED, QUERIES, SCHEMAS, SCOPED, SECTIONS, TOP, UNSCOPED

EXAMPLES = Path(__file__).parents[2] / "examples"
TPCH = {
    "region": "r_regionkey int, r_name string, r_comment string",
    "nation": "n_nationkey int, n_name string, n_regionkey int, n_comment string",
    "supplier": "s_suppkey int, s_name string, s_address string, s_nationkey int, s_phone string, s_acctbal decimal(15,2), "
    "s_comment string",
    "customer": "c_custkey int, c_name string, c_address string, c_nationkey int, c_phone string, c_acctbal decimal(15,2), "
    "c_mktsegment string, c_comment string",
    "part": "p_partkey int, p_name string, p_mfgr string, p_brand string, p_type string, p_size int, p_container string, "
    "p_retailprice decimal(15,2), p_comment string",
    "partsupp": "ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost decimal(15,2), ps_comment string",
    "orders": "o_orderkey int, o_custkey int, o_orderstatus string, o_totalprice decimal(15,2), o_orderdate date, o_orderpriority string, "
    "o_clerk string, o_shippriority int, o_comment string",
    "lineitem": "l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity decimal(15,2), l_extendedprice decimal(15,2), "
    "l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag string, l_linestatus string, l_shipdate date, l_commitdate date, "
    "l_receiptdate date, l_shipinstruct string, l_shipmode string, l_comment string",
}
NEXMARK = {
    "person": "id bigint, name string, email_address string, credit_card string, city string, state string, date_time timestamp, "
    "extra string",
    "auction": "id bigint, item_name string, description string, initial_bid bigint, reserve bigint, date_time timestamp, "
    "expires timestamp, seller bigint, category bigint, extra string",
    "bid": "auction bigint, bidder bigint, price bigint, channel string, url string, date_time timestamp, extra string",
}
SEVERAL_DISTINCT = {
    "three_distinct": "SELECT s, count(DISTINCT v) AS a, count(DISTINCT id) AS b, sum(v) AS n FROM a GROUP BY s HAVING count(*) > 1",
    "distinct_of_all": "SELECT count(DISTINCT v) AS a, sum(DISTINCT id) AS b, count(DISTINCT s) AS c, max(v) AS m FROM a",
    "distinct_filtered": "SELECT s, count(DISTINCT v) FILTER (WHERE id > 1) AS a, count(DISTINCT id, v) AS b FROM a GROUP BY s",
}


WITH_TOTALS = {name for name, query in QUERIES.items() if "(SELECT" in query and name in SECTIONS["More subqueries"]}


def workloads() -> list[tuple[str, dict[str, str], dict[str, Any], dict[str, str]]]:
    """(name, schemas, tables, queries) of each workload."""
    law = {t: {"path": t} for t in SCHEMAS}
    found = [("law", SCHEMAS, law, {**QUERIES, **SCOPED, **UNSCOPED, **ADDED, **NOT_ADDED, **TOP, **SEVERAL_DISTINCT})]
    for name, file, schemas in (("tpch", "tpch/lakejoin.yml", TPCH), ("nexmark", "nexmark/queries.yml", NEXMARK)):
        settings = yaml.safe_load((EXAMPLES / file).read_text())
        queries = {v: body.get("query") or (EXAMPLES / name / body["query_file"]).read_text() for v, body in settings["views"].items()}
        found.append((name, schemas, settings["tables"], queries))
    return found


def normal_form(spark: SparkSession, view: str, config: Config, schemas: dict[str, StructType]) -> str:
    """What the fingerprint of a query is made of, without the rest of its definition, which takes longer."""
    catalyst = Catalyst(spark)
    with settings(spark, DEFINITION_SETTINGS):
        frames = {t: catalyst.placeholder(t, schema) for t, schema in schemas.items()}
        return catalyst.normal_form(catalyst.analysed(view_frame(catalyst, view, config.view(view), config, frames)))


def digests(spark: SparkSession, seed: int) -> dict[str, str]:
    """workload.query → the fingerprint's digest of the query; the queries are analysed in an order that the seed decides."""
    found: dict[str, str] = {}
    for name, schemas, tables, queries in workloads():
        parsed = {t: StructType.fromDDL(ddl) for t, ddl in schemas.items()}
        keys = {t: [k] if isinstance(k := body.get("primary_key", []), str) else k for t, body in tables.items()}
        config = load({"root": "/nowhere", "tables": tables, "views": {v: {"query": q} for v, q in queries.items()}}, None)
        order = sorted(queries)
        random.Random(seed).shuffle(order)
        session = own_session(spark)
        for view in order:
            try:
                if view in SEVERAL_DISTINCT:  # whose optimised plans differ
                    fingerprint = define(session, view, config, parsed, keys).fingerprint
                    rows = {part: value for part, value in fingerprint.items() if part != "text"}  # which differs with the session
                    found[f"{name}.{view}.all"] = digest(json.dumps(rows, sort_keys=True))
                if name == "law" and view in WITH_TOTALS:  # the names under which the stamp keeps rows
                    relations = define(session, view, config, parsed, keys).relation.walk()
                    found[f"{name}.{view}.totals"] = ",".join(sorted(relation.node.total for relation in relations))
                found[f"{name}.{view}"] = digest(normal_form(session, view, config, parsed))
            except DefinitionError as error:
                found[f"{name}.{view}"] = f"refused: {str(error)[:40]}"
    return found


@pytest.mark.slow
def test_every_process_gives_a_query_the_same_fingerprint(spark: SparkSession) -> None:
    """This process, in which other views were analysed before, and a new one, with another hash seed and another order."""
    environment = {**os.environ, "PYTHONHASHSEED": "2"}
    command = [sys.executable, "-m", "tests.views.test_fingerprint", "1"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=800, cwd=EXAMPLES.parent)
    first, other = digests(spark, 0), json.loads(ended.stdout.splitlines()[-1])
    assert len(first) > 150
    assert {name for name in first if first[name] != other[name]} == set()
    assert len(set(first.values())) > 0.9 * len(first)  # they do tell queries apart


if __name__ == "__main__":
    print(json.dumps(digests(make_session({**QUICK, "spark.master": "local[1]"}), int(sys.argv[1]))))
