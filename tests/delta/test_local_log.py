"""The reader of logs on this machine says what Delta says of them, or that it can't tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lake.delta.actions import Commit
from lake.delta.local_log import LocalTable, UndecidedError
from lake.delta.log import Log
from lake.delta.retention import committed_after
from tests.lakes import TestLake

PARTS = "spark.databricks.delta.checkpoint.partSize"


def said(commit: Commit) -> Any:
    return commit.number, commit.timestamp, commit.operation, commit.user_metadata, commit.table_id, [file.key for file in commit.files]


@pytest.mark.parametrize("kind", ["classic", "v2", "parts"])
def test_it_reads_what_delta_reads_after_a_checkpoint(lake: TestLake, kind: str) -> None:
    lake.table("a", "SELECT 1 AS id", **({"delta__checkpointPolicy": "v2"} if kind == "v2" else {}))
    lake.sql("INSERT INTO {a} VALUES (2)", "ALTER TABLE {a} SET TBLPROPERTIES ('x' = 'y')")
    log = Log(lake.spark, lake.path("a"))
    lake.spark.conf.set(PARTS, "1") if kind == "parts" else None
    try:
        log.checkpoint(log.head())
    finally:
        lake.spark.conf.unset(PARTS)
    lake.sql("INSERT INTO {a} VALUES (3)")
    for number in range(2):
        Path(lake.path("a"), "_delta_log", f"{number:020}.json").unlink()
    head, local = log.head(), LocalTable.open(lake.path("a"))
    assert (local.version, dict(local.properties), local.has_columns) == (head.version, head.properties, True)
    Path(lake.path("a"), "_delta_log", f"{3:020}.crc").unlink()  # as after a commit of another writer
    assert LocalTable.open(lake.path("a")) == local
    assert list(map(said, map(local.commit, (2, 3)))) == list(map(said, log.commits(1, 3)))
    assert [local.mark(n) for n in range(4)] == [log.mark(n) for n in range(4)]
    assert [local.committed_after(n) for n in range(3)] == [committed_after(head, n) for n in range(3)]
    assert [local.has_version(n) for n in range(4)] == [False, False, True, True]
    assert (local.described_again(1, 3), local.described_again(2, 3)) == (True, False)


def test_what_it_can_not_tell_it_does_not_tell(lake: TestLake) -> None:
    lake.table("a", "SELECT 1 AS id")
    log = Path(lake.path("a"), "_delta_log")
    for elsewhere in (None, "s3a://bucket/a", f"{lake.path('a')}%20", lake.path("nowhere")):
        with pytest.raises(UndecidedError):
            LocalTable.open(elsewhere)
    with pytest.raises(UndecidedError):
        LocalTable.open(lake.path("a")).commit(7)
    first = (log / f"{0:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in first]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"]["delta.coordinatedCommits.commitCoordinator-preview"] = "someone"
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    (log / f"{0:020}.crc").unlink()
    with pytest.raises(UndecidedError, match="not only in its folder"):
        LocalTable.open(lake.path("a"))
