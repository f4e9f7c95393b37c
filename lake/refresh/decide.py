"""Decides what a refresh does, from what is published and the newest versions of its sources; reads no rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from lake.config.models import ViewConfig
from lake.config.reads import reads
from lake.core import cost
from lake.core.plan import RefreshPlan, differing, plan
from lake.delta import two_writers
from lake.delta.identity import check_history, check_identity
from lake.delta.tables import Table, snapshot_of
from lake.errors import DefinitionError, TargetError
from lake.refresh import publish
from lake.relations.budget import Budget
from lake.views import explain
from lake.views.definition import Definition
from lake.views.inputs import Inputs, ViewPath
from lake.views.production_tables import refuse_place_of_production
from lake.views.renamed import refuse_renamed
from lake.views.table import Published, create, open_log, published, refuse_ambiguous


@dataclass(frozen=True)
class Decision:
    """The settings and the inputs from which one refresh of a view is planned. `rebuild`: recompute it, whatever is published."""

    path: ViewPath
    spark: SparkSession
    definition: Definition
    inputs: Inputs
    rebuild: bool

    @property
    def table(self) -> Table:
        return self.path.table(self.definition.view)

    @property
    def view(self) -> ViewConfig:
        return self.path.config.view(self.definition.view)

    @property
    def replaces(self) -> bool:
        """Whether a recompute publishes all rows instead of the difference (`on_recompute`). A rebuild never does."""
        name, config = self.definition.view, self.path.config
        if self.rebuild or self.path.kind != "strong" or self.view.on_recompute == "difference":
            return False
        return self.view.on_recompute == "replace" or not any(name in reads(v, config).names for v in config.views if v != name)

    def published(self) -> Published | None:
        """The newest state of the view's table, None where there is none. Raises TargetError, unless a rebuild can mend it."""
        return published(self.spark, self.table) if not self.rebuild else self._published_or_foreign()

    def created(self) -> Published:
        """The view's table, which is made, unless another refresh has made it meanwhile."""
        create(self.spark, self.table, self.view, self.definition)
        current = published(self.spark, self.table)
        assert current is not None
        return current

    def plan(self, current: Published | None) -> RefreshPlan:
        definition, until = self.definition, snapshot_of(self.inputs.pins)
        stamp = current.stamp if current else None
        edited = stamp is not None and bool(differing(stamp.fingerprint, definition.fingerprint))
        rebuild = self.rebuild or (edited and self.view.on_definition_change == "rebuild")
        if rebuild and current is not None:
            why = "a rebuild was asked for" if self.rebuild else "the definition changed (on_definition_change: rebuild)"
            return RefreshPlan(definition.view, "recompute", stamp.snapshot if stamp else None, until, why)
        read = stamp.snapshot.versions if stamp is not None else {}
        known = [(self.inputs.tables[s], self.inputs.pins[s], version) for s, version in read.items() if s in self.inputs.tables]
        for table, pinned, version in known:
            check_identity(table, pinned, version)
        waited = self.inputs.bases if self.path.eventual else ()
        decided = plan(definition.view, stamp, definition.fingerprint, until, definition.recomputed, waited)
        for table, pinned, version in known if decided.mode != "none" else ():
            check_history(table, pinned, version)
        return decided

    def recompute_redefined(self, decided: RefreshPlan, redefined: Sequence[str]) -> RefreshPlan:
        """The plan where tables were redefined. Raises DefinitionError where the view must never be recomputed."""
        view, named = self.definition.view, ", ".join(redefined)
        why = f"{named} was redefined (a column dropped and added again or renamed, its type, column mapping, or the partitioning)"
        if self.view.refresh_mode == "incremental":
            raise DefinitionError(
                f"View {view!r} has `refresh_mode: incremental`, and can't be refreshed incrementally now: {why}. Nothing was written. "
                f'Run "{self.table.recreate_command}".'
            )
        return replace(decided, mode="recompute", reason=f"fell back to a full recompute: {why}")

    def refuse_unwanted(self) -> None:
        """Raise where the configuration forbids what this refresh would do, before anything is computed."""
        reason = explain.not_incremental(self.definition)
        if reason and self.path.eventual:
            raise DefinitionError(
                f"View {self.definition.view!r} can't run in real time: {reason}. Nothing was written. Change the query, or leave it to "
                "the strong path."
            )
        if reason and self.view.refresh_mode == "incremental":
            raise DefinitionError(
                f"View {self.definition.view!r} has `refresh_mode: incremental`, and is not incremental: {reason}. Nothing was written. "
                "Change the query, or set `refresh_mode: auto`."
            )
        refuse_ambiguous(self.spark, self.path.config.ambiguous_target, self.table)
        two_writers.refuse(self.spark, self.table, self.path.config.single_writer)
        refuse_place_of_production(self.spark, self.path.config, self.table)
        if self.view.renamed_from is not None and self.path.kind == "strong":
            refuse_renamed(self.spark, self.path.config, self.definition.view)

    def refuse_other_columns(self, current: Published) -> None:
        """Raise TargetError where the table does not have the view's columns: the query was edited, or another writer altered the table."""
        if not publish.same_schema(self.definition, current.pinned.schema):
            raise TargetError(
                f"The columns of the table of view {self.table} are not those of the view. Nothing was published. "
                f'Run "{self.table.recreate_command}" to write all rows with the new columns.'
            )

    def _published_or_foreign(self) -> Published | None:
        """For a rebuild: what is published, also where another writer changed the table since."""
        try:
            return published(self.spark, self.table)
        except TargetError:
            log = open_log(self.spark, self.table)
            if log is None or log.head().properties.get("lakejoin.view") != self.table.label:
                raise
            return Published(self.table.label, log.head(), None)


def budget(view: ViewConfig, definition: Definition, inputs: Inputs, current: Published) -> Budget:
    """When a refresh falls back to a full recompute: never with `refresh_mode: incremental`."""
    if view.refresh_mode == "incremental":
        return Budget()
    read = sum(inputs.pins[source].bytes for _, source in definition.relation.sources)
    recompute = cost.of_recompute(read, current.pinned.bytes)
    return Budget(recompute, recompute if read >= cost.SMALL else 0, view.recompute_above)
