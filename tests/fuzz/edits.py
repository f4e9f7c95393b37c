"""Random edits of random queries over Delta tables that go on changing: each applied edit holds what the edited query gives, hidden columns
included, and so do the refreshes after it.

Several views are edited in one lake, since a table that changes costs more than an edit.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lake import open_lake
from lake.config.models import HIDDEN_PREFIX
from tests.fuzz.histories import History
from tests.fuzz.queries import SCHEMAS, Generator, Query
from tests.lakes import TestLake, multiset, table_of
from tests.relations.laws import Rows, local_frame

VIEWS = 6
"""In a lake."""
DDL = {t: ", ".join(f"{c} {k}" for c, k in columns.items()) for t, columns in SCHEMAS.items()}


@dataclass(frozen=True)
class Pair:
    """A query, and what somebody edits it to."""

    edit: str
    before: Query
    after: Query


class Edits(Generator):
    """Draws pairs of queries that differ in one place."""

    def pair(self) -> Pair:
        """A pair, of which the edit may lie below another operator."""
        while True:
            makers: list[Callable[[], Pair | None]] = [
                self._otherwise,
                self._columns,
                self._computed,
                self._narrowed,
                self._condition_changed,
                self._input_added,
                self._join_changed,
                self._aggregate_added,
                self._groups_changed,
            ]
            found = self.draw.choice(makers)()
            if found is None:
                continue
            if self.draw.random() < 0.3:
                found = self._below(found) or found
            return Pair(found.edit, found.after, found.before) if self.draw.random() < 0.3 else found

    def _base(self) -> Query:
        return self.query(self.draw.choice([0, 0, 1, 1, 2]))

    def _otherwise(self) -> Pair:
        q = self._base()
        one, two = self._condition(q), self._condition(q)
        texts = [f"SELECT * FROM ({q.sql}) WHERE ({one}) AND ({two})", f"SELECT z.* FROM ({q.sql}) AS z WHERE ({two}) AND ({one})"]
        return Pair("written in another way", *(self.over("filter", q, text, q.columns) for text in texts))

    def _columns(self) -> Pair:
        """Columns dropped, renamed and in another order."""
        q = self._base()
        kept = self.draw.sample(q.columns, self.draw.randint(1, len(q.columns)))
        named = [(n, self.name() if self.draw.random() < 0.3 else n, kind) for n, kind in kept]
        text = f"SELECT {', '.join(f'{n} AS {new}' for n, new, _ in named)} FROM ({q.sql})"
        return Pair("columns", q, self.over("project", q, text, [(new, kind) for _, new, kind in named]))

    def _computed(self) -> Pair:
        q = self._base()
        (text, kind), new = self._expression(q), self.name()
        return Pair("column computed", q, self.over("project", q, f"SELECT *, {text} AS {new} FROM ({q.sql})", [*q.columns, (new, kind)]))

    def _narrowed(self) -> Pair:
        q = self._base()
        return Pair("condition added", q, self.over("filter", q, f"SELECT * FROM ({q.sql}) WHERE {self._condition(q)}", q.columns))

    def _condition_changed(self) -> Pair:
        q = self._base()
        texts = [f"SELECT * FROM ({q.sql}) WHERE {self._condition(q)}" for _ in range(2)]
        return Pair("condition changed", *(self.over("filter", q, text, q.columns) for text in texts))

    def _input_added(self) -> Pair | None:
        left, more = self._set(1), self._base()
        if left is None:
            return None
        by_kind = {kind: name for name, kind in more.columns}
        if not all(kind in by_kind for _, kind in left.columns):
            return None
        other = f"SELECT {', '.join(by_kind[kind] for _, kind in left.columns)} FROM ({more.sql})"
        one = f"SELECT * FROM ({left.sql}) UNION ALL SELECT * FROM ({left.sql})"
        queries = [self.both("union all", left, more, text, left.columns) for text in (one, f"{one} UNION ALL {other}")]
        return Pair("input of a union", *queries)

    def _join_changed(self) -> Pair | None:
        left, right = self._base(), self.query(0)
        pairs = self.pairs(left, right)
        if not pairs:
            return None
        columns, (a, b) = left.columns + right.columns, pairs[0]
        ways = self.draw.sample(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"], 2)
        more = [[], self._residual(left, right) if self.draw.random() < 0.5 else []]
        if more[1]:
            ways[1] = ways[0]
        texts = [
            f"SELECT * FROM ({left.sql}) {how} ({right.sql}) ON {' AND '.join([f'{a} = {b}', *residual])}"
            for how, residual in zip(ways, more, strict=True)
        ]
        return Pair("join", *(self.both(how.lower(), left, right, text, columns) for how, text in zip(ways, texts, strict=True)))

    def _aggregate_added(self) -> Pair:
        q = self._base()
        (group, kind), items = self.draw.choice(q.columns), [self._aggregated(q) for _ in range(self.draw.randint(2, 3))]
        columns = [(group, kind), *((self.name(), k) for _, k in items)]
        texts = [f"{text} AS {name}" for (text, _), (name, _) in zip(items, columns[1:], strict=True)]
        made = [
            self.over("aggregate", q, f"SELECT {', '.join([group, *texts[:n]])} FROM ({q.sql}) GROUP BY {group}", columns[: n + 1])
            for n in (len(items) - 1, len(items))
        ]
        return Pair("aggregate added", *made)

    def _groups_changed(self) -> Pair | None:
        q = self._base()
        alike = [(n, k) for n, k in q.columns if k in ("int", "bigint")]
        if len(alike) < 2:
            return None
        new, count = self.name(), self.name()
        columns = [(new, alike[0][1]), (count, "bigint")]
        texts = [f"SELECT {n} AS {new}, count(*) AS {count} FROM ({q.sql}) GROUP BY {n}" for n, _ in alike[:2]]
        return Pair("other groups", *(self.over("aggregate", q, text, columns) for text in texts))

    def _below(self, pair: Pair) -> Pair | None:
        """The edit below another operator, which is the same before and after."""
        if pair.before.columns != pair.after.columns:
            return None
        q, new = pair.before, self.name()
        by = q.columns[0][0]
        wrapped = self.draw.choice(
            [
                f"SELECT * FROM (@) WHERE {self._condition(q)}",
                f"SELECT *, {self._expression(q)[0]} AS {new} FROM (@)",
                "SELECT DISTINCT * FROM (@)",
                f"SELECT {by}, count(*) AS {new} FROM (@) GROUP BY {by}",
                f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY {self.total_order(q)}) AS {new} FROM (@)",
            ]
        )
        return Pair(f"{pair.edit}, below", *(Query(wrapped.replace("@", half.sql), (), (half,)) for half in (pair.before, pair.after)))


@dataclass
class Edited:
    """What a run did: edits applied, refreshes after them, and how often each edit was of a kind."""

    refreshes: int = 0
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)


class WrongEditError(Exception):
    """A view that is not what Spark says after an edit; the text names the seed, the queries and the moment."""


def edited_lake(spark: SparkSession, folder: Path, seed: int, accepted: Callable[[Query], bool], found: Edited) -> None:
    """The views of one lake, edited once. `accepted`: whether Spark itself can plan a query. Raises WrongEditError."""
    draw = random.Random(seed)
    history, generator, lake = History(draw), Edits(draw), TestLake(spark, folder)
    pairs: dict[str, Pair] = {}
    while len(pairs) < VIEWS:
        pair = generator.pair()
        if accepted(pair.before) and accepted(pair.after):
            pairs[f"v{len(pairs)}"] = pair
    for name, rows in history.tables.items():
        frame(spark, name, rows).write.format("delta").option("delta.enableChangeDataFeed", "true").save(lake.path(name))
        lake.tables[name] = {"path": name}
    for view, pair in pairs.items():
        lake.view(view, pair.before.sql)
    lake.open.refresh_all()
    for _ in range(draw.randint(0, 1)):
        _step(lake, history)
        lake.open.refresh_all()
    read = history.tables
    _step(lake, history)
    for view, pair in pairs.items():
        lake.view(view, pair.after.sql)
    planned = {view.view: view.how or view.action for view in lake.open.plan().views}
    lake.open.apply()
    found.kinds.update((pair.edit, planned[view]) for view, pair in pairs.items())
    _compare(lake, pairs, {v: history.tables if kind == "rebuild" else read for v, kind in planned.items()}, f"seed {seed}, {planned}")
    _compare_hidden(lake, [v for v, kind in planned.items() if kind not in ("rebuild", "none")], pairs, f"seed {seed}, {planned}")
    for number in range(3):
        lake.open.refresh_all()
        _compare(lake, pairs, dict.fromkeys(pairs, history.tables), f"seed {seed}, {planned}, refresh {number} after it")
        found.refreshes += len(pairs)
        _step(lake, history)


def frame(spark: SparkSession, name: str, rows: Rows) -> Any:
    return local_frame(spark, rows, spark.createDataFrame([], DDL[name]).schema)


def _step(lake: TestLake, history: History) -> None:
    before = history.tables
    after, _ = history.step()
    for name, rows in after.items():
        if rows != before[name]:
            frame(lake.spark, name, rows).write.format("delta").mode("overwrite").save(lake.path(name))


def _compare(lake: TestLake, pairs: Mapping[str, Pair], tables: Mapping[str, dict[str, Rows]], when: str) -> None:
    for view, pair in pairs.items():
        session = lake.spark.newSession()
        for name, rows in tables[view].items():
            frame(session, name, rows).createOrReplaceTempView(name)
        held, wanted = multiset(lake.open.read(view)), multiset(session.sql(pair.after.sql))
        if held != wanted:
            raise WrongEditError(f"{when}: {view} holds {held - wanted} and lacks {wanted - held}\n{_shown(pair)}\nover {tables[view]}")


def _compare_hidden(lake: TestLake, edited: list[str], pairs: Mapping[str, Pair], when: str) -> None:
    """The hidden columns are those of the same views, built at the same snapshot in another place."""
    again = open_lake({**lake.config, "target": {"path": str(lake.folder / "again")}}, spark=lake.spark)
    for view in edited:
        stamp = lake.open.stamp(view)
        assert stamp is not None
        again.refresh(view, until=stamp.snapshot)
        here, there = (table_of(lake.spark, str(lake.folder / place / view)) for place in ("views", "again"))
        if not any(c.startswith(HIDDEN_PREFIX) for c in here.columns):
            continue
        held, wanted = multiset(here), multiset(there.select(*here.columns))
        if held != wanted or set(here.columns) != set(there.columns):
            raise WrongEditError(f"{when}: {view} hides {held - wanted} and lacks {wanted - held}\n{_shown(pairs[view])}")


def _shown(pair: Pair) -> str:
    return f"{pair.edit}:\n  {pair.before.sql}\n→ {pair.after.sql}"
