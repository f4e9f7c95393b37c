"""What stops a table of another job from being a view's, by its log: no Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T

from lake.delta.listing import CHAR_TYPE
from lake.delta.tables import Table
from lake.delta.transaction import open_field
from lake.errors import TargetError
from lake.views import adoptable
from lake.views.adoptable import changed, lacking, padded, refuse_unfit

TABLE = Table("v", "/nightly/v", None)


def pinned(*fields: T.StructField, **properties: str) -> Any:
    """A version of a table, without its files."""
    named = {name.replace("__", "."): value for name, value in properties.items()}
    return SimpleNamespace(properties=named, schema=T.StructType(list(fields)), has_feed=False)


def definition(*columns: str, hidden: tuple[str, ...] = (), key: tuple[int, ...] = ()) -> Any:
    """A view's definition. `key`: of the hidden columns, by number, those that are of its key."""
    named, numbered = [SimpleNamespace(name=c) for c in columns], [SimpleNamespace(name=h, attribute=i) for i, h in enumerate(hidden)]
    return SimpleNamespace(columns=named, hidden=numbered, key=SimpleNamespace(ids=key), carried={})


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"delta__constraints__positive": "id > 0"}, "CHECK constraint 'positive'.*DROP CONSTRAINT positive"),
        ({"delta__appendOnly": "true"}, "append-only.*UNSET TBLPROPERTIES"),
        ({"delta__columnMapping__mode": "id"}, "mapped by id.*CREATE TABLE delta"),
        ({"delta__enableIcebergCompatV2": "true"}, "readable for Iceberg"),
        ({"delta__universalFormat__enabledFormats": "iceberg"}, "readable for Iceberg"),
    ],
)
def test_properties_that_would_stop_a_refresh_are_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(TargetError, match=message):
        refuse_unfit(TABLE, pinned(**properties))


@pytest.mark.parametrize("mark", ["delta.generationExpression", "delta.identity.start", "delta.invariants"])
def test_columns_that_the_table_computes_are_refused(mark: str) -> None:
    with pytest.raises(TargetError, match="k is a"):
        refuse_unfit(TABLE, pinned(T.StructField("k", T.LongType(), True, {mark: "1"})))


def test_what_stops_no_refresh_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adoptable, "_of_files", lambda _: "")  # tests/operations/test_adopting.py has files
    kept = {"delta__enableRowTracking": "true", "mine": "yes", "delta__enableIcebergCompatV2": "false", "delta__appendOnly": "false"}
    refuse_unfit(TABLE, pinned(T.StructField("k", T.LongType(), False, {"CURRENT_DEFAULT": "1"}), **kept))


def test_what_adopting_changes_is_said() -> None:
    strict = T.StructField("a", T.ArrayType(T.LongType(), False))
    text = T.StructField("b", T.StringType(), True, {CHAR_TYPE: "varchar(3)"})
    said = changed(definition("b", "a"), pinned(strict, text))
    assert said[:-1] == [
        "its columns are put in the order of the query: b, a",
        "NOT NULL is dropped from a",
        "b becomes a STRING without a length",
        "column mapping, deletion vectors, the change data feed are turned on, which readers of the table have to support",
    ]


def test_rows_are_written_again_for_hidden_columns_and_for_chars() -> None:
    def of(kind: str) -> T.StructField:
        return T.StructField("x", T.StringType(), True, {CHAR_TYPE: kind})

    assert lacking(definition("x")) == ""
    assert lacking(definition("x", hidden=("a", "b"), key=(1,))) == (
        "refreshes need hidden columns, which the table lacks: b (of the key that tells the view's rows apart); a (what a refresh finds "
        "and orders the stored rows by)"
    )
    assert padded(pinned(of("varchar(3)"))) == ""
    assert "x is a CHAR" in padded(pinned(of("array<char(3)>")))


def test_an_open_column_may_be_null_at_every_level_and_keeps_its_name_in_the_files() -> None:
    physical = {"delta.columnMapping.physicalName": "col-1"}
    inner = T.StructType([T.StructField("n", T.LongType(), False, physical)])
    nested = T.MapType(T.StringType(), T.ArrayType(inner, False), False)
    field = T.StructField("m", nested, False, {**physical, CHAR_TYPE: "map<char(1),x>"})
    found = T.StructField.fromJson(open_field(field.jsonValue()))
    opened = T.StructType([T.StructField("n", T.LongType(), True, physical)])
    assert found == T.StructField("m", T.MapType(T.StringType(), T.ArrayType(opened, True), True), True, physical)
    assert found.metadata == physical
