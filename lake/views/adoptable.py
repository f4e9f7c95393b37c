"""Whether a table that Lakejoin did not make can become a view's table, by its log alone: its columns, its properties, its files.

Law: a table that passes takes every later publish of its view. What is kept, because it stops none: partitioning, clustering, defaults,
row tracking, other properties. What goes with the adoption: NOT NULL, lengths of VARCHARs, the order of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake.config.models import HIDDEN_PREFIX
from lake.delta.listing import CHAR_TYPE
from lake.delta.pinned import Pinned
from lake.delta.tables import Table
from lake.errors import TargetError
from lake.relations.additive import AddedAggregate
from lake.relations.stored import stored_of
from lake.spark.types import allows_null
from lake.views.definition import Definition
from lake.views.table import MAPPING, schema

_CHECK = "delta.constraints."
_NO_VECTORS = (
    "delta.universalformat.enabledformats",
    "delta.enableicebergcompatv1",
    "delta.enableicebergcompatv2",
    "delta.enableicebergcompatv3",
)
_COMPUTED = {
    "delta.generationExpression": "a generated column",
    "delta.identity.start": "an identity column",
    "delta.invariants": "a column with an invariant",
}
_PLAIN_NAME = r"^[\w.+=~-]+$"


def refuse_unfit(table: Table, pinned: Pinned) -> None:
    """Raise TargetError, with what to do, where later publishes into the table would fail."""
    found = next(_obstacles(table, pinned), "") or _of_files(pinned)
    if found:
        raise TargetError(f"{table.path or table.name} can't become the table of view {table.label!r}: {found} Nothing was written.")


def refuse_other_columns(table: Table, definition: Definition, pinned: Pinned) -> None:
    """Raise TargetError where the table has not the columns of the view's query, in whatever order."""
    place = table.path or table.name
    columns = _columns(definition, pinned.schema)
    if columns:
        raise TargetError(
            f"{place} can't become the table of view {definition.view!r}, whose query has other columns. {' '.join(columns)} Nothing was "
            "written. Make the query give the columns of the table (with AS and CAST), or name the right table."
        )


def lacking(definition: Definition) -> str:
    """Which hidden columns of the view's table a table of another job lacks, and what they are for; empty where the view has none.

    They are computed with the query, so all rows have to be written again, and no row that a reader sees changes.
    """
    key = definition.key.ids if definition.key is not None else ()
    of_key = [c.name for c in definition.hidden if c.attribute in key]
    others = [c.name for c in definition.hidden if c.attribute not in key]
    found = [f"{', '.join(of_key)} (of the key that tells the view's rows apart)"] if of_key else []
    found += [f"{', '.join(others)} ({_purpose(definition)})"] if others else []
    return f"refreshes need hidden columns, which the table lacks: {'; '.join(found)}" if found else ""


def _purpose(definition: Definition) -> str:
    """What the hidden columns are for that are not of the key."""
    operator = stored_of(definition.relation) if definition.carried else None
    if isinstance(operator, AddedAggregate):
        return "the counts and sums of each group, to which a refresh adds the changes"
    return "what a refresh finds and orders the stored rows by"


def padded(pinned: Pinned) -> str:
    """Why all rows have to be written again with other values: a column is a CHAR; empty where none is."""
    found = [f.name for f in pinned.schema.fields if _is_char(f)]
    return f"{', '.join(found)} is a CHAR, which Spark pads, and a view has STRINGs" if found else ""


def changed(definition: Definition, pinned: Pinned) -> list[str]:
    """What adopting changes in the table's definition, for people."""
    has, wanted = pinned.schema, [c.name for c in definition.columns]
    found = []
    if has.names != wanted:
        found.append(f"its columns are put in the order of the query: {', '.join(wanted)}")
    not_null = [f.name for f in has.fields if not f.nullable or not allows_null(f.dataType)]
    if not_null:
        found.append(f"NOT NULL is dropped from {', '.join(not_null)}")
    lengths = [f.name for f in has.fields if CHAR_TYPE in f.metadata]
    if lengths:
        found.append(f"{', '.join(lengths)} becomes a STRING without a length")
    on = {MAPPING: "column mapping", "delta.enableDeletionVectors": "deletion vectors"}
    new = [text for name, text in on.items() if pinned.properties.get(name, "none").lower() not in ("name", "true")]
    new += [] if pinned.has_feed else ["the change data feed"]
    if new:
        found.append(f"{', '.join(new)} {'is' if len(new) == 1 else 'are'} turned on, which readers of the table have to support")
    return [*found, "its properties name the view, and its log is kept for ten years, because that is where the view's progress is"]


def _columns(definition: Definition, has: T.StructType) -> list[str]:
    """What differs between the columns of a table and those of the query; nothing where only their order does."""
    wanted = {f.name: f.dataType.simpleString() for f in schema(definition).fields if not f.name.startswith(HIDDEN_PREFIX)}
    own = {f.name: f.dataType.simpleString() for f in has.fields}
    missing = [f"{name} {kind}" for name, kind in wanted.items() if name not in own]
    surplus = [f"{name} {kind}" for name, kind in own.items() if name not in wanted]
    others = [f"{name} ({own[name]}, the query gives {kind})" for name, kind in wanted.items() if own.get(name, kind) != kind]
    found = [
        f"It lacks: {', '.join(missing)}." if missing else "",
        f"It has besides: {', '.join(surplus)}." if surplus else "",
        f"It has of another type: {', '.join(others)}." if others else "",
    ]
    return [text for text in found if text]


def _obstacles(table: Table, pinned: Pinned) -> Iterator[str]:
    """What would make later publishes fail, each with what to do."""
    properties = {name.lower(): value for name, value in pinned.properties.items()}
    for name in pinned.properties:
        if name.lower().startswith(_CHECK):
            rule = name[len(_CHECK) :]
            yield (
                f"it has the CHECK constraint {rule!r}, which could make a refresh fail. Remove it: ALTER TABLE {table.sql} DROP "
                f"CONSTRAINT {rule}. An expectation with `on_failure: block` can take its place."
            )
    if properties.get("delta.appendonly", "").lower() == "true":
        yield f"it is append-only. Allow deletes: ALTER TABLE {table.sql} UNSET TBLPROPERTIES ('delta.appendOnly')."
    if properties.get("delta.columnmapping.mode", "").lower() == "id":
        yield f"its columns are mapped by id, and a view's are by name. Copy it, and adopt the copy: {_copy(table)}."
    compatible = [name for name in _NO_VECTORS if properties.get(name, "false").lower() not in ("false", "")]
    if compatible:
        yield (
            f"it is kept readable for Iceberg ({compatible[0]}), which forbids the deletion vectors that refreshes write. Unset that "
            "property first."
        )
    for field in pinned.schema.fields:
        what = next((text for key, text in _COMPUTED.items() if key in field.metadata), "")
        if what:
            yield f"{field.name} is {what}, and a refresh writes its values itself. Copy it, and adopt the copy: {_copy(table)}."


def _copy(table: Table) -> str:
    return f"CREATE TABLE delta.`/path/of/the/copy` USING delta AS SELECT * FROM {table.sql}"


def _of_files(pinned: Pinned) -> str:
    """Why rows of the table's files can't be deleted one by one: they are other tables' files, or can't be told apart by their names."""
    path, name = F.col("path"), F.substring_index("path", "/", -1)
    elsewhere = F.count_if(path.startswith("/") | path.rlike("^[A-Za-z][A-Za-z0-9+.-]*:"))
    row = pinned.listing.paths().agg(elsewhere, F.count(path) - F.count_distinct(name), F.count_if(~name.rlike(_PLAIN_NAME))).head()
    shared, doubled, odd = row if row is not None else (0, 0, 0)
    if shared:
        return (
            f"{shared} of its data files belong to another table (it is a shallow clone), which a VACUUM there would remove. Copy it, and "
            "adopt the copy."
        )
    if doubled or odd:
        return "several of its data files have one name, or names with special characters. Copy it, and adopt the copy."
    return ""


def _is_char(field: T.StructField) -> bool:
    """Whether the column is, or holds, a CHAR: of `char(5)` and `array<varchar(3)>` the first."""
    text = str(field.metadata.get(CHAR_TYPE, ""))
    return "char(" in text.replace("varchar(", "")
