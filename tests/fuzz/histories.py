"""Random tables and what happens to them: duplicates, NULLs, rows that move to another key, deletes and inserts of the same row."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import Any

from tests.fuzz.queries import SCHEMAS
from tests.relations.laws import Rows

KINDS = ("insert", "delete", "update", "move", "replace", "empty", "duplicate")


class History:
    """The tables at one point of their history; `step` takes them to the next."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.tables: dict[str, Rows] = {t: [self._row(t) for _ in range(draw.randint(0, 9))] for t in SCHEMAS}

    def step(self) -> tuple[dict[str, Rows], set[tuple[str, str]]]:
        """The tables after some changes, and (table, kind of change) for each."""
        after, done = {t: list(rows) for t, rows in self.tables.items()}, set()
        for table in self.draw.sample(list(SCHEMAS), self.draw.choice([1, 1, 2, 3])):
            for _ in range(self.draw.randint(1, 3)):
                kind = self.draw.choices(KINDS, [5, 4, 4, 4, 1, 1, 2])[0]
                self._change(kind, table, after[table])
                done.add((table, kind))
        self.tables = after
        return after, done

    def _change(self, kind: str, table: str, rows: Rows) -> None:
        if kind == "insert" or not rows:
            rows += [self._row(table) for _ in range(self.draw.randint(1, 3))]
            return
        place = self.draw.randrange(len(rows))
        match kind:
            case "delete":
                rows.pop(place)
            case "update":
                rows[place] = (rows[place][0], *self._row(table)[1:])
            case "move":
                rows[place] = (self._row(table)[0], *rows[place][1:])
            case "replace":
                rows[:] = [self._row(table) for _ in range(4)]
            case "empty":
                rows.clear()
            case "duplicate":
                rows += [rows[place]] * self.draw.randint(1, 2)

    def _row(self, table: str) -> tuple[Any, ...]:
        return tuple(self._value(kind) for kind in SCHEMAS[table].values())

    def _value(self, kind: str) -> Any:
        if self.draw.random() < 0.15:
            return None
        match kind:
            case "int" | "bigint":
                return self.draw.choice([0, 1, 1, 2, 2, 3, 4, -1])
            case "string":
                return self.draw.choice(["x", "y", "z", "xy", "", "1", "2"])
            case "double":
                return self.draw.choice([0.5, 0.0, 2.0, 1.25, float("nan")])
            case "date":
                return date(2026, 1, self.draw.choice([1, 1, 2, 3, 31]))
            case "struct<i:int,s:string>":
                return {"i": self._value("int"), "s": self._value("string")}
            case "array<int>":
                return [self._value("int") for _ in range(self.draw.randint(0, 2))]
            case _:
                return Decimal(self.draw.choice(["1.10", "2.00", "0.00", "-3.25"]))
