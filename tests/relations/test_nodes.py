"""Impossible trees are refused in the constructor of a node, which names it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lake.catalyst.nodes import Attribute, Measure, Node
from lake.errors import InternalError

PLAN = object()
LEAF = Node("LogicalRDD", (PLAN,), (), (Attribute(1, "id", None, 0),), "orders")
COUNT = Measure(2, "count", "BIGINT", 0)


@pytest.mark.parametrize(
    ("kind", "children", "more", "message"),
    [
        ("Filter", (LEAF,), {"spine": ()}, "Filter has an empty spine"),
        ("Join", (LEAF,), {}, "Join has 1 children instead of 2"),
        ("Join", (LEAF, LEAF, LEAF), {}, "Join has 3 children instead of 2"),
        ("Project", (), {}, "Project has 0 children instead of 1"),
        ("LogicalRDD", (LEAF,), {}, "LogicalRDD has 1 children instead of 0"),
        ("Union", (), {}, "Union has no children"),
        ("MapInPandas", (LEAF,), {"source": "orders"}, "MapInPandas has 1 children and is the source 'orders'"),
        ("Window", (LEAF,), {"measures": (COUNT,)}, "Window has measures"),
        ("Sort", (LEAF,), {"most": 3}, "Sort has a number of rows"),
        ("Limit", (LEAF,), {"most": -1}, "Limit has a negative number of rows"),
        ("Aggregate", (LEAF,), {"tie_free": "derived"}, "Aggregate is marked as an order without ties"),
        ("LogicalRDD", (), {"source": "orders", "output": LEAF.output * 2}, "LogicalRDD has an output column twice"),
    ],
)
def test_an_impossible_node_is_refused_by_name(kind: str, children: tuple[Node, ...], more: dict[str, Any], message: str) -> None:
    with pytest.raises(InternalError, match=message):
        Node(**{"kind": kind, "spine": (PLAN,), "children": children, "output": (), **more})


def test_a_possible_node_may_not_become_impossible() -> None:
    node = Node("Aggregate", (PLAN,), (LEAF,), (), measures=(COUNT,))
    assert replace(node, children=(node,)).children == (node,)
    with pytest.raises(InternalError, match="Join has 1 children"):
        replace(node, kind="Join", measures=())


def test_nodes_of_other_kinds_have_as_many_children_as_spark_gives_them() -> None:
    assert Node("CoGroup", (PLAN,), (LEAF, LEAF), ()).by_name is False
    assert Node("Union", (PLAN,), (LEAF,), ()).output_ids == frozenset()
