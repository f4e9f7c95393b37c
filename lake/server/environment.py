"""Compares the environment variables of a client with those of the server, by digests: the same command must mean the same in both.

Which variables matter is known to the server alone: those that its configuration refers to, and those that Spark, Java and the storage
read. So a client sends a digest of each variable, with a salt of the server, over the socket that only its user can open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "HIVE_", "JAVA_", "JDK_", "PYSPARK_", "SPARK_", "TZ")
_NAMES = frozenset({"PYTHONPATH", "_JAVA_OPTIONS", "HOME"})


def digests(environment: Mapping[str, str], salt: str) -> dict[str, str]:
    """A digest of the value of each variable."""
    return {
        name: hashlib.sha256(f"{salt}\0{value}".encode(errors="surrogateescape")).hexdigest()[:16] for name, value in environment.items()
    }


def differing(own: Mapping[str, str], client: Mapping[str, str], referred: Iterable[str]) -> list[str]:
    """The names of the variables that matter and differ between two results of `digests`. `referred`: those of the configuration."""
    names = {*referred, *(n for n in {*own, *client} if n in _NAMES or n.startswith(_PREFIXES))}
    return sorted(name for name in names if own.get(name) != client.get(name))
