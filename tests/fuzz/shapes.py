"""More shapes of random queries: correlated subqueries in FROM and without an aggregate, PIVOT, and windows over ranges of dates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.queries import Generator, Query


def lateral(self: Generator, depth: int) -> Query | None:
    """The first rows of the right side for each row of the left one."""
    left, right = self.query(depth), self.query(self.draw.randint(0, depth))
    pairs = self.pairs(left, right)
    if not pairs:
        return None
    (a, b), (value, kind), new = pairs[0], self.draw.choice(right.columns), self.name()
    inner = f"SELECT {value} AS {new} FROM ({right.sql}) WHERE {b} = {a} ORDER BY {self.total_order(right)} LIMIT {self.draw.randint(1, 2)}"
    outer = self.draw.random() < 0.5
    joined = f"LEFT JOIN LATERAL ({inner}) ON true" if outer else f", LATERAL ({inner})"
    operator = "left lateral" if outer else "lateral"
    return self.both(operator, left, right, f"SELECT * FROM ({left.sql}) {joined}", (*left.columns, (new, kind)))


def single(self: Generator, depth: int) -> Query | None:
    """A subquery that finds a row at the most, though Spark can't know."""
    left, right = self.query(depth), self.query(self.draw.randint(0, depth))
    pairs = self.pairs(left, right, same=True)
    if not pairs:
        return None
    (a, b), new = pairs[0], self.name()
    sql = f"SELECT *, (SELECT DISTINCT {b} FROM ({right.sql}) WHERE {b} = {a}) AS {new} FROM ({left.sql})"
    return self.both("correlated single", left, right, sql, (*left.columns, (new, dict(right.columns)[b])))


def pivot(self: Generator, depth: int) -> Query | None:
    """Counts and extremes of one column, a column for each of two texts."""
    q = self.query(depth)
    texts, others = q.of("string"), [(n, k) for n, k in q.columns if k in ("int", "bigint", "date")]
    if not texts or len(others) < 2:
        return None
    (group, kind), (value, of) = self.draw.sample(others, 2)
    g, x, y, n, m = (self.name() for _ in range(5))
    chosen = f"SELECT {texts[0]} AS pivoted, {group} AS {g}, {value} AS valued FROM ({q.sql})"
    sql = f"SELECT * FROM ({chosen}) PIVOT (count(valued) AS {n}, max(valued) AS {m} FOR pivoted IN ('x' AS {x}, 'y' AS {y}))"
    made = [(f"{of_text}_{name}", found) for of_text in (x, y) for name, found in ((n, "bigint"), (m, of))]
    return self.over("pivot", q, sql, [(g, kind), *made])


def range_frame(self: Generator, depth: int) -> Query | None:
    """A count over the days around a row's."""
    q = self.query(depth)
    dates = q.of("date")
    if not dates:
        return None
    (by, _), new = self.draw.choice(q.columns), self.name()
    frame = "RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND " + self.draw.choice(["CURRENT ROW", "INTERVAL 1 DAY FOLLOWING"])
    sql = f"SELECT *, count(*) OVER (PARTITION BY {by} ORDER BY {dates[0]} {frame}) AS {new} FROM ({q.sql})"
    return self.over("window range", q, sql, [*q.columns, (new, "bigint")])
