"""A folder beside a table's data for small files of Lakejoin: Delta and its readers ignore names that start with an underscore."""

from __future__ import annotations

import json
import os
import re
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lake.errors import TargetError
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

    def names(self, prefix: str = "") -> list[str]:
        """The names that start with a prefix of the files in it; none if there is no folder. The JVM filters them: one call for all."""
        return sorted(filter(None, self._jvm.own_files.names(self._files, self._at(""), prefix).split("\n")))

    def create(self, name: str, text: str) -> bool:
        """Write a new file; False if there is one of that name."""
        try:
            self._write(name, False, text)
        except Py4JJavaError as error:
            if "AlreadyExists" in error.java_exception.getClass().getName() or self._files.exists(self._at(name)):
                return False
            raise
        return True

    def replace(self, name: str, text: str) -> None:
        """Write a file, or overwrite it."""
        self._write(name, True, text)

    def read(self, name: str) -> str:
        """A file's text, empty if there is no such file. Raises ValueError if the file does not match its checksum."""
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
        """When a file was written, in seconds since 1970; 0 if there is no such file."""
        place = self._at(name)
        return float(self._files.getFileStatus(place).getModificationTime()) / 1000 if self._files.exists(place) else 0.0

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        self._files.delete(self._at(name), False)

    def delete_older(self, than: float) -> int:
        """Remove the files last written before a time (seconds since 1970); returns how many."""
        return int(self._jvm.own_files.deleteOlder(self._files, self._at(""), int(than * 1000)))

    def put_if_absent_problem(self, name: str) -> str | None:
        """Why the storage does not create a file only once, None if it does. Leaves no file behind."""
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

    def _write(self, name: str, overwrite: bool, text: str) -> None:
        self._refuse_links(name)
        stream = self._files.create(self._at(name), overwrite)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _refuse_links(self, name: str) -> None:
        """Raise TargetError if the file, or its checksum file, is a symbolic link: Hadoop would write to the file that it points to."""
        local = re.fullmatch(r"(?:file:(?://)?)?(/.*)", self.path)
        for each in (name, f".{name}.crc") if local else ():
            if os.path.islink(os.path.join(local[1], each)):  # type: ignore[index]
                raise TargetError(f"{self.path}/{each} is a symbolic link, which Lakejoin does not write to. Remove it and run again.")


def names_below(spark: SparkSession, path: str) -> set[str]:
    """The names, without their folders, of the data, change and deletion vector files that are below a table's folder."""
    changes = f"{path}/_change_data"
    places = [path, changes] if Folder(spark, changes).exists else [path]
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("__globPaths__", "false")  # listed, none is opened
    listed = json.loads(jvm_of(spark).org.apache.spark.sql.delta.util.JsonUtils.toJson(files.load(places)._jdf.inputFiles(), None))
    return {unquote(name.rpartition("/")[2]) for name in listed}
