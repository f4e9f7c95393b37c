"""lakejoin.yml: errors name file, key and line, and what is allowed there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lake.config.loader import environments_of, load, load_each
from lake.config.models import Config
from lake.errors import ConfigError

GOOD = """
root: ./lake
tables:
  bid: {path: bid, primary_key: [auction, bidder]}
views:
  q:
    query: SELECT * FROM bid
"""

WRONG = {
    "unknown key": (GOOD + "    qury: x\n", r"line 8: `views.q.qury` is not known here. Did you mean 'query'"),
    "two places": (GOOD.replace("{path: bid,", "{path: bid, name: x.y,"), r"line 4: `tables.bid`: give either `path` or `name`"),
    "two definitions": (GOOD + "    query_file: q.sql\n", r"line 6: `views.q`: give exactly one of"),
    "wrong type": (GOOD.replace("./lake", "[1]"), r"line 2: `root`"),
    "bad name": (GOOD.replace("  q:", "  q-1:"), r"'q-1' is no SQL identifier"),
    "name twice": (GOOD.replace("  q:", "  BID:"), r"given twice"),
    "not yaml": ("tables: [", r"line \d+: not valid YAML"),
    "missing variable": (GOOD.replace("./lake", "${NO_SUCH_VARIABLE}"), r"line 2: `root` needs the environment variable NO_SUCH_VARIABLE"),
    "no marks": (GOOD + "    properties: {delta.enableDeletionVectors: false}\n", r"has delta.enableDeletionVectors: true, not false"),
    "our own": (GOOD + "    properties: {lakejoin.key: x}\n", r"line 8: .*lakejoin.key is Lakejoin's own"),
    "bad function": (GOOD.replace("query: SELECT * FROM bid", "function: nope"), r"line 6: .*module:function"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_configurations_name_the_line(tmp_path: Path, name: str) -> None:
    text, message = WRONG[name]
    file = tmp_path / "lakejoin.yml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load(file)
    assert str(file) in str(caught.value)


def test_paths_start_at_the_root_and_the_root_at_the_file(tmp_path: Path) -> None:
    (tmp_path / "lakejoin.yml").write_text(GOOD)
    config = load(tmp_path / "lakejoin.yml")
    assert config.source_path("bid") == f"{tmp_path}/lake/bid"
    assert config.source_path("s3a://x/y") == "s3a://x/y"
    assert config.view_path("q") == f"{tmp_path}/lake/views/q"


@pytest.mark.parametrize(
    ("target", "path", "name"),
    [
        ("views", "HERE/views/v", None),
        ("./views", "HERE/views/v", None),
        ("/data/views", "/data/views/v", None),
        ("s3a://lake/views", "s3a://lake/views/v", None),
        ("spark_catalog.views", None, "views.v"),
        ("main.views", None, "main.views.v"),
        ({"path": "main.views"}, "HERE/main.views/v", None),
        ({"schema": "views"}, None, "views.v"),
        ({"schema": "main.views"}, None, "main.views.v"),
    ],
)
def test_a_target_is_a_path_or_a_schema(tmp_path: Path, target: object, path: str | None, name: str | None) -> None:
    config = Config(target=target, views={"v": {"query": "SELECT 1"}}, directory=tmp_path)  # type: ignore[arg-type]
    assert (config.view_path("v"), config.view_name("v")) == (path and path.replace("HERE", str(tmp_path)), name)


def test_the_target_of_an_environment_replaces_that_of_the_file() -> None:
    both = {"target": {"path": "x"}, "environments": {"prod": {"target": {"schema": "views"}}}}
    assert (load(both).view_name("v"), load(both, "prod").view_name("v")) == (None, "views.v")


def test_variables_includes_and_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_LAKE", "/data/lake")
    overlay = "environments:\n  prod: {root: 's3a://lake', target: main.views}\n"
    (tmp_path / "lakejoin.yml").write_text(GOOD.replace("./lake", "${MY_LAKE}") + "include: views/*.yml\n" + overlay)
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "more.yml").write_text("views:\n  r: {query: SELECT 1 AS one}\n")
    config = load(tmp_path / "lakejoin.yml")
    assert config.root_path == "/data/lake"
    assert set(config.views) == {"q", "r"}
    prod = load(tmp_path / "lakejoin.yml", env="prod")
    assert prod.source_path("bid") == "s3a://lake/bid"
    assert (prod.view_path("q"), prod.view_name("q")) == (None, "main.views.q")
    with pytest.raises(ConfigError, match=r"no environment 'prd'. Did you mean 'prod'"):
        load(tmp_path / "lakejoin.yml", env="prd")


def test_a_secret_is_not_repeated_in_an_error(tmp_path: Path) -> None:
    file = tmp_path / "lakejoin.yml"
    file.write_text("spark:\n  fs.s3a.secret.key: {deeper: hunter2}\n" + GOOD)
    with pytest.raises(ConfigError, match=r"fs\.s3a\.secret\.key") as caught:
        load(file)
    assert "hunter2" not in str(caught.value)


def test_a_variable_of_the_environment_is_not_repeated_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARE", "hunter2")
    file = tmp_path / "lakejoin.yml"
    file.write_text(GOOD + "quality: {share: '${SHARE}'}\n")
    with pytest.raises(ConfigError, match=r"line 8: `quality.share`.*given: '\$\{SHARE\}'") as caught:
        load(file)
    assert "hunter2" not in str(caught.value)


def test_settings_that_come_from_the_environment_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "hunter2")
    file = tmp_path / "lakejoin.yml"
    settings = "spark: {fs.s3a.secret.key: '${KEY}', spark.driver.memory: 4g}\nairflow: {submit: {conf: {spark.x: 'a${KEY}'}}}\n"
    overlay = "environments: {prod: {spark: {spark.driver.memory: '${KEY}'}}}\n"
    file.write_text(GOOD + settings + overlay)
    assert load(file).secret_settings == {"fs.s3a.secret.key", "spark.x"}
    assert load(file).spark["fs.s3a.secret.key"] == "hunter2"
    assert load(file, "prod").secret_settings == {"fs.s3a.secret.key", "spark.x", "spark.driver.memory"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "  q:\n    query: SELECT 1\n", r"line 8: the key `views.q` is given twice \(first at .*line 6\)"),
        (GOOD + "root: ./other\n", r"line 8: the key `root` is given twice \(first at .*line 2\)"),
        (GOOD.replace("{path: bid,", "{path: bid, path: ask,"), r"line 4: the key `tables.bid.path` is given twice"),
    ],
)
def test_a_key_that_is_given_twice_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "lakejoin.yml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(tmp_path / "lakejoin.yml")


@pytest.mark.parametrize("included", ["views:\n  q: {query: SELECT 2}\n", "q: {query: SELECT 2}\n"])
def test_an_included_view_does_not_override_one_of_the_main_file(tmp_path: Path, included: str) -> None:
    (tmp_path / "lakejoin.yml").write_text(GOOD + "include: more.yml\n")
    (tmp_path / "more.yml").write_text(included)
    with pytest.raises(ConfigError, match=r"more.yml, line \d: the view 'q' is already defined in .*lakejoin.yml, line 6"):
        load(tmp_path / "lakejoin.yml")


def test_two_included_files_with_one_view_are_both_named(tmp_path: Path) -> None:
    (tmp_path / "lakejoin.yml").write_text(GOOD + "include: [a.yml, b.yml]\n")
    for name in ("a", "b"):
        (tmp_path / f"{name}.yml").write_text("r: {query: SELECT 2}\n")
    with pytest.raises(ConfigError, match=r"b.yml, line 1: the view 'r' is already defined in .*a.yml, line 1"):
        load(tmp_path / "lakejoin.yml")


def test_a_valid_configuration_is_validated_once_however_many_views_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {f"v{n}": {"query": "SELECT * FROM bid"} for n in range(20)}
    config = {"root": "./lake", "tables": {"bid": {"path": "bid"}}, "views": views}
    validated, original = list[object](), Config.model_validate

    def counting(data: object) -> Config:
        validated.append(data)
        return original(data)

    monkeypatch.setattr(Config, "model_validate", counting)
    assert (list(load_each(config)[0].views), len(validated)) == (list(views), 1)
    found, wrong = load_each({**config, "views": {**views, "wrong": {"query": "SELECT 1", "qury": "x"}}})
    assert (list(found.views), list(wrong)) == (list(views), ["wrong"])


def test_a_development_environment_takes_the_settings_and_tables_of_production_and_no_place_that_it_writes_to(tmp_path: Path) -> None:
    config = {
        "root": str(tmp_path),
        "tables": {"t": {"path": "t"}},
        "views": {"v": {"query": "SELECT id FROM t"}},
        "quality": {"results": "results", "ulps": 7},
        "airflow": {"runs": "runs", "retries": 5},
        "environments": {
            "prod": {"root": str(tmp_path / "lake"), "target": {"path": str(tmp_path / "prod")}, "spark": {"a": "b"}},
            "dev": {"development_of": "prod", "root": str(tmp_path / "dev")},
            "other": {"development_of": "default", "target": {"schema": "dev"}, "views": {"v": {"query": "SELECT 1 AS id"}}},
        },
    }
    dev = load(config, "dev")
    assert (dev.path_of("t"), dev.path_of("v")) == (f"{tmp_path}/lake/t", f"{tmp_path}/dev/views/v")
    assert (dev.quality.ulps, dev.airflow.retries, dev.spark) == (7, 5, {"a": "b"})
    assert (dev.quality_path, dev.runs_path) == (f"{tmp_path}/dev/views/_lakejoin/quality", f"{tmp_path}/dev/views/_lakejoin/runs")
    assert dev.production is not None
    assert (dev.production.environment, dev.production.path_of("v")) == ("prod", f"{tmp_path}/prod/v")
    other = load(config, "other")
    assert (other.path_of("t"), other.view_name("v")) == (f"{tmp_path}/t", "dev.v")
    assert other.quality_path == f"{tmp_path}/_lakejoin_other/quality"
    assert other.production is not None
    assert (other.view("v").query, other.production.view("v").query) == ("SELECT 1 AS id", "SELECT id FROM t")
    assert [(e.name, e.development_of, e.error) for e in environments_of(config)] == [
        (None, "", ""),
        ("prod", "", ""),
        ("dev", "prod", ""),
        ("other", "default", ""),
    ]


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        ({"development_of": "prd", "target": "d"}, "`environments.dev.development_of` names an environment.*'prd'. Did you mean 'prod'"),
        ({"development_of": 3, "target": "d"}, "not 3"),
        ({"development_of": "dev", "target": "d"}, "names 'dev' itself"),
        ({"development_of": "another", "target": "d"}, "'another', which is a development environment itself"),
        ({"development_of": "prod"}, "no place of its own for its views"),
        ({"development_of": "prod", "root": "/lake"}, "puts view 'v' where production has it, /lake/views/v"),
        (
            {"development_of": "prod", "target": {"path": "/lake/views/dev"}},
            "has /lake/views/dev for its views, and production has /lake/views",
        ),
        ({"development_of": "prod", "target": {"path": "/lake"}}, "for its views"),
        ({"development_of": "prod", "target": {"path": "/lake/t/x"}}, "production has /lake/t for its table t"),
        ({"development_of": "prod", "target": {"path": "file:/lake/views"}}, "puts view 'v' where production has it"),
        (
            {"development_of": "prod", "target": "d", "quality": {"results": "/q/x"}},
            "/q/x for its results of checks, and production has /q",
        ),
        ({"development_of": "prod", "target": "d", "tables": {"t": {"path": "x"}}}, "a development environment reads production's tables"),
    ],
)
def test_a_development_environment_that_would_write_to_production_is_refused(dev: dict[str, Any], message: str) -> None:
    overlays = {"prod": {"root": "/lake", "quality": {"results": "/q"}}, "another": {"development_of": "prod", "target": "x"}, "dev": dev}
    config = {"tables": {"t": {"path": "t"}}, "views": {"v": {"query": "SELECT id FROM t"}}, "environments": overlays}
    with pytest.raises(ConfigError, match=message):
        load(config, "dev")
