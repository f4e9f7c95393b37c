"""What failures are of: some pass by themselves, some are of what rows hold."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lake.errors import ConcurrencyError, DefinitionError, ExpiredError, KeyViolationError, LakeError, QueryError

_OF_ROWS = re.compile(r"\[([A-Z][A-Z0-9_.]*)\](?:(?!SQLSTATE).)*SQLSTATE: (?:22|38|39|P0)", re.DOTALL)
"""Spark's name for what went wrong with values (a division by zero, an overflow, a cast), in a function, or was raised by the query."""


def of_rows(error: Exception) -> str:
    """What went wrong with the values of some rows, by Spark's name for it; empty where the failure is of something else."""
    found = None if "LAKEJOIN_INTERNAL" in str(error) else _OF_ROWS.search(str(error))
    return found[1] if found else ""


def passing(error: Exception) -> bool:
    """Whether trying again may help: the storage or the query failed, or another writer was first; nobody has to mend anything first."""
    if isinstance(error, ExpiredError | DefinitionError | KeyViolationError):
        return False
    caused = isinstance(error.__cause__, PySparkException | Py4JError)
    return not isinstance(error, LakeError) or isinstance(error, QueryError | ConcurrencyError) or caused
