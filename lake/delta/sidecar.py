"""A folder beside a table's data for small files of Lakejoin: Delta and its readers ignore names that start with an underscore."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from pyspark.sql import SparkSession

from lake.errors import TargetError
from lake.spark.failures import CALL_ERRORS, java_class, reason
from lake.spark.jvm.gateway import Java, jvm_of

OVERWRITING = frozenset({"s3", "s3a", "s3n"})
"""The URI schemes of storage on which a file that two processes create at once is overwritten, unless the request has a condition."""
_MOST_NAMES = 1_000


class Folder:
    """Small text files, wherever Spark reads and writes."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        self._jvm = jvm_of(spark)
        self._files = self._at("").getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        self._overwrites = path.partition(":")[0].lower() in OVERWRITING

    @property
    def exists(self) -> bool:
        return bool(self._files.exists(self._at("")))

    def names(self, prefix: str = "") -> list[str]:
        """The names that start with a prefix of the files in it; none if there is no folder. The JVM filters them: one call for all."""
        return sorted(filter(None, self._jvm.own_files.names(self._files, self._at(""), prefix).split("\n")))

    def create(self, name: str, text: str) -> bool:
        """Write a new file; False if there is one of that name, also if another process creates it at the same time. On S3 a file with the
        same text is taken for this one: the answer to its creation may have been lost."""
        try:
            if self._overwrites:
                return bool(self._jvm.own_new_file.put(self._files, self._at(name), text))
            self._write(name, False, text)
        except CALL_ERRORS as error:
            if "AlreadyExists" in java_class(error) or self._files.exists(self._at(name)):
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
        except CALL_ERRORS as error:
            if java_class(error).endswith(".ChecksumException"):
                raise ValueError(f"{self.path}/{name} does not agree with its checksum") from error
            raise
        finally:
            stream.close()

    def written(self, name: str) -> float:
        """When a file was written, in seconds since 1970; 0 if there is no such file."""
        place = self._at(name)
        return float(self._files.getFileStatus(place).getModificationTime()) / 1000 if self._files.exists(place) else 0.0

    def size(self, name: str) -> int:
        """A file's size in bytes, 0 if there is no such file."""
        place = self._at(name)
        return int(self._files.getFileStatus(place).getLen()) if self._files.exists(place) else 0

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        self._files.delete(self._at(name), False)

    def remove_if_empty(self) -> None:
        """Remove the folder, if there is nothing in it."""
        if self.exists and not self.names():
            with suppress(*CALL_ERRORS):  # somebody has written into it
                self._files.delete(self._at(""), False)

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
        except CALL_ERRORS as error:
            return reason(error)

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


class Names:
    """Names of files, without their folders, which stay in the JVM, as hashes of eight bytes (see Names.java)."""

    def __init__(self, java: Java) -> None:
        self._java = java

    def missing(self, names: Iterable[str]) -> set[str]:
        """Those of some names that are not among these; `_MOST_NAMES` of them cross to the JVM in one call."""
        every, found = iter(names), set[str]()
        while some := list(islice(every, _MOST_NAMES)):
            found.update(filter(None, self._java.missing("/".join(some)).split("/")))
        return found

    def without(self, others: Names) -> int:
        """How many of these are not among others."""
        return int(self._java.without(others._java))


def names_below(spark: SparkSession, path: str) -> Names:
    """The names of the data, change and deletion vector files that are below a table's folder."""
    changes = f"{path}/_change_data"
    places = [path, changes] if Folder(spark, changes).exists else [path]
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("__globPaths__", "false")  # listed, none is opened
    return Names(jvm_of(spark).own_files.read(files.load(places)._jdf))
