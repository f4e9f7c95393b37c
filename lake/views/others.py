"""Describes the commits on a view's table that Lakejoin did not write, from the log alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lake.core.formatting import shortened
from lake.core.other_commits import OtherCommit
from lake.delta.actions import Commit

_MOST_SHOWN = 200
_CONDITIONS = re.compile(r"predicate", re.IGNORECASE)


def other_commit(commit: Commit, columns: Sequence[str]) -> OtherCommit:
    """What the log says of a commit. `columns`: those of the table, which are looked for in its conditions."""
    conditions = " ".join(text for name, text in commit.parameters.items() if _CONDITIONS.search(name))
    return OtherCommit(
        commit.number,
        commit.timestamp / 1000,
        commit.operation,
        commit.user,
        {name: shortened(text, _MOST_SHOWN) for name, text in commit.parameters.items() if text not in ("", "[]", "{}", "null")},
        tuple(name for name in columns if _reads(conditions, name)),
    )


def _reads(condition: str, column: str) -> bool:
    """Whether a condition, as Delta logs it, has a column: its name and the number that Spark gave it (`id#12L`). A value may be spelt so,
    too, and then no more of it is told than the name of a column."""
    return re.search(rf"(?<!\w){re.escape(column)}#\d+", condition) is not None
