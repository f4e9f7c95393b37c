"""What `lakejoin plan` says: for each view, what `apply` would do to its table, and why. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Action = Literal["none", "build", "edit", "rebuild", "rename", "removed", "refused"]


@dataclass(frozen=True)
class RowChanges:
    """The rows of a view that an edit changes, in the columns that both queries have: how many are added, removed and changed, in which
    columns, and the keys of some. `share`: the part of the rows that was compared, "1/1" all."""

    added: int
    removed: int
    changed: int
    by_column: Mapping[str, int]
    samples: tuple[Mapping[str, Any], ...] = ()
    share: str = "1/1"

    def __str__(self) -> str:
        columns = ", ".join(f"{name} {n:,}" for name, n in self.by_column.items())
        keys = "; ".join(", ".join(f"{k}={v}" for k, v in sample.items()) for sample in self.samples)
        part = "" if self.share == "1/1" else f" (part {self.share})"
        found = f"{self.added:,} added, {self.removed:,} removed, {self.changed:,} changed{part}"
        return found + (f"; changed in {columns}" if columns else "") + (f"; such as {keys}" if keys else "")


@dataclass(frozen=True)
class PlannedView:
    """What is to be done for one view. `how`: of an edit, stamp, metadata, delete or rewrite; `diff`: of the query as text, where the one
    before is known; `rows`: of the view now; `bytes_read`, `bytes_written`: by estimate, of data files; `downstream`: the views that read
    it, directly or not; `row_changes`: of an edit, where they were asked for, or why they can't be had. `token` tells this plan from
    another one for the view. `from_production`: a development environment reads the view from production's table.

    Two actions are none of `apply`: a "refused" view needs another configuration (`reason` is the error), and what is kept of a "removed"
    one, which is no longer in the configuration, goes by `drop` or `gc`.
    """

    view: str
    action: Action
    reason: str = ""
    how: str = ""
    columns_added: tuple[str, ...] = ()
    columns_dropped: tuple[str, ...] = ()
    columns_changed: tuple[str, ...] = ()
    diff: str = ""
    rows: int | None = None
    bytes_read: int = 0
    bytes_written: int = 0
    downstream: tuple[str, ...] = ()
    token: str = ""
    row_changes: RowChanges | str | None = None
    from_production: bool = False

    @property
    def changes_columns(self) -> bool:
        """Whether readers of the view find other columns."""
        return bool(self.columns_added or self.columns_dropped or self.columns_changed)


@dataclass(frozen=True)
class Plan:
    """What is to be done for all views, each after those that it reads."""

    views: tuple[PlannedView, ...]

    @property
    def changes(self) -> tuple[PlannedView, ...]:
        """The views for which something is to be done, by `apply` or by a person."""
        return tuple(v for v in self.views if v.action != "none")

    @property
    def exit_code(self) -> int:
        """0: nothing to do; 2: changes; 1: a view is refused."""
        done = {v.action for v in self.changes} - {"removed"}
        return 1 if "refused" in done else 2 if done else 0

    def to_json(self) -> dict[str, Any]:
        return {"views": [asdict(view) for view in self.views]}

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Plan:
        """The plan of `to_json`. Raises ValueError for anything else."""
        try:
            return Plan(tuple(PlannedView(**_with_tuples(view | {"row_changes": None})) for view in body["views"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"it is no plan of lakejoin plan --json ({error})") from error

    def differing(self, other: Plan, views: Iterable[str]) -> list[str]:
        """Of some views, those for which another plan would do something else, or start from something else."""
        own, others = ({v.view: (v.action, v.how, v.token) for v in plan.views} for plan in (self, other))
        return [view for view in views if own.get(view) != others.get(view)]


def _with_tuples(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in body.items()}
