"""A manifest of dbt becomes a lakejoin.yml that loads, whose queries read views and tables where dbt's read relations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from lake import open_lake
from lake.cli.app import app
from lake.config.loader import load
from tests.lakes import TestLake

MANIFEST = (Path(__file__).parent / "manifest.json").read_text()


def imported(folder: Path, text: str = MANIFEST, *options: str) -> Any:
    """The result of the command, which writes lakejoin.yml into the folder."""
    (folder / "manifest.json").write_text(text.replace("@ROOT@", str(folder)))
    return CliRunner().invoke(app, ["import", "dbt", str(folder / "manifest.json"), "-o", str(folder / "lakejoin.yml"), *options])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an imported configuration, and what the command said as JSON."""
    place = tmp_path_factory.mktemp("dbt")
    done = imported(place, MANIFEST, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    (place / "said.json").write_text(done.stdout)
    return place


def test_models_become_views_and_what_they_read_tables(folder: Path) -> None:
    config = load(folder / "lakejoin.yml")
    assert list(config.views) == ["stg_orders", "orders", "report_v2"]
    staging, orders, report = config.views.values()
    assert (staging.description, staging.owner, staging.tags) == (
        "Orders with their names of columns.\nOne row an order.",
        "ana@shop.example",
        ("staging",),
    )
    assert (orders.description, orders.owner, orders.tags, report.tags) == (None, "finance@shop.example", ("daily",), ("daily",))
    assert {name: (table.path, table.name) for name, table in config.tables.items()} == {
        "scores": (None, "main.shop.scores"),
        "countries": (f"{folder}/countries", None),
        "users_history": (None, "main.snapshots.users_history"),
        "raw_orders": (f"{folder}/orders", None),
        "users": (f"{folder}/users", None),
        "leads": (None, "main.`my-crm`.leads"),
    }


def test_keys_are_those_of_constraints_and_tests_that_hold_for_all_rows(folder: Path) -> None:
    config = load(folder / "lakejoin.yml")
    assert {name: view.key for name, view in config.views.items()} == {
        "stg_orders": ("order_id",),
        "orders": ("order_id",),
        "report_v2": ("user_id",),
    }
    keys = {name: table.primary_key for name, table in config.tables.items() if table.primary_key}
    assert keys == {"scores": ("user_id",), "raw_orders": ("id", "user_id")}


def test_queries_name_views_and_tables_but_not_in_texts_and_comments(folder: Path) -> None:
    config = load(folder / "lakejoin.yml")
    staging, orders, report = (str(config.views[name].query) for name in ("stg_orders", "orders", "report_v2"))
    assert staging.startswith("with source as (\n\n    select * from raw_orders AS `orders`\n\n),\n\nrenamed as (\n    select\n")
    assert "-- not `main`.`raw`.`orders`\n" in staging
    assert staging.endswith("'from main.raw.orders' as origin\n    from source\n)\n\nselect * from renamed\n")
    assert "(select * from countries)" in orders
    assert "from stg_orders as o\njoin raw_orders AS `orders` on orders.id = o.order_id\njoin users u on" in orders
    assert "and orders.id > 0" in orders
    assert report == "select scores.user_id, score from scores"
    assert "query: |\n      with source as (\n" in (folder / "lakejoin.yml").read_text()  # lines stay lines


def test_models_that_are_no_views_are_listed_with_the_reason(folder: Path) -> None:
    said = json.loads((folder / "said.json").read_text())
    assert {node["name"]: (node["reason"].partition(":")[0], node["as_table"]) for node in said["skipped"]} == {
        "scores": ("it is written in Python", True),
        "int_users": ("it is ephemeral", False),
        "sessions": ("its SQL is that of an incremental run, which reads its own table", False),
        "late": ("it was not compiled", False),
        "hidden": ("it has a CTE named users, which would hide the table of that name that it also reads", False),
    }


def test_a_file_is_overwritten_by_force_only(folder: Path) -> None:
    before = (folder / "lakejoin.yml").read_text()
    refused = imported(folder)
    assert (refused.exit_code, "already exists" in refused.stderr) == (2, True)
    forced = imported(folder, MANIFEST, "--force")
    assert (forced.exit_code, (folder / "lakejoin.yml").read_text()) == (0, before)
    assert "not imported: model late: it was not compiled" in forced.stderr
    assert "Wrote" in forced.stdout
    assert "3 views and 6 tables" in forced.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MANIFEST.replace("manifest/v12.json", "manifest/v9.json"), "Lakejoin reads manifests v10 to v12"),
        (MANIFEST.replace('"compiled_code"', '"compiled_sql"'), 'stg_orders: it was not compiled: run "dbt compile" first'),
        (MANIFEST.replace('"source_name"', '"no_name"'), "is not as manifests of"),
        ("{}", "is no manifest of dbt"),
        ("not JSON", "is no manifest of dbt"),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str, said: str) -> None:
    refused = imported(tmp_path, text)
    assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "lakejoin.yml").exists()


def test_names_in_double_quotes_are_names_in_spark_too(tmp_path: Path) -> None:
    data = json.loads(MANIFEST.replace("`", '\\"').replace('"adapter_type": "spark"', '"adapter_type": "duckdb"'))
    data["nodes"]["model.shop.report"]["compiled_code"] = 'select "user id" from "main"."shop"."stg_orders" "s" where a = \'"b"\''
    done = imported(tmp_path, json.dumps(data))
    assert "compiled for duckdb" in done.stderr
    query = yaml.safe_load((tmp_path / "lakejoin.yml").read_text())["views"]["report_v2"]["query"]
    assert query == "select `user id` from stg_orders `s` where a = '\"b\"'"


def test_an_imported_configuration_is_refreshed(lake: TestLake) -> None:
    lake.table("orders", "SELECT * FROM VALUES (1, 10, 'NEW'), (2, 11, 'Old') t(id, user_id, status)")
    lake.table("users", "SELECT * FROM VALUES (10, 'FR'), (11, 'XX') t(user_id, country)")
    lake.table("countries", "SELECT 'FR' code, 'France' name")
    assert imported(lake.folder).exit_code == 0
    opened = open_lake(lake.folder / "lakejoin.yml", spark=lake.spark)
    for view in ("stg_orders", "orders"):
        opened.refresh(view)
    assert sorted(map(tuple, opened.read("orders").collect())) == [(1, 10, "NEW", "France"), (2, 11, "Old", None)]
    assert opened.definition_key("orders") == ("order_id",)
