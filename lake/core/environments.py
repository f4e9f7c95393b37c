"""The environments of a configuration, and what promoting and dropping one does: the results of `lakejoin env`. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from lake.core.removals import Dropped


@dataclass(frozen=True)
class Environment:
    """One environment. `name`: None for the settings without one; `development_of`: of a development environment, what it is one of;
    `target`: where its views are; `error`: why its settings are not valid."""

    name: str | None
    development_of: str = ""
    target: str = ""
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class PromotedView:
    """What promoting one view would do. "promote": production takes its rows over; "none": production has them already; "refused":
    it can't, for the `reason`. `since`, `until`: the versions of base tables that production's rows, and the environment's, are made of."""

    view: str
    action: Literal["promote", "none", "refused"]
    reason: str
    since: Mapping[str, int]
    until: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class KeptFiles:
    """Files of one kind that Lakejoin wrote beside the tables of an environment's views. `what`: "results of checks", for example."""

    what: str
    place: str
    bytes: int
    files: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class DroppedEnvironment:
    """What was dropped of an environment, or (`dropped` is false) would be: the tables, view by view, and the `files` beside them.
    `stays`: what is there besides, each with the reason why it stays."""

    name: str
    views: tuple[Dropped, ...]
    dropped: bool
    files: tuple[KeptFiles, ...] = ()
    stays: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(view.bytes for view in self.views) + sum(files.bytes for files in self.files)

    def to_json(self) -> dict[str, Any]:
        views, files = [view.to_json() for view in self.views], [kept.to_json() for kept in self.files]
        said = {"environment": self.name, "dropped": self.dropped, "bytes": self.bytes, "views": views}
        return {**said, "files": files, "stays": list(self.stays)}
