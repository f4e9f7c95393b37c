"""Tables, a change of them, and queries of every kind: what the law is tested on, and what docs/reference/sql.md is made of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from tests.relations.laws import Rows


def at(second: int) -> datetime:
    """A time, so many seconds after midnight."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


SCHEMAS = {
    "a": "id int, s string, v int",
    "b": "id bigint, w int",
    "c": "k string, x decimal(10,2), l array<int>",
    "e": "k int, t timestamp, v int",
}

BEFORE: dict[str, Rows] = {
    "a": [(1, "x", 10), (1, "x", 10), (2, "y", 20), (None, "n", 0), (3, "z", 5), (4, "x", None), (9, "q", 1)],
    "b": [(1, 100), (1, 100), (2, 200), (2, 201), (None, 0), (5, 7), (9, 9)],
    "c": [
        ("x", Decimal("1.10"), [1, 2]),
        ("y", Decimal("2.00"), []),
        (None, None, None),
        ("x", Decimal("1.10"), [1, 2]),
        ("z", Decimal("3.50"), [None, 7]),
    ],
    "e": [(1, at(0), 1), (1, at(7), 2), (1, at(7), 2), (1, at(30), 3), (2, at(3), 4), (None, at(4), 5), (2, None, 6), (3, at(12), 7)],
}
# one copy of a duplicate goes, a row moves from key 2 to 3, a NULL key is deleted and another inserted, key 9 goes on both sides
AFTER: dict[str, Rows] = {
    "a": [(1, "x", 10), (3, "y", 20), (None, "m", 1), (3, "z", 6), (4, "x", None), (5, "w", 50), (5, "w", 50)],
    "b": [(1, 100), (1, 100), (1, 101), (3, 201), (None, 0), (None, 1), (5, 7)],
    "c": [("x", Decimal("1.10"), [1, 2]), ("y", Decimal("2.01"), [4]), (None, None, None), ("w", Decimal("9.99"), [5, 5])],
    "e": [(1, at(0), 1), (1, at(7), 2), (1, at(16), 8), (1, at(30), 3), (3, at(3), 4), (None, at(4), 5), (2, at(9), 6), (3, at(12), 9)],
}
EMPTY: dict[str, Rows] = {t: [] for t in SCHEMAS}
NOT_IN = "SELECT * FROM a WHERE v NOT IN (SELECT w FROM b WHERE w IS NOT NULL)"

SECTIONS: dict[str, dict[str, str]] = {
    "Filters, projections, generators and unions": {
        "filter": "SELECT * FROM a WHERE v > 4",
        "project_of_expressions": "SELECT id + 1 AS k, upper(s) AS u, CASE WHEN v IS NULL THEN -1 ELSE v END AS c FROM a",
        "same_column_twice": "SELECT id, id AS again, s FROM a",
        "filter_that_guards_a_cast": "SELECT x.i, w FROM (SELECT CAST(s AS int) i FROM a WHERE s RLIKE '^[0-9]+$') x JOIN b ON x.i = b.id",
        "explode": "SELECT k, e FROM c LATERAL VIEW explode(l) t AS e",
        "explode_outer_in_select": "SELECT k, explode_outer(l) AS e FROM c",
        "posexplode": "SELECT k, p, e FROM c LATERAL VIEW posexplode(l) t AS p, e",
        "union_all": "SELECT id, s FROM a UNION ALL SELECT id, CAST(w AS string) FROM b",
        "union_all_with_itself": "SELECT id FROM a UNION ALL SELECT id FROM a",
        "constants_only_on_one_side": "SELECT a.id, t.n FROM a JOIN (VALUES (1, 'one'), (5, 'five')) t(id, n) ON a.id = t.id",
    },
    "Inner joins": {
        "inner_join": "SELECT a.id, a.s, b.w FROM a JOIN b ON a.id = b.id",
        "inner_join_residual": "SELECT a.id, a.s, b.w FROM a JOIN b ON a.id = b.id AND a.v < b.w",
        "inner_join_null_safe": "SELECT a.s, b.w FROM a JOIN b ON a.id <=> b.id",
        "inner_join_on_expressions": "SELECT a.s, b.w FROM a JOIN b ON a.id + 1 = b.id - 1",
        "inner_join_two_keys": "SELECT a.s, b.w FROM a JOIN b ON a.id = b.id AND a.v * 10 = b.w",
        "self_join": "SELECT x.s AS s1, y.s AS s2 FROM a x JOIN a y ON x.id = y.id",
        "self_join_three_times": "SELECT x.id FROM a x JOIN a y ON x.id = y.id JOIN a z ON y.s = z.s",
        "cross_join": "SELECT a.s, b.w FROM a CROSS JOIN b",
        "range_only_join": "SELECT a.s, b.w FROM a JOIN b ON a.v < b.w AND a.v > 4",
        "three_way": "SELECT a.id, b.w, c.x FROM a JOIN b ON a.id = b.id JOIN c ON c.k = a.s",
        "three_way_key_from_both": "SELECT a.id, c.x FROM a JOIN b ON a.id = b.id JOIN c ON c.k = a.s AND c.x < b.w",
        "join_of_unions": "SELECT u.id, b.w FROM (SELECT id FROM a UNION ALL SELECT id FROM b) u JOIN b ON u.id = b.id",
        "join_over_explode": "SELECT t.k, b.w FROM (SELECT k, explode(l) AS e FROM c) t JOIN b ON b.id = t.e",
        "using": "SELECT * FROM a JOIN b USING (id)",
        "natural": "SELECT * FROM a NATURAL JOIN b",
        "cte_and_derived": "WITH big AS (SELECT * FROM a WHERE v > 4) SELECT s, w FROM big JOIN (SELECT id, w FROM b) d ON big.id = d.id",
        "structs_and_arrays": "SELECT named_struct('i', a.id, 's', a.s) AS st, array(a.v, b.w) AS ar FROM a JOIN b ON a.id = b.id",
        "maps": "SELECT map('k', a.v) AS m, b.w FROM a JOIN b ON a.id = b.id",
    },
    "Outer, semi and anti joins": {
        "left_join": "SELECT a.id, a.s, b.w FROM a LEFT JOIN b ON a.id = b.id",
        "left_join_residual": "SELECT a.id, a.s, b.w FROM a LEFT JOIN b ON a.id = b.id AND b.w > 100",
        "right_join": "SELECT a.s, b.id, b.w FROM a RIGHT JOIN b ON a.id = b.id",
        "full_join": "SELECT a.s, b.w FROM a FULL JOIN b ON a.id = b.id AND a.v < b.w",
        "full_join_using": "SELECT id, s, w FROM a FULL JOIN b USING (id)",
        "full_join_of_groups": """SELECT x.v, n, y.id, m FROM (SELECT v, count(*) AS n FROM a GROUP BY v) x
            FULL JOIN (SELECT id, count(*) AS m FROM b GROUP BY id) y ON x.v = y.id""",
        "left_join_range_only": "SELECT a.s, b.w FROM a LEFT JOIN b ON a.v > b.w",
        "semi_join": "SELECT * FROM a LEFT SEMI JOIN b ON a.id = b.id",
        "anti_join": "SELECT * FROM a LEFT ANTI JOIN b ON a.id = b.id",
        "exists_or": "SELECT * FROM a WHERE v > 15 OR EXISTS (SELECT 1 FROM b WHERE b.id = a.id)",
        "not_in_without_nulls": NOT_IN,
        "not_in_where_nulls_are_filtered": "SELECT * FROM a WHERE id > 0 AND id NOT IN (SELECT id FROM b WHERE w > 5 AND id IS NOT NULL)",
        "not_in_of_two_columns": """SELECT * FROM a WHERE v IS NOT NULL AND id IS NOT NULL
            AND (id, v) NOT IN (SELECT id, w - 180 FROM b WHERE id IS NOT NULL)""",
        "not_in_under_or": "SELECT * FROM a WHERE s = 'x' OR id NOT IN (SELECT id FROM b WHERE id > 1)",
        "not_in_with_nulls": "SELECT * FROM a WHERE id NOT IN (SELECT id FROM b)",
        "outer_join_of_outer_joins": "SELECT a.s, b.w, c.x FROM a LEFT JOIN b ON a.id = b.id LEFT JOIN c ON c.k = a.s AND c.x < b.w",
        "inner_over_left": "SELECT l.s, c.x FROM (SELECT a.s, b.w FROM a LEFT JOIN b ON a.id = b.id) l JOIN c ON c.k = l.s",
        "join_on_the_null_supplying_side": "SELECT l.s, d.w FROM (SELECT s, w FROM a LEFT JOIN b ON a.id = b.id) l JOIN b d ON d.w <=> l.w",
    },
    "Aggregates": {
        "group_by": "SELECT s, count(*) AS n, sum(v) AS v, min(v) AS lo FROM a GROUP BY s",
        "group_by_expression": "SELECT v % 3 AS g, count(v) AS n FROM a GROUP BY v % 3 HAVING count(*) > 1",
        "group_by_not_selected": "SELECT count(*) AS n FROM a GROUP BY s",
        "count_distinct": "SELECT s, count(DISTINCT v) AS d, count(DISTINCT id) AS e FROM a GROUP BY s",
        "global_aggregate": "SELECT count(*) AS n, sum(w) AS s FROM b",
        "count_only": "SELECT count(*) AS n FROM a",
        "distinct": "SELECT DISTINCT s FROM a",
        "join_of_aggregates": "SELECT a.s, g.n FROM a JOIN (SELECT id, count(*) AS n FROM b GROUP BY id) g ON g.id = a.id",
        "aggregate_of_join": "SELECT a.s, sum(b.w) AS w FROM a JOIN b ON a.id = b.id GROUP BY a.s",
        "rollup": "SELECT s, id, count(*) AS n FROM a GROUP BY ROLLUP (s, id)",
        "grouping_sets": "SELECT s, id, sum(v) AS v FROM a GROUP BY GROUPING SETS ((s), (id), ())",
    },
    "Windows": {
        "window": "SELECT id, s, sum(v) OVER (PARTITION BY s) AS t FROM a",
        "rank": "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY s ORDER BY v DESC) AS r FROM a) WHERE r = 1",
        "window_without_partition": "SELECT id, rank() OVER (ORDER BY v) AS r FROM a",
    },
    "Subqueries": {
        "scalar_subquery": "SELECT * FROM a WHERE v >= (SELECT min(w) FROM b WHERE w > 0)",
        "scalar_subquery_in_select": "SELECT id, (SELECT max(w) FROM b) AS m FROM a",
        "correlated_scalar": "SELECT a.s, (SELECT max(w) FROM b WHERE b.id = a.id) AS m FROM a",
        "uncorrelated_exists": "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE w = 101)",
    },
    "Set operations": {
        "intersect_all": "SELECT id FROM a INTERSECT ALL SELECT id FROM b",
        "except_all": "SELECT id FROM a EXCEPT ALL SELECT id FROM b",
        "intersect": "SELECT id FROM a INTERSECT SELECT id FROM b",
        "except": "SELECT id FROM a EXCEPT SELECT id FROM b",
    },
    "First rows inside a query": {
        "order_by_limit_offset": "SELECT id, s, v FROM a ORDER BY v DESC NULLS LAST, id, s LIMIT 3 OFFSET 1",
        "limit_joined": """SELECT t.id, t.v, b.w FROM (SELECT id, s, v FROM a ORDER BY v DESC NULLS LAST, id, s LIMIT 3) t
            JOIN b ON t.id = b.id""",
        "limit_padded": """SELECT b.id, b.w, t.n FROM b LEFT JOIN
            (SELECT id, count(*) AS n FROM a GROUP BY id ORDER BY n DESC, id LIMIT 2) t ON t.id = b.id""",
        "in_a_limit": "SELECT s, v FROM a WHERE id IN (SELECT id FROM b ORDER BY w DESC, id LIMIT 2)",
        "limits_united": """(SELECT id, v FROM a ORDER BY v, id LIMIT 2) UNION ALL (SELECT id, v FROM a ORDER BY v, id LIMIT 4)""",
        "rank_of_all": "SELECT id, v, r FROM (SELECT id, v, rank() OVER (ORDER BY v DESC) AS r FROM a) WHERE r <= 2",
        "dense_rank_of_groups": """SELECT s, n, r
            FROM (SELECT s, count(*) AS n, dense_rank() OVER (ORDER BY count(*)) AS r FROM a GROUP BY s) WHERE r < 3 AND s IS NOT NULL""",
        "row_number_of_all": """SELECT s, t
            FROM (SELECT s, sum(v) AS t, row_number() OVER (ORDER BY sum(v) NULLS FIRST, s) AS r FROM a GROUP BY s) WHERE r = 2""",
        "best_and_worst": """WITH t AS (SELECT s, max(v) AS m FROM a GROUP BY s)
            SELECT x.s AS best, y.s AS worst, x.r FROM (SELECT s, rank() OVER (ORDER BY m DESC) AS r FROM t) x
            JOIN (SELECT s, rank() OVER (ORDER BY m) AS r FROM t) y ON x.r = y.r WHERE x.r < 3""",
    },
    "Order and pivot": {
        "order_by": "SELECT id, s FROM a ORDER BY s",
        "pivot": "SELECT * FROM (SELECT s, v FROM a) PIVOT (sum(v) FOR s IN ('x', 'y', 'z'))",
    },
}

# what depends on the order of rows (trap 8): here without ties and without rounding, so that there is one truth
SCOPED = {
    "row_number": "SELECT id, s, v, row_number() OVER (PARTITION BY s ORDER BY v) AS r FROM (SELECT DISTINCT id, s, v FROM a)",
    "row_number_by_what_is_not_selected": """SELECT v, row_number() OVER (PARTITION BY s ORDER BY v + 0) AS r
        FROM (SELECT DISTINCT s, v FROM a)""",
    "first_row_of_a_key": """SELECT s, v FROM (SELECT *, row_number() OVER (PARTITION BY s ORDER BY v DESC, upper(r)) AS n
        FROM (SELECT DISTINCT s, v, substr(s, 1, 1) AS r FROM a)) WHERE n = 1""",
    "lag_and_running_sum": """SELECT s, v, lag(v) OVER (PARTITION BY s ORDER BY v + 0) AS l,
        sum(v) OVER (PARTITION BY s ORDER BY v + 0 ROWS UNBOUNDED PRECEDING) AS t FROM (SELECT DISTINCT s, v FROM a)""",
    "average": "SELECT s, avg(double(v)) AS m FROM a GROUP BY s HAVING count(*) < 3",
    "average_by_what_is_not_selected": "SELECT avg(double(v)) AS m FROM a GROUP BY s HAVING count(*) < 3",
    "sum_of_doubles": "SELECT s, id, sum(CAST(v AS double)) AS d FROM a GROUP BY s, id HAVING count(*) < 3",
    "collected": "SELECT upper(s) AS u, sort_array(collect_list(v)) AS l FROM a GROUP BY upper(s)",
    "joined_with_averages": "SELECT a.id, a.s, g.m FROM a JOIN (SELECT id, avg(double(w)) AS m FROM b GROUP BY id) g ON a.id = g.id",
    "left_joined_with_averages": """SELECT a.id, a.v, g.m FROM a
        LEFT JOIN (SELECT id, avg(double(w)) AS m FROM b GROUP BY id) g ON a.id = g.id""",
    "averages_joined": """SELECT x.id, x.m, y.m AS n FROM (SELECT id, avg(double(v)) AS m FROM a GROUP BY id) x
        JOIN (SELECT id, avg(double(w)) AS m FROM b GROUP BY id) y ON x.id = y.id AND x.m < y.m""",
    "averages_with_a_row_of_another_key": """SELECT x.s, x.m, b.w FROM (SELECT s, max(id) AS id, avg(double(v)) AS m FROM a GROUP BY s) x
        LEFT JOIN b ON x.id = b.id""",
    "averages_that_exist_elsewhere": """SELECT x.s, x.m FROM (SELECT s, max(id) AS id, avg(double(v)) AS m FROM a GROUP BY s) x
        WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = x.id AND b.w > x.m)""",
    "large_averages_joined": """SELECT x.k, x.m, b.w FROM (SELECT id AS k, avg(double(v)) AS m FROM a GROUP BY id HAVING max(v) > 1) x
        JOIN b ON x.k = b.id""",
    "newest_joined_by_what_it_took": """SELECT x.s, x.id, b.w FROM (SELECT *, row_number() OVER (PARTITION BY s ORDER BY v) AS n
        FROM (SELECT DISTINCT id, s, v FROM a)) x JOIN b ON x.id = b.id WHERE x.n = 1""",
    "averages_united": "SELECT id AS k, avg(double(v)) AS m FROM a GROUP BY id UNION ALL SELECT id, avg(double(w)) FROM b GROUP BY id",
    "averages_exploded": "SELECT s, e FROM (SELECT s, avg(double(v)) AS m FROM a GROUP BY s) LATERAL VIEW explode(array(m, 1.5)) t AS e",
    "ranked_averages": """SELECT s, id, rank() OVER (PARTITION BY s ORDER BY m) AS r
        FROM (SELECT s, id, avg(double(v)) AS m FROM a GROUP BY s, id)""",
}
UNSCOPED = {
    "first_joined_by_what_it_took": "SELECT x.s, x.k, b.w FROM (SELECT s, first(id) AS k FROM a GROUP BY s) x JOIN b ON x.k = b.id",
    "averages_of_averages": """SELECT m, avg(double(n)) AS a
        FROM (SELECT s, avg(double(v)) AS m, count(*) AS n FROM a GROUP BY s) GROUP BY m""",
    "averages_fully_joined": "SELECT g.m, b.w FROM (SELECT id, avg(double(v)) AS m FROM a GROUP BY id) g FULL JOIN b ON g.id = b.id",
    "average_of_all": "SELECT avg(double(v)) AS m FROM a",
    "rows_numbered": "SELECT v, row_number() OVER (ORDER BY v + 0) AS r FROM (SELECT DISTINCT v FROM a)",
}
# sums, counts, averages and extremes at the root, added to the stored rows
ADDED = {
    "added": "SELECT s, count(*) AS n, sum(v) AS t, avg(v) AS m, count(v) AS c FROM a GROUP BY s",
    "added_decimals": "SELECT k, sum(x) AS t, avg(x) AS m, sum(x) FILTER (WHERE x > 2) AS f FROM c GROUP BY k",
    "added_expressions": "SELECT sum(v) / count(*) AS q, upper(s) AS u, sum(v) + 1 AS t FROM a GROUP BY s ORDER BY u",
    "added_globally": "SELECT count(*) AS n, sum(w) AS t, avg(w) AS m FROM b",
    "added_over_joins": "SELECT b.id, sum(a.v * b.w) AS t, avg(b.w) AS m FROM a JOIN b ON a.id = b.id GROUP BY b.id",
    "added_over_outer_joins": "SELECT a.s, count(b.w) AS n, sum(b.w) AS t FROM a LEFT JOIN b ON a.id = b.id GROUP BY a.s",
    "extremes": "SELECT s, min(v) AS lo, max(v) AS hi, max(id) AS i FROM a GROUP BY s",
    "extremes_of_decimals_and_strings": "SELECT max(k) AS k, min(x) AS x FROM c",
    "distinct_added": "SELECT DISTINCT s, v FROM a",
    "groups_only": "SELECT id FROM b GROUP BY id",
}
NOT_ADDED = {
    "having": "SELECT s, count(*) AS n FROM a GROUP BY s HAVING count(*) > 1",
    "sums_of_doubles": "SELECT s, sum(CAST(v AS double)) AS t FROM a GROUP BY s",
    "try_sum": "SELECT s, try_sum(v) AS t FROM a GROUP BY s",
    "distinct_counts": "SELECT s, count(DISTINCT v) AS n FROM a GROUP BY s",
    "joined_after": "SELECT g.n, b.w FROM (SELECT id, count(*) AS n FROM a GROUP BY id) g JOIN b ON g.id = b.id",
    "subquery_above": "SELECT s, count(*) + (SELECT max(w) FROM b) AS n FROM a GROUP BY s",
}
TOP = {
    "order_by_limit": "SELECT id, s, v FROM a ORDER BY v DESC NULLS LAST, id, s LIMIT 3",
    "order_by_limit_not_selected": "SELECT s FROM a ORDER BY v DESC NULLS LAST, id, s LIMIT 3",
    "order_by_limit_of_groups": "SELECT s, sum(v) AS t FROM a GROUP BY s ORDER BY t DESC NULLS LAST, s LIMIT 2",
    "order_by_limit_of_averages": "SELECT s, avg(v) AS m FROM a GROUP BY s ORDER BY m DESC NULLS LAST, s LIMIT 2",
    "order_by_limit_of_joins": "SELECT a.s, b.w FROM a LEFT JOIN b ON a.id = b.id ORDER BY w NULLS FIRST, s LIMIT 4",
    "order_by_limit_of_elements": "SELECT k, e FROM c LATERAL VIEW explode(l) t AS e ORDER BY e, k LIMIT 3",
    "order_by_limit_of_more_than_there_are": "SELECT id, s, v FROM a ORDER BY v, id, s LIMIT 100",
}
WINDOWED = "(SELECT k, v, window(t, '10 seconds') AS w FROM e)"
SECTIONS |= {
    "Time joins and time windows": {
        "interval_join": "SELECT x.k, x.v, y.v AS w FROM e x JOIN e y ON x.k = y.k AND y.t BETWEEN x.t AND x.t + INTERVAL 10 SECONDS",
        "interval_left_join": """SELECT x.k, x.v, y.v AS w FROM e x
            LEFT JOIN e y ON x.k = y.k AND y.t > x.t AND y.t < x.t + INTERVAL 10 SECONDS""",
        "tumbling_window_join": f"SELECT x.k, x.v, y.v AS z, x.w.start FROM {WINDOWED} x JOIN {WINDOWED} y ON x.k = y.k AND x.w = y.w",
        "window_co_group": f"""SELECT w.start AS s, x.n, y.m FROM (SELECT w, count(*) AS n FROM {WINDOWED} WHERE v < 5 GROUP BY w) x
            FULL JOIN (SELECT w, max(v) AS m FROM {WINDOWED} WHERE v >= 5 GROUP BY w) y USING (w)""",
        "hopping_window": "SELECT k, w.start, count(*) FROM (SELECT k, window(t, '10 seconds', '5 seconds') AS w FROM e) GROUP BY k, w",
        "session_window": """SELECT k, session_window(t, '10 seconds').start AS s, count(*) AS n FROM e
            GROUP BY k, session_window(t, '10 seconds')""",
        "session_window_in_a_subselect": """SELECT k, s.start, count(*) AS n
            FROM (SELECT k, session_window(t, '10 seconds') AS s FROM e) GROUP BY k, s""",
        "session_window_without_another_key": """SELECT session_window(t, '10 seconds').end AS s, sum(v) AS n FROM e
            GROUP BY session_window(t, '10 seconds')""",
        "as_of_join": """SELECT * FROM (SELECT x.k, x.t, x.v, y.w, row_number() OVER (PARTITION BY x.k, x.t, x.v ORDER BY y.w DESC) r
            FROM e x LEFT JOIN b y ON x.k = y.id AND y.w <= x.v * 100) WHERE r = 1""",
    },
    "More aggregates": {
        "boolean_and_bits": "SELECT s, bool_and(v > 5) AS b, count_if(v > 5) AS c, bit_xor(v) AS x FROM a GROUP BY s",
        "percentiles": "SELECT s, percentile(v, 0.5) AS p, median(id) AS m FROM a GROUP BY s",
        "approximate_count": "SELECT s, approx_count_distinct(v) AS d FROM a GROUP BY s",
        "deviation": "SELECT s, round(stddev(v), 6) AS d FROM a GROUP BY s",
        "max_by": "SELECT s, max_by(id, v) AS i FROM a WHERE v IS NOT NULL GROUP BY s",
        "listagg": "SELECT s, listagg(CAST(v AS string), ',') WITHIN GROUP (ORDER BY v) AS l FROM a GROUP BY s",
        "cube_with_grouping_id": "SELECT s, id, grouping_id(s, id) AS g, count(*) AS n FROM a GROUP BY CUBE (s, id)",
        "distincts_beside_a_sum": """SELECT s, count(DISTINCT v) AS d, count(DISTINCT id) AS e, sum(v) AS n FROM a GROUP BY s
            HAVING count(*) > 1""",
        "distincts_and_averages": """SELECT upper(s) AS u, count(DISTINCT v) FILTER (WHERE id > 1) AS d, sum(DISTINCT id) AS e, avg(v) AS m,
            count(*) FILTER (WHERE v > 3) AS f FROM a GROUP BY upper(s)""",
        "distinct_over_all_rows": "SELECT count(DISTINCT v) AS d, count(*) AS n, sum(v) AS t, min(s) AS m, sum(DISTINCT v) AS u FROM a",
        "distinct_average_over_all_rows": "SELECT avg(DISTINCT w) AS m, sum(w) FILTER (WHERE id > 1) AS t, count(id) AS n FROM b",
        "distinct_strings_over_all_rows": "SELECT count(DISTINCT upper(k)) + 1 AS d, sum(x) AS t, max(x) AS m FROM c",
        "distinct_in_a_subquery": "SELECT id, v FROM a WHERE v > (SELECT count(DISTINCT w) + min(id) FROM b)",
        "distinct_beside_averages": """SELECT count(DISTINCT v) AS d, avg(v) AS m, count(*) AS n, avg(id) FILTER (WHERE v > 3) AS f,
            avg(bigint(v) * 1000000007) AS big FROM a""",
        "distinct_beside_averages_in_a_query": """SELECT a.id, t.d, t.m, t.wide FROM a CROSS JOIN
            (SELECT count(DISTINCT k) AS d, avg(x) AS m, avg(CAST(x AS DECIMAL(16, 3))) AS wide, avg(DISTINCT k) AS none FROM c) t""",
        "distincts_alone": "SELECT count(DISTINCT v) + count(DISTINCT id) AS d, sum(DISTINCT id) AS e FROM a",
        "distincts_of_all_rows": "SELECT count(DISTINCT v) AS d, count(DISTINCT id) AS e, max(s) AS m FROM a",
        "distincts_rolled_up": """SELECT s, id, count(DISTINCT v) AS d, count(DISTINCT v % 2) AS e, sum(v) AS n FROM a
            GROUP BY ROLLUP (s, id)""",
        "distincts_of_outer_joins": """SELECT a.s, count(DISTINCT b.w) AS d, count(DISTINCT a.v) AS e, sum(b.w) + min(a.id) AS n
            FROM a LEFT JOIN b ON a.id = b.id GROUP BY a.s""",
        "distinct_with_filter": "SELECT s, count(DISTINCT v) FILTER (WHERE id > 1) AS d, sum(DISTINCT v) AS t FROM a GROUP BY s",
        "having_with_a_subquery": "SELECT s, sum(v) AS t FROM a GROUP BY s HAVING sum(v) > (SELECT min(w) FROM b)",
        "groups_of_structs": "SELECT named_struct('s', s, 'v', v) AS k, count(*) AS n FROM a GROUP BY named_struct('s', s, 'v', v)",
        "groups_of_a_full_join": """SELECT k, count(DISTINCT v) AS n, max(w) AS w FROM (SELECT coalesce(a.id, b.id) AS k, v, w
            FROM a FULL JOIN b ON a.id = b.id) GROUP BY k""",
        "groups_of_a_full_join_using": "SELECT id, count(DISTINCT s) AS n, sum(DISTINCT w) AS w FROM a FULL JOIN b USING (id) GROUP BY id",
        "groups_of_one_side_of_a_full_join": """SELECT s, count(DISTINCT w) AS n FROM a FULL JOIN b ON a.id = b.id AND w > 100
            GROUP BY s""",
        "groups_of_what_may_be_padded": """SELECT w, count(DISTINCT v) AS n, max(s) AS s FROM a LEFT JOIN b ON a.id = b.id AND v < w
            GROUP BY w""",
        "groups_of_what_may_be_padded_and_not": """SELECT w, s, count(DISTINCT v) AS n FROM b RIGHT JOIN a ON a.id = b.id AND v * 10 < w
            GROUP BY w, s""",
        "large_averages_of_whole_numbers": "SELECT s, avg(v) AS m FROM a GROUP BY s HAVING avg(v) > 4",
        "averages_of_narrow_decimals": "SELECT k, avg(x) AS m FROM c GROUP BY k HAVING count(*) < 3",
        "averages_of_whole_numbers_joined": """SELECT a.id, a.s, g.m FROM a
            JOIN (SELECT id, avg(w) AS m, avg(DISTINCT w) AS d FROM b GROUP BY id) g ON a.id = g.id AND g.d > a.v""",
        "two_levels": "SELECT n, count(*) AS m FROM (SELECT s, count(*) AS n FROM a GROUP BY s) GROUP BY n",
    },
    "More windows": {
        "ntile": "SELECT s, v, ntile(2) OVER (PARTITION BY s ORDER BY v, id) AS n FROM a",
        "relative_ranks": """SELECT s, v, percent_rank() OVER (PARTITION BY s ORDER BY v) AS p,
            cume_dist() OVER (PARTITION BY s ORDER BY v) AS c FROM a""",
        "first_and_last_value": """SELECT s, first_value(v) OVER (PARTITION BY s ORDER BY v, id) AS f,
            last_value(v) OVER (PARTITION BY s ORDER BY v, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM a""",
        "range_frame": """SELECT k, v, count(*) OVER (PARTITION BY k ORDER BY t
            RANGE BETWEEN INTERVAL 10 SECONDS PRECEDING AND CURRENT ROW) AS n FROM e""",
        "range_frame_without_partition": """SELECT k, t, max(v) OVER (ORDER BY t
            RANGE BETWEEN INTERVAL 10 SECONDS PRECEDING AND INTERVAL 2 SECONDS FOLLOWING) AS m FROM e""",
        "row_number_in_a_total_order": "SELECT id, s, v, row_number() OVER (PARTITION BY s ORDER BY v, id) AS r FROM a",
        "first_row_in_a_total_order": """SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY s ORDER BY v DESC, id) AS r FROM a)
            WHERE r = 1""",
        "row_number_by_a_key": """SELECT s, t, row_number() OVER (PARTITION BY t > 5 ORDER BY s) AS r
            FROM (SELECT s, sum(v) AS t, max(CAST(v AS double)) AS d FROM a GROUP BY s) WHERE d > 0 OR t IS NULL""",
        "ranks_of_ranks": """SELECT id, r, row_number() OVER (PARTITION BY id ORDER BY v, r) AS q
            FROM (SELECT id, v, row_number() OVER (PARTITION BY s ORDER BY id, v) AS r FROM a) WHERE r < 3""",
        "averages_over_first_rows": """SELECT id, avg(v) OVER (PARTITION BY s ORDER BY id ROWS 2 PRECEDING) AS m
            FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY v, s) AS n FROM a) WHERE n <= 1 AND v > 0""",
        "lags_aggregated": """SELECT id, sum(v - l) AS d FROM (SELECT id, v, lag(v) OVER (PARTITION BY s ORDER BY v, id) AS l FROM a)
            GROUP BY id""",
        "averages_of_whole_numbers_over_partitions": "SELECT id, s, avg(v) OVER (PARTITION BY s) AS m FROM a",
        "two_partitions": "SELECT s, id, count(*) OVER (PARTITION BY s) AS n, max(v) OVER (PARTITION BY id) AS m FROM a",
        "window_of_groups": "SELECT s, sum(v) AS t, rank() OVER (PARTITION BY s IS NULL ORDER BY sum(v)) AS r FROM a GROUP BY s",
    },
    "More subqueries": {
        "in_two_columns": "SELECT * FROM a WHERE (id, v) IN (SELECT id, w FROM b)",
        "exists_with_residual": "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.w > a.v * 10)",
        "not_exists_nested": """SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.id
            AND EXISTS (SELECT 1 FROM a d WHERE d.v = b.w))""",
        "in_under_or": "SELECT * FROM a WHERE v > 15 OR id IN (SELECT id FROM b WHERE w > 100)",
        "scalar_in_case": "SELECT id, CASE WHEN v > (SELECT avg(w) FROM b) THEN 'high' ELSE 'low' END AS c FROM a",
        "left_join_on_what_a_scalar_made": """SELECT x.s, b.w FROM (SELECT s, id + (SELECT min(id) FROM b) AS k FROM a) x
            LEFT JOIN b ON b.id = x.k""",
        "left_join_with_a_scalar_in_its_equality": "SELECT a.s, b.w FROM a LEFT JOIN b ON b.id = a.id + (SELECT min(id) FROM b)",
        "scalars_of_every_type": """SELECT id, (SELECT max(x) FROM c) AS d, (SELECT max(k) FROM c) AS k, (SELECT max(t) FROM e) AS t,
            (SELECT max(CAST(t AS date)) FROM e) AS y, (SELECT sum(w) FROM b) AS w, (SELECT min(l) FROM c) AS l,
            (SELECT max(CAST(v AS double)) FROM a) AS f, (SELECT min(v) < 3 FROM a) AS o FROM a""",
        "scalar_of_no_row": """SELECT id, (SELECT max(w) FROM b WHERE id > 900) AS m FROM a
            WHERE (v > (SELECT min(v) FROM a WHERE id < 0)) IS NULL""",
        "newest_rows": "SELECT s, v FROM (SELECT s, v FROM a WHERE s <> 'n') WHERE v >= (SELECT max(v) - 20 FROM a)",
        "between_two_values": "SELECT id, v FROM a WHERE (SELECT min(w) FROM b) < v AND v < (SELECT max(w) / 10 FROM b)",
        "filter_by_a_value_of_strings": "SELECT id FROM a WHERE s > (SELECT min(k) FROM c) OR v = (SELECT count(*) FROM b)",
        "total_of_a_join": """SELECT a.s, t.n, t.m FROM a CROSS JOIN
            (SELECT count(*) AS n, avg(x.v + b.w) AS m FROM a x JOIN b ON x.id = b.id WHERE x.v > 0) t""",
        "total_over_groups": "SELECT s, v, (SELECT max(t) FROM (SELECT id, sum(w) AS t FROM b GROUP BY id)) AS m FROM a",
        "share_of_a_total": "SELECT s, v / (SELECT CAST(sum(v) AS decimal(20, 0)) FROM a) AS p FROM a",
        "total_twice": """SELECT a.s, x.n + y.n AS n FROM a CROSS JOIN (SELECT count(w) AS n FROM b) x
            JOIN (SELECT count(w) AS n FROM b) y ON y.n > a.v""",
        "total_with_having": "SELECT count(*) AS n, sum(v) AS t FROM a HAVING count(v) > 3",
        "extremes_of_every_type": """SELECT id, lo, hi, first_day, flag, local, least_x, mk FROM a CROSS JOIN
            (SELECT min(t) AS lo, max(k) AS hi, min(CAST(t AS date)) AS first_day,
            max(v > 3) AS flag, max(CAST(t AS timestamp_ntz)) AS local FROM e)
            CROSS JOIN (SELECT min(x) AS least_x, max(k) AS mk FROM c WHERE x > 1)""",
        "total_with_filter": """SELECT s, n, t FROM a CROSS JOIN
            (SELECT count(*) FILTER (WHERE w > 100) AS n, sum(w) FILTER (WHERE id IS NULL) AS t FROM b)""",
        "correlated_count": "SELECT s, (SELECT count(*) FROM b WHERE b.id = a.id) AS n FROM a",
        "lateral_join": "SELECT a.s, l.m FROM a, LATERAL (SELECT max(w) AS m FROM b WHERE b.id = a.id) l",
    },
    "More generators": {
        "inline": "SELECT k, x, y FROM (SELECT k, inline(array(struct(1, 'a'), struct(size(l), 'b'))) AS (x, y) FROM c)",
        "explode_map": "SELECT id, m, n FROM (SELECT id, explode(map('v', v, 'i', id)) AS (m, n) FROM a)",
        "stack": "SELECT s, stack(2, 'id', id, 'v', v) AS (n, w) FROM a",
        "unpivot": "SELECT * FROM (SELECT s, id, v FROM a) UNPIVOT (w FOR n IN (id, v))",
        "higher_order": "SELECT k, transform(filter(l, x -> x IS NOT NULL), x -> x + 1) AS l FROM c",
    },
    "ORDER BY ... LIMIT at the root": TOP,
    "What depends on the order of rows, within keys": SCOPED,
    "Sums, counts and extremes at the root": ADDED,
    "Aggregates that are not added": NOT_ADDED,
}
QUERIES = {name: query for section in SECTIONS.values() for name, query in section.items()}
"""Every query by its name."""
