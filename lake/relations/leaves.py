"""Relations without children: source tables, and rows that are written in the query itself."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from lake import weights
from lake.nodes import Attribute, Node, quoted
from lake.relations.base import Relation
from lake.relations.reading import Changes, Keys, Reading


class Source(Relation):
    """A source table, down to the columns that the query needs.

        changes = the table's consolidated change feed over (since, until]

    Example: versions 5 to 7 insert (1, 'a'), then update it to (1, 'b'): changes are {(1, 'b'): +1}.
    """

    rule = "reads its change feed"

    def __init__(self, node: Node, needed: frozenset[int], together: frozenset[str], shared: bool) -> None:
        """`together`: the table's columns that this or another source of the same tree needs: they are read once for all of them.

        `shared`: several operators above look rows up here, often by the same keys or fewer; what was found is kept.
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

    def snapshot(self, reading: Reading) -> DataFrame:
        whole = self._whole(reading)
        return _named(reading.rows_among(self.name), self.output) if whole is None else whole.frame

    def own_changes(self, reading: Reading) -> Changes | None:
        found = reading.changes_of_table(self.name, self.columns)
        if found is None:
            return None
        changes = found.frame.toDF(*[a.column for a in self._read], weights.WEIGHT)
        if self._read == self._output:
            return Changes(changes, found.count)
        return reading.keep(weights.consolidate(changes.select(*self._own, weights.WEIGHT)))

    def lookup(self, keys: Keys, reading: Reading, exact: bool = True) -> DataFrame:
        """Files that can't hold the keys are left out by their ranges, the rest is a semi join. A small table is kept whole."""
        whole = self._whole(reading)
        if whole is not None:
            return self.restricted(whole.frame, keys, reading) if exact else whole.frame
        names = {a.id: a.name for a in self.node.output}
        among = {names[e.attribute]: r for e, r in zip(keys.on, keys.ranges, strict=True) if e.attribute is not None and r is not None}
        if not self.shared or len(among) != 1 or len(keys.on) != 1:
            rows = _named(reading.rows_among(self.name, among), self.output)
            return self.restricted(rows, keys, reading) if exact else rows
        (column, ranges), *_ = among.items()
        table = (self.name, *self.columns, column, ranges.data_type)
        found = reading.looked_up(
            table,
            keys,
            lambda: self.restricted(_named(reading.rows_among(self.name, among), self._read), keys, reading),
            lambda rows: self.restricted(rows.toDF(*[a.column for a in self._read]), keys, reading),
        )
        return found.toDF(*[a.column for a in self._read]).select(*self._own)

    def _whole(self, reading: Reading) -> Changes | None:
        return reading.whole(self, lambda: _named(reading.sources.rows(self.name, {}), self.output), reading.sources.bytes(self.name))

    @property
    def _own(self) -> list[str]:
        return [a.column for a in self.output]


def _named(table: DataFrame, columns: Sequence[Attribute]) -> DataFrame:
    """A table's columns under the names that their attributes have in frames."""
    return table.selectExpr(*[f"{quoted(a.name)} AS {a.column}" for a in columns])


class Constant(Relation):
    """Rows that are written in the query (VALUES, a range, no FROM at all): they never change."""

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
    weight = [weights.WEIGHT] if weights.is_weighted(frame) else []
    return frame.selectExpr(*[f"{a.column} AS {b.column}" for a, b in zip(own, other, strict=True)], *weight)
