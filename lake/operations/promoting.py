"""Promotes the views of a development environment: production takes over their rows, each view in one commit, without running its query.

    environment   v: edited, made of t@12        production   v: as it was, made of t@10
    promote       production's v has the environment's rows, made of t@12, and the edited query; its next refresh reads what came after t@12

A view is promoted only where production's lakejoin.yml defines it in the same way, where its rows are at least as new as production's, and
where production has (or is about to take over) the rows of the views below it. Otherwise nothing of the whole promotion is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from lake.core.environments import PromotedView
from lake.core.plan import differing
from lake.core.results import RefreshResult
from lake.core.snapshots import Snapshot, Version
from lake.core.stamp import Stamp
from lake.delta.identity import marked
from lake.delta.pinned import Pinned
from lake.errors import ConfigError, DefinitionError, TargetError
from lake.operations.development import own_views
from lake.operations.planning import Planning
from lake.operations.provenance import Provenance
from lake.refresh.compute import Gate
from lake.refresh.decide import Decision
from lake.refresh.promoted import Promotion
from lake.refresh.publish import ATTEMPTS, LostRaceError
from lake.views.definition import Definition
from lake.views.inputs import NO_INPUTS
from lake.views.registry import OpenViews
from lake.views.table import Published, published


class Refused(NamedTuple):
    """Why a view can't be promoted."""

    reason: str


@dataclass(frozen=True)
class Promoting:
    """The promotion of an environment's views. `views`: the environment; `production`: what it is a development of."""

    views: OpenViews
    production: OpenViews
    _will_be: dict[str, PromotedView] = field(default_factory=dict)

    @cached_property
    def _made(self) -> Provenance:
        return Provenance(self.views, self.production)

    def each(self, asked: Collection[str] | None) -> Iterator[PromotedView]:
        """What is to be done for all views of the environment's own, or those asked for, each after those that it reads."""
        own, planning = own_views(self.views), Planning(self.production, counting=False)
        for view in asked or ():
            self.views.config.view(view)
        for view in (v for v in asked or own if v not in self.production.config.views):
            yield self._refused(view, "production's lakejoin.yml has no such view", "", {}, {})
        for view in planning.in_order([*own, *(asked or ())]):
            definition = self._definition(planning, view)
            if asked is None or view in asked:
                self._will_be[view] = self._of(view, definition)
                yield self._will_be[view]

    def _definition(self, planning: Planning, view: str) -> Definition | Refused:
        """The view's definition in production's configuration, over the columns that the views below it will have."""
        change = planning.of(view)
        if change.planned.action == "rename":
            return Refused("production still has it under its earlier name")
        return change.definition if change.definition is not None else Refused(f"production refuses it: {change.planned.reason}")

    def _of(self, view: str, definition: Definition | Refused) -> PromotedView:
        theirs = published(self.production.spark, self.production.view_table(view))
        since = dict(theirs.stamp.answers_for) if theirs is not None and theirs.stamp is not None else {}
        if self.views.is_shared(view):
            return PromotedView(view, "none", "the environment reads it from production", since, since)
        own = published(self.views.spark, self.views.view_table(view))
        if own is None or own.stamp is None:
            return self._refused(view, "the environment has not built it yet", f"apply {view}", since, {})
        until = dict(own.stamp.answers_for)
        if isinstance(definition, Refused):
            return self._refused(view, definition.reason, "", since, until)
        if parts := differing(own.stamp.fingerprint, definition.fingerprint):
            why = f"production's lakejoin.yml defines another view ({', '.join(parts)})"
            return self._refused(view, why, f"apply {view}", since, until)
        found = self._compared(view, theirs, own.stamp, definition)
        if isinstance(found, Refused):
            return self._refused(view, found.reason, f"refresh {view}", since, until)
        none = "production has these rows already" if since == until else "production is at newer rows of it already"
        return PromotedView(view, "promote" if found else "none", found or none, since, until)

    def _refused(self, view: str, reason: str, verb: str, since: Mapping[str, int], until: Mapping[str, int]) -> PromotedView:
        env = self.views.config.environment
        remedy = f' Run "lakejoin --env {env} {verb}" and promote again, or' if verb else " Correct it, or"
        return PromotedView(view, "refused", f'{reason}.{remedy} run "lakejoin apply {view}" in production.', since, until)

    def _compared(self, view: str, theirs: Published | None, own: Stamp, definition: Definition) -> str | Refused:
        """Why rows are to be published; empty where there is nothing to do."""
        for name in definition.sources:
            if name in self.views.config.views and (why := self._below(name, own)):
                return Refused(why)
        if theirs is None or theirs.stamp is None:
            return "production has not built it yet"
        if why := _older(theirs.stamp, own):
            return "" if self._is_beyond(theirs.stamp, own) else Refused(why)
        if self._made.same(theirs.stamp, own):
            return ""
        if differing(theirs.stamp.fingerprint, own.fingerprint):
            return "its definition is another one"
        return "its rows are newer" if theirs.stamp.answers_for != own.answers_for else "views below it are edited"

    def _is_beyond(self, theirs: Stamp, own: Stamp) -> bool:
        """Whether production has taken over an environment's rows, or has the same definitions down to the tables, and went on."""
        if differing(theirs.fingerprint, own.fingerprint) or theirs.snapshot.keys() != own.snapshot.keys():
            return False
        for name, read in own.snapshot.versions.items():
            least: int | None = read.number
            if name in self.views.config.views:
                below = self._made.at(name, read)
                least = self._made.version_of(name, below) if below is not None else None
            if least is None or theirs.snapshot[name] < least:
                return False
        return True

    def _below(self, name: str, own: Stamp) -> str:
        """Why the rows of a view below, as the environment's view has read them, are not what production has or takes over; else empty."""
        read = own.snapshot.versions[name]
        stamp = self._made.at(name, read)
        if stamp is None:
            return f"it was built from a table of {name} that is no longer there"
        planned = self._will_be.get(name)
        if planned is not None and planned.action == "promote":
            newest = self.views.stamp(name)
            return "" if newest is not None and newest.number == stamp.number else f"it has not read the newest rows of {name}"
        if self._made.version_of(name, stamp) is not None:
            return ""
        return f"production does not have the rows of {name} that it has read (promote {name} as well)"

    # -- carrying it out --------------------------------------------------------------------------------------------------

    def promoted(self, view: str, gate: Gate | None) -> RefreshResult | None:
        """Promote a view whose turn it is: those below it are done. None where nothing is to be done. Raises LakeError."""
        for attempt in range(1, ATTEMPTS + 1):
            planned = self._of(view, self._definition(Planning(self.production), view))
            if planned.action == "refused":
                raise DefinitionError(f"View {view!r} can't be promoted: {planned.reason}")
            if planned.action == "none":
                return None
            try:
                return self._promotion(view, planned.reason, gate).run()
            except LostRaceError:
                if attempt == ATTEMPTS:
                    raise
        return None

    def _promotion(self, view: str, why: str, gate: Gate | None) -> Promotion:
        own = self.views.built(self.views.spark, view)
        assert own.stamp is not None
        with self.production.opened(view) as state:
            definition = self.production.prepare(view, state)[0]
            if differing(own.stamp.fingerprint, definition.fingerprint):
                raise LostRaceError(
                    f"View {view!r}: its definition in production changed meanwhile. Nothing was written. Promote it again."
                )
            decision = Decision(self.production.path, state.spark, definition, NO_INPUTS, rebuild=False)
            rows = self.views.view_table(view).head(state.spark)
            if rows.version != own.pinned.version:
                raise LostRaceError(f"View {view!r}: the environment refreshed it meanwhile. Nothing was written. Promote it again.")
            reason = f"the rows of environment {self.views.config.environment} were taken over: {why}"
            return Promotion(decision, decision.published(), rows, own.stamp, self._by_production(own.stamp), gate, reason)

    def _by_production(self, stamp: Stamp) -> Snapshot:
        """What the environment's rows were made of, with production's tables of views in the place of the environment's."""
        found, pins = dict(stamp.snapshot.versions), dict[str, Pinned]()
        for name in (n for n in found if n in self.views.config.views):
            pins[name] = self.production.built(self.production.spark, name).pinned
            if found[name].table_id == pins[name].version.table_id:
                continue
            below = self._made.at(name, found[name])
            number = self._made.version_of(name, below) if below is not None else None
            if number is None:
                raise TargetError(
                    f"Production does not have the rows of view {name!r} that {stamp.view!r} was built from. Promote it again."
                )
            found |= marked(Snapshot({name: Version(pins[name].version.table_id, number)}), pins).versions
        return Snapshot(found)


def _older(theirs: Stamp, own: Stamp) -> str:
    """Why an environment's rows are older than production's, or of other tables; empty where they are not."""
    before, after = theirs.answers_for.versions, own.answers_for.versions
    for table in before.keys() & after.keys():
        if before[table].table_id != after[table].table_id:
            return f"its rows are made of another table {table} than production's (it was replaced)"
        if after[table].number < before[table].number:
            return f"its rows are made of {table}@{after[table].number}, and production's of {table}@{before[table].number}"
    return ""


def refuse_refused(plan: Collection[PromotedView], environment: str | None) -> None:
    """Raise DefinitionError, which names each view that can't be promoted, before anything is written."""
    refused = [planned for planned in plan if planned.action == "refused"]
    if refused:
        each = "\n".join(f"- {planned.view}: {planned.reason}" for planned in refused)
        raise DefinitionError(f"{len(refused)} views of environment {environment!r} can't be promoted. Nothing was written.\n{each}")


def refuse_other_environments(views: OpenViews, verb: str) -> None:
    """Raise ConfigError for an environment that is no development environment."""
    if views.config.production is None:
        name = (
            "The configuration without an environment" if views.config.environment is None else f"Environment {views.config.environment!r}"
        )
        raise ConfigError(f"{name} is no development environment: it has no `development_of`. There is nothing to {verb}.")


def refuse_other_settings(views: OpenViews) -> None:
    """Raise ConfigError where an environment's rows were computed with other settings of Spark SQL than production's will be."""
    production = views.config.production
    assert production is not None
    own, theirs = ({k: v for k, v in config.spark.items() if k.startswith("spark.sql.")} for config in (views.config, production))
    other = sorted(key for key in own.keys() | theirs.keys() if own.get(key) != theirs.get(key))
    if other:
        raise ConfigError(
            f"Environment {views.config.environment!r} has another setting under `spark:` than production: {other[0]}. Its rows may be "
            'others for that. Nothing was written. Give both the same, run "lakejoin apply" in the environment, and promote again.'
        )
