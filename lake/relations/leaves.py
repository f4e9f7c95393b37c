"""Relations without children: source tables, and rows that are written in the query itself."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from lake import weights
from lake.nodes import Attribute, Node, quoted
from lake.relations.base import Changes, Keys, Reading, Relation


class Source(Relation):
    """A source table, down to the columns that the query needs.

        changes = the table's consolidated change feed over (since, until]

    Example: versions 5 to 7 insert (1, 'a'), then update it to (1, 'b'): changes are {(1, 'b'): +1}.
    """

    rule = "reads its change feed"

    def __init__(self, node: Node, needed: frozenset[int]) -> None:
        super().__init__(node, ())
        used = tuple(a for a in node.output if a.id in needed)
        self._output = used or node.output[:1]  # count(*) needs rows, if no column

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
        return [a.name for a in self.output]

    def snapshot(self, reading: Reading) -> DataFrame:
        whole = self._whole(reading)
        return self._named(reading.sources.rows(self.name)) if whole is None else whole.frame

    def own_changes(self, reading: Reading) -> Changes | None:
        changes = reading.sources.changes(self.name, self.columns)
        if changes is None:
            return None
        return reading.count_read(reading.keep(changes.toDF(*[a.column for a in self.output], weights.WEIGHT)))

    def lookup(self, keys: Keys, reading: Reading, exact: bool = True) -> DataFrame:
        """Files that can't hold the keys are left out by their ranges, the rest is a semi join. A small table is kept whole."""
        whole = self._whole(reading)
        if whole is not None:
            return self.restricted(whole.frame, keys, reading) if exact else whole.frame
        names = {a.id: a.name for a in self.output}
        among = {names[e.attribute]: r for e, r in zip(keys.on, keys.ranges, strict=True) if e.attribute is not None and r is not None}
        rows = self._named(reading.sources.rows(self.name, among))
        return self.restricted(rows, keys, reading) if exact else rows

    def _whole(self, reading: Reading) -> Changes | None:
        return reading.whole(self, lambda: self._named(reading.sources.rows(self.name, {})), reading.sources.bytes(self.name))

    def _named(self, table: DataFrame) -> DataFrame:
        return table.selectExpr(*[f"{quoted(a.name)} AS {a.column}" for a in self.output])


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
