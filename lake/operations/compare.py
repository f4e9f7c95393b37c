"""Compares a view with its query run from scratch, and its real-time table with the strong view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

from pyspark.sql import DataFrame

from lake.core.results import Agreement, Differences
from lake.core.stamp import Stamp
from lake.delta.retention import is_of_a_file_gone
from lake.delta.sources import PinnedSources
from lake.errors import ExpiredError, LakeError
from lake.operations import agreement, verify
from lake.operations.others_rows import with_rows
from lake.operations.rounding import NONE, Tolerance
from lake.operations.verify import Share
from lake.refresh.row_edits import in_names
from lake.relations.reading import Reading
from lake.spark.failures import SPARK_ERRORS
from lake.spark.session import own_session
from lake.views.definition import Definition
from lake.views.registry import OpenViews
from lake.views.table import deleted, refuse_others, visible


def verified(views: OpenViews, view: str, share: Share) -> Differences:
    """What differs between a view and its query over the tables at its snapshot, and which commits of somebody else its table has since.

    Raises ExpiredError where the tables can't be read, TargetError where somebody else gave the view's table other columns.
    """
    spark = own_session(views.spark)
    current, others = views.built_and_others(spark, view)
    assert current.stamp is not None
    views.refuse_changed_definition(current.stamp)
    try:
        truth = verify.from_scratch(spark, view, views.config, views.frames_of(spark, current.stamp))
        stored, key = visible(current.pinned.rows()), verify.key_of(current)
        if others and _columns(truth) != _columns(stored):
            refuse_others(views.view_table(view), current.pinned, others[-1])
        found = _compared(views, current.stamp, verify.Sides(view, current.stamp.snapshot, truth, stored, key), share)
    except (ExpiredError, *SPARK_ERRORS) as error:
        expired = verify.unreadable(view, current.stamp.snapshot, error)
        if others and isinstance(expired, ExpiredError):
            refuse_others(views.view_table(view), current.pinned, others[-1])
        raise expired from error
    if not others:
        return found
    return replace(found, other_commits=with_rows(current.pinned, others, key), command=views.view_table(view).recreate_command)


def _columns(frame: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]


def against_query(views: OpenViews, stamp: Stamp, truth: DataFrame, stored: DataFrame, key: tuple[str, ...]) -> Differences:
    """What differs between rows, in the order of the query's columns, and those of a view's query at the snapshot of a stamp."""
    return _compared(views, stamp, verify.Sides(stamp.view, stamp.snapshot, truth, stored, key), Share())


def _compared(views: OpenViews, stamp: Stamp, sides: verify.Sides, share: Share) -> Differences:
    with _canonical(views, stamp.view, stamp) as canonical:
        return verify.compared(sides, share, verify.Judgement(lambda: tolerance(views, stamp.view), canonical))


def tolerance(views: OpenViews, view: str) -> Tolerance:
    """The view's columns that may differ from the query by rounding, and by how much, and those that may in the sign of zero; none where
    the query is refused now."""
    with suppress(LakeError), views.opened(view) as state:
        return _allowed(views, view, views.prepare(view, state)[0])
    return NONE


def _allowed(views: OpenViews, view: str, definition: Definition) -> Tolerance:
    return Tolerance(definition.rounded, views.config.limits(view).ulps, definition.of_either_zero)


@contextmanager
def _canonical(views: OpenViews, view: str, stamp: Stamp) -> Iterator[Callable[[], DataFrame | None]]:
    """Within it, the query's rows at a snapshot as a rebuild would publish them, None where the query is refused now."""
    with ExitStack() as opened:

        def rows() -> DataFrame | None:
            with suppress(LakeError):
                state = opened.enter_context(views.opened(view))
                definition = views.prepare(view, state)[0]
                sources = PinnedSources({}, views.pins_of(state.spark, stamp), None)
                reading = opened.enter_context(Reading(definition.catalyst, sources))
                return visible(in_names(definition, definition.unguarded.relation.snapshot(reading)))
            return None

        yield rows


def agreed(strong: OpenViews, eventual: OpenViews, view: str, trusted: bool) -> Agreement:
    """What differs between a view's real-time table and the strong view, in classes.

    `trusted`: where both are at one snapshot, the strong view is taken as the truth; else the query is run.
    """
    spark = own_session(strong.spark)
    ours, theirs = strong.built(spark, view), eventual.built(spark, view)
    assert ours.stamp is not None
    assert theirs.stamp is not None
    where, reason = agreement.position(theirs.stamp.answers_for, ours.stamp.answers_for), ""
    eventual_rows, strong_rows = visible(theirs.pinned.rows()), visible(ours.pinned.rows())
    with strong.opened(view) as state:
        definition = strong.prepare(view, state)[0]
        allowed = _allowed(strong, view, definition)
    sides = agreement.Sides(
        eventual_rows, strong_rows, None, verify.key_of(ours), definition.null_extended, tolerance=allowed.only_rounding
    )
    try:
        if where != "equal" or not trusted:
            frames = eventual.frames_of(spark, theirs.stamp)
            sides = replace(sides, truth=verify.from_scratch(spark, view, strong.config, frames))
        classes, rounding = agreement.classes(sides, where, lambda: deleted(ours.pinned, eventual_rows.columns))
        if classes and allowed.zeros and sides.truth is not None:
            with _canonical(eventual, view, theirs.stamp) as canonical:
                if (other := canonical()) is not None:
                    sides = replace(sides, truth=verify.with_zeros_of(other, sides.truth, allowed))
                    classes, rounding = agreement.classes(sides, where, lambda: deleted(ours.pinned, eventual_rows.columns))
    except (ExpiredError, *SPARK_ERRORS) as error:
        if not isinstance(error, ExpiredError) and not is_of_a_file_gone(error):
            raise
        where, reason = "undecidable", str(verify.unreadable(view, theirs.stamp.snapshot, error))
        classes, rounding = agreement.undecided(sides)
    snapshots = (ours.stamp.answers_for, theirs.stamp.answers_for)
    return Agreement(view, *snapshots, where, eventual_rows.count(), classes, sides.key, reason, rounding)
