"""Keeps values from ${VARIABLES} out of what Airflow stores and shows, and out of the process list (decision 29).

The application reads lakejoin.yml itself, so most of these settings need not be passed to it at all. Those that spark-submit has to
know before the application starts go through a properties file that only this user can read, for as long as it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from lake.spark.session_digest import defaults_text

_READ_BY_SPARK_SUBMIT = (
    "spark.archives",
    "spark.driver.",
    "spark.executor.",
    "spark.files",
    "spark.jars",
    "spark.kerberos.",
    "spark.kubernetes.",
    "spark.master",
    "spark.pyspark.",
    "spark.submit.",
    "spark.yarn.",
)
_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def read_by_spark_submit(name: str) -> bool:
    """Whether spark-submit needs a setting before the application can make its session: Java options, memory, jars, the cluster."""
    return name.startswith(_READ_BY_SPARK_SUBMIT)


@contextmanager
def properties_file(settings: Mapping[str, str], base: str | None = None) -> Iterator[str | None]:
    """The path of a properties file of the settings: mode 0600, in a new folder, removed afterwards. Without settings: `base`.

    `base`: a properties file whose settings also apply. With --properties-file, spark-submit does not read spark-defaults.conf, so the
    settings of one of the two come first in the new file.
    """
    if not settings:
        yield base
        return
    common = Path(base).read_text(encoding="utf-8") if base is not None else defaults_text()
    with TemporaryDirectory(prefix="lakejoin-") as folder:
        file = Path(folder, "spark.properties")
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write("\n".join([common, *(f"{name} {escaped(value)}" for name, value in settings.items()), ""]))
        yield str(file)


def escaped(value: str) -> str:
    """A value as java.util.Properties reads it: backslashes and control characters escaped, and a space at its start."""
    text = "".join(_ESCAPED.get(character, character) for character in value)
    return f"\\{text}" if text.startswith((" ", "=", ":")) else text
