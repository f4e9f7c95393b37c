"""Plans a refresh from the published stamp and the newest versions. Pure: it runs no Spark job, so a plan can be shown first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from lake.core.snapshots import Interval, Snapshot
from lake.core.stamp import Stamp
from lake.errors import DefinitionChangedError, SourceError

FUNCTION = "function "
"""How the name of a fingerprint's part starts that is the version of a user's function."""
RefreshMode = Literal["none", "build", "copy", "edit", "incremental", "recompute"]


@dataclass(frozen=True)
class RefreshPlan:
    """What a refresh will do: from which snapshot to which, in which mode, and why it is not incremental if it is not."""

    view: str
    mode: RefreshMode
    since: Snapshot | None
    until: Snapshot
    reason: str = ""


def plan(
    view: str,
    published: Stamp | None,
    fingerprint: Mapping[str, str],
    until: Snapshot,
    recomputed: str,
    waited: Collection[str] = (),
) -> RefreshPlan:
    """Plan a refresh. `recomputed`: why the query can never be refreshed incrementally, else empty; `waited`: sources that a view among
    the sources also reads, whose version is therefore that view's. It is older than the published one after a rebuild to an older version.

    Raises DefinitionChangedError if the definition has changed, SourceError if some tables would move to older versions.
    """
    if published is None:
        return RefreshPlan(view, "build", None, until, "the view has not been built yet")
    check_fingerprint(view, published.fingerprint, fingerprint)
    interval = Interval(published.snapshot, until)
    moved, backwards = interval.moved(), interval.backwards()
    if not moved:
        return nothing_new(published)
    if backwards and len(backwards) == len(moved):
        return RefreshPlan(view, "none", published.snapshot, published.snapshot, "the view is already at a newer snapshot")
    if backwards:
        shown = ", ".join(f"{t} from version {published.snapshot[t]} to {until[t]}" for t in backwards)
        if set(backwards) <= set(waited):
            return RefreshPlan(
                view, "none", published.snapshot, published.snapshot, f"it waits for a view that it reads, which has {shown}"
            )
        raise SourceError(f"A refresh of {view!r} to {until} would move {shown}. A view never moves back: give newer versions.")
    if recomputed:
        return RefreshPlan(view, "recompute", published.snapshot, until, recomputed)
    return RefreshPlan(view, "incremental", published.snapshot, until)


def nothing_new(published: Stamp) -> RefreshPlan:
    """The plan for a view whose sources have no new version."""
    return RefreshPlan(published.view, "none", published.snapshot, published.snapshot, "no source has a new version")


def differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The names of the parts in which two fingerprints differ, without the text of the definition and Spark's patch version."""
    return [name for name in sorted({*old, *new}) if name != "text" and _comparable(name, old) != _comparable(name, new)]


def _comparable(name: str, fingerprint: Mapping[str, str]) -> str:
    """A fingerprint's value; of Spark's version the major and minor number, also where an earlier release stamped the whole version."""
    value = fingerprint.get(name, "")
    return ".".join(value.split(".")[:2]) if name == "spark" else value


def check_fingerprint(view: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Raise DefinitionChangedError, which names the differences."""
    others = differing(old, new)
    if not others:
        return
    hashed = ("query", "columns", "function")
    shown = [f"the {n}" if n in hashed or n.startswith(FUNCTION) else f"{n} was {old.get(n, '')!r}, now {new.get(n, '')!r}" for n in others]
    same = "text" in old and old["text"] == new.get("text") and "query" in others
    cause = " (it is written as it was: the schema of a source changed)" if same else ""
    raise DefinitionChangedError(
        f"The definition of view {view!r} is not the one its table was built with: {'; '.join(shown)} changed{cause}. Nothing was "
        f'written. "lakejoin plan" says what that takes, and "lakejoin apply {view}" does it; "lakejoin rebuild {view}" computes all rows '
        "again, and so does each such refresh with `on_definition_change: rebuild`."
    )
