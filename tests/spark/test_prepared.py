"""Plans that are kept by their shape: run over other rows, they give what Spark gives of these; what only looks alike is told apart."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake.catalyst import Catalyst
from lake.spark.failures import SPARK_ERRORS
from lake.spark.jvm.gateway import jvm_of
from lake.spark.session import own_session
from tests.lakes import frozen
from tests.relations.laws import Rows, local_frame

MOST = 10_000
COLUMNS = {
    "k": T.LongType(),
    "g": T.StringType(),
    "x": T.IntegerType(),
    "d": T.DoubleType(),
    "n": T.DecimalType(10, 2),
    "t": T.DateType(),
    "l": T.ArrayType(T.IntegerType()),
}
SCHEMA = T.StructType([T.StructField(name, of) for name, of in COLUMNS.items()])
QUERIES = [
    "SELECT * FROM a JOIN b ON a.k = b.k",
    "SELECT a.k, b.g FROM a JOIN b ON a.k = b.x",  # the same join by another column
    "SELECT a.k, b.g FROM a LEFT JOIN b ON a.k = b.k AND a.x < b.x",
    "SELECT a.x, b.x FROM a FULL JOIN b ON a.g <=> b.g",
    "SELECT k, x FROM a LEFT SEMI JOIN b ON a.k = b.k AND a.x <> b.x",
    "SELECT k, x FROM a LEFT ANTI JOIN b ON a.k = b.k",
    "SELECT a.k, b.k FROM a CROSS JOIN b WHERE a.x + b.x > 3",
    "SELECT g, count(*), sum(x), min(t), max(n), avg(x), count(DISTINCT x) FROM a GROUP BY g",
    "SELECT count(*), sum(x), max(g) FROM a",
    "SELECT g, collect_set(x), bit_xor(k), approx_count_distinct(x) FROM a GROUP BY g",
    "SELECT k, row_number() OVER (PARTITION BY g ORDER BY k, x, n, d, t, l), sum(x) OVER (PARTITION BY g) FROM a",
    "SELECT k, sum(x) OVER (PARTITION BY g ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM a",
    "SELECT DISTINCT g, x % 2 FROM a",
    "SELECT k, explode_outer(l) FROM a",
    "SELECT g, x, count(*) FROM a GROUP BY g, x WITH ROLLUP",
    "SELECT k, x FROM a UNION ALL SELECT x, k FROM b",
    "SELECT g FROM a INTERSECT SELECT g FROM b",
    "SELECT k, date_format(t, 'yyyy-MM'), cast(t AS timestamp), hash(g, x), md5(g), g LIKE 'g%' FROM a WHERE x IN (1, 2, 3)",
    "SELECT k, d, d = 0.0, n * 2, CASE WHEN x > 1 THEN g ELSE 'none' END FROM a",
    "SELECT k, to_json(struct(*)) FROM a",
    "SELECT * FROM a ORDER BY k, g, x, d, n, t, l LIMIT 3",
]


def some(random_: random.Random, number: int) -> Rows:
    """Rows with NULLs, duplicates, and numbers that are equal but not the same."""
    pick = random_.choice
    made: Rows = [
        (
            pick([None, 1, 2, 3]),
            pick([None, "g", "h", ""]),
            pick([None, 0, 1, 2, 3]),
            pick([None, 0.0, -0.0, float("nan"), 1.5]),
            pick([None, Decimal("1.50"), Decimal("-2.00")]),
            pick([None, date(2026, 1, 31), date(2024, 2, 29)]),
            pick([None, [], [1, None], [2, 2]]),
        )
        for _ in range(number)
    ]
    return made + made[: number // 4]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """Plans are kept by session, so each test begins with none."""
    return own_session(spark)


def counts(session: SparkSession) -> tuple[int, int]:
    """How many plans were made, and how often one was run."""
    made, run = jvm_of(session).own_plans.plansKept()
    return made, run


def over(session: SparkSession, query: str, rows: dict[str, Rows], schema: T.StructType = SCHEMA) -> DataFrame:
    """A query over rows on the driver, which is analysed again at each call."""
    for name, given in rows.items():
        local_frame(session, given, schema).createOrReplaceTempView(name)
    return session.sql(query)


def kept(session: SparkSession, frame: DataFrame) -> list[Any]:
    """The frame's rows by the way that keeps plans."""
    found = Catalyst(session).collected(frame, MOST)
    assert found is not None
    return [frozen(tuple(row)) for row in found[0].collect()]


def plain(frame: DataFrame) -> list[Any]:
    """The same by Spark itself."""
    return [frozen(tuple(row)) for row in frame.collect()]


@pytest.mark.parametrize("query", QUERIES)
def test_over_other_rows(session: SparkSession, query: str) -> None:
    random_ = random.Random(query)
    for turn, (of_a, of_b) in enumerate([(8, 6), (0, 0), (30, 0), (0, 20), (1, 40), (25, 25), (0, 0)]):
        frame = over(session, query, {"a": some(random_, of_a), "b": some(random_, of_b)})
        before = counts(session)
        found, truth = kept(session, frame), plain(frame)
        assert found == truth if "ORDER BY k" in query and "LIMIT" in query else Counter(found) == Counter(truth)
        made, run = (now - then for now, then in zip(counts(session), before, strict=True))
        assert (made, run) == (int(turn == 1), int(turn > 0)), "the second plan of a shape is kept, and run over other rows"


def test_what_only_looks_alike(session: SparkSession) -> None:
    rows = {"a": [(1, "g", 1, 0.0, None, None, None), (2, "h", 2, -0.0, None, None, None)], "b": [(2, "x", 1, 0.0, None, None, None)]}
    queries = [
        "SELECT k + 1 FROM a",
        "SELECT k + 2 FROM a",
        "SELECT x + 1 FROM a",
        "SELECT k + 1L FROM a WHERE k > 1",
        "SELECT k + 1L FROM a WHERE k > 1L AND k > 1",
        "SELECT k + 1 FROM a WHERE k >= 1",
        "SELECT d * 0.0D, d FROM a",
        "SELECT d * -0.0D, d FROM a",
        "SELECT a.k, b.k FROM a JOIN b ON a.k = b.k",
        "SELECT b.k, a.k FROM a JOIN b ON a.k = b.x",
        "SELECT a.k, a.k FROM a JOIN b ON a.x = b.x",
        "SELECT a.k, b.k FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT one.k, two.x FROM a one JOIN a two ON one.k = two.x",
        "SELECT one.k, one.x FROM a one JOIN a two ON one.k = two.x",
        "SELECT sum(k) FROM a GROUP BY g",
        "SELECT sum(k) FROM a GROUP BY x",
        "SELECT sum(DISTINCT k) FROM a GROUP BY g",
        "SELECT sum(k) FILTER (WHERE x > 1) FROM a GROUP BY g",
        "SELECT k FROM a ORDER BY k",
        "SELECT k FROM a ORDER BY k DESC",
        "SELECT cast(k AS string) FROM a",
        "SELECT cast(k AS decimal(20,1)) FROM a",
        "SELECT named_struct('p', k) FROM a",
        "SELECT named_struct('q', k) FROM a",
        "SELECT to_json(named_struct('q', k)) FROM a",
        "SELECT to_json(named_struct('p', k)) FROM a",
        "SELECT g LIKE 'g' FROM a",
        "SELECT g LIKE '_' FROM a",
        "SELECT row_number() OVER (ORDER BY k) FROM a",
        "SELECT row_number() OVER (ORDER BY k DESC) FROM a",
        "SELECT rank() OVER (PARTITION BY g ORDER BY k) FROM a",
        "SELECT sum(k) OVER (ORDER BY x ROWS 1 PRECEDING) FROM a",
        "SELECT sum(k) OVER (ORDER BY x ROWS 0 PRECEDING) FROM a",
        "SELECT sum(k) OVER (ORDER BY x RANGE 1 PRECEDING) FROM a",
    ]
    for _ in range(3):
        for query in queries:
            frame = over(session, query, rows)
            assert sorted(map(str, kept(session, frame))) == sorted(map(str, plain(frame))), query


def test_by_the_settings_and_the_session(session: SparkSession, spark: SparkSession) -> None:
    rows: dict[str, Rows] = {"a": [(1, "2026-01-01 00:00:00", 1, None, None, None, None)]}
    query = "SELECT unix_timestamp(g) FROM a"
    before = counts(session)
    for zone in ("UTC", "Asia/Tokyo") * 3:
        session.conf.set("spark.sql.session.timeZone", zone)
        frame = over(session, query, rows)
        assert kept(session, frame) == plain(frame)
    assert counts(session) == (before[0] + 2, before[1] + 4)
    other = own_session(spark)
    other.conf.set("spark.sql.session.timeZone", "UTC")
    assert kept(other, over(other, query, rows)) == [(1767225600,)]
    assert counts(session) == (before[0] + 2, before[1] + 4)


@pytest.mark.parametrize("made", ["rand()", "current_timestamp()", "uuid()", "now()", "shuffle(sequence(1, 40))"])
def test_what_gives_other_rows_each_time_is_not_kept(session: SparkSession, made: str) -> None:
    rows: dict[str, Rows] = {"a": [(1, "g", 1, None, None, None, None)]}
    before = counts(session)
    first, second, third = (kept(session, over(session, f"SELECT {made}, k FROM a", rows)) for _ in range(3))
    assert first != second != third
    assert counts(session) == before


@pytest.mark.parametrize(
    "made",
    [
        "CAST('yesterday' AS DATE) < DATE'2026-01-01'",  # a day later it may be another
        "to_timestamp('12:30')",
        "length(aes_encrypt('x', '0000111122223333'))",
        "transform(l, e -> e + x)",  # the variable holds the element that it stands for
        "(SELECT max(x) FROM a)",
    ],
)
def test_what_may_give_others_is_not_kept(session: SparkSession, made: str) -> None:
    rows: dict[str, Rows] = {"a": [(1, "g", 1, None, None, None, [1, 2])]}
    before = counts(session)
    for _ in range(3):
        frame = over(session, f"SELECT {made}, k FROM a", rows)
        assert kept(session, frame) == plain(frame)
    assert counts(session) == before


@pytest.mark.parametrize("query", ["SELECT k, 1 / 0 FROM a", "SELECT a.k, CAST('x' AS INT) FROM a JOIN b ON a.k = b.k"])
def test_what_no_row_reaches_is_no_error(session: SparkSession, query: str) -> None:
    """The optimiser computes with constants: over a relation that it knows to be empty it does not come to that."""
    session.conf.set("spark.sql.ansi.enabled", "true")
    for _ in range(3):
        assert kept(session, over(session, query, {"a": [], "b": []})) == []


def test_a_table_expression_that_nobody_reads(session: SparkSession) -> None:
    random_ = random.Random(4)
    for _ in range(3):
        frame = over(session, "WITH t AS (SELECT k FROM a) SELECT g FROM b", {"a": some(random_, 5), "b": some(random_, 7)})
        assert Counter(kept(session, frame)) == Counter(plain(frame))


def test_an_error_is_sparks_own_and_the_plan_is_made_again(session: SparkSession) -> None:
    session.conf.set("spark.sql.ansi.enabled", "true")
    good: dict[str, Rows] = {"a": [(1, "7", 1, None, None, None, None)]}
    bad: dict[str, Rows] = {"a": [(1, "seven", 1, None, None, None, None)]}
    query = "SELECT cast(g AS int) FROM a WHERE k > 0 ORDER BY k"
    for _ in range(2):
        assert kept(session, over(session, query, good)) == [(7,)]
    with pytest.raises(SPARK_ERRORS, match="CAST_INVALID_INPUT"):
        kept(session, over(session, query, bad))
    assert kept(session, over(session, query, good)) == [(7,)]


def test_python_and_python_again(session: SparkSession) -> None:
    """What needs a process of Python needs a job."""
    twice = F.udf(lambda x: None if x is None else 2 * x, "bigint")
    rows: dict[str, Rows] = {"a": some(random.Random(1), 9)}
    for _ in range(2):
        frame = over(session, "SELECT * FROM a", rows).select(twice("k"))
        assert Counter(kept(session, frame)) == Counter(plain(frame))


def test_two_threads_with_the_same_plan(session: SparkSession) -> None:
    query, wrong = "SELECT a.k, count(*), sum(b.x) FROM a JOIN b ON a.k = b.k GROUP BY a.k", list[object]()
    frames, random_ = list[tuple[DataFrame, Counter[Any]]](), random.Random(3)
    for _ in range(24):
        frame = over(session, query, {"a": some(random_, 30), "b": some(random_, 30)})
        frames.append((frame, Counter(plain(frame))))

    def work(mine: Iterator[tuple[DataFrame, Counter[Any]]]) -> None:
        for frame, truth in mine:
            for _ in range(5):
                try:
                    found: object = Counter(kept(session, frame))
                except SPARK_ERRORS as error:
                    found = error
                if found != truth:
                    wrong.append(found)

    threads = [threading.Thread(target=work, args=(iter(frames[place::4]),)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_turned_off_nothing_is_kept(session: SparkSession) -> None:
    plans = jvm_of(session).own_plans
    rows: dict[str, Rows] = {"a": some(random.Random(5), 9)}
    was = plans.keepPlans(False)
    try:
        before = counts(session)
        for _ in range(3):
            frame = over(session, "SELECT g, count(*) FROM a GROUP BY g", rows)
            assert Counter(kept(session, frame)) == Counter(plain(frame))
        assert counts(session) == before
    finally:
        plans.keepPlans(was)
    assert was
