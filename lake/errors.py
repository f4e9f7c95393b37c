"""The errors of the public API. Each is a `LakeError`, and its subclass says what has to be corrected.

A message names what failed, with which value, what was found instead, and what to do. `exit_code` is that of the command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class LakeError(Exception):
    """The base class of all errors. `exit_code` 2: the request was wrong."""

    exit_code = 2


class ConfigError(LakeError):
    """lakejoin.yml (or the dict of the same shape) is not valid. The message names file, key and line."""


class DefinitionError(LakeError):
    """A view's query is refused: it is not one SELECT, is nondeterministic, or reads tables that are not declared."""


class DefinitionChangedError(DefinitionError):
    """The view's definition, or a setting that changes its results, differs from the one that its table was built with."""


class QueryError(LakeError):
    """The view's query fails on the data, also without Lakejoin: a division by zero, a cast, an overflow."""


class EngineError(LakeError):
    """Spark, Delta Lake or the storage failed: no space, no permission, a missing jar, a JVM that ended. Trying again may help."""


class SourceError(LakeError):
    """A source table is missing, is not a Delta table, was replaced, or can't be read."""


class ExpiredError(LakeError):
    """Versions that are needed can no longer be read, so the answer can't be determined (exit code 3)."""

    exit_code = 3


class KeyViolationError(LakeError):
    """The data violates a declared primary key. The message names view or table, key and sample keys (exit code 1)."""

    exit_code = 1

    def __init__(self, key: str, samples: Sequence[Mapping[str, object]], remedy: str) -> None:
        self.key, self.samples, self.remedy = key, tuple(samples), remedy
        shown = "; ".join(str(dict(s)) for s in self.samples) or "some keys (`samples: off` hides them)"
        super().__init__(f"{key} has more than one row for: {shown}. Nothing was published. {remedy}")

    def showing(self, shown: Callable[[Mapping[str, object], Sequence[str]], dict[str, object] | None]) -> KeyViolationError:
        """The same error with its sample keys reduced to what may be shown."""
        rows = (shown(sample, tuple(sample)) for sample in self.samples)
        return KeyViolationError(self.key, [row for row in rows if row is not None], self.remedy)


class CheckError(LakeError):
    """A view's checks failed (exit code 1), or could not run (exit code 3); published rows stay. `events`: the findings that opened,
    escalated or were resolved."""

    def __init__(self, text: str, exit_code: int, events: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(text)
        self.exit_code, self.events = exit_code, tuple(events)


class BlockedError(LakeError):
    """A blocking expectation was not met, so nothing was published (exit code 1). `events`: the findings that opened, escalated or were
    resolved."""

    exit_code = 1

    def __init__(self, text: str, events: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(text)
        self.events = tuple(events)


class RowsDifferError(LakeError):
    """The rows of a table that a view was to adopt are not those of its query (exit code 1). `found`: the lake.core.adoption.Adoption."""

    exit_code = 1

    def __init__(self, text: str, found: Any) -> None:
        super().__init__(text)
        self.found = found


class TargetError(LakeError):
    """The view's table was written by someone else, is missing, or is not one that this Lakejoin can continue."""


class ConcurrencyError(LakeError):
    """Other writers of the view's table committed first, at every attempt. This refresh published nothing."""


class ViewsFailedError(LakeError):
    """Some of several views could not be refreshed, or applied. `failed`: the error of each; `skipped`: views that read one of them;
    `results`: of the views that were. The exit code is that of the first failure."""

    def __init__(self, failed: Mapping[str, Exception], skipped: Sequence[str], results: Sequence[Any], done: str = "refreshed") -> None:
        self.failed, self.skipped, self.results = dict(failed), tuple(skipped), tuple(results)
        self.exit_code = next((getattr(error, "exit_code", 1) for error in failed.values()), 1)
        shown = "\n".join(f"- {view}: {error}" for view, error in failed.items())
        left = f"\nSkipped, since they read one of these: {', '.join(skipped)}." if skipped else ""
        number = len(failed) + len(skipped) + len({getattr(result, "view", result) for result in results})
        super().__init__(f"{len(failed)} of {number} views could not be {done}:\n{shown}{left}")


class InternalError(LakeError):
    """An internal check failed, and nothing was written. Please report it with the view's definition."""
