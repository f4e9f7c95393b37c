"""A table as queries know it, its versions at a time, and the errors for those that can't be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from lake.core.constants import PathKind
from lake.core.snapshots import Snapshot
from lake.core.sql import quoted
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from lake.errors import ExpiredError, SourceError, TargetError
from lake.spark import failures
from lake.spark.failures import CALL_ERRORS


@dataclass(frozen=True)
class Table:
    """A table's path or catalog name, and the name that queries use. `kind`: for a view's table, the path that it belongs to; `reader`: of
    a table of production's, the development environment that reads it and must not write it; `owner`: the development environment whose own
    it is."""

    label: str
    path: str | None
    name: str | None
    primary_key: tuple[str, ...] = ()
    kind: PathKind = "strong"
    reader: str = ""
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.label} ({self.path or self.name})"

    @property
    def sql(self) -> str:
        """The table in a SQL statement."""
        return f"delta.{quoted(self.path)}" if self.path is not None else str(self.name)

    @property
    def recreate_command(self) -> str:
        """The command that re-creates a view's table."""
        verb = {"strong": "rebuild {}", "eventual": "realtime {} --reset", "replay": "backfill {} --restart"}[self.kind]
        return self._command(verb.format(self.label))

    @property
    def create_command(self) -> str:
        """The command that creates a view's table."""
        verb = {"strong": "refresh", "eventual": "realtime", "replay": "backfill"}[self.kind]
        return self._command(f"{verb} {self.label}")

    def _command(self, words: str) -> str:
        return f"lakejoin --env {self.owner} {words}" if self.owner else f"lakejoin {words}"

    def refuse_writing(self) -> None:
        """Raise TargetError for a table that a development environment only reads."""
        if self.reader:
            raise TargetError(
                f"{self} is production's, which the development environment {self.reader!r} only reads. Nothing was written. "
                f'"lakejoin --env {self.reader} rebuild {self.label}" gives a view a table of its own there.'
            )

    @property
    def eventual(self) -> bool:
        """Whether it is a view's real-time table."""
        return self.kind == "eventual"

    def log(self, spark: SparkSession) -> Log:
        """The table's log. Raises SourceError if there is no Delta table."""
        try:
            log = Log(spark, self.path, self.name, self.refuse_writing)
            exists = log.exists
        except CALL_ERRORS as error:
            check = failures.advice(error, f"Check `tables.{self.label}` in the configuration.")
            raise SourceError(f"{self} can't be opened: {reason(error)}. {check}") from error
        if not exists:
            raise SourceError(
                f"{self} is not a Delta table: there is no transaction log. Check `tables.{self.label}` in the configuration, "
                "or create the table first."
            )
        return log

    def head(self, spark: SparkSession) -> Pinned:
        """The table's newest version. Raises SourceError."""
        log = self.log(spark)
        try:
            return log.head()
        except CALL_ERRORS as error:
            raise SourceError(f"The log of {self} can't be read: {reason(error)}.") from error


def snapshot_of(pins: Mapping[str, Pinned]) -> Snapshot:
    """The vector of the pinned versions."""
    return Snapshot({label: pinned.version for label, pinned in pins.items()})


def pin_at(pinned: Pinned, label: str, until: int | datetime, or_first: bool = False) -> Pinned:
    """The table at an older version or time (`or_first`: at its oldest version, if it was created later).

    Raises SourceError, or ExpiredError if it can no longer be read.
    """
    newest = pinned.version.number
    try:
        number = until if isinstance(until, int) else pinned.log.version_at(until, or_first)
        if number == newest:
            return pinned
        if number > newest or number < 0:
            raise SourceError(f"{label} has no version {number}: its newest is {newest}.")
        return pinned.log.at(number)
    except CALL_ERRORS as error:
        raise ExpiredError(
            f"{label} {'version' if isinstance(until, int) else 'as of'} {until} can no longer be read ({reason(error)}). "
            f"Its newest version is {newest}."
        ) from error


def expired(table: Table | str, since: int, until: int, error: Exception) -> ExpiredError:
    """The error for an interval whose commits or files are no longer available."""
    return ExpiredError(
        f"{table} versions {since + 1} to {until} can no longer be read ({reason(error)}). "
        'Run "lakejoin rebuild VIEW" for the views that read it.'
    )


def reason(error: BaseException) -> str:
    """The cause of a failure of Spark in one line, without stack traces and without values of the data."""
    return failures.reason(error)
