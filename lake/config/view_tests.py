"""Reads the tests of views: `tests:` of lakejoin.yml, and the files of `test_files`. No Spark.

Only `lakejoin test` reads them, so that a mistake in a test stops no refresh. The text below a setting is its description in
docs/reference/configuration.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from lake.config.loader import Read, message, parsed, read_source, substituted, text_of
from lake.config.models import Config, Strict, nearest
from lake.errors import ConfigError

TEST_FILES = "tests/*.yml"
_ROWS = "write a list of rows such as `- {id: 1, price: 10}`"


class RowsConfig(Strict):
    """Rows, by the values of their columns."""

    format: Literal["dict", "csv", "sql"] = "dict"
    """How the rows are written: `dict` a list of rows such as `{id: 1, price: 10}`, `csv` a text with a line of column
    names, `sql` a SELECT without tables. In CSV an empty field is NULL."""
    rows: tuple[dict[str, Any], ...] | str = ()
    """The rows. A list of rows may also stand instead of these settings."""

    @model_validator(mode="before")
    @classmethod
    def _rows_alone(cls, value: Any) -> Any:
        return {"rows": value} if isinstance(value, list | tuple) else value

    @field_validator("rows", mode="before")
    @classmethod
    def _as_the_format_says(cls, value: Any, info: ValidationInfo) -> Any:
        form = info.data.get("format", "dict")
        if form != "dict":
            if not isinstance(value, str):
                raise ValueError(f"with `format: {form}` the rows are a text; write it below `rows: |`, indented")
            return value
        if not isinstance(value, list | tuple):
            raise ValueError(f"{_ROWS}, or give `format: csv` or `format: sql`")
        wrong = next((number for number, row in enumerate(value, 1) if not isinstance(row, Mapping)), None)
        if wrong is not None:
            raise ValueError(f"row {wrong} has no names of columns: {_ROWS}")
        return [{str(column): cell for column, cell in row.items()} for row in value]


class GivenConfig(RowsConfig):
    """The rows of a table, or of a view that is replaced by them."""

    columns: str | None = None
    """The columns and their types, as in CREATE TABLE: `id BIGINT, price DECIMAL(10, 2)`. Default: those of the real table; if
    it does not exist, those that the rows name."""


class UpdateConfig(Strict):
    """An update of rows of a table."""

    where: dict[str, Any] = Field(min_length=1)
    """The values of some columns that tell which rows are updated."""
    set: dict[str, Any] = Field(min_length=1)
    """The new values of columns."""


class ChangeConfig(Strict):
    """Changes of one table: rows are deleted, then updated, then inserted."""

    insert: RowsConfig | None = None
    """Rows to insert."""
    delete: tuple[dict[str, Any], ...] = ()
    """Rows to delete, each item by the values of some columns: `{id: 1}`."""
    update: tuple[UpdateConfig, ...] = ()
    """Rows to update; see the settings of an update below."""

    @field_validator("delete", "update", mode="before")
    @classmethod
    def _one_item(cls, value: Any) -> Any:
        return [value] if isinstance(value, Mapping) else value

    @field_validator("delete")
    @classmethod
    def _conditions(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        if not all(value):
            raise ValueError("name at least one column of the rows to delete, such as `{id: 1}`")
        return value


class StepConfig(Strict):
    """Changes of tables, and what the view must be after a refresh."""

    change: dict[str, ChangeConfig] = Field(default_factory=dict)
    """The changes by table; see the settings of a change below."""
    sql: tuple[str, ...] = ()
    """SQL statements that change tables, after `change`. `{NAME}` stands for a table: `DELETE FROM {bid} WHERE price < 5`."""
    expect: RowsConfig | None = None
    """All rows of the view after the refresh; only the columns that are named are compared."""
    mode: Literal["incremental", "recompute"] | None = None
    """The mode that the refresh must have. Default: either."""

    @field_validator("sql", mode="before")
    @classmethod
    def _one_statement(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _changes(self) -> StepConfig:
        if not self.change and not self.sql:
            raise ValueError("a step changes a table: give `change` or `sql`")
        return self


class ViewTest(Strict):
    """A test of a view. Its tables are made in a temporary folder. After each refresh the view is also compared with its query,
    run from scratch."""

    name: str = Field(min_length=1)
    """The name of the test."""
    view: str
    """The view that is tested. The views that it reads are built, too, unless rows are given for them."""
    description: str | None = None
    """A text for the reader of the test."""
    given: dict[str, GivenConfig] = Field(default_factory=dict)
    """The rows of tables by name; see the settings of given rows below. Columns that are not named are NULL, tables that are not
    named are empty."""
    expect: RowsConfig | None = None
    """All rows of the view over the given rows; only the columns that are named are compared. See the settings of rows below."""
    steps: tuple[StepConfig, ...] = ()
    """Changes, each with a refresh after it; see the settings of a step below. Without steps the given rows are brought in
    three parts, so that refreshes insert and delete them."""
    mode: Literal["incremental", "recompute"] | None = None
    """The mode that each refresh of a test without steps must have. Default: either."""


class TestsFile(Strict):
    """A file of tests."""

    __test__ = False  # the name is no test of pytest's

    columns: dict[str, str] = Field(default_factory=dict)
    """The columns of tables by name, for the tests of this file: as `columns` of given rows."""
    tests: tuple[ViewTest, ...]
    """The tests; see the settings of a test."""


@dataclass(frozen=True)
class Declared:
    """A test and where it stands. `columns`: those of tables that its file declares; `at`: its place in the text."""

    test: ViewTest
    columns: Mapping[str, str]
    source: Read
    at: tuple[str, ...]

    def place(self, *loc: object) -> str:
        """The file and line of a setting of the test, or of the nearest one around it."""
        whole, lines = (*self.at, *map(str, loc)), self.source.lines
        return next((lines[whole[:n]] for n in range(len(whole), 0, -1) if whole[:n] in lines), self.source.where)

    def wrong(self, loc: tuple[object, ...], text: str) -> ConfigError:
        """The error of a setting of the test."""
        return ConfigError(f"{self.place(*loc)}: test {self.test.name!r}: {text}")


def load_tests(source: str | Path | Mapping[str, Any], env: str | None = None) -> tuple[Config, list[Declared]]:
    """The configuration and its tests of views, in their order in the files. Raises ConfigError, which names the file and the line."""
    read = read_source(source, env)
    config, found = read.validated(), list[Declared]()
    for text in _texts(read):
        try:
            file = TestsFile.model_validate(substituted(text.data, text.where, text.lines))
        except ValidationError as error:
            raise ConfigError("\n".join(dict.fromkeys(message(e, text, TestsFile) for e in error.errors()))) from error
        found += [Declared(test, file.columns, text, ("tests", str(i))) for i, test in enumerate(file.tests)]
    _refuse_unknown(config, found)
    return config, found


def _texts(read: Read) -> Iterator[Read]:
    """The tests of lakejoin.yml, and those of each file."""
    if "tests" in read.tests:
        yield Read({"tests": read.tests["tests"] or []}, read.lines, read.where, read.directory)
    if not read.lines:  # of a dict, which has no folder
        return
    asked = read.tests.get("test_files")
    for pattern in [asked] if isinstance(asked, str) else asked or [TEST_FILES]:
        files = sorted(read.directory.glob(str(pattern)))
        if not files and asked:
            line = read.lines.get(("test_files",), read.where)
            raise ConfigError(f"{line}: `test_files: {pattern}` matches no file in {read.directory}.")
        for file in files:
            data, lines, _ = parsed(text_of(file, "It is one of `test_files`."), file)
            if "tests" not in data:
                named = nearest("tests", data) if nearest("tests", data).startswith("Did") else "Put them below `tests:`"
                raise ConfigError(
                    f"{file}: a file of tests holds a list `tests:`, and this has none. {named.rstrip('?.')}? If it holds no tests, name "
                    "the files that do with `test_files:` in lakejoin.yml."
                )
            yield Read(data, lines, str(file), read.directory)


def _refuse_unknown(config: Config, found: list[Declared]) -> None:
    """Raise ConfigError for a view or table that does not exist, and for two tests of a view with one name."""
    seen = dict[tuple[str, str], Declared]()
    for declared in found:
        test = declared.test
        if test.view not in config.views:
            raise declared.wrong(("view",), f"there is no view {test.view!r} in the configuration. {nearest(test.view, config.views)}")
        first = seen.setdefault((test.view, test.name), declared)
        if first is not declared:
            raise declared.wrong(("name",), f"view {test.view!r} already has a test of this name ({first.place('name')}). Rename one.")
        known = [name for name in [*config.tables, *config.views] if name != test.view]
        for name in test.given:
            if name not in known:
                own = " It is the view that is tested." if name == test.view else ""
                raise declared.wrong(("given", name), f"`given` has no table or view {name!r} to stand for.{own} {nearest(name, known)}")
        changeable = [name for name in known if name in config.tables or name in test.given]
        for number, step in enumerate(test.steps):
            for name in step.change:
                if name not in changeable:
                    way = f" Rows of the view {name!r} can be changed if `given` has rows for it." if name in config.views else ""
                    text = f"`change` has no table {name!r} to change.{way} {nearest(name, changeable)}"
                    raise declared.wrong(("steps", number, "change", name), text)
        for name in declared.columns:
            if name not in config.tables and name not in config.views:
                where = declared.source.lines.get(("columns", name), declared.source.where)
                raise ConfigError(f"{where}: `columns` has no table or view {name!r}. {nearest(name, [*config.tables, *config.views])}")
