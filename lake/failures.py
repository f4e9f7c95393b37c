"""Which failures pass by themselves."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lake.errors import ConcurrencyError, DefinitionError, ExpiredError, KeyViolationError, LakeError, QueryError


def passing(error: Exception) -> bool:
    """Whether trying again may help: the storage or the query failed, or another writer was first; nobody has to mend anything first."""
    if isinstance(error, ExpiredError | DefinitionError | KeyViolationError):
        return False
    caused = isinstance(error.__cause__, PySparkException | Py4JError)
    return not isinstance(error, LakeError) or isinstance(error, QueryError | ConcurrencyError) or caused
