"""Random queries whose answer is a function of their inputs: every ORDER BY that matters leaves no ties, every double is exact.

A query is built from smaller ones, each of which is a query by itself; where one fails, the smallest that fails is shown.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tests.fuzz.shapes import lateral, pivot, range_frame, single

SCHEMAS = {
    "a": {"id": "int", "s": "string", "v": "int", "d": "decimal(8,2)"},
    "b": {"id": "bigint", "w": "int", "s": "string", "t": "date"},
    "c": {"k": "string", "x": "double", "v": "int", "l": "array<int>", "g": "struct<i:int,s:string>"},
}
NUMBERS = ("int", "bigint", "decimal(8,2)", "double")
KEYS = ("int", "bigint", "string", "date", "struct<i:int,s:string>")


@dataclass(frozen=True)
class Query:
    """SQL text of one SELECT, its columns with their types, the smaller queries in it, and the operators of it and those."""

    sql: str
    columns: tuple[tuple[str, str], ...]
    parts: tuple[Query, ...] = ()
    operators: tuple[str, ...] = ()

    def of(self, *types: str) -> list[str]:
        """The columns of some types."""
        return [name for name, found in self.columns if found in types]

    def walk(self) -> list[Query]:
        """This query and those in it, smallest first."""
        return [q for part in self.parts for q in part.walk()] + [self]


class Generator:
    """Draws queries; the same seed, the same queries."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self._names = 0

    def query(self, depth: int) -> Query:
        """A query of at most so many operators on top of each other."""
        if depth == 0:
            return self._table()
        makers: list[tuple[int, Callable[[int], Query | None]]] = [
            (3, self._filter),
            (2, self._project),
            (6, self._join),
            (4, self._semi),
            (5, self._aggregate),
            (1, self._distinct),
            (2, self._set),
            (4, self._window),
            (2, self._top),
            (2, self._scalar),
            (1, self._explode),
            (1, self._grouping_sets),
            (1, self._rare),
            *((1, partial(shape, self)) for shape in (lateral, single, pivot, range_frame)),
        ]
        weights, functions = zip(*makers, strict=True)
        while True:
            found = self.draw.choices(functions, weights)[0](depth - 1)
            if found is not None:
                return found

    # -- operators --------------------------------------------------------------------------------------------------

    def _table(self) -> Query:
        name = self.draw.choice(list(SCHEMAS))
        names = [(self.name(), column, kind) for column, kind in SCHEMAS[name].items()]
        listed = ", ".join(f"{column} AS {new}" for new, column, _ in names)
        return Query(f"SELECT {listed} FROM {name}", tuple((new, kind) for new, _, kind in names), (), (f"table {name}",))

    def _filter(self, depth: int) -> Query:
        q = self.query(depth)
        return self.over("filter", q, f"SELECT * FROM ({q.sql}) WHERE {self._condition(q)}", q.columns)

    def _project(self, depth: int) -> Query:
        q = self.query(depth)
        kept = self.draw.sample(q.columns, self.draw.randint(1, len(q.columns)))
        items, columns = [n for n, _ in kept], list(kept)
        for _ in range(self.draw.randint(0, 2)):
            text, kind = self._expression(q)
            items.append(f"{text} AS {(new := self.name())}")
            columns.append((new, kind))
        return self.over("project", q, f"SELECT {', '.join(items)} FROM ({q.sql})", columns)

    def _join(self, depth: int) -> Query | None:
        left, right = self.query(depth), self.query(self.draw.randint(0, depth))
        pairs = self.pairs(left, right)
        if not pairs:
            return None
        how = self.draw.choices(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"], [5, 3, 2, 2])[0]
        equal = [f"{a} {'<=>' if self.draw.random() < 0.2 else '='} {b}" for a, b in pairs[: self.draw.choice([1, 1, 1, 2])]]
        residual = self._residual(left, right) if self.draw.random() < 0.35 else []
        on = " AND ".join(equal + residual)
        operator = how.lower() + (" with residual" if residual else "")
        return self.both(operator, left, right, f"SELECT * FROM ({left.sql}) {how} ({right.sql}) ON {on}", left.columns + right.columns)

    def _semi(self, depth: int) -> Query | None:
        left, right = self.query(depth), self.query(self.draw.randint(0, depth))
        pairs = self.pairs(left, right)
        if not pairs:
            return None
        a, b = pairs[0]
        kind = self.draw.choice(["semi", "anti", "exists", "not exists", "in", "not in", "exists or"])
        residual = self._residual(left, right) if self.draw.random() < 0.3 else []
        inner = f"SELECT 1 FROM ({right.sql}) WHERE {' AND '.join([f'{a} = {b}', *residual])}"
        sql = {
            "semi": f"SELECT * FROM ({left.sql}) LEFT SEMI JOIN ({right.sql}) ON {' AND '.join([f'{a} = {b}', *residual])}",
            "anti": f"SELECT * FROM ({left.sql}) LEFT ANTI JOIN ({right.sql}) ON {' AND '.join([f'{a} = {b}', *residual])}",
            "exists": f"SELECT * FROM ({left.sql}) WHERE EXISTS ({inner})",
            "not exists": f"SELECT * FROM ({left.sql}) WHERE NOT EXISTS ({inner})",
            "in": f"SELECT * FROM ({left.sql}) WHERE {a} IN (SELECT {b} FROM ({right.sql}))",
            "not in": f"SELECT * FROM ({left.sql}) WHERE {a} NOT IN (SELECT {b} FROM ({right.sql}) WHERE {b} IS NOT NULL)",
            "exists or": f"SELECT * FROM ({left.sql}) WHERE {a} IS NULL OR EXISTS ({inner})",
        }[kind]
        return self.both(kind, left, right, sql, left.columns)

    def _aggregate(self, depth: int) -> Query:
        q = self.query(depth)
        groups = self.draw.sample(q.columns, min(len(q.columns), self.draw.choice([1, 1, 2])))
        items: list[str] = []
        columns: list[tuple[str, str]] = []
        for name, kind in groups:
            if self.draw.random() < 0.85:
                items.append(f"{name} AS {(new := self.name())}")
                columns.append((new, kind))
        for _ in range(self.draw.randint(1, 3)):
            text, kind = self._aggregated(q)
            items.append(f"{text} AS {(new := self.name())}")
            columns.append((new, kind))
        having = " HAVING count(*) > 1" if self.draw.random() < 0.2 else ""
        grouped = ", ".join(n for n, _ in groups)
        return self.over("aggregate", q, f"SELECT {', '.join(items)} FROM ({q.sql}) GROUP BY {grouped}{having}", columns)

    def _distinct(self, depth: int) -> Query:
        q = self.query(depth)
        kept = self.draw.sample(q.columns, self.draw.randint(1, min(3, len(q.columns))))
        return self.over("distinct", q, f"SELECT DISTINCT {', '.join(n for n, _ in kept)} FROM ({q.sql})", kept)

    def _set(self, depth: int) -> Query | None:
        left, right = self.query(depth), self.query(depth)
        pairs = self.pairs(left, right, same=True)
        if not pairs:
            return None
        how = self.draw.choice(["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        chosen = list({x: (x, y) for x, y in pairs}.values())[:2]
        a, b = (", ".join(names) for names in zip(*chosen, strict=True))
        kinds = dict(left.columns)
        columns = [(x, kinds[x]) for x, _ in chosen]
        return self.both(how.lower(), left, right, f"SELECT {a} FROM ({left.sql}) {how} SELECT {b} FROM ({right.sql})", columns)

    def _window(self, depth: int) -> Query:
        q = self.query(depth)
        by, _ = self.draw.choice(q.columns)
        order = self.total_order(q)
        function, result = self.draw.choice(
            [
                ("rank()", "int"),
                ("dense_rank()", "int"),
                ("row_number()", "int"),
                ("count(*)", "bigint"),
                *[(f"lag({n})", k) for n, k in q.columns[:2]],
                *[(f"{f}({n})", k if f == "max" else "bigint") for n, k in q.columns if k == "int" for f in ("sum", "max")][:2],
            ]
        )
        sql = f"SELECT *, {function} OVER (PARTITION BY {by} ORDER BY {order}) AS {(new := self.name())} FROM ({q.sql})"
        return self.over("window " + function.split("(")[0], q, sql, [*q.columns, (new, result)])

    def _top(self, depth: int) -> Query:
        q = self.query(depth)
        by, _ = self.draw.choice(q.columns)
        new, n = self.name(), self.draw.randint(1, 2)
        function = self.draw.choice(["row_number", "rank"])
        inner = f"SELECT *, {function}() OVER (PARTITION BY {by} ORDER BY {self.total_order(q)}) AS {new} FROM ({q.sql})"
        return self.over("top n", q, f"SELECT * FROM ({inner}) WHERE {new} <= {n}", [*q.columns, (new, "int")])

    def _scalar(self, depth: int) -> Query | None:
        left, right = self.query(depth), self.query(0)
        pairs = self.pairs(left, right)
        values = right.of("int", "bigint")
        if not pairs or not values:
            return None
        (a, b), value = pairs[0], self.draw.choice(values)
        f = self.draw.choice(["max", "min", "count", "sum"])
        inner = f"SELECT {f}({value}) FROM ({right.sql}) WHERE {b} = {a}"
        sql = f"SELECT *, ({inner}) AS {(new := self.name())} FROM ({left.sql})"
        return self.both("correlated scalar", left, right, sql, (*left.columns, (new, "bigint")))

    def _explode(self, depth: int) -> Query | None:
        q = self.query(depth)
        new = self.name()
        arrays, numbers = q.of("array<int>"), q.of("int")
        if not arrays and not numbers:
            return None
        value = arrays[0] if arrays else f"array({numbers[0]}, 1, NULL)"
        outer = self.draw.choice(["", "OUTER "])
        return self.over(
            "explode", q, f"SELECT * FROM ({q.sql}) LATERAL VIEW {outer}explode({value}) t AS {new}", [*q.columns, (new, "int")]
        )

    def _grouping_sets(self, depth: int) -> Query | None:
        q = self.query(depth)
        if len(q.columns) < 2:
            return None
        (a, ka), (b, kb) = self.draw.sample(q.columns, 2)
        how = self.draw.choice([f"ROLLUP ({a}, {b})", f"CUBE ({a}, {b})", f"GROUPING SETS (({a}), ({a}, {b}))"])
        x, y, n = self.name(), self.name(), self.name()
        sql = f"SELECT {a} AS {x}, {b} AS {y}, count(*) AS {n} FROM ({q.sql}) GROUP BY {how}"
        return self.over("grouping sets", q, sql, [(x, ka), (y, kb), (n, "bigint")])

    def _rare(self, depth: int) -> Query | None:
        """What has no key to go by, and is recomputed."""
        q = self.query(depth)
        new = self.name()
        match self.draw.choice(["global", "limit", "scalar", "range"]):
            case "global":
                text, kind = self._aggregated(q)
                return self.over("global aggregate", q, f"SELECT {text} AS {new} FROM ({q.sql})", [(new, kind)])
            case "limit":
                return self.over("limit", q, f"SELECT * FROM ({q.sql}) ORDER BY {self.total_order(q)} LIMIT 3", q.columns)
            case "scalar":
                other, values = self._table(), q.of("int", "bigint")
                found = other.of("int", "bigint")
                if not values or not found:
                    return None
                sql = f"SELECT * FROM ({q.sql}) WHERE {values[0]} >= (SELECT min({found[0]}) FROM ({other.sql}))"
                return self.both("uncorrelated scalar", q, other, sql, q.columns)
            case _:
                other, values = self._table(), q.of("int", "bigint")
                found = other.of("int", "bigint")
                if not values or not found:
                    return None
                how = self.draw.choice(["JOIN", "LEFT JOIN"])
                sql = f"SELECT * FROM ({q.sql}) {how} ({other.sql}) ON {values[0]} < {found[0]}"
                return self.both("range " + how.lower(), q, other, sql, q.columns + other.columns)

    # -- expressions ------------------------------------------------------------------------------------------------

    def _condition(self, q: Query) -> str:
        name, kind = self.draw.choice(q.columns)
        simple = {
            "string": [f"{name} > 'm'", f"{name} LIKE '%x%'", f"{name} IN ('x', 'y')", f"length({name}) = 1"],
            "array<int>": [f"size({name}) > 0"],
            "date": [f"{name} > DATE'2026-01-01'", f"dayofmonth({name}) = 2"],
            "struct<i:int,s:string>": [f"{name}.i > 1", f"{name}.s = 'x'", f"{name} > named_struct('i', 1, 's', 'x')"],
        }.get(kind, [f"{name} > 1", f"{name} BETWEEN 0 AND 3", f"{name} % 2 = 0", f"coalesce({name}, 0) < 4"])
        found = self.draw.choice([*simple, f"{name} IS NULL", f"{name} IS NOT NULL", f"NOT ({simple[0]})"])
        return found if self.draw.random() < 0.7 else f"({found} OR {self._condition(q)})"

    def _expression(self, q: Query) -> tuple[str, str]:
        name, kind = self.draw.choice(q.columns)
        match kind:
            case "string":
                return self.draw.choice([(f"upper({name})", "string"), (f"concat({name}, '!')", "string"), (f"length({name})", "int")])
            case "int" | "bigint":
                return self.draw.choice(
                    [(f"{name} + 1", kind), (f"CASE WHEN {name} > 1 THEN {name} END", kind), (f"CAST({name} AS string)", "string")]
                )
            case "array<int>":
                return f"size({name})", "int"
            case "date":
                return self.draw.choice([(f"{name} + INTERVAL 1 DAY", kind), (f"month({name})", "int")])
            case "struct<i:int,s:string>":
                return self.draw.choice([(f"{name}.i", "int"), (f"{name}.s", "string")])
            case _:
                return f"CASE WHEN {name} > 0.5 THEN {name} END", kind

    def _aggregated(self, q: Query) -> tuple[str, str]:
        name, kind = self.draw.choice(q.columns)
        choices = [("count(*)", "bigint"), (f"count({name})", "bigint"), (f"count(DISTINCT {name})", "bigint")]
        if kind != "array<int>":
            choices += [(f"min({name})", kind), (f"max({name})", kind)]
        if kind in ("int", "bigint"):
            choices += [(f"sum({name})", "bigint"), (f"sum(DISTINCT {name})", "bigint"), (f"avg({name})", "double")]
            choices += [(f"sum({name}) FILTER (WHERE {name} > 1)", "bigint")]
        if kind == "double":
            choices += [(f"sum({name})", "double")]
        if kind == "decimal(8,2)":
            choices += [(f"sum({name})", "decimal(18,2)"), (f"avg({name})", "decimal(12,6)")]
        return self.draw.choice(choices)

    def pairs(self, left: Query, right: Query, same: bool = False) -> list[tuple[str, str]]:
        """Columns of the two sides that can be equated, shuffled."""
        alike = [("int", "bigint")] if not same else []
        found = [
            (a, b)
            for a, ka in left.columns
            for b, kb in right.columns
            if ka in KEYS and kb in KEYS and (ka == kb or (ka, kb) in alike or (kb, ka) in alike)
        ]
        self.draw.shuffle(found)
        return found

    def _residual(self, left: Query, right: Query) -> list[str]:
        both = [(a, b) for a in left.of("int", "bigint") for b in right.of("int", "bigint")]
        choices = [f"{a} {op} {b}" for a, b in both[:3] for op in ("<", "<>")]
        choices += [f"{a} > 1" for a in left.of("int")[:1]] + [f"{b} > 1" for b in right.of("int")[:1]]
        return [self.draw.choice(choices)] if choices else []

    def total_order(self, q: Query) -> str:
        """All columns, so that equal sort keys are equal rows."""
        names = [n for n, _ in q.columns]
        self.draw.shuffle(names)
        return ", ".join(f"{n} {self.draw.choice(['', 'DESC', 'NULLS LAST'])}".strip() for n in names)

    def over(self, operator: str, q: Query, sql: str, columns: Sequence[tuple[str, str]]) -> Query:
        return Query(sql, tuple(columns), (q,), (*q.operators, operator))

    def both(self, operator: str, left: Query, right: Query, sql: str, columns: Sequence[tuple[str, str]]) -> Query:
        return Query(sql, tuple(columns), (left, right), (*left.operators, *right.operators, operator))

    def name(self) -> str:
        self._names += 1
        return f"n{self._names}"
