"""What a refresh reads, each thing once: rows of tables, changes of relations, rows looked up by keys, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression, Literal, column_name
from lake.core import cost
from lake.core.phases import phase
from lake.relations.budget import Budget, FallBackToRecompute
from lake.spark import zset
from lake.spark.key_ranges import Ranges, of_frame


@dataclass(frozen=True)
class Changes:
    """Weighted rows of one relation over the interval, and how many there are where they are `kept`; `local`: on the driver.

    Where they are not kept, nothing has been computed yet, and reading the frame twice would compute it twice. `passed`: of how many rows
    that are kept each is looked at to compute them, where no more than that is done.
    """

    frame: DataFrame
    count: int | None
    local: bool = True
    passed: int | None = None

    @property
    def kept(self) -> bool:
        return self.count is not None


@dataclass(frozen=True)
class Keys:
    """Rows to look up: the values in `frame` (column `k<i>` for `on[i]`; repeats allowed) of expressions over a relation.

    Values compare null-safe: NULL is a key like any other. `ranges[i]` bounds the values where that is known; where not `whole`, rows
    were taken out of `frame` since, so that it need not have all of those values.
    """

    on: tuple[Expression, ...]
    frame: DataFrame
    ranges: tuple[Ranges | None, ...]
    local: bool
    whole: bool = True

    @classmethod
    def null(cls, on: Expression, reading: Reading) -> Keys:
        """The key NULL of one expression."""
        data_type = reading.catalyst.type_of(on)
        frame = reading.catalyst.spark.range(1).select(F.lit(None).cast(data_type).alias("k0"))
        return cls((on,), frame, (Ranges(data_type, (), null=True),), True)

    @property
    def columns(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.on))]

    @property
    def values(self) -> frozenset[object] | None:
        """The keys themselves, NULL among them, where they are of one expression and few enough to be known."""
        (first, *more) = self.ranges
        if more or not self.whole or first is None or first.values is None:
            return None
        return frozenset((*first.values, None) if first.null else first.values)

    def hold_null(self) -> bool:
        """Whether one of the keys has a NULL in it."""
        if all(ranges is not None for ranges in self.ranges):
            return any(ranges.null for ranges in self.ranges if ranges is not None)
        return not self.frame.where(" OR ".join(f"{column} IS NULL" for column in self.columns)).isEmpty()

    def pick(self, picked: Mapping[int, Expression]) -> Keys:
        """The keys of some of the expressions, given as position → the same expression over another relation."""
        frame = self.frame.select(*[F.col(f"k{i}").alias(f"k{n}") for n, i in enumerate(picked)])
        return replace(self, on=tuple(picked.values()), frame=frame, ranges=tuple(self.ranges[i] for i in picked))

    def narrowed(self, rows: DataFrame) -> DataFrame:
        """Stored rows within the keys' ranges, so that files can be skipped; `on` are columns of theirs."""
        for expression, ranges in zip(self.on, self.ranges, strict=True):
            if expression.plain and ranges is not None:
                rows = rows.where(ranges.condition(column_name(expression.attribute)))  # type: ignore[arg-type]
        return rows

    def without_nulls(self, null_safe: Sequence[bool]) -> Keys:
        """The keys that can match in a join: no NULL, but in columns that the join compares null-safe."""
        dropped = [i for i, safe in enumerate(null_safe) if not safe]
        ranges = [replace(r, null=False) if r is not None and i in dropped else r for i, r in enumerate(self.ranges)]
        # not dropna, for which NaN is no value either
        frame = self.frame.where(" AND ".join(f"k{i} IS NOT NULL" for i in dropped)) if dropped else self.frame
        whole = self.whole and (len(self.on) == 1 or not any(r is None or r.null for r in (self.ranges[i] for i in dropped)))
        return replace(self, frame=frame, ranges=tuple(ranges), whole=whole)


class Sources(Protocol):
    """Where source relations read: one pinned interval of the tables that a view reads (tables.py)."""

    def rows(self, source: str, among: Mapping[str, Ranges] | None = None) -> DataFrame:
        """All rows at `until`, with the table's own column names; those of files without keys of `among` (by column) may be left out."""

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        """Weighted rows of the columns (as c0, c1, ... and `w`) over (since, until], consolidated unless `raw`; None if there are none."""

    def raw(self, source: str) -> bool:
        """Whether `changes` are given as they are written."""

    def bytes(self, source: str, among: Mapping[str, Ranges] | None = None) -> int:
        """The size of the table's files at `until`, or of those that `rows` reads for some keys."""

    def moved(self, source: str) -> int:
        """The size of the files that the table's changes are read from; 0 where there are none."""

    def spread(self, source: str) -> float:
        """The files that changes lie in, by size, as a share of the table's: 0 for none, 1 for all."""

    def changed(self, source: str) -> int:
        """How many rows of the table came and went at the least, as far as that is known without reading them."""

    def count(self, source: str) -> int | None:
        """How many rows the table has at `until`, None where that is not known without reading them."""


class Cache(Protocol):
    """Rows that lookups found in earlier batches of the real-time path, moved on to `until` (relations/cache.py)."""

    def lookup(self, source: Any, keys: Keys, reading: Reading, looked_up: Callable[[Keys], DataFrame], /) -> DataFrame | None:
        """The rows of a source with one of the keys, None where such keys are not kept; `looked_up`: those of some keys, from the table."""


SMALL = 1 << 20
"""A table of fewer bytes is read whole, once: looking keys up in it costs more jobs than it has files."""


class Asked(Protocol):
    """What a reading asks of a relation (base.Relation)."""

    @property
    def sources(self) -> Sequence[tuple[object, str]]: ...
    def compute_changes(self, reading: Reading, /) -> Changes | None: ...
    def snapshot(self, reading: Reading, /) -> DataFrame: ...
    def snapshot_since(self, reading: Reading, /) -> DataFrame: ...


@dataclass
class Reading:
    """One refresh as its relations see it. What a relation computed once is kept, or a deep tree would compute its leaves
    again and again (trap 24)."""

    catalyst: Catalyst
    sources: Sources
    local_limit: int = 40_000
    budget: Budget = field(default_factory=Budget)
    cache: Cache | None = None
    on_many: Callable[[], None] | None = None
    rows_read: int = 0
    """Changes of sources read so far."""
    many: bool = False
    """Whether there have been more changes than are brought to the driver."""
    _changes: dict[int, Changes | None] = field(default_factory=dict)
    _persisted: list[DataFrame] = field(default_factory=list)
    _kept: dict[int, Changes] = field(default_factory=dict)
    _wholes: dict[object, Changes | None] = field(default_factory=dict)
    _values: dict[tuple[int, bool], Literal] = field(default_factory=dict)
    _tables: dict[tuple[str, ...], Changes | None] = field(default_factory=dict)
    _looked_up: dict[object, list[tuple[frozenset[object], Changes]]] = field(default_factory=dict)

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *exc: object) -> None:
        for frame in self._persisted:
            frame.unpersist()

    def changes_of(self, relation: Asked, kept: bool = True) -> Changes | None:
        """The relation's changes over the interval, computed once; `kept` false: for one who reads them once, as they are."""
        if id(relation) not in self._changes:
            self._changes[id(relation)] = relation.compute_changes(self)
        changes = self._changes[id(relation)]
        if changes is not None and kept and not changes.kept:
            changes = self._changes[id(relation)] = self.keep(changes.frame, changes.passed)
        return changes

    def value(self, subquery: Asked, since: bool) -> Literal:
        """The value of a scalar subquery at one end of the interval, as a literal, computed once."""
        since = since and self.changes_of(subquery) is not None
        if (id(subquery), since) not in self._values:
            rows = subquery.snapshot_since(self) if since else subquery.snapshot(self)
            self._values[id(subquery), since] = self.catalyst.value(rows)
        return self._values[id(subquery), since]

    def keep(self, frame: DataFrame, passed: int | None = None) -> Changes | None:
        """Compute the frame once: local rows where they are few (None where there are none), else persisted.

        Once there have been many, what is made of them is persisted before it is counted: to try for few would be to compute it twice.
        What was kept comes back as it is, and most of it (of `passed` rows) is not kept once more.
        """
        found = self._kept.get(id(frame)) or self._computed(frame, passed)
        if found is not None:
            self._kept[id(found.frame)] = found
        return found

    def _computed(self, frame: DataFrame, passed: int | None) -> Changes | None:
        if passed is not None:
            count = frame.count()
            if 2 * count > passed:
                return Changes(frame, count, local=False, passed=passed)
        collected = self.catalyst.folded(frame, self.local_limit) if self.many else self.catalyst.collected(frame, self.local_limit)
        if collected is None:
            self.expect_many()
            return self._persist(frame)[0]
        local, count = collected
        return Changes(local, count) if count else None

    def keep_observed(self, frame: DataFrame) -> tuple[Changes, Mapping[str, tuple[int, ...]]]:
        """A frame that is dear to compute computed once, and what was observed under its names (`DataFrame.observe`); a name may be missing
        where no row came by."""
        kept, seen = self._persist(frame)
        return kept or Changes(frame.limit(0), 0), seen

    def _persist(self, frame: DataFrame) -> tuple[Changes | None, Mapping[str, tuple[int, ...]]]:
        self._persisted.append(frame.persist())
        frame = frame.select("*")  # the frame itself was planned before there was anything persisted, and would compute it again
        count, seen = self.catalyst.counted(frame)
        if count > self.local_limit:
            return Changes(frame, count, local=False), seen
        collected = self.catalyst.collected(frame, self.local_limit)
        assert collected is not None
        return Changes(collected[0], count) if count else None, seen

    def whole(self, table: object, rows: Callable[[], DataFrame], size: int) -> Changes | None:
        """All rows of a table of so many bytes, brought to the driver once; None where it is too large (or its size not known)."""
        if not 0 < size <= SMALL:
            return None
        if table not in self._wholes:
            found = self.catalyst.collected(rows(), self.local_limit)
            self._wholes[table] = None if found is None else Changes(*found)
        return self._wholes[table]

    @phase("read changes")
    def changes_of_table(self, source: str, columns: Sequence[str]) -> Changes | None:
        """A table's changes in some columns (as c0, c1, ...), read once, however often the query reads the table."""
        if (source, *columns) not in self._tables:
            frame = self.sources.changes(source, columns)
            if self.sources.changed(source) > self.local_limit:
                self.expect_many()
            changes = None if frame is None else self.keep(frame)
            if changes is not None and self.sources.raw(source) and (changes.local or zset.repeats(changes.frame)):
                changes = self.keep(zset.consolidate(changes.frame))
            self._tables[source, *columns] = changes
            self.rows_read += (changes.count or 0) if changes is not None else 0
        return self._tables[source, *columns]

    def looked_up(self, table: object, keys: Keys, rows: Callable[[], DataFrame], narrowed: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """The `rows` of a table that have some keys, read once: of an earlier lookup that had all of these keys, `narrowed` to them."""
        wanted = keys.values
        if wanted is None:
            return rows()
        earlier = self._looked_up.setdefault(table, [])
        for had, found in earlier:
            if wanted <= had:
                return found.frame if wanted == had else narrowed(found.frame)
        found = self.keep_rows(rows())
        earlier.append((wanted, found))
        return found.frame

    def rows_among(self, source: str, among: Mapping[str, Ranges] | None = None) -> DataFrame:
        """Rows of a table at `until`, all or those of files that may hold some keys (by column); their cost is counted."""
        if self.budget.limit:
            self.budget.spend(cost.looked_up(self.sources.bytes(source, among)), "reading tables for lookups")
        return self.sources.rows(source, among)

    def fall_back(self, why: FallBackToRecompute) -> None:
        """From here on the query is recomputed, whatever it costs."""
        self.budget.fall_back(why)
        self.expect_many()

    def expect_many(self) -> None:
        """No settings for few rows from here on."""
        self.many = True
        if self.on_many is not None:
            self.on_many()

    def bytes_of(self, relation: Asked) -> int:
        """The size of the tables below a relation, each as often as it is read."""
        return sum(self.sources.bytes(source) for _, source in relation.sources)

    def keep_rows(self, frame: DataFrame) -> Changes:
        """Compute unweighted rows once, as `keep` does; an empty frame stays one."""
        return self.keep(frame) or Changes(frame.limit(0), 0)

    def keys(self, parts: Sequence[tuple[Changes, Sequence[Expression]]]) -> Keys:
        """The keys that occur in changes: for each part the values of its expressions, all parts together.

        The keys' `on` are the first part's expressions; `pick` moves them to another relation.
        """
        frames = [self.catalyst.project(changes.frame, {f"k{i}": e for i, e in enumerate(on)}) for changes, on in parts]
        frame = frames[0]
        for other in frames[1:]:
            frame = frame.unionByName(other)
        local = all(changes.local for changes, _ in parts)
        if not local:  # many changes may still be of few keys
            kept = self.keep_rows(frame.distinct())
            frame, local = kept.frame, kept.local
        return Keys(tuple(parts[0][1]), frame, of_frame(frame, local), local)
