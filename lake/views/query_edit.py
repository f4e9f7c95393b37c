"""What it takes to bring a view's table from one query to another: nothing, metadata, the view's own rows, or the query run again.

rows stay as they are       the two queries are the same to Spark's optimiser         stamp
columns go or are renamed   the new query selects columns of the old one              metadata
rows go                     the new query selects rows of the old one                 delete
columns are computed        the new query is any SELECT over the rows of the old one  rewrite
conditions, UNION's inputs  the new query adds and leaves out rows that queries give  difference
anything else                                                                         recompute

That a query is a SELECT over another one, or differs in a part, is proven by the optimiser (catalyst/over_rows.py, query_difference.py),
for all rows that the sources may have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from lake.catalyst.over_rows import OverRows, over_rows, same_rows
from lake.catalyst.query_difference import parts
from lake.config.models import HIDDEN_PREFIX
from lake.core.sql import quoted
from lake.errors import LakeError
from lake.spark.failures import SPARK_ERRORS
from lake.views.definition import Definition

EditKind = Literal["stamp", "metadata", "delete", "rewrite", "difference", "recompute"]


@dataclass(frozen=True)
class Edit:
    """How a view's table comes to hold the rows of its new query, and why so. `select`: the new rows, over the old ones; `added` and
    `removed`: what gives the rows by which the two differ."""

    kind: EditKind
    reason: str
    select: OverRows | None = None
    added: Definition | None = None
    removed: Definition | None = None


def edit_of(old: Definition, new: Definition, laid_out_by: Callable[[], Collection[str]], define: Callable[[object], Definition]) -> Edit:
    """The cheapest edit. Both definitions are over the same placeholders; `laid_out_by`: finds the columns by which the table is clustered
    or partitioned, which have to stay; `define`: makes a definition of another analysed plan over these."""
    why = _incomparable(old, new)
    if why:
        return Edit("recompute", why)
    assert old.query is not None
    assert new.query is not None
    if same_rows(new.catalyst, old.query, new.query):
        return Edit("stamp", "the query is written in another way, and gives the same rows")
    select = over_rows(new.catalyst, old.query, new.query)
    inexact = [c for c in (*old.rounded, *old.of_either_zero) if select and any(quoted(c) in s or c in s for s in select.computed)]
    if select is None or inexact:
        why = f"they are computed from {inexact[0]}, whose last digits depend on the order of rows" if inexact else "that can't be proven"
        return _difference(old, new, define) or Edit("recompute", f"the new rows are no selection of the stored ones: {why}")
    names, renames = [c.name for c in old.table_columns], select.renames
    if renames is None or (select.condition and list(renames.items()) != [(n, n) for n in names]):
        return Edit("rewrite", f"the new rows are computed from the stored ones{_where(select)}", select)
    if select.condition:
        return Edit("delete", f"the rows that no longer qualify are deleted{_where(select)}", select)
    gone = [n for n in names if n not in renames.values()]
    if gone and (kept := sorted(set(gone) & set(laid_out_by()))):
        return Edit("rewrite", f"the table is laid out by {', '.join(kept)}, which is dropped", select)
    return Edit("metadata", _columns(gone, renames), select)


def _difference(old: Definition, new: Definition, define: Callable[[object], Definition]) -> Edit | None:
    assert old.query is not None
    assert new.query is not None
    found = parts(new.catalyst, old.query.analysed, new.query.analysed)
    if found is None:
        return None
    try:
        added, removed = (None if plan is None else define(plan) for plan in (found.added, found.removed))
    except (LakeError, *SPARK_ERRORS):  # Spark, or Lakejoin, does not take the part as a query
        return None
    wanted = [(c.name, c.data_type) for c in new.table_columns]
    for definition in (old, added, removed):
        if definition is not None and ([(c.name, c.data_type) for c in definition.table_columns] != wanted or _dependent(definition)):
            return None
    return Edit("difference", f"rows are computed where the {found.what} differ", added=added, removed=removed)


def _dependent(definition: Definition) -> str:
    return definition.relation.order_dependent


def _incomparable(old: Definition, new: Definition) -> str:
    """Why the stored rows say nothing of the new ones; empty where they may."""
    if set(old.sources) != set(new.sources):
        return "it reads other tables than before"
    if _dependent(new) or _dependent(old):
        return f"its rows depend on the order of others: {_dependent(new) or _dependent(old)}"
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
