"""Plans what a changed lakejoin.yml means for each view: build, edit, rebuild. Nothing is written."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pyspark.sql import types as T

from lake.config.models import HIDDEN_PREFIX, Config
from lake.config.view_sources import expectations_of
from lake.core.plan import differing
from lake.core.planned import Plan, PlannedView, RowChanges
from lake.core.snapshots import Snapshot
from lake.core.stamp import Stamp
from lake.delta.pinned import Pinned
from lake.delta.tables import Table
from lake.errors import DefinitionError, LakeError
from lake.operations.development_plan import beside_production, built_from_others, will_be_own
from lake.operations.removed_views import removed_views
from lake.operations.row_changes import row_changes
from lake.operations.verify import Share
from lake.spark.failures import SPARK_ERRORS, as_lake_error, safely
from lake.spark.session_digest import digest
from lake.views.definition import Definition, define_each, define_part
from lake.views.inputs import Inputs
from lake.views.query import named
from lake.views.query_edit import Edit, edit_of
from lake.views.recorded import Recorded, digest_of, recorded
from lake.views.registry import OpenView, OpenViews
from lake.views.renamed import earlier_table
from lake.views.table import Published, published, schema

X = TypeVar("X")
_EDITS_OF_ROWS = ("metadata", "delete", "rewrite", "difference")


@dataclass(frozen=True)
class Change:
    """A view's plan, with what it takes to carry it out. `definition`: the new one, None where it is refused; `earlier`: the table of its
    earlier name; `reads`: the bytes of its sources."""

    planned: PlannedView
    definition: Definition | None = None
    edit: Edit | None = None
    before: Mapping[str, str] = field(default_factory=dict)
    earlier: Table | None = None
    reads: int = 0

    @property
    def writes(self) -> frozenset[str]:
        """The names of the views whose tables are written when it is carried out; none where nothing is to be done."""
        if self.planned.action in ("none", "refused"):
            return frozenset()
        return frozenset({self.planned.view, *([self.earlier.label] if self.earlier is not None else [])})


class Planning:
    """The plans of views, each with the columns that those before it will have. `counting`: they say how many rows the views have."""

    def __init__(self, views: OpenViews, counting: bool = True) -> None:
        self._views, self.config, self._counting = views, views.config, counting
        self._will_be: dict[str, Definition] = {}

    def each(self) -> Iterator[Change]:
        """What is to be done for each view, in the order in which it has to be done. Views that can't be analysed are refused."""
        yield from map(self.of, self.in_order())

    def in_order(self, asked: Collection[str] | None = None) -> list[str]:
        """The views, or those asked for, each after those that it reads."""
        return [view for view in self._views.in_order(self.config.views) if asked is None or view in asked]

    def of(self, view: str) -> Change:
        """What is to be done for a view. The views that it reads have been planned, or are as they are published."""
        try:
            with self._views.opened(view) as state:
                change = self._of(view, state)
        except LakeError as error:
            return Change(PlannedView(view, "refused", str(error), downstream=self._downstream(view)))
        if change.definition is not None and change.planned.action != "none":
            self._will_be[view] = change.definition
        return replace(change, planned=replace(change.planned, downstream=self._downstream(view)))

    def _of(self, view: str, state: OpenView) -> Change:
        earlier = earlier_table(state.spark, self.config, view)
        if earlier is not None:
            change = self._from(view, state, published(state.spark, earlier))
            return replace(change, planned=_renamed(change.planned, earlier), earlier=earlier)
        change = self._from(view, state, published(state.spark, self._views.view_table(view)))
        if self._views.is_shared(view):
            own = [n for n in self._views.reads(view) if n in self.config.views and will_be_own(self._views, n, self._will_be)]
            return replace(change, planned=beside_production(change.planned, own, change.reads))
        other = built_from_others(self._views, view, self._will_be) if change.planned.action in ("none", "edit") else ""
        return replace(change, planned=replace(change.planned, action="rebuild", how="", reason=other)) if other else change

    def _from(self, view: str, state: OpenView, current: Published | None) -> Change:
        """What is to be done for a view, from what is published."""
        names, pins = self._views.reads(view), dict[str, Pinned]()
        before = None
        if current is not None and current.stamp is not None:
            before = recorded(current.pinned.properties, current.stamp.fingerprint)
        old_config = _with_query(self.config, view, before) if before is not None else None
        asked = [*names, *(n for n in (named(state.spark, view, old_config) if old_config is not None else ()) if n not in names)]
        schemas, keys = self._inputs(state, asked, pins)
        new = define_each(state.spark, view, (self.config,), _some(schemas, names), _some(keys, names))[0]
        read = sum(pin.bytes for name, pin in pins.items() if name in new.sources)
        if current is None or current.stamp is None:
            planned = PlannedView(view, "build", "the view has not been built yet", bytes_read=read, bytes_written=read)
            return Change(planned, new, reads=read)
        token = digest(f"{current.stamp.number} {digest_of(current.stamp.fingerprint)} {digest_of(new.fingerprint)}")
        parts = differing(current.stamp.fingerprint, new.fingerprint)
        if not parts:
            return Change(PlannedView(view, "none", token=token), new, reads=read)
        function = self.config.view(view).function
        edit = Edit("recompute", "a function gives its rows" if function else "the table does not say which query it was built with")
        if old_config is not None and before is not None:
            edit, new = self._compared(state, current, (old_config, self.config), schemas, keys, new, parts)
        planned = replace(_of_edit(view, edit, current.pinned, new, read), diff=_diff(view, before, new), token=token)
        if self._counting:
            planned = replace(planned, rows=current.pinned.count)
        return Change(planned, new, edit, current.stamp.fingerprint, reads=read)

    def _inputs(
        self, state: OpenView, names: Sequence[str], pins: dict[str, Pinned]
    ) -> tuple[dict[str, T.StructType], dict[str, tuple[str, ...]]]:
        """Columns and key of each input: of a table as it is, of a view as it will be. `pins` gets the versions that were read."""
        found, keys = dict[str, T.StructType](), dict[str, tuple[str, ...]]()
        there = {}
        for name in names:
            if name in self._will_be:
                own = self._will_be[name]
                found[name] = T.StructType([f for f in schema(own).fields if not f.name.startswith(HIDDEN_PREFIX)])
                hidden = any(n.startswith(HIDDEN_PREFIX) for n in own.key_names)
                keys[name] = () if hidden else own.key_names
            else:
                there[name] = self._views.path.input(name)
        for name, table in there.items():
            if name in self.config.views:
                current = published(state.spark, table)
                if current is None or current.stamp is None:
                    raise DefinitionError(f"It reads view {name!r}, which has not been built, and can't be (see there).")
                pins[name] = current.pinned
            else:
                pins[name] = table.head(state.spark)
        inputs = Inputs(there, {name: pins[name] for name in there}, frozenset(), Snapshot({}))
        return found | inputs.schemas, keys | inputs.primary_keys

    def _compared(
        self,
        state: OpenView,
        current: Published,
        configs: tuple[Config, Config],
        schemas: Mapping[str, T.StructType],
        keys: Mapping[str, tuple[str, ...]],
        new: Definition,
        parts: Sequence[str],
    ) -> tuple[Edit, Definition]:
        """How the table comes from the query that it was built with to the new one."""
        assert current.stamp is not None
        try:
            old, again = define_each(state.spark, new.view, configs, schemas, keys)
        except LakeError as error:
            return Edit("recompute", f"the query that its table was built with can't be read any more: {error}"), new
        other = differing(old.fingerprint, current.stamp.fingerprint)
        if other or differing(again.fingerprint, new.fingerprint):
            of_sources = ("query", "columns", "keys")
            what = [p for p in other or parts if p not in of_sources]
            return Edit("recompute", f"{', '.join(what)} changed" if what else "columns or keys of what it reads changed"), new
        pinned = current.pinned
        edit = edit_of(
            old,
            again,
            lambda: [*pinned.clustered_by, *pinned.partitioned_by],
            lambda part: define_part(again, self.config, schemas, keys, part),
        )
        if edit.kind == "difference" and (why := self._unreadable(state, current.stamp, {n: schemas[n] for n in again.sources})):
            return Edit("recompute", why), new
        blocks = any(e.on_failure == "block" for e in expectations_of(self.config, new.view))
        if blocks and edit.kind in _EDITS_OF_ROWS:
            return Edit("recompute", "its blocking expectations have to see the new rows"), new
        return edit, again

    def _unreadable(self, state: OpenView, stamp: Stamp, schemas: Mapping[str, T.StructType]) -> str:
        """Why rows can't be computed from what the published rows were made of; empty where they can."""
        try:
            pins = self._views.pins_of(state.spark, stamp)
        except LakeError as error:
            return f"the versions that its rows were made of can't be read any more: {error}"
        then = Inputs({}, pins, frozenset(), Snapshot({})).schemas
        other = [name for name, schema in schemas.items() if then.get(name) != schema]
        return f"{other[0]} has other columns than the version that its rows were made of" if other else ""

    def _downstream(self, view: str) -> tuple[str, ...]:
        found = [view]
        for name in found:
            for other in self.config.views:
                with suppress(LakeError):
                    if name in self._views.reads(other) and other not in found:
                        found.append(other)
        return tuple(found[1:])


def _of_edit(view: str, edit: Edit, pinned: Pinned, new: Definition, read: int) -> PlannedView:
    """The plan of an edit of a view's table. `read`: the bytes of the sources."""
    size, whole = pinned.bytes, edit.kind == "recompute"
    costs = {"stamp": (0, 0), "metadata": (0, 0), "delete": (size, 0), "rewrite": (size, size), "difference": (read, 0)}
    bytes_read, bytes_written = costs.get(edit.kind, (read + size, size))
    added, dropped, changed = _columns(pinned.schema, new)
    return PlannedView(
        view,
        "rebuild" if whole else "edit",
        edit.reason,
        "" if whole else edit.kind,
        columns_added=added,
        columns_dropped=dropped,
        columns_changed=changed,
        bytes_read=bytes_read,
        bytes_written=bytes_written,
    )


def _diff(view: str, before: Recorded | None, new: Definition) -> str:
    if before is None:
        return ""
    names = f"{view} (published)", f"{view} (lakejoin.yml)"
    return "\n".join(difflib.unified_diff(_lines(before.query), _lines(new.text), *names, lineterm=""))


def plan(views: OpenViews, rows: Share | None = None) -> Plan:
    """What is to be done for each view of the configuration, and what is kept of views that are no longer in it. Nothing is written.

    `rows`: also compare this share of the rows of each edited view with those of its edited query.
    """
    planned = [change.planned for change in Planning(views).each()]
    if rows is not None:
        planned = [replace(v, row_changes=_row_changes(views, v.view, rows)) if v.action in ("edit", "rebuild") else v for v in planned]
    gone = [
        PlannedView(found.name, "removed", f"it is not in the configuration, and {found.table} is kept", bytes_read=found.bytes)
        for found in removed_views(views)
    ]
    return Plan((*planned, *gone))


def _row_changes(views: OpenViews, view: str, share: Share) -> RowChanges | str:
    try:
        found = row_changes(views, view, share)
    except (LakeError, *SPARK_ERRORS) as error:
        shown = safely(lambda: views.shown(view))
        return str(error if isinstance(error, LakeError) else as_lake_error(error, "The edited query", shown))
    may, key = views.shown(view), tuple(found.samples[0]) if found.samples else ()
    samples = [row for sample in found.samples if (row := may(sample, key)) is not None]
    return replace(found, samples=tuple(samples))


def _renamed(planned: PlannedView, earlier: Table) -> PlannedView:
    """The plan of a view of another name before: whatever is done comes after its table was taken over."""
    then = "" if planned.action == "none" else f"; then {planned.action}{f' ({planned.how})' if planned.how else ''}: {planned.reason}"
    return replace(planned, action="rename", reason=f"the table of {earlier.label} is taken over{then}")


def _with_query(config: Config, view: str, before: Recorded) -> Config:
    """The configuration with the query that a view's table was built with."""
    settings = config.view(view).model_copy(update={"query": before.query, "query_file": None, "function": None, "key": before.key})
    return config.model_copy(update={"views": {**config.views, view: settings}})


def _some(found: Mapping[str, X], names: Sequence[str]) -> dict[str, X]:
    return {name: found[name] for name in names}


def _columns(stored: T.StructType, new: Definition) -> tuple[tuple[str, ...], ...]:
    """The names of columns added, dropped, and of another type."""
    old = {f.name: f.dataType.simpleString() for f in stored.fields if not f.name.startswith(HIDDEN_PREFIX)}
    now = {f.name: f.dataType.simpleString() for f in schema(new).fields if not f.name.startswith(HIDDEN_PREFIX)}
    added, dropped = (tuple(n for n in one if n not in other) for one, other in ((now, old), (old, now)))
    return added, dropped, tuple(n for n in now if n in old and now[n] != old[n])


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()
