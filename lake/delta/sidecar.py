"""A folder beside a table's data, for what is no row of it: Delta and its readers pass over names that start with an underscore."""

from __future__ import annotations

import json
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lake.spark.jvm.gateway import Java, jvm_of


class Folder:
    """Small text files, wherever Spark reads and writes."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        self._jvm = jvm_of(spark)
        self._files = self._at("").getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    @property
    def exists(self) -> bool:
        return bool(self._files.exists(self._at("")))

    def names(self) -> list[str]:
        """The files in it, none where there is no folder."""
        if not self.exists:
            return []
        return sorted(str(found.getPath().getName()) for found in self._files.listStatus(self._at("")))

    def create(self, name: str, text: str) -> bool:
        """Write a file that is not there yet; False where it is."""
        try:
            self._write(self._files.create(self._at(name), False), text)
        except Py4JJavaError as error:
            if "AlreadyExists" in error.java_exception.getClass().getName() or self._files.exists(self._at(name)):
                return False
            raise
        return True

    def replace(self, name: str, text: str) -> None:
        """Write a file, over one that is there."""
        self._write(self._files.create(self._at(name), True), text)

    def read(self, name: str) -> str:
        """A file's text, empty where there is no such file. Raises ValueError where it is not what was written, or not all of it."""
        if not self._files.exists(self._at(name)):
            return ""
        stream = self._files.open(self._at(name))
        try:
            return bytes(stream.readAllBytes()).decode()
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "ChecksumException":
                raise ValueError(f"{self.path}/{name} does not agree with its checksum") from error
            raise
        finally:
            stream.close()

    def written(self, name: str) -> float:
        """When a file was written, in seconds since 1970; 0 where there is no such file."""
        place = self._at(name)
        return float(self._files.getFileStatus(place).getModificationTime()) / 1000 if self._files.exists(place) else 0.0

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        self._files.delete(self._at(name), False)

    def delete_older(self, than: float) -> int:
        """Remove the files last written before a time (seconds since 1970); returns how many."""
        found = self._files.listStatus(self._at("")) if self.exists else ()
        old = [file for file in found if not file.isDirectory() and file.getModificationTime() < than * 1000]
        for file in old:
            self._files.delete(file.getPath(), False)
        return len(old)

    def put_if_absent_problem(self, name: str) -> str | None:
        """Whether a file can be made here only once: what went wrong, None if nothing. Leaves no file behind."""
        try:
            if not self.create(name, ""):
                return "there is such a file already"
            try:
                return "a file could be made twice" if self.create(name, "") else None
            finally:
                self.delete(name)
        except (Py4JJavaError, PySparkException) as error:
            return str(getattr(error, "java_exception", error)).splitlines()[0]

    def _at(self, name: str) -> Java:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/{name}".rstrip("/"))

    def _write(self, stream: Java, text: str) -> None:
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()


def names_below(spark: SparkSession, path: str) -> set[str]:
    """The names, without their folders, of the data, change and deletion vector files that are below a table's folder."""
    changes = f"{path}/_change_data"
    places = [path, changes] if Folder(spark, changes).exists else [path]
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("__globPaths__", "false")  # listed, none is opened
    listed = json.loads(jvm_of(spark).org.apache.spark.sql.delta.util.JsonUtils.toJson(files.load(places)._jdf.inputFiles(), None))
    return {unquote(name.rpartition("/")[2]) for name in listed}
