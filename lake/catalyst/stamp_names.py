"""The names under which a view's stamp has what it keeps of operators: of totals, of first rows, of rows after a LIMIT."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Node
from lake.spark.jvm.gateway import Java

_DIGITS = 20
"""80 bits, so that no two of a view have the same."""


def name_in_stamp(node: Node, plan: Java, catalyst: Catalyst, types: Sequence[str] = ()) -> str:
    """A digest of an operator (its plan), of the types of its sources' columns, which may be widened, and of further types."""
    sources = [catalyst.schema_of(each.plan).json() for each in node.walk() if each.source is not None]
    text = "\n".join([catalyst.normal_form(plan), *sorted(sources), *[m.data_type for m in node.measures], *types])
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
