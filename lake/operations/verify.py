"""Compares a view with its query run from scratch, by plain Spark on the pinned tables.

Nothing here goes through relations or catalyst, and rows are equal by `sameness`, not by what refreshes compare them by: what is judged
must not judge itself. The one exception is the sign of a zero where Spark's maximum or minimum may have either (`with_zeros_of`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lake.config.models import Config
from lake.config.view_sources import one_query, query_text
from lake.core.pairs import Pair, Paired, size_of_difference
from lake.core.results import Difference, Differences, Rounding
from lake.core.snapshots import Snapshot
from lake.delta.retention import is_of_a_file_gone
from lake.delta.tables import reason
from lake.errors import ExpiredError, LakeError
from lake.operations.pairing import Kind, paired, ranked
from lake.operations.rounding import Tolerance, settled
from lake.spark import sameness
from lake.spark.queries import query
from lake.views.query import function_tables
from lake.views.table import KEY, Published
from lake.views.user_functions import load_function

_SAMPLES = 5
_WANTED, _HELD = "_wanted", "_held"


@dataclass(frozen=True)
class Share:
    """One of `of` parts of about equal size, by a hash of the key (of the whole row, where there is none); `part` counts from 1."""

    part: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"{self.part}/{self.of}"

    def of_rows(self, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The rows of this part, by the columns."""
        if self.of == 1:
            return frame
        return frame.where(F.pmod(sameness.hashed(frame, columns), F.lit(self.of)) == self.part - 1)


@dataclass(frozen=True)
class Judgement:
    """What may differ between a view and its query. `tolerance`: which columns may, by rounding or in the sign of zero, asked for where
    the rows are not the same; `canonical`: the query's rows, with 0.0 wherever a maximum or minimum may be 0.0 or -0.0 by Spark's
    comparison, None where they can't be had."""

    tolerance: Callable[[], Tolerance]
    canonical: Callable[[], DataFrame | None]


@dataclass(frozen=True)
class Sides:
    """What is compared: the rows of a view's query at a snapshot, and rows that are to be the same, by the places of their columns; the
    key of the view."""

    view: str
    snapshot: Snapshot
    truth: DataFrame
    stored: DataFrame
    key: tuple[str, ...]


def compared(sides: Sides, share: Share, judgement: Judgement) -> Differences:
    """Compare the two sides as multisets, bit by bit but for what `judgement` allows."""
    truth, stored = sides.truth, sides.stored
    names = [f"c{i}" for i in range(len(truth.columns))]
    key = sides.key
    in_names = dict(zip(truth.columns, names, strict=True))
    allowed = cache(lambda: judgement.tolerance().of(in_names))
    hashed = _hashed([in_names[k] for k in key if k in in_names] or names, share, allowed)
    rows = share.of_rows(stored.toDF(*names) if len(stored.columns) == len(names) else stored, hashed)
    wanted = share.of_rows(truth.toDF(*names), hashed)
    alike = sameness.same_rows(wanted, rows)
    if alike is not None:
        return Differences(sides.view, sides.snapshot, alike, 0, 0, (), key, str(share))
    zeros = bool(allowed().zeros)
    asked = _Asked(in_names, key, allowed().only_rounding)
    found = _found(wanted, rows, replace(asked, key=()) if zeros else asked)
    if found.rows and zeros:
        other = judgement.canonical()
        if other is not None:
            wanted = share.of_rows(with_zeros_of(other.toDF(*names), truth.toDF(*names), allowed()), hashed)
        found = _found(wanted, rows, asked)
    return Differences(
        sides.view, sides.snapshot, rows.count(), found.missing, found.surplus, found.samples, key, str(share), found.rounding, found.paired
    )


@dataclass(frozen=True)
class _Asked:
    """`places`: by column of the view, its name in the frames; `key`: the columns that pair differing rows; without any they are not
    paired."""

    places: Mapping[str, str]
    key: tuple[str, ...]
    allowed: Tolerance


@dataclass(frozen=True)
class _Found:
    """How many rows are missing, how many too many, some of them, what is rounding, and the rows paired by key."""

    missing: int
    surplus: int
    samples: tuple[Difference, ...]
    rounding: Rounding
    paired: Paired | None = None

    @property
    def rows(self) -> int:
        return self.missing + self.surplus


def _found(wanted: DataFrame, rows: DataFrame, asked: _Asked) -> _Found:
    differing = sameness.tallied(**{_WANTED: wanted, _HELD: rows}).where(F.col(_WANTED) != F.col(_HELD)).persist()
    try:
        left, rounding = settled(differing, {_HELD: _WANTED}, asked.allowed) if asked.allowed else (differing, Rounding())
        left = left.where(F.col(_WANTED) != F.col(_HELD))
        weight = F.col(_WANTED) - F.col(_HELD)
        counts = left.agg(F.sum(F.when(weight > 0, weight)), F.sum(F.when(weight < 0, -weight))).head() or (0, 0)
        named = [F.col(place).alias(name) for name, place in asked.places.items()]
        samples = tuple(Difference(row[0], row[1].asDict()) for row in left.select(weight, F.struct(*named)).take(_SAMPLES))
        by_key = _paired(left, asked) if samples and asked.key and all(name in asked.places for name in asked.key) else None
    finally:
        differing.unpersist()
    return _Found(counts[0] or 0, counts[1] or 0, samples, rounding, by_key)


def _paired(differing: DataFrame, asked: _Asked) -> Paired:
    """Tallied rows that differ, those of the view beside those of the query with the same key."""
    columns, key, weight = [*asked.places.values()], [asked.places[name] for name in asked.key], F.col(_WANTED) - F.col(_HELD)
    view, query = (ranked(differing.where(times > 0), columns, times, key) for times in (-weight, weight))
    with paired(view, query, asked.places, asked.key, asked.allowed) as pairs:
        counts = pairs.counts()
        kinds: dict[Kind, int] = {"changed": counts.changed, "added": counts.added, "removed": counts.removed}
        samples = [_pair(*row) for kind, number in kinds.items() if number for row in pairs.rows(kind, _SAMPLES)]
    return Paired(counts.added, counts.removed, counts.changed, counts.by_column, tuple(samples))


def _pair(view: dict[str, Any] | None, query: dict[str, Any] | None, columns: Sequence[str]) -> Pair:
    return Pair(query, view, {name: size_of_difference((query or {})[name], (view or {})[name]) for name in columns})


def with_zeros_of(canonical: DataFrame, truth: DataFrame, allowed: Tolerance) -> DataFrame:
    """The canonical rows where they are the query's but for rounding and the sign of zero in the columns where Spark may choose it; else
    the query's. So what refreshes share with the canonical rows decides about the sign of a zero only."""
    names = {c: f"c{i}" for i, c in enumerate(truth.columns)}
    numbered = {name: frame.toDF(*names.values()) for name, frame in {_WANTED: truth, _HELD: canonical}.items()}
    differing = sameness.tallied(**numbered).where(F.col(_WANTED) != F.col(_HELD)).persist()
    try:
        left, _ = settled(differing, {_HELD: _WANTED}, allowed.of(names))
        same = left.where(F.col(_WANTED) != F.col(_HELD)).isEmpty()
    finally:
        differing.unpersist()
    return canonical.toDF(*truth.columns) if same else truth


def _hashed(columns: list[str], share: Share, allowed: Callable[[], Tolerance]) -> list[str]:
    """The columns by which rows are shared out: none of those that may differ, or two equal rows would be in two parts."""
    return [c for c in columns if c not in allowed().apart] if share.of > 1 else columns


def key_of(current: Published) -> tuple[str, ...]:
    """The columns of a view's key, none where it has no key that a reader sees."""
    return tuple(json.loads(current.pinned.properties.get(KEY, "[]")))


def from_scratch(spark: SparkSession, view: str, config: Config, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The view's query over the given tables, as Spark itself runs it."""
    definition = config.view(view)
    if definition.function is not None:
        function = load_function(definition, config)
        asked = function_tables(view, function, [*config.tables, *config.views])
        frame = function(**{parameter: tables[table] for parameter, table in asked.items()})
        assert isinstance(frame, DataFrame)
        return frame
    return query(spark, one_query(query_text(definition, config)), tables)


def unreadable(view: str, snapshot: Snapshot, error: Exception) -> Exception:
    """The error for versions whose files no longer exist; other errors are given back as they are."""
    if not isinstance(error, LakeError) and (is_of_a_file_gone(error) or "FileNotFound" in str(error)):
        return ExpiredError(
            f"View {view!r} can't be verified: the source versions it was built from ({snapshot}) can no longer be read ({reason(error)}). "
            f'Refresh it, then verify immediately, or run "lakejoin rebuild {view}".'
        )
    return error
