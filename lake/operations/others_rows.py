"""Says which rows of a view the commits of somebody else changed, by the data files that each of them added and removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import functions as F

from lake.config.models import HIDDEN_PREFIX
from lake.core.other_commits import OtherCommit
from lake.core.planned import RowChanges
from lake.core.sql import quoted
from lake.delta.actions import Commit
from lake.delta.file_changes import file_changes, rows
from lake.delta.pinned import Pinned
from lake.errors import LakeError
from lake.operations.pairing import paired, ranked
from lake.spark import sameness, zset
from lake.spark.failures import SPARK_ERRORS
from lake.views.others import other_commit

_MOST = 10
_OLD, _NEW = "_was", "_is"


def with_rows(pinned: Pinned, commits: Sequence[Commit], key: Sequence[str]) -> tuple[OtherCommit, ...]:
    """Commits on a view's table, oldest first, the newest ten of them with the rows that they changed, paired by the key, if these can be
    read. `pinned`: the table's newest version."""
    columns = [name for name in pinned.schema.names if not name.startswith(HIDDEN_PREFIX)]
    told = [other_commit(commit, columns) for commit in commits]
    known = [replace(said, rows=_rows(pinned, said.version, columns, key)) for said in told[-_MOST:]]
    return (*told[:-_MOST], *known)


def _rows(newest: Pinned, version: int, columns: Sequence[str], key: Sequence[str]) -> RowChanges | None:
    """The rows that a version changed, None where its files or those before it are gone."""
    try:
        pinned = newest if version == newest.version.number else newest.log.at(version)
        return _changes(pinned, columns, key)
    except (LakeError, *SPARK_ERRORS):
        return None


def _changes(pinned: Pinned, columns: Sequence[str], key: Sequence[str]) -> RowChanges:
    places = {name: f"c{i}" for i, name in enumerate(columns)}
    found = file_changes(pinned, pinned.version.number - 1)
    changed = rows(pinned, found, [f"{quoted(name)} AS {place}" for name, place in places.items()])
    sides = {_NEW: changed.where(F.col(zset.WEIGHT) > 0), _OLD: changed.where(F.col(zset.WEIGHT) < 0)}
    tallied = sameness.tallied(**{name: side.drop(zset.WEIGHT) for name, side in sides.items()})
    net, weight = tallied.where(F.col(_NEW) != F.col(_OLD)).persist(), F.col(_NEW) - F.col(_OLD)
    try:
        if not key or not all(name in places for name in key):
            added, removed = zset.totals(net, weight)
            return RowChanges(added, removed, 0, {})
        old, new = (ranked(net.where(times > 0), [*places.values()], times, [places[k] for k in key]) for times in (-weight, weight))
        with paired(old, new, places, key) as pairs:
            return pairs.row_changes()
    finally:
        net.unpersist()
