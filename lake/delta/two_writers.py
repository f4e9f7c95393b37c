"""Whether two writers at once can lose a commit of a table (trap 18): by where the table really is, however the configuration names it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from lake.delta.log import identifier
from lake.delta.sidecar import OVERWRITING, Folder
from lake.delta.tables import Table, reason
from lake.errors import TargetError
from lake.spark.failures import CALL_ERRORS, SPARK_ERRORS, java_class
from lake.spark.jvm.gateway import Java, jvm_of

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_STORAGE = "org.apache.spark.sql.delta.storage"
_BY_SCHEME, _OF_JAVA = f"{_STORAGE}.DelegatingLogStore", f"{_STORAGE}.LogStoreAdaptor"
"""Delta's log stores around the one that writes."""
_AT_ONCE = 4
"""Writers of a probe."""


def location(spark: SparkSession, table: Table) -> str:
    """The folder of a view's table as a URI; of one that does not exist yet, the folder in which it will be made. Opens no file system.

    Raises TargetError for a table of a schema that does not exist.
    """
    if table.path is not None:
        return table.path if _URI.match(table.path) else _on_default_files(spark, table.path)
    try:
        return str(_in_catalog(spark, table).toString())
    except SPARK_ERRORS as error:
        raise TargetError(f"The place of {table} can't be read from the catalog: {reason(error)}.") from error


def _on_default_files(spark: SparkSession, path: str) -> str:
    jvm = jvm_of(spark)
    files, place = jvm.org.apache.hadoop.fs.FileSystem, jvm.org.apache.hadoop.fs.Path
    default = files.getDefaultUri(spark._jsparkSession.sessionState().newHadoopConf())
    return str(place(path).makeQualified(default, place("/")).toString())


def _in_catalog(spark: SparkSession, table: Table) -> Java:
    named, catalog = identifier(spark, str(table.name)), spark._jsparkSession.sessionState().catalog()
    if catalog.tableExists(named):
        return catalog.getTableMetadata(named).location()
    schema = named.database().get()
    if not catalog.databaseExists(schema):
        raise TargetError(
            f"The schema {schema!r} of {table} does not exist. Nothing was written. Create it: CREATE SCHEMA {schema} "
            "(with LOCATION '...' if its tables are to be elsewhere than in Spark's warehouse). For a folder write `target: {path: ...}`."
        )
    return catalog.defaultTablePath(named)


def lost_commits(spark: SparkSession, place: str) -> str:
    """What to do so that two writers at once can't lose a commit at a place (a URI); empty if they can't."""
    scheme = _scheme(place)
    if scheme not in OVERWRITING or "SingleDriver" not in _class(_log_store(spark, place)):
        return ""
    return f"Set spark.delta.logStore.{scheme}.impl to a multi-writer log store, or `single_writer: true` if only one writer ever runs."


def _scheme(place: str) -> str:
    return place.partition(":")[0].lower()


def _log_store(spark: SparkSession, place: str) -> Java:
    """That by which Delta writes commits at a place, as Delta itself finds it. It reads the settings of the context, not of a session."""
    jvm = jvm_of(spark)
    found = jvm.org.apache.spark.sql.delta.storage.LogStore.apply(spark._jsparkSession)
    return found.getDelegate(jvm.org.apache.hadoop.fs.Path(place)) if found.getClass().getName() == _BY_SCHEME else found


def _class(store: Java) -> str:
    name = str(store.getClass().getName())
    return str(store.logStoreImpl().getClass().getName()) if name == _OF_JAVA else name


def problem(spark: SparkSession, folder: str, name: str) -> str | None:
    """Why a file of this name can't be created in a folder, or more than once; None if it can. Leaves no file behind."""
    if _scheme(folder) not in OVERWRITING:
        return Folder(spark, folder).put_if_absent_problem(name)
    try:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            created = sum(threads.map(lambda number: _created(spark, f"{folder}/{name}", str(number)), range(_AT_ONCE)))
        Folder(spark, folder).delete(name)
    except CALL_ERRORS as error:
        return reason(error)
    return None if created == 1 else f"{created} of {_AT_ONCE} writers at once created the same file"


def _created(spark: SparkSession, place: str, line: str) -> bool:
    """Create a file as Delta creates a commit; False if another writer has."""
    jvm, conf = jvm_of(spark), spark._jsparkSession.sessionState().newHadoopConf()
    lines = jvm.conversions.seq([line]).iterator()
    try:
        _log_store(spark, place).write(jvm.org.apache.hadoop.fs.Path(place), lines, False, conf)
    except CALL_ERRORS as error:
        if java_class(error) == "java.nio.file.FileAlreadyExistsException":
            return False
        raise
    return True


def refuse(spark: SparkSession, table: Table, single_writer: bool) -> None:
    """Raise TargetError if the table is only read here or has no place, or if two writers at once could lose a commit there and there may
    be two."""
    table.refuse_writing()
    remedy = lost_commits(spark, location(spark, table))
    if remedy and not single_writer:
        raise TargetError(f"Two writers at once could lose a commit of {table}. Nothing was written. {remedy}")
