"""The tree of a query as plain records: attributes, expressions and nodes, each with its object in the JVM, which only catalyst uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from lake.errors import InternalError
from lake.spark.jvm.gateway import Java


def column_name(attribute_id: int) -> str:
    """The name that an attribute's column has in every frame."""
    return f"c{attribute_id}"


@dataclass(frozen=True)
class Attribute:
    """One output column of a node: Catalyst's expression id, the name the user sees, and its place in a sequence in the JVM."""

    id: int
    name: str
    _sequence: Java = field(compare=False)
    _place: int = field(compare=False)

    @cached_property
    def java(self) -> Java:
        """Its object in the JVM."""
        return self._sequence.apply(self._place)

    @property
    def column(self) -> str:
        return column_name(self.id)


@dataclass(frozen=True)
class Expression:
    """A Catalyst expression over a node's output: the attribute ids it reads, and what may be done with it.

    `attribute` is set where it is a plain column or a widening cast of one (it can't throw, so it may be evaluated below a
    filter); `plain` where it is the column itself.
    """

    java: Java
    references: frozenset[int]
    attribute: int | None
    plain: bool

    def __str__(self) -> str:
        return str(self.java.sql())


@dataclass(frozen=True)
class Literal:
    """A value of a scalar subquery: made by `Catalyst.value`, given to `Catalyst.run`, and opaque in between."""

    java: Java


@dataclass(frozen=True)
class Measure:
    """A column of an aggregate that can be added up (see aggregate_split.py).

    `kind`: rows, count, sum, min, max or average; of a sum and an average, `count`: the attribute id of the number of its values; of a
    sum, `scale`: that of its type; of an average of whole numbers, `parts`: those of their sum and of the sum of their magnitudes.
    """

    id: int
    kind: str
    data_type: str
    scale: int
    count: int | None = None
    parts: tuple[int, int] | None = None

    @property
    def column(self) -> str:
        return column_name(self.id)


_CHILDREN = {
    **dict.fromkeys(("LocalRelation", "OneRowRelation", "Range", "LogicalRDD"), 0),
    **dict.fromkeys(("Project", "Filter", "Aggregate", "Window", "Sort", "Limit", "Generate", "Expand"), 1),
    "Join": 2,
}
"""How many children a kind of node has, where every node of the kind has as many."""


@dataclass(frozen=True, eq=False)
class Node:
    """One operator of the tree: its kind (Catalyst's node name), its children, and its spine.

    The spine is the JVM nodes that are run together, outermost first: one for most operators, several for a LIMIT over its
    sort. Only the innermost one's children are `children`. `order_dependent`: what in its expressions depends on the order of
    rows (see determinism.py). `measures`: an aggregate's columns beside its groups, where they can all be added up.
    `most`: how many rows an ORDER BY ... LIMIT or a filter of ranks lets through (first_rows.py), 0 for any other. `tie_free`: a window's
    partition and order, or those of an ORDER BY ... LIMIT, tell the rows of its child apart, by a key of theirs: "declared" where this
    depends on a declared primary key, or "derived". `guarded`: it raises where its result depends on the order of rows for rare values
    (guards.py). `total`: of an aggregate over all rows inside a query, with measures, the name under which its row is in the stamp
    (relations/total.py); `margin`: of a node with `most`, that of its first rows (relations/first_rows.py), or at the view's root of the
    rows after its last one (relations/top.py).

    Raises InternalError for an impossible node.
    """

    kind: str
    spine: tuple[Java, ...]
    children: tuple[Node, ...]
    output: tuple[Attribute, ...]
    source: str | None = None
    order_dependent: str = ""
    measures: tuple[Measure, ...] = ()
    most: int = 0
    tie_free: str = ""
    guarded: bool = False
    total: str = ""
    margin: str = ""

    def __post_init__(self) -> None:
        impossible = self._impossible()
        if impossible:
            raise InternalError(f"The tree has an impossible node: {self.kind} {impossible}. Nothing was written.")

    def _impossible(self) -> str:
        """What is wrong with the node, empty for a possible one."""
        count, wanted = len(self.children), _CHILDREN.get(self.kind)
        found = {
            "has an empty spine": not self.spine,
            f"has {count} children instead of {wanted}": wanted is not None and count != wanted,
            "has no children": self.kind == "Union" and not count,
            f"has {count} children and is the source {self.source!r}": self.source is not None and count > 0,
            "has measures": bool(self.measures) and self.kind != "Aggregate",
            "is a total without measures": bool(self.total) and not self.measures,
            "has a margin without a number of rows": bool(self.margin) and not self.most,
            "has a number of rows": self.most != 0 and self.kind not in ("Limit", "Filter"),
            "has a negative number of rows": self.most < 0,
            "is marked as an order without ties": bool(self.tie_free) and self.kind not in ("Window", "Limit") and not self.most,
            "has an output column twice": self.source is not None and len(self.output_ids) < len(self.output),
        }
        return next((what for what, wrong in found.items() if wrong), "")

    @property
    def plan(self) -> Java:
        return self.spine[-1]

    @property
    def output_ids(self) -> frozenset[int]:
        return frozenset(a.id for a in self.output)

    @property
    def by_name(self) -> bool:
        """Whether a Python function is given its rows, and asks for their columns by name (mapInPandas, applyInArrow and their like)."""
        return self.kind.endswith(("InPandas", "InArrow"))

    def walk(self) -> Iterable[Node]:
        """This node and all below it, outermost first; plans inside expressions are not children."""
        yield self
        for child in self.children:
            yield from child.walk()
