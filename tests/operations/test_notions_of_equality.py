"""Three notions of equality: of rows for refreshes, of rows for verification, of definitions. Each is weakened, and another one notices."""

from __future__ import annotations

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake.errors import LakeError
from lake.spark import sameness, zset
from lake.views import definition
from tests.lakes import TestLake

ONE, OTHER = """parse_json('[1, "a"]')""", """parse_json('[1.0, "a"]')"""


@pytest.fixture
def view(lake: TestLake) -> TestLake:
    lake.table("t", f"SELECT id, {ONE} AS v, 0D AS x FROM range(3)", key=["id"])
    lake.view("v", "SELECT id, v, x FROM t")
    lake.refresh("v")
    return lake


def by_json(value: Column) -> list[Column]:
    """What VARIANT values were once told apart by: for the elements of an array, too little."""
    return [F.schema_of_variant(value), F.to_json(value)]


def updated(lake: TestLake) -> None:
    lake.spark.sql(f"UPDATE delta.`{lake.path('t')}` SET v = {OTHER}, x = -0D WHERE id = 1")


def test_verification_notices_what_the_equality_of_refreshes_takes_for_the_same(view: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    right = zset.canonical

    def weak(value: Column, data_type: T.DataType) -> Column:
        match data_type:
            case T.VariantType():
                return F.struct(*by_json(value))
            case T.DoubleType():
                return value + F.lit(0.0)  # -0.0 + 0.0 is 0.0
            case _:
                return right(value, data_type)

    updated(view)
    with monkeypatch.context() as patch:
        patch.setattr(zset, "canonical", weak)
        assert view.refresh("v").rows_inserted == 0
    found = view.open.verify("v")
    assert (found.missing, found.surplus) == (1, 1)


def test_refreshes_notice_what_the_equality_of_verification_takes_for_the_same(view: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    right = sameness.marks

    def weak(value: Column, data_type: T.DataType) -> list[Column]:
        match data_type:
            case T.VariantType():
                return by_json(value)
            case T.DoubleType():
                return [value.isNull(), value + F.lit(0.0)]
            case _:
                return right(value, data_type)

    with view.as_if_published("v"):
        view.spark.sql(f"UPDATE {view.of_view('v')} SET v = {OTHER}, x = -0D WHERE id = 1")
    with monkeypatch.context() as patch:
        patch.setattr(sameness, "marks", weak)
        assert view.open.verify("v").exact
    assert view.open.rebuild("v").rows_updated == 1
    assert view.open.verify("v").exact


def test_verification_notices_what_the_equality_of_definitions_takes_for_the_same(view: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = view.open.on("strong").stamp("v")
    assert stored is not None
    view.view("v", "SELECT id, v, x + 1 AS x FROM t")
    with pytest.raises(LakeError, match="rebuild"):
        view.refresh("v")
    updated(view)
    with monkeypatch.context() as patch:
        patch.setattr(definition, "fingerprint", lambda *_, **__: dict(stored.fingerprint))
        view._open = None
        assert view.refresh("v").rows_inserted == 1
        found = view.open.verify("v")
    assert (found.missing, found.surplus) == (2, 2)
