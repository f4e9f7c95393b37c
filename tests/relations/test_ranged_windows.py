"""Windows with frames between two values are refreshed from the rows near a change; judged by plain Spark at both ends."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lake.relations.ranged_window import RangedWindow
from lake.spark.key_ranges import Ranges
from tests.relations.laws import ListedSources, Rows, View

COUNT = "SELECT k, o, v, count(*) OVER w AS n, max(v) OVER w AS m FROM t WINDOW w AS (PARTITION BY k ORDER BY o {})"
WHOLE = [
    "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW",
    "DESC RANGE BETWEEN 3 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 PRECEDING AND 4 FOLLOWING",
    "DESC NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 4 FOLLOWING",
    "RANGE BETWEEN 2 FOLLOWING AND 5 FOLLOWING",
    "DESC RANGE BETWEEN 5 PRECEDING AND 2 PRECEDING",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
]
DAYS = [
    "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN INTERVAL '7' DAY PRECEDING AND INTERVAL '1' DAY FOLLOWING",
    "DESC RANGE BETWEEN INTERVAL '1' MONTH PRECEDING AND CURRENT ROW",
]
TIMES = [
    "RANGE BETWEEN INTERVAL '36' HOUR PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN INTERVAL '2' DAY PRECEDING AND INTERVAL '1' DAY FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND INTERVAL '2' MONTH FOLLOWING",
]
WINTER = date(2026, 1, 28)
CLOCKS_CHANGE = datetime(2026, 3, 27, 12, tzinfo=UTC)


def history(draw: random.Random, orders: list[Any]) -> tuple[Rows, Rows]:
    """Rows (k, o, v) with duplicates and NULLs, and the same after some inserts, deletes and rows moved in the order and between keys."""
    before: Rows = [(draw.choice([1, 2, None]), draw.choice(orders), draw.randrange(9)) for _ in range(60)]
    before += before[:5]
    after = list(before)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(after))
        k, o, v = after[at]
        after[at] = draw.choice([(k, draw.choice(orders), v), (draw.choice([1, 2, 3]), o, v), (k, o, draw.randrange(20, 30))])
    del after[draw.randrange(len(after))]
    return before, [*after, (draw.choice([1, 2, None]), draw.choice(orders), 40)]


def ranged(view: View) -> list[RangedWindow]:
    return [relation for relation in view.definition.relation.walk() if isinstance(relation, RangedWindow)]


def follow(view: View, seed: int, orders: list[Any], rounds: int) -> None:
    assert ranged(view)
    draw = random.Random(seed)
    for turn in range(rounds):
        before, after = history(draw, orders)
        view.assert_law({"t": before}, {"t": after}, local_limit=0 if turn == rounds - 1 > 1 else 40_000)


@pytest.mark.parametrize("frame", WHOLE)
def test_whole_numbers(spark: SparkSession, frame: str) -> None:
    follow(View(spark, {"t": "k int, o int, v int"}, COUNT.format(frame)), 1, [*range(0, 60, 2), None], 3)


def test_without_a_partition(spark: SparkSession) -> None:
    window = "OVER (ORDER BY o RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING)"
    follow(
        View(spark, {"t": "k int, o int, v int"}, f"SELECT k, o, count(*) {window} AS n, max(v) {window} AS m FROM t"),
        5,
        [*range(40), None],
        3,
    )


@pytest.mark.slow
@pytest.mark.parametrize("frame", DAYS)
def test_days(spark: SparkSession, frame: str) -> None:
    follow(View(spark, {"t": "k int, o date, v int"}, COUNT.format(frame)), 2, [*[WINTER + timedelta(n) for n in range(90)], None], 4)


@pytest.mark.slow
@pytest.mark.parametrize("frame", TIMES)
def test_times_where_clocks_change(spark: SparkSession, frame: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    view = View(session, {"t": "k int, o timestamp, v int"}, COUNT.format(frame))
    follow(view, 3, [*[CLOCKS_CHANGE + timedelta(hours=n) for n in range(0, 200, 3)], None], 4)


FOLLOWING = "{} RANGE BETWEEN CURRENT ROW AND INTERVAL '1' {} FOLLOWING"


@pytest.mark.parametrize("direction", ["", "DESC"])
def test_a_month_later_an_earlier_row_may_be_the_later_one(spark: SparkSession, direction: str) -> None:
    """31 January, 01:00, and a month is before 28 January, 20:00, and a month: Spark gives one row what the other took."""
    view = View(spark, {"t": "k int, o timestamp, v int"}, COUNT.format(FOLLOWING.format(direction, "MONTH")))
    month = 3 if direction else 1
    pair = [datetime(2026, month, 28, 20, tzinfo=UTC), datetime(2026, month, 31, 1, tzinfo=UTC)]
    between: Rows = [(1, datetime(2026, 2, 28, hour, tzinfo=UTC), hour) for hour in (0, 5, 10, 15, 22)]
    for one, other in (pair, reversed(pair)):
        view.assert_law({"t": [(1, one, 50), *between]}, {"t": [(1, one, 50), *between, (1, other, 60)]})


@pytest.mark.parametrize("direction", ["", "DESC"])
def test_a_day_later_an_earlier_row_may_be_the_later_one(spark: SparkSession, direction: str) -> None:
    """Where clocks are put forward within the day."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    view = View(session, {"t": "k int, o timestamp, v int"}, COUNT.format(FOLLOWING.format(direction, "DAY")))
    rows: Rows = [(1, datetime(2026, 3, 8, 7, minute, tzinfo=UTC), minute) for minute in (5, 15, 30, 40, 50)]
    rows += [(1, datetime(2026, 3, 7, 8, tzinfo=UTC), 2), (1, datetime(2026, 3, 9, 6, 45, tzinfo=UTC), 3)]
    for added in (datetime(2026, 3, 7, 7, 45, tzinfo=UTC), datetime(2026, 3, 9, 7, tzinfo=UTC)):
        view.assert_law({"t": rows}, {"t": [*rows, (1, added, 9)]})


def test_ends_that_are_no_value_of_the_type_are_computed_for_whole_partitions(spark: SparkSession) -> None:
    """Spark takes another value for them, without an error: a row may then see any other."""
    following = "RANGE BETWEEN CURRENT ROW AND {} FOLLOWING"
    view = View(spark, {"t": "k int, o date, v int"}, COUNT.format(following.format(2147483647)))
    assert not ranged(view)
    rows: Rows = [(1, date(2024, 1, day), day) for day in (1, 2, 3)]
    view.assert_law({"t": rows}, {"t": [*rows, (1, date(1969, 1, 1), 9)]})
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    view = View(session, {"t": "k int, o tinyint, v int"}, COUNT.format(following.format(10)))
    assert not ranged(view)
    view.assert_law({"t": [(1, 120, 1), (1, 121, 2), (1, 125, 3)]}, {"t": [(1, 115, 9), (1, 120, 1), (1, 121, 2), (1, 125, 3)]})


def test_the_ends_of_a_type(spark: SparkSession) -> None:
    view = View(spark, {"t": "k int, o tinyint, v int"}, COUNT.format("RANGE BETWEEN CAST(100 AS TINYINT) PRECEDING AND CURRENT ROW"))
    assert ranged(view)
    view.assert_law({"t": [(1, 10, 1), (1, 20, 2)]}, {"t": [(1, 10, 1), (1, 20, 2), (1, 27, 3)]})


def test_only_rows_near_a_change_are_read(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below a projection, too, and for a change far away from the others as for these."""
    query = """SELECT k, o, sum(x) OVER (PARTITION BY k ORDER BY o RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) AS s
        FROM (SELECT k, o, v + 1 AS x FROM t)"""
    view = View(spark, {"t": "k int, o int, v int"}, query)
    asked: list[Ranges] = []
    own = ListedSources.rows

    def rows(self: ListedSources, source: str, among: Mapping[str, Ranges] | None = None) -> DataFrame:
        asked.extend([ranges for name, ranges in (among or {}).items() if name == "o"])
        return own(self, source, among)

    monkeypatch.setattr(ListedSources, "rows", rows)
    before: Rows = [(k, o, o) for k in (1, 2) for o in range(0, 1000, 5)]
    view.assert_law({"t": before}, {"t": [*before, (1, 995, 1), (2, 103, 1)]})
    assert [ranges.intervals for ranges in asked] == [((93, 113), (985, 1005))]


@pytest.mark.parametrize(
    "frame",
    [
        "",  # from the first row
        "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    ],
)
def test_other_frames_are_computed_for_whole_partitions(spark: SparkSession, frame: str) -> None:
    assert not ranged(View(spark, {"t": "k int, o int, v int"}, COUNT.format(frame)))


@pytest.mark.parametrize("data_type", ["double", "decimal(9,2)", "timestamp_ntz"])
def test_orders_of_other_types_are_computed_for_whole_partitions(spark: SparkSession, data_type: str) -> None:
    end = "INTERVAL '1' DAY" if data_type == "timestamp_ntz" else "1"
    assert not ranged(View(spark, {"t": f"k int, o {data_type}, v int"}, COUNT.format(f"RANGE BETWEEN {end} PRECEDING AND CURRENT ROW")))


def test_a_rank_beside_looks_at_the_whole_partition(spark: SparkSession) -> None:
    window = "OVER (PARTITION BY k ORDER BY o"
    query = f"SELECT k, o, count(*) {window} RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS n, rank() {window}) AS r FROM t"
    view = View(spark, {"t": "k int, o int, v int"}, query)
    draw = random.Random(4)
    before, after = history(draw, [*range(0, 60, 2), None])
    view.assert_law({"t": before}, {"t": after})
