"""From a view's changes to edits of its table: the inserted rows, and the identities of the deleted rows.

A keyed view's rows are identified by the key. A multiset's are by the whole row: of equal rows any may go, as many as the
changes say. Where a row lies is looked up in the table when it is published, once, within the changes' ranges.

Law: table + edits = table + changes, as multisets; an edit that does not find what it expects stops the publish (trap 9, 13).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake.config.models import HIDDEN_PREFIX
from lake.core.snapshots import Version
from lake.core.sql import quoted
from lake.delta.pinned import Pinned
from lake.delta.transaction import FILE, POSITION, with_positions
from lake.errors import InternalError, KeyViolationError
from lake.relations.frames import Changes
from lake.relations.reading import Reading
from lake.spark import local_rows, steps, zset
from lake.spark.key_ranges import Ranges, null_safe, ranges_of
from lake.spark.local_rows import values_of
from lake.views.definition import Definition, OutputColumn
from lake.views.table import schema

WEIGHT = f"{HIDDEN_PREFIX}weight"
SAMPLES = 3
_PRUNING_COLUMNS = 4
_WANTED, _NUMBER, _ADDED, _REMOVED = (f"{HIDDEN_PREFIX}{n}" for n in ("wanted", "number", "added", "removed"))
_SOUGHT, _HELD = (f"{HIDDEN_PREFIX}{n}" for n in ("sought", "held"))
_MIXED = f"{HIDDEN_PREFIX}mixed"
_KINDS = (f"{_REMOVED} = 0", f"{_ADDED} > 0 AND {_REMOVED} > 0", f"{_ADDED} = 0")
"""How to tell a key that is inserted, updated, deleted."""
_ROW = f"{HIDDEN_PREFIX}row"


@dataclass(frozen=True)
class Edits:
    """What a publish does. `new`: whole rows of the table, those to insert and those that replace old ones.

    `touched`: one row an identity of the rows to look up, with `__lakejoin_wanted`, how many of its rows must be there and go (0:
    a declared key that must not be there yet); None where no row is to be found. `ranges`: of some of their columns, so that files can
    be skipped. `found`: where the rows that go (None: none) lie in a version of the table, if that is known already.
    """

    definition: Definition
    new: DataFrame
    touched: Changes | None
    ranges: Mapping[str, Ranges | None]
    inserted: int
    updated: int
    deleted: int
    found: tuple[Version, Changes | None] | None = None

    def positions(self, table: DataFrame, reading: Reading) -> Changes | None:
        """Where the rows lie that go: file and position. `table`: the rows with their positions, at least those in its `ranges`.

        None where no row is deleted. Raises KeyViolationError where a new row's key exists already, InternalError where a row is not found.
        """
        if self.touched is None:
            return None
        found = reading.frames.keep_rows(self._found(table, self.touched))
        doubled, there = _tally(found, f"{_WANTED} = 0", f"{_WANTED} > 0")
        if doubled:
            keys = [F.col(quoted(n)) for n in self.definition.key_names]
            samples = found.frame.where(F.col(_WANTED) == 0).select(*keys).take(SAMPLES)
            raise key_violation(self.definition, [tuple(s) for s in samples])
        if there != self.updated + self.deleted:
            raise InternalError(
                f"The changes of view {self.definition.view!r} replace or delete {self.updated + self.deleted} rows, but its table "
                f'contains {there} of them. Nothing was written. Run "lakejoin verify {self.definition.view}", then "lakejoin rebuild '
                f'{self.definition.view}".'
            )
        return found if there else None

    def _found(self, table: DataFrame, touched: Changes) -> DataFrame:
        """Of each touched row that is in the table: how many are wanted, its file and position; on the driver, if both are there."""
        by_key = self.definition.key is not None
        names = self.definition.key_names if by_key else [c.name for c in self.definition.table_columns]
        made = local_rows.found(table, touched.frame, names, [_WANTED], [FILE, POSITION], most=not by_key) if touched.local else None
        return made if made is not None else (_by_key if by_key else _by_row)(self, table, touched)


def in_names(definition: Definition, frame: DataFrame) -> DataFrame:
    """A frame of the tree's attributes under the view's column names: the query's columns, the hidden key, the weight."""
    columns = [f"c{c.attribute} AS {quoted(c.name)}" for c in definition.table_columns]
    weight = [f"{zset.WEIGHT} AS {WEIGHT}"] if zset.is_weighted(frame) else []
    return steps.over(frame, steps.select([*columns, *weight]))


def keyed(definition: Definition, changes: Changes, reading: Reading) -> Edits:
    """Edits of a keyed view from its consolidated changes. Raises KeyViolationError where a key would have two rows."""
    edits = keyed_apart(definition, changes, reading)
    if edits is not None:
        return edits
    names, keys = schema(definition).names, definition.key_names
    kept = reading.frames.keep_rows(_with_rows_by_key(definition, changes))
    doubled, overdrawn, inserted, updated, deleted = _tally(kept, f"{_ADDED} > 1", f"{_REMOVED} > 1", *_KINDS)
    if doubled:
        samples = kept.frame.where(F.col(_ADDED) > 1).select(*[f"k{i}" for i in range(len(keys))]).take(SAMPLES)
        raise key_violation(definition, [tuple(s) for s in samples])
    if overdrawn:
        raise InternalError(f"The changes of view {definition.view!r} delete two rows of one key. Nothing was written.")
    whole = steps.select(f"{_ROW}.{quoted(n)} AS {quoted(n)}" for n in names)
    new = steps.over(kept.frame, steps.where(f"{_ADDED} > 0"), whole)
    return _of_keys(definition, new, kept, (inserted, updated, deleted))


def compared(definition: Definition, rows: DataFrame, pinned: Pinned, reading: Reading) -> Edits | None:
    """Edits of a keyed view from all rows of the recomputed query and the stored rows, joined by key in one pass.

    None where a key has several rows on one side: the consolidated difference then decides.
    """
    fields, keys = schema(definition).fields, definition.key_names
    held = {f.name: f"{_HELD}_{i}" for i, f in enumerate(fields)}
    new = rows.select(*[F.col(quoted(f.name)) for f in fields], F.lit(True).alias(_ADDED)).observe("new", F.count(_ADDED))
    old = with_positions(pinned.rows_among({})).select(*[F.col(quoted(n)).alias(h) for n, h in held.items()], FILE, POSITION)
    old, same_key, same_row = old.observe("old", F.count(POSITION)), F.lit(True), F.lit(True)
    for key in keys:
        same_key = same_key & F.col(quoted(key)).eqNullSafe(F.col(held[key]))
    for field in fields:
        one, other = (zset.canonical(F.col(quoted(n)), field.dataType) for n in (field.name, held[field.name]))
        same_row = same_row & one.eqNullSafe(other)
    paired = new.join(old, on=same_key, how="full").observe("paired", F.count(_ADDED), F.count(POSITION))
    own = [F.coalesce(F.col(quoted(k)), F.col(held[k])).alias(held[k]) for k in keys]
    differing = paired.where(F.col(_ADDED).isNull() | F.col(POSITION).isNull() | ~same_row)
    kept, seen = reading.frames.keep_observed(differing.select(*new.columns, *own, FILE, POSITION))
    # Spark reports no metric for a side that was optimised away because it has no rows
    if seen.get("paired", (0, 0)) != (*seen.get("new", (0,)), *seen.get("old", (0,))):
        return None
    inserted, updated, deleted = _tally(kept, f"{POSITION} IS NULL", f"{_ADDED} AND {POSITION} IS NOT NULL", f"{_ADDED} IS NULL")
    of_key = kept.frame.where(F.col(POSITION).isNull()).groupBy(*map(quoted, keys)).agg(F.count(F.lit(1)).alias(_NUMBER))
    if inserted and not of_key.where(F.col(_NUMBER) > 1).isEmpty():
        return None
    wanted = F.when(F.col(POSITION).isNull(), 0).otherwise(1).cast("long").alias(_WANTED)
    touched = replace(kept, frame=kept.frame.select(*[F.col(held[k]).alias(k) for k in keys], wanted))
    removed = replace(kept, frame=kept.frame.where(F.col(POSITION).isNotNull()).select(FILE, POSITION)) if updated + deleted else None
    new_rows = kept.frame.where(_ADDED).select(*[F.col(quoted(f.name)) for f in fields])
    return Edits(definition, new_rows, touched, {}, inserted, updated, deleted, found=(pinned.version, removed))


def keyed_apart(definition: Definition, changes: Changes, reading: Reading) -> Edits | None:
    """The same from many changes that are kept, consolidated or not, in one pass over them that brings only keys and numbers together.

    None where they are few after all, or may not be as good as consolidated: per key at most one row is inserted and one deleted, and these
    two differ.
    """
    if changes.local:
        return None
    values = [(F.col(quoted(f.name)), f.dataType) for f in changes.frame.schema.fields if f.name != WEIGHT]
    hashed = changes.frame.withColumn(_MIXED, zset.hashed(values))
    mixed = f"bit_xor({_MIXED}) AS {_MIXED}"  # 0 where two rows are the same; seldom else
    kept = reading.frames.keep_rows(_by_keys(definition, hashed, mixed))
    together, *counts = _tally(kept, f"{_ADDED} > 1 OR {_REMOVED} > 1 OR ({_ADDED} = 1 AND {_REMOVED} = 1 AND {_MIXED} = 0)", *_KINDS)
    if together:
        return None
    new = steps.over(changes.frame, steps.where(f"{WEIGHT} > 0"), steps.select(map(quoted, schema(definition).names)))
    return _of_keys(definition, new, kept, (counts[0], counts[1], counts[2]))


def _by_keys(definition: Definition, changes: DataFrame, also: str) -> DataFrame:
    """Each key of some changes (as k0, k1, ...), how many of its rows are inserted, how many are deleted, and another aggregate of them."""
    keys = [f"{quoted(k)} AS k{i}" for i, k in enumerate(definition.key_names)]
    counts = [f"sum(greatest({WEIGHT}, 0L)) AS {_ADDED}", f"sum(greatest(-{WEIGHT}, 0L)) AS {_REMOVED}"]
    return steps.over(changes, steps.group(keys, [*counts, also]))


def _with_rows_by_key(definition: Definition, changes: Changes) -> DataFrame:
    """`_by_keys` with the row that is inserted, as a struct: on the driver where the changes are."""
    names = schema(definition).names
    made = local_rows.by_keys(changes.frame, definition.key_names, names, WEIGHT, (_ADDED, _REMOVED, _ROW)) if changes.local else None
    if made is not None:
        return made
    row = f"first(IF({WEIGHT} > 0, struct({', '.join(map(quoted, names))}), NULL), true) AS {_ROW}"
    return _by_keys(definition, changes.frame, row)


def _of_keys(definition: Definition, new: DataFrame, by_key: Changes, counts: tuple[int, int, int]) -> Edits:
    """Edits that insert `new`; `by_key`: of `_by_keys`, kept; `counts`: keys inserted, updated, deleted."""
    assert definition.key is not None
    keys, (inserted, updated, deleted) = definition.key_names, counts
    # a key that follows from grouping need not be looked up where rows are only inserted
    looked_up = [] if definition.key.declared else [steps.where(f"{_REMOVED} > 0")]
    if not updated + deleted + (inserted if definition.key.declared else 0):
        return Edits(definition, new, None, {}, *counts)
    named = [f"k{i} AS {quoted(k)}" for i, k in enumerate(keys)]
    touched = replace(by_key, frame=steps.over(by_key.frame, *looked_up, steps.select([*named, f"{_REMOVED} AS {_WANTED}"])))
    ranges = ranges_of(steps.over(touched.frame, steps.select(map(quoted, keys))), touched.local)
    return Edits(definition, new, touched, dict(zip(keys, ranges, strict=True)), *counts)


def of_multiset(definition: Definition, kept: Changes, reading: Reading) -> Edits:
    """Edits of a multiset view from its consolidated changes; an update is a row less and a row more."""
    inserted, deleted = _tally(kept, f"greatest({WEIGHT}, 0)", f"greatest(-{WEIGHT}, 0)")
    new = zset.side(kept.frame, 1, WEIGHT)
    if not deleted:
        return Edits(definition, new, None, {}, inserted, 0, 0)
    columns = [quoted(c.name) for c in definition.table_columns]
    removed = steps.over(kept.frame, steps.where(f"{WEIGHT} < 0"), steps.select([*columns, f"-{WEIGHT} AS {_WANTED}"]))
    touched = Changes(removed, kept.count, kept.local)
    simple = (T.IntegralType, T.DecimalType, T.DateType, T.TimestampType, T.StringType)
    names = [c.name for c in definition.columns if isinstance(c.data_type, simple)][:_PRUNING_COLUMNS]
    pruning = steps.over(removed, steps.select(f"{quoted(n)} AS k{i}" for i, n in enumerate(names)))
    ranges = ranges_of(pruning, touched.local)
    return Edits(definition, new, touched, dict(zip(names, ranges, strict=True)), inserted, 0, deleted)


def _tally(rows: Changes, *amounts: str) -> list[int]:
    """The sum of each amount (a condition counts 1), as SQL, over the rows; no Spark job where they are on the driver."""
    each = steps.select(f"CAST({amount} AS BIGINT) AS n{i}" for i, amount in enumerate(amounts))
    total = [] if rows.local else [steps.group([], [f"sum(n{i}) AS n{i}" for i in range(len(amounts))])]
    found = values_of(steps.over(rows.frame, each, *total))
    return [sum(row[i] or 0 for row in found) for i in range(len(amounts))]


def key_violation(definition: Definition, samples: list[tuple[object, ...]]) -> KeyViolationError:
    """The error for a key with several rows: the data breaks a declared one; nothing should break one that follows from the query."""
    if definition.key_given:
        source = f"declared by `views.{definition.view}.key`"
        remedy = "Correct the data or the query, or declare columns that are unique (or no key) for the view."
    elif definition.depends_on_keys:
        source = f"derived from the declared primary keys of {', '.join(definition.sources)}"
        remedy = "Correct the data, or declare the primary key that is unique and not NULL (or none) under `tables:`."
    else:
        source = "derived from its query alone"
        remedy = f'No data should break it: please report this. "lakejoin rebuild {definition.view}" recomputes the view.'
    return KeyViolationError(
        f"The key ({', '.join(definition.key_names)}) of view {definition.view!r}, {source},",
        [dict(zip(definition.key_names, s, strict=True)) for s in samples],
        remedy,
    )


def refuse_doubled_keys(definition: Definition, rows: DataFrame) -> None:
    """Raise KeyViolationError where several of all the view's rows have one key."""
    keys = [F.col(quoted(k)) for k in definition.key_names]
    doubled = rows.groupBy(*keys).count().where(F.col("count") > 1).select(*keys).take(SAMPLES)
    if doubled:
        raise key_violation(definition, [tuple(s) for s in doubled])


def _by_key(edits: Edits, table: DataFrame, touched: Changes) -> DataFrame:
    """For each touched key its row in the table: its key, how many are wanted, file and position."""
    keys = [quoted(k) for k in edits.definition.key_names]
    names = [f"{_SOUGHT}_{i}" for i in range(len(keys))]  # beside the user's names
    sought = steps.over(touched.frame, steps.select([*[f"{k} AS {n}" for k, n in zip(keys, names, strict=True)], _WANTED]))
    held = steps.over(table, steps.select([*keys, FILE, POSITION]))
    same = [_equal(edits.ranges.get(k), quoted(k), n) for k, n in zip(edits.definition.key_names, names, strict=True)]
    found = steps.joined(held, sought, " AND ".join(same), touched.local)
    return steps.over(found, steps.select([*keys, _WANTED, FILE, POSITION]))


def _by_row(edits: Edits, table: DataFrame, touched: Changes) -> DataFrame:
    """For each touched row as many of the table's equal rows as are wanted: how many, file and position."""
    columns = edits.definition.table_columns
    sought, held = _encoded(touched.frame, columns, _SOUGHT, _WANTED), _encoded(table, columns, _HELD, FILE, POSITION)
    names = [f"{_SOUGHT}_{i}" for i in range(len(columns))]
    same = [_equal(edits.ranges.get(c.name), n, f"{_HELD}_{i}") for i, (c, n) in enumerate(zip(columns, names, strict=True))]
    found = steps.joined(held, sought, " AND ".join(same), touched.local)
    number = f"row_number() OVER (PARTITION BY {', '.join(names)} ORDER BY {FILE}, {POSITION}) AS {_NUMBER}"
    wanted = [_WANTED, FILE, POSITION]
    return steps.over(found, steps.select([*wanted, number]), steps.where(f"{_NUMBER} <= {_WANTED}"), steps.select(wanted))


def _encoded(rows: DataFrame, columns: Sequence[OutputColumn], prefix: str, *others: str) -> DataFrame:
    """What tells rows apart bit by bit, as prefix_0, prefix_1, ..., beside some other columns."""
    names = {f"{prefix}_{i}": c for i, c in enumerate(columns)}
    encoded = {n: zset.canonical(F.col(quoted(c.name)), c.data_type) for n, c in names.items() if not zset.is_bitwise(c.data_type)}
    rows = rows.withColumns(encoded) if encoded else rows
    return steps.over(rows, steps.select([*others, *[n if n in encoded else f"{quoted(c.name)} AS {n}" for n, c in names.items()]]))


def _equal(ranges: Ranges | None, one: str, other: str) -> str:
    """The comparison with keys of these ranges, as SQL."""
    return f"{one} {'<=>' if null_safe(ranges) else '='} {other}"
