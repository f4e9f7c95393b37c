"""Compares a view with its query run from scratch, and its real-time table with the strong view."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from lake.core.results import Agreement, Differences
from lake.delta.retention import is_of_a_file_gone
from lake.errors import ExpiredError, LakeError
from lake.operations import agreement, verify
from lake.operations.rounding import NONE, Tolerance
from lake.operations.verify import Share
from lake.spark.failures import SPARK_ERRORS
from lake.spark.session import own_session
from lake.views.registry import OpenViews
from lake.views.table import deleted, visible


def verified(views: OpenViews, view: str, share: Share) -> Differences:
    """What differs between a view and its query over the tables at its snapshot. Raises ExpiredError where these can't be read."""
    spark = own_session(views.spark)
    current = views.built(spark, view)
    assert current.stamp is not None
    views.refuse_changed_definition(current.stamp)
    try:
        return verify.verify(
            spark, view, views.config, views.frames_of(spark, current.stamp), current, share, lambda: tolerance(views, view)
        )
    except SPARK_ERRORS as error:
        raise verify.unreadable(view, current.stamp.snapshot, error) from error


def tolerance(views: OpenViews, view: str) -> Tolerance:
    """The view's columns that may differ from the query by rounding, and by how much; none where the query is refused now."""
    with suppress(LakeError), views.opened(view) as state:
        return Tolerance(views.prepare(view, state)[0].rounded, views.config.limits(view).ulps)
    return NONE


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
        allowed = Tolerance(definition.rounded, strong.config.limits(view).ulps)
    sides = agreement.Sides(eventual_rows, strong_rows, None, verify.key_of(ours), definition.null_extended, tolerance=allowed)
    try:
        if where != "equal" or not trusted:
            frames = eventual.frames_of(spark, theirs.stamp)
            sides = replace(sides, truth=verify.from_scratch(spark, view, strong.config, frames))
        classes, rounding = agreement.classes(sides, where, lambda: deleted(ours.pinned, eventual_rows.columns))
    except (ExpiredError, *SPARK_ERRORS) as error:
        if not isinstance(error, ExpiredError) and not is_of_a_file_gone(error):
            raise
        where, reason = "undecidable", str(verify.unreadable(view, theirs.stamp.snapshot, error))
        classes, rounding = agreement.undecided(sides)
    snapshots = (ours.stamp.answers_for, theirs.stamp.answers_for)
    return Agreement(view, *snapshots, where, eventual_rows.count(), classes, sides.key, reason, rounding)
