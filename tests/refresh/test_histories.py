"""Random histories on Delta tables, through the public API: small steps and one big step end in the truth. Seeded; Hypothesis drives
the twin (test_twin.py)."""

from __future__ import annotations

import random

import pytest

from tests.lakes import TestLake, multiset

VIEWS = {
    "joined": "SELECT a.id, a.s, a.v, b.w FROM a JOIN b ON a.id = b.id AND a.v <= b.w",
    "three": "SELECT a.s, b.w, c.v AS cv FROM a JOIN b ON a.id = b.id JOIN a c ON c.v = b.w",
    "outer_joined": "SELECT a.s, b.w FROM a LEFT JOIN b ON a.id = b.id AND b.w > 1",
    "grouped": "SELECT a.id, count(*) AS n, sum(b.w) AS w FROM a JOIN b ON a.id = b.id GROUP BY a.id",
    "united": "SELECT id, v FROM a UNION ALL SELECT id, w FROM b WHERE w > 0",
}


def statement(draw: random.Random) -> str:
    """One change of one table: inserts of rows that may be there already, updates that move a row to another key, deletes."""
    table, column = draw.choice([("a", "v"), ("b", "w")])
    key = draw.choice(["NULL", "0", "1", "2", "3"])
    value = draw.randrange(4)
    row = f"{key}, 's{value}', {value}" if table == "a" else f"{key}, {value}"
    return draw.choice(
        [
            f"INSERT INTO {{{table}}} VALUES ({row}), ({row})",
            f"INSERT INTO {{{table}}} VALUES ({row})",
            f"UPDATE {{{table}}} SET id = {draw.randrange(4)} WHERE id <=> {key}",
            f"UPDATE {{{table}}} SET {column} = {column} + 1 WHERE {column} = {value}",
            f"DELETE FROM {{{table}}} WHERE id <=> {key}",
            f"DELETE FROM {{{table}}} WHERE {column} = {value} AND id IS NOT NULL",
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_small_steps_and_one_big_step_end_in_the_truth(lake: TestLake, seed: int) -> None:
    draw = random.Random(seed)
    lake.table("a", "SELECT * FROM VALUES (1, 's1', 1), (1, 's1', 1), (2, 's2', 2), (NULL, 's0', 0) t(id, s, v)")
    lake.table("b", "SELECT * FROM VALUES (1, 1), (2, 2), (2, 3), (NULL, 0) t(id, w)")
    for name, query in VIEWS.items():
        lake.view(name, query)
        lake.view(f"{name}_at_once", query)
    for name in lake.views:
        lake.refresh(name)
    for _ in range(3):
        for _ in range(draw.randrange(1, 4)):
            lake.sql(statement(draw))
        for name in VIEWS:
            lake.refresh(name)
            assert multiset(lake.open.read(name)) == lake.truth(name), name
    for name in VIEWS:
        lake.refresh(f"{name}_at_once")
        assert multiset(lake.open.read(f"{name}_at_once")) == lake.truth(name), name
        assert lake.refresh(name).mode == "none"
