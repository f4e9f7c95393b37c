"""Relations without children: source tables, and constant rows of the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from lake.catalyst.nodes import Attribute, Node
from lake.core.sql import quoted
from lake.relations.base import Bounds, Relation
from lake.relations.frames import Changes
from lake.relations.lookup_keys import Keys
from lake.relations.reading import Reading
from lake.spark import steps, zset
from lake.spark.key_ranges import Ranges


class Source(Relation):
    """A source table, down to the columns that the query needs.

        changes = the table's consolidated change feed over (since, until]

    Example: versions 5 to 7 insert (1, 'a'), then update it to (1, 'b').

    >>> from tests.relations.twin import bag, difference, plus, shown
    >>> shown(plus(bag((1, 'a')), difference(bag((1, 'b')), bag((1, 'a')))))
    {(1, 'b'): 1}
    """

    rule = "reads its change feed"

    def __init__(self, node: Node, needed: frozenset[int], together: frozenset[str], shared: bool) -> None:
        """`together`: the table's columns that this or another source of the same tree needs: they are read once for all of them.

        `shared`: several operators above look up rows here, often by the same keys or fewer; the rows found are stored.
        """
        super().__init__(node, ())
        self.shared = shared
        used = tuple(a for a in node.output if a.id in needed)
        self._output = used or node.output[:1]  # count(*) needs rows, if no column
        own = {a.name for a in self._output}
        self._read = tuple(a for a in node.output if a.name in own | together)

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self._output

    @property
    def name(self) -> str:
        assert self.node.source is not None
        return self.node.source

    @property
    def columns(self) -> list[str]:
        """The table's columns that are read."""
        return [a.name for a in self._read]

    @property
    def read(self) -> tuple[Attribute, ...]:
        """The same as attributes of this relation's."""
        return self._read

    def snapshot(self, reading: Reading) -> DataFrame:
        return self.snapshot_near((), reading)

    def snapshot_near(self, bounds: Bounds, reading: Reading) -> DataFrame:
        small = self._small(reading)
        return _named(reading.tables.rows(self.name, self._names(bounds) or None), self.output) if small is None else self._own(small)

    def own_changes(self, reading: Reading) -> Changes | None:
        found = reading.tables.changes(self.name, self.columns)
        if found is None:
            return None
        changes = reading.catalyst.with_names(found.frame, [*[a.column for a in self._read], zset.WEIGHT])
        if self._read == self._output:
            return Changes(changes, found.count, found.local)
        return reading.frames.keep_consolidated(self._own(changes, zset.WEIGHT))

    def lookup(self, keys: Keys, reading: Reading, exact: bool = True) -> DataFrame:
        """Files that can't hold the keys are left out by their ranges, the rest is a semi join. A small table is read in full, once.

        On the real-time path, rows of an earlier batch's keys are read from its cache.
        """

        every = replace(keys, within=())  # what is stored for others to find has all rows of a key

        def exactly(some: Keys) -> DataFrame:
            return self.restricted(self._near(some, reading), some, reading)

        if reading.cache is not None:
            cached = reading.cache.lookup(self, every, reading, exactly)
            if cached is not None:
                return self._own(cached)
        among = self._among(every)
        if not self.shared or len(among) != 1 or len(keys.on) != 1 or self._small(reading) is not None:
            near = self._own(self._near(keys, reading))
            return self.restricted(near, keys, reading) if exact else near
        (column, ranges), *_ = among.items()
        table = (self.name, *self.columns, column, ranges.data_type)
        names = [a.column for a in self._read]
        found = reading.tables.looked_up(
            table, keys, lambda: exactly(every), lambda rows: self.restricted(reading.catalyst.with_names(rows, names), keys, reading)
        )
        return self._own(reading.catalyst.with_names(found, names))

    def _near(self, keys: Keys, reading: Reading) -> DataFrame:
        """The rows of those files that may hold some keys, in the columns that are read."""
        small = self._small(reading)
        return _named(reading.tables.rows(self.name, self._among(keys)), self._read) if small is None else small

    def _among(self, keys: Keys) -> dict[str, Ranges]:
        return self._names([*keys.within, *[(e, r) for e, r in zip(keys.on, keys.ranges, strict=True) if r is not None]])

    def _names(self, bounds: Bounds) -> dict[str, Ranges]:
        """The bounds by the table's columns."""
        names = {a.id: a.name for a in self.node.output}
        return {names[e.attribute]: ranges for e, ranges in bounds if e.attribute is not None}

    def _small(self, reading: Reading) -> DataFrame | None:
        size = reading.sources.bytes(self.name)
        found = reading.small_table(self, lambda: _named(reading.sources.rows(self.name, {}), self._read), size)
        return None if found is None else found.frame

    def _own(self, rows: DataFrame, *more: str) -> DataFrame:
        """Of rows in the columns that are read, those of this relation."""
        if self._read == self._output:
            return rows
        return steps.over(rows, steps.select([*[a.column for a in self.output], *more]))


def _named(table: DataFrame, columns: Sequence[Attribute]) -> DataFrame:
    """A table's columns under the names that their attributes have in frames."""
    return steps.over(table, steps.select(f"{quoted(a.name)} AS {a.column}" for a in columns))


class Constant(Relation):
    """Constant rows of the query (VALUES, a range, no FROM at all): they never change."""

    rule = "constant"

    def __init__(self, node: Node) -> None:
        super().__init__(node, ())

    def snapshot(self, reading: Reading) -> DataFrame:
        return self.run(reading, [])

    def own_changes(self, reading: Reading) -> Changes | None:
        return None

    def lookup(self, keys: Keys, reading: Reading, exact: bool = True) -> DataFrame:
        rows = self.snapshot(reading)
        return self.restricted(rows, keys, reading) if exact else rows


def renamed(frame: DataFrame, own: Sequence[Attribute], other: Sequence[Attribute]) -> DataFrame:
    """The frame with the columns of `own` under the names of `other`, by position; the weight stays."""
    weight = [zset.WEIGHT] if zset.is_weighted(frame) else []
    return steps.over(frame, steps.select([*[f"{a.column} AS {b.column}" for a, b in zip(own, other, strict=True)], *weight]))
