"""From a view's changes to edits of its table: rows to insert, to replace and to delete, each found by an identity.

A keyed view's rows are identified by the key. A multiset's are by two hidden columns: a hash of the row's canonical encoding
and a copy number that is unique among rows of equal hash. Both hashes see the whole row, 128 bits together.

Law: table + edits = table + changes, as multisets; an edit that does not find what it expects stops the publish (trap 9, 13).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import Window

from lake import weights
from lake.config import HIDDEN_PREFIX
from lake.definition import Definition, OutputColumn
from lake.errors import InternalError, KeyViolationError
from lake.relations.base import Reading
from lake.relations.ranges import of_frame
from lake.tables import quoted
from lake.view_table import COPY, HASH, schema

OP = f"{HIDDEN_PREFIX}op"
_PRUNING_COLUMNS = 4
SAMPLES = 3


@dataclass(frozen=True)
class Edits:
    """`rows`: the table's columns and `__lakejoin_op` (I, U, D), one row an identity; `narrowing`: a condition on the table
    (alias `t`) that every row to be found fulfils, so that files can be skipped."""

    rows: DataFrame
    identity: tuple[str, ...]
    inserted: int
    updated: int
    deleted: int
    narrowing: Column | None
    local: bool

    @property
    def only_inserts(self) -> bool:
        return self.updated == self.deleted == 0

    @property
    def empty(self) -> bool:
        return self.inserted == self.updated == self.deleted == 0

    @property
    def new_rows(self) -> DataFrame:
        """The rows to insert or to write over old ones, without the operation."""
        return self.rows.where(F.col(OP) != "D").drop(OP)


def in_names(definition: Definition, frame: DataFrame) -> DataFrame:
    """A frame of the tree's attributes under the view's column names: the query's columns, the hidden key, the weight."""
    columns = [F.col(f"c{c.attribute}").alias(c.name) for c in [*definition.columns, *definition.hidden]]
    weight = [F.col(weights.WEIGHT).alias(WEIGHT)] if weights.is_weighted(frame) else []
    return frame.select(*columns, *weight)


WEIGHT = f"{HIDDEN_PREFIX}weight"
_WANTED_HASH, _WANTED, _NUMBER = f"{HIDDEN_PREFIX}wanted_hash", f"{HIDDEN_PREFIX}wanted", f"{HIDDEN_PREFIX}number"


def keyed(definition: Definition, changes: DataFrame, reading: Reading) -> Edits:
    """Edits of a keyed view from its consolidated changes. Raises KeyViolationError where a key would hold two rows."""
    keys = [F.col(quoted(n)) for n in definition.key_names]
    names = schema(definition).names
    row = F.struct(*[F.col(quoted(n)) for n in names])
    weight = F.col(WEIGHT)
    grouped = changes.groupBy(*[k.alias(f"k{i}") for i, k in enumerate(keys)]).agg(
        F.first(F.when(weight > 0, row), ignorenulls=True).alias("new"),
        F.first(F.when(weight < 0, row), ignorenulls=True).alias("old"),
        F.sum(F.when(weight > 0, weight).otherwise(0)).alias("added"),
        F.sum(F.when(weight < 0, -weight).otherwise(0)).alias("removed"),
    )
    kept = reading.keep_rows(grouped)
    per_key = kept.frame
    op = F.when(F.col("removed") == 0, "I").when(F.col("added") == 0, "D").otherwise("U")
    numbers = per_key.agg(
        *[F.count_if(op == o).alias(o) for o in "IUD"],
        F.count_if(F.col("added") > 1).alias("doubled"),
        F.count_if(F.col("removed") > 1).alias("overdrawn"),
    ).head()
    assert numbers is not None
    if numbers["doubled"]:
        samples = [tuple(r) for r in per_key.where("added > 1").select(*[f"k{i}" for i in range(len(keys))]).take(SAMPLES)]
        raise key_violation(definition, samples)
    if numbers["overdrawn"]:
        raise InternalError(f"The changes of view {definition.view!r} delete two rows of one key. Nothing was written.")
    which = F.coalesce(F.col("new"), F.col("old"))
    rows = per_key.select(*[which[n].alias(n) for n in names], op.alias(OP))
    frame = per_key.select(*[f"k{i}" for i in range(len(keys))])
    narrowing = _narrowing(frame, list(definition.key_names), kept.local)
    return Edits(rows, definition.key_names, numbers["I"], numbers["U"], numbers["D"], narrowing, kept.local)


def of_multiset(definition: Definition, changes: DataFrame, table: DataFrame, reading: Reading, number: int) -> Edits:
    """Edits of a multiset view from its consolidated changes; which copies go is read from the view's table."""
    names = [c.name for c in definition.columns]
    added = with_identity(definition, changes.where(F.col(WEIGHT) > 0), number).withColumn(OP, F.lit("I"))
    removed = changes.where(F.col(WEIGHT) < 0)
    numbers = changes.agg(
        F.sum(F.when(F.col(WEIGHT) > 0, F.col(WEIGHT)).otherwise(0)).alias("added"),
        F.sum(F.when(F.col(WEIGHT) < 0, -F.col(WEIGHT)).otherwise(0)).alias("removed"),
    ).head()
    inserted, deleted = (int(n or 0) for n in numbers or (0, 0))
    if not deleted:
        return Edits(added, (HASH, COPY), inserted, 0, 0, None, False)
    kept = reading.keep_rows(removed.withColumn(HASH, _hash(definition)))
    narrowing = _narrowing(*_pruning_columns(definition, kept.frame), kept.local)
    found = _copies_to_delete(definition, kept.frame, table if narrowing is None else table.alias("t").where(narrowing), kept.local)
    doomed = reading.keep_rows(found.select(*names, HASH, COPY, F.lit("D").alias(OP)))
    count = doomed.count if doomed.count is not None else doomed.frame.count()
    if count != deleted:
        raise InternalError(
            f"The changes of view {definition.view!r} delete {deleted} rows, of which its table holds {count}. Nothing was written. "
            f'Run "lakejoin verify {definition.view}", then "lakejoin rebuild {definition.view}".'
        )
    return Edits(added.unionByName(doomed.frame), (HASH, COPY), inserted, 0, deleted, narrowing, kept.local)


def with_identity(definition: Definition, rows: DataFrame, number: int) -> DataFrame:
    """The rows with hash and copy number, each as often as its weight says (once without weights)."""
    names = [c.name for c in definition.columns]
    if WEIGHT in rows.columns:
        copies = F.sequence(F.lit(1).cast("long"), F.col(WEIGHT))
        rows = rows.select(*[F.col(quoted(n)) for n in names], F.explode(copies).alias(COPY))
        ordinal = F.col(COPY)
    else:
        ordinal = F.monotonically_increasing_id()
    second = F.xxhash64(F.lit("copy"), F.lit(number), ordinal, *_hash_inputs(definition))
    return rows.select(*[F.col(quoted(n)) for n in names], _hash(definition).alias(HASH), second.alias(COPY))


def key_violation(definition: Definition, samples: list[tuple[object, ...]]) -> KeyViolationError:
    """The error for a declared key that the data breaks."""
    shown = "; ".join(str(dict(zip(definition.key_names, s, strict=True))) for s in samples)
    return KeyViolationError(
        f"The key ({', '.join(definition.key_names)}) of view {definition.view!r}, derived from the declared primary keys of "
        f"{', '.join(definition.sources)}, has more than one row for: {shown}. Nothing was published. Mend the data, or declare the "
        "primary key that holds (or none) under `tables:`."
    )


def _copies_to_delete(definition: Definition, removed: DataFrame, table: DataFrame, local: bool) -> DataFrame:
    """For each removed row, as many of the table's equal rows as its weight says."""
    columns = [(_encoded(c.name, c.data_type), f"{HIDDEN_PREFIX}wanted_{i}", f"{HIDDEN_PREFIX}held_{i}") for i, c in _columns(definition)]
    wanted = removed.select(
        F.col(HASH).alias(_WANTED_HASH), (-F.col(WEIGHT)).alias(_WANTED), *[encoded.alias(w) for encoded, w, _ in columns]
    )
    held = table.select("*", *[encoded.alias(h) for encoded, _, h in columns])
    same = F.col(HASH) == F.col(_WANTED_HASH)
    for _, w, h in columns:
        same = same & F.col(h).eqNullSafe(F.col(w))
    found = held.join(F.broadcast(wanted) if local else wanted, on=same, how="inner")
    order = Window.partitionBy(_WANTED_HASH, *[w for _, w, _ in columns]).orderBy(COPY)
    return found.withColumn(_NUMBER, F.row_number().over(order)).where(F.col(_NUMBER) <= F.col(_WANTED))


def _columns(definition: Definition) -> list[tuple[int, OutputColumn]]:
    return list(enumerate(definition.columns))


def _encoded(name: str, data_type: T.DataType) -> Column:
    return weights.canonical(F.col(quoted(name)), data_type)


def _hash_inputs(definition: Definition) -> list[Column]:
    return [part for c in definition.columns for part in weights.hash_input(F.col(quoted(c.name)), c.data_type)]


def _hash(definition: Definition) -> Column:
    return F.xxhash64(*_hash_inputs(definition))


def _pruning_columns(definition: Definition, rows: DataFrame) -> tuple[DataFrame, list[str]]:
    """Columns of a multiset by whose ranges files may be skipped: the first few that have ranges."""
    simple = (T.IntegralType, T.DecimalType, T.DateType, T.TimestampType, T.StringType)
    names = [c.name for c in definition.columns if isinstance(c.data_type, simple)][:_PRUNING_COLUMNS]
    return rows.select(*[F.col(quoted(n)).alias(f"k{i}") for i, n in enumerate(names)]), names


def _narrowing(frame: DataFrame, names: list[str], local: bool) -> Column | None:
    condition: Column | None = None
    for name, ranges in zip(names, of_frame(frame, local), strict=True):
        if ranges is not None:
            part = ranges.condition(F.col(f"t.{quoted(name)}"))
            condition = part if condition is None else condition & part
    return condition
