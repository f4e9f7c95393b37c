"""What it takes to bring a view's table from one query to another: nothing, metadata, the view's own rows, or the query run again.

rows stay as they are       the two queries are the same to Spark's optimiser         stamp
columns go or are renamed   the new query selects columns of the old one              metadata
rows go                     the new query selects rows of the old one                 delete
columns are computed        the new query is any SELECT over the rows of the old one  rewrite
anything else                                                                         recompute

That a query is a SELECT over another one is proven by the optimiser (catalyst/over_rows.py), over all rows that the sources may have.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from lake.catalyst.over_rows import OverRows, over_rows, same_rows
from lake.config.models import HIDDEN_PREFIX
from lake.core.sql import quoted
from lake.views.definition import Definition

EditKind = Literal["stamp", "metadata", "delete", "rewrite", "recompute"]


@dataclass(frozen=True)
class Edit:
    """How a view's table comes to hold the rows of its new query, and why so. `select`: the new rows, over the old ones."""

    kind: EditKind
    reason: str
    select: OverRows | None = None


def edit_of(old: Definition, new: Definition, clustered_by: Collection[str]) -> Edit:
    """The cheapest edit. Both definitions are over the same placeholders; `clustered_by`: columns of the table that have to stay."""
    why = _incomparable(old, new)
    if why:
        return Edit("recompute", why)
    assert old.query is not None
    assert new.query is not None
    if same_rows(new.catalyst, old.query, new.query):
        return Edit("stamp", "the query is written in another way, and gives the same rows")
    select = over_rows(new.catalyst, old.query, new.query)
    if select is None:
        return Edit("recompute", "the new rows can't be proven to be a selection of the stored ones")
    inexact = [c for c in (*old.rounded, *old.of_either_zero) if any(quoted(c) in sql or c in sql for sql in select.computed)]
    if inexact:
        return Edit("recompute", f"the new rows are computed from {inexact[0]}, whose last digits depend on the order of its rows")
    names, renames = [c.name for c in old.table_columns], select.renames
    if renames is None or (select.condition and list(renames.items()) != [(n, n) for n in names]):
        return Edit("rewrite", f"the new rows are computed from the stored ones{_where(select)}", select)
    if select.condition:
        return Edit("delete", f"the rows that no longer qualify are deleted{_where(select)}", select)
    gone = [n for n in names if n not in renames.values()]
    if set(gone) & set(clustered_by):
        return Edit("rewrite", f"the table is clustered by {', '.join(sorted(set(gone) & set(clustered_by)))}, which is dropped", select)
    return Edit("metadata", _columns(gone, renames), select)


def _incomparable(old: Definition, new: Definition) -> str:
    """Why the stored rows say nothing of the new ones; empty where they may."""
    if set(old.sources) != set(new.sources):
        return "it reads other tables than before"
    if new.relation.order_dependent or old.relation.order_dependent:
        return f"its rows depend on the order of others: {new.relation.order_dependent or old.relation.order_dependent}"
    if new.key_given and (not old.key_given or old.key_names != new.key_names):
        return "another key is declared for it, which has to be checked"
    return ""


def _where(select: OverRows) -> str:
    return f", where {select.condition}" if select.condition else ""


def _columns(gone: Collection[str], renames: dict[str, str]) -> str:
    dropped = [n for n in gone if not n.startswith(HIDDEN_PREFIX)]
    renamed = [f"{old} to {new}" for new, old in renames.items() if new != old and not new.startswith(HIDDEN_PREFIX)]
    hidden = [old for new, old in renames.items() if new.startswith(HIDDEN_PREFIX) and not old.startswith(HIDDEN_PREFIX)]
    found = [
        f"dropped: {', '.join(dropped)}" if dropped else "",
        f"renamed: {', '.join(renamed)}" if renamed else "",
        f"hidden: {', '.join(hidden)} (of the key)" if hidden else "",
    ]
    return f"columns {'; '.join(filter(None, found)) or 'in another order'}. No data file is written"
