"""Runs tests of views: each on a throwaway lake of its own, built from the given rows and refreshed after each change.

Law: after each refresh the view has the expected rows, and the rows of its query run from scratch. So a test covers the incremental path,
also where it names no changes: then its rows come in three parts.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lake.config.models import Config, TableConfig, TargetConfig, ViewConfig, nearest
from lake.config.view_tests import Declared, RowsConfig
from lake.core.redaction import Samples
from lake.core.results import RefreshResult
from lake.core.view_test_results import Problem, State, TestOutcome
from lake.delta.pinned import Pinned
from lake.errors import DefinitionError, LakeError, QueryError
from lake.lakehouse import Lakehouse
from lake.operations.verify import from_scratch
from lake.quality.view_tests.comparison import Collected, Difference, compared, same, shown
from lake.quality.view_tests.rows import Loc, Rows
from lake.quality.view_tests.tables import Schemas, TestTables
from lake.spark.driver_options import is_local
from lake.spark.failures import SPARK_ERRORS, as_lake_error
from lake.spark.literals import SETTINGS
from lake.spark.session import active_session, own_session
from lake.views.table import visible

_FOR_FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""Settings that change no results, and with which a few rows take less time."""
_PARTS = {"the first half of the rows": slice(0, None, 2), "the second half instead": slice(1, None, 2), "all rows": slice(None)}
"""The states of a test without steps: its refreshes insert and delete rows of each table."""
_NEVER = math.inf
"""As `recompute_above`: a test's few changes are many for its few rows, and would be recomputed."""
_SAMPLES = 20
_NONE = Difference((), (), ())


def session_settings(config: Config) -> dict[str, str]:
    """The settings of a session that runs tests: on this machine, since only it has the temporary tables."""
    master = {} if is_local(config.spark.get("spark.master", "local[*]")) else {"spark.master": "local[*]"}
    return {**config.spark, **_FOR_FEW_ROWS, **master}


def run_tests(spark: SparkSession, config: Config, tests: Iterable[Declared]) -> Iterator[TestOutcome]:
    """The outcome of each test, as it ends. The lake of the configuration is not written; of its tables only the columns are read."""
    own = own_session(spark)
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    schemas = Schemas(own, config)
    for declared in tests:
        with tempfile.TemporaryDirectory(prefix="lakejoin-test-", ignore_cleanup_errors=True) as folder, active_session(own):
            yield _Run(spark, own, schemas, declared, Path(folder)).outcome()


@dataclass
class _Run:
    """One run of one test. `own`: the session that makes and changes its tables."""

    spark: SparkSession
    own: SparkSession
    schemas: Schemas
    declared: Declared
    folder: Path
    problems: list[Problem] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    note: str = ""
    tables: TestTables | None = None

    def outcome(self) -> TestOutcome:
        """Run the test. What it raises is its result."""
        started, test, code = time.monotonic(), self.declared.test, 0
        try:
            self._run()
        except (LakeError, *SPARK_ERRORS) as error:
            found = as_lake_error(error, f"Test {test.name!r}", Samples("rows"))
            code = found.exit_code
            self.problems.append(Problem("error", self.declared.place("name"), str(found)))
            self.note = self._inferred() if isinstance(found, DefinitionError) else self.note
        state: State = "error" if code else "failed" if self.problems else "passed"
        seconds, place = round(time.monotonic() - started, 3), self.declared.place("name")
        return TestOutcome(test.view, test.name, place, state, seconds, tuple(self.problems), tuple(self.modes), self.note, code)

    def _inferred(self) -> str:
        """What a query may fail for: columns that are known from the rows of the test only."""
        names = self.tables.inferred() if self.tables is not None else []
        if not names:
            return ""
        return f"{', '.join(names)} does not exist, so that it has only the columns of the test's rows: `columns` gives it others"

    def _run(self) -> None:
        test, config = self.declared.test, self._config()
        names = Lakehouse(config, self.spark)
        read = names.bases_below(test.view)
        self._refuse_unread(read)
        self.tables = TestTables(self.own, self.declared, self.schemas, {name: str(config.path_of(name)) for name in read})
        lake = Lakehouse(self._with_keys(config, self.tables), self.spark)
        state = _Throwaway(self, lake, lake.in_order(lake.views_below(test.view)), self.tables, own_session(self.spark))
        state.with_steps() if test.steps else state.in_parts()

    def _config(self) -> Config:
        """The configuration with tables and views in the temporary folder; a view with given rows is a table of it."""
        config, given = self.schemas.config, self.declared.test.given
        names = [*config.tables, *(name for name in given if name in config.views)]
        tables = {name: TableConfig(path=str(self.folder / "tables" / name)) for name in names}
        views = {name: _alone(view) for name, view in config.views.items() if name not in given}
        target = TargetConfig(path=str(self.folder / "views"))
        own = {
            "root": str(self.folder),
            "target": target,
            "tables": tables,
            "views": views,
            "samples": "rows",
            "spark": {},
            "production": None,
        }
        return config.model_copy(update=own)

    def _with_keys(self, config: Config, tables: TestTables) -> Config:
        """The same with the primary keys of the tables that are read."""
        real = self.schemas.config
        declared = {name: real.tables[name].primary_key if name in real.tables else real.views[name].key for name in tables.paths}
        keyed = {name: config.tables[name].model_copy(update={"primary_key": tables.key(name, key)}) for name, key in declared.items()}
        return config.model_copy(update={"tables": {**config.tables, **keyed}})

    def _refuse_unread(self, read: Sequence[str]) -> None:
        test = self.declared.test
        named: list[tuple[Loc, str]] = [(("given", name), name) for name in test.given]
        named += [(("steps", i, "change", name), name) for i, step in enumerate(test.steps) for name in step.change]
        for loc, name in named:
            if name not in read:
                raise self.declared.wrong(loc, f"view {test.view!r} does not read {name!r}. {nearest(name, read)}")


def _alone(view: ViewConfig) -> ViewConfig:
    """A view of a test: refreshed incrementally wherever that is possible, and without what is checked besides."""
    update = {"recompute_above": _NEVER, "expectations": (), "expectations_file": None, "realtime": None}
    return view.model_copy(update={**update, "properties": {}, "renamed_from": None})


@dataclass
class _Throwaway:
    """The throwaway lake of a run. `views`: the view and those that it reads, in the order in which they are refreshed;
    `truth`: the session that runs queries from scratch."""

    run: _Run
    lake: Lakehouse
    views: Sequence[str]
    tables: TestTables
    truth: SparkSession

    def with_steps(self) -> None:
        """Build the view from the given rows; then change the tables and refresh it, step by step."""
        test = self.run.declared.test
        self.tables.create(slice(None))
        self._refresh("the given rows", (), None, test.expect)
        for number, step in enumerate(test.steps):
            self.tables.change(number)
            self._refresh(f"step {number + 1}", ("steps", number), step.mode, step.expect)

    def in_parts(self) -> None:
        """Bring the given rows in parts: some, the others instead, then all."""
        test = self.run.declared.test
        for at, part in _PARTS.items():
            self.tables.create(part)
            whole = part == slice(None)
            try:
                self._refresh(at, (), test.mode if self.run.modes else None, test.expect if whole else None)
            except QueryError:
                if whole:
                    raise
                self.run.note = "the query fails on a part of the given rows, so that fewer refreshes were tested"

    def _refresh(self, at: str, loc: Loc, mode: str | None, expected: RowsConfig | None) -> None:
        """Refresh the views, compare each with its query, and the view of the test with the expected rows."""
        for view in self.views:
            result = self.lake.refresh(view)
            stored = Collected.of(_rows(self.lake.built(self.truth, view).pinned))
            self._compare_with_query(at, loc, result, stored)
            if view == self.run.declared.test.view:
                self.run.modes.append(result.mode)
                if mode is not None and result.mode != mode:
                    why = f": {result.reason}" if result.reason else ""
                    self._problem(at, (*loc, "mode"), f"the refresh was to be {mode}, and its mode is {result.mode}{why}")
                self._expect(at, (*loc, "expect"), expected, stored)

    def _compare_with_query(self, at: str, loc: Loc, result: RefreshResult, stored: Collected) -> None:
        """Compare a view with its query, run from scratch: here, and where that is not the same, as `lakejoin verify` does."""
        stamp = self.lake.stamp(result.view)
        assert stamp is not None
        frames = {name: _rows(pinned) for name, pinned in self.lake.pins_of(self.truth, stamp).items()}
        if same(Collected.of(from_scratch(self.truth, result.view, self.lake.config, frames)), stored):
            return
        found = self.lake.verify(result.view)
        if not found.exact:
            rows = "; ".join(f"{sample.weight:+d} {shown(sample.row)}" for sample in found.samples)
            text = (
                f"view {result.view!r}, after a refresh of mode {result.mode}, is not its query run from scratch: {found.summary}: {rows}"
            )
            self._problem(at, loc, f"{text}. This is a fault of Lakejoin: please report it with this test")

    def _expect(self, at: str, loc: Loc, expected: RowsConfig | None, stored: Collected) -> None:
        """Compare the view with the expected rows, by the columns that they name."""
        if expected is None:
            return
        rows = Rows(self.run.own, self.run.declared, loc, f"view {self.run.declared.test.view!r}", expected)
        differing = compared(rows, stored)
        if differing is not None:
            self._problem(at, loc, differing.text, differing)

    def _problem(self, at: str, loc: Loc, text: str, rows: Difference = _NONE) -> None:
        place = self.run.declared.place(*loc)
        self.run.problems.append(Problem(at, place, text, rows.columns, rows.missing[:_SAMPLES], rows.unexpected[:_SAMPLES]))


def _rows(pinned: Pinned) -> DataFrame:
    """The rows of a table that a reader sees, of files that are chosen without the two jobs by which Delta would choose them."""
    return visible(pinned.rows_among({}))
