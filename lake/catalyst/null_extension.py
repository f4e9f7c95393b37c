"""Finds the columns of a view that an outer join null-extends together: for a row without a match, all columns of the other side.

SELECT a.k, a.x, b.y, b.z FROM a LEFT JOIN b ... → [{y, z}]
"""

from __future__ import annotations

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Node


def null_extended(node: Node, catalyst: Catalyst) -> tuple[frozenset[int], ...]:
    """The attribute ids, among the node's output, of each side of an outer join below that can be without a match.

    Columns that are computed from such a side's, and sides of which the output has none, are left out.
    """
    below = [group for child in node.children for group in null_extended(child, catalyst)]
    if node.kind == "Join":
        empty = {"LeftOuter": (1,), "LeftSingle": (1,), "RightOuter": (0,), "FullOuter": (0, 1)}.get(catalyst.join_type(node), ())
        below += [frozenset(a.id for a in node.children[side].output) for side in empty]
    carried = {a.id: {a.id} for a in node.output}
    if node.kind == "Project":
        carried = {}
        for output, java in catalyst.definitions(node).items():
            expression = catalyst.expression(java)
            if expression.plain and expression.attribute is not None:
                carried.setdefault(expression.attribute, set()).add(output)
    groups = (frozenset(i for attribute in group for i in carried.get(attribute, ())) for group in below)
    return tuple(dict.fromkeys(group for group in groups if group))
