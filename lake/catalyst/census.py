"""What there is in a plan: its nodes and expressions by the names of their classes, those in its subqueries included."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from lake.spark.jvm.gateway import Java


@dataclass(frozen=True)
class Kind:
    """A plan's node or an expression: the simple name of its class, whether it is an expression, and whether that holds a subquery."""

    name: str
    is_expression: bool
    has_plan: bool


@dataclass(frozen=True)
class Census:
    """Every node and expression, in one order. They stay in the JVM (`java`) until they are asked for."""

    java: Java
    kinds: tuple[Kind, ...]

    def of(self, kinds: Collection[str]) -> Iterator[tuple[str, Java]]:
        """(class name, object) of those of some classes."""
        return self.where(lambda kind: kind.name in kinds)

    def where(self, wanted: Callable[[Kind], bool]) -> Iterator[tuple[str, Java]]:
        """The same of those that are wanted."""
        return ((kind.name, self.java.get(place)) for place, kind in enumerate(self.kinds) if wanted(kind))
