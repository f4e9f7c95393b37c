"""Decides how much of a row is shown: nothing, its key, or all columns; sensitive columns only as a keyed hash. No Spark.

`samples: off | keys | rows` applies to every output: results, pages, reports, errors, logs.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

_HASH_KEY = secrets.token_bytes(32)
"""Of this process, and never stored: without it nobody can find a value by hashing guesses (decision 28)."""
_HASH_DIGITS = 24
"""96 bits in hexadecimal: no two values of a table are expected to collide."""
_OF_DATA = re.compile(r"SQLSTATE: (?:22|23|38|39|P0)\w{3}")


def is_of_data(message: str) -> bool:
    """Whether an error of Spark's is about values, a constraint or a function (by its SQLSTATE), so that its text may quote rows."""
    return _OF_DATA.search(message) is not None


@dataclass(frozen=True)
class Samples:
    """`how`: what is shown; `sensitive`: columns whose values are shown as hashes only."""

    how: Literal["off", "keys", "rows"]
    sensitive: Collection[str] = field(default_factory=frozenset)

    def __call__(self, row: Mapping[str, Any], key: Sequence[str]) -> dict[str, Any] | None:
        """What may be shown of a row, None where nothing may. `key`: the columns that identify rows."""
        if self.how == "off" or (self.how == "keys" and not key):
            return None
        return {name: self._value(name, value) for name, value in row.items() if self.how == "rows" or name in key}

    def text(self, message: str, known: Collection[object] = ()) -> str:
        """A message of Spark's, which quotes values of the data, without them unless rows may be shown. `known`: what a user wrote.

        Of errors in the data or in a function (`is_of_data`), which quote values in any way, only the name is left.
        """
        if self.how == "rows" and not self.sensitive:
            return message
        name = re.match(r"\[([A-Z0-9_.]+)\]", message)
        if name and (is_of_data(message) or "SQLSTATE: " not in message):
            return f"{name[0]} (the rest of the message may quote rows and is hidden)"
        python = re.match(r"a Python function raised \w+", message)
        if python:
            return f"{python[0]} (its message may quote rows and is hidden)"
        words = {str(word) for word in known}
        return re.sub(r"(?<!\w)'[^']*'|\"[^\"]*\"", lambda found: found[0] if found[0][1:-1] in words else "'...'", message)

    def aggregate(self, arguments: Mapping[str, Any]) -> bool:
        """Whether an aggregate may be shown, by the arguments of its expectation, which name columns."""
        named = {str(name).lower() for value in arguments.values() for name in (value if isinstance(value, list | tuple) else [value])}
        return self.how != "off" and not self._hidden & named

    def hides(self, name: str) -> bool:
        """Whether a column's values, and what follows from them, are never shown as they are."""
        return name.lower() in self._hidden

    @property
    def _hidden(self) -> set[str]:
        return {column.lower() for column in self.sensitive}

    def _value(self, name: str, value: Any) -> Any:
        if value is None or not self.hides(name):
            return value
        return f"#{hmac.digest(_HASH_KEY, str(value).encode(), 'sha256').hex()[:_HASH_DIGITS]}"
