"""Chooses the versions of one batch: complete commits of all sources, oldest first, up to a number of rows and of files.

A batch takes at least one commit, of any size: a commit can't be divided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lake.core.snapshots import Snapshot
from lake.delta.commit_order import SourceCommit, in_order
from lake.delta.pinned import Pinned


@dataclass
class Batch:
    """Chooses the versions of a batch (views.inputs.Chooser) after the snapshot `since`; None: the view does not exist yet.

    `max_rows`, `max_files`: the limits of a batch. `on_chosen` is called once the versions are chosen: then `heads` are the newest
    versions of the sources, `commits` those of the batch, `waiting` the number of versions that are left for later batches, and `blocked`
    the number of rows of the first commit that is left.
    """

    since: Snapshot | None
    max_rows: int
    max_files: int
    on_chosen: Callable[[Batch], None] = lambda _: None
    heads: dict[str, int] = field(default_factory=dict)
    commits: list[SourceCommit] = field(default_factory=list)
    waiting: int = 0
    blocked: int = 0

    def __call__(self, heads: Mapping[str, Pinned]) -> dict[str, int]:
        self.commits, self.waiting, self.blocked = [], 0, 0
        self.heads = {source: head.version.number for source, head in heads.items()}
        if self.since is None:
            return {}
        # the refresh reports a table that was replaced by another one
        since = {s: self.since[s] for s, head in heads.items() if s in self.since and self.since[s] <= head.version.number}
        until = dict(since)
        rows = files = 0
        for commit in in_order({source: heads[source] for source in since}, since):
            rows, files = rows + commit.rows, files + commit.files
            if self.commits and (rows > self.max_rows or files > self.max_files):
                self.blocked = commit.rows
                break
            self.commits.append(commit)
            until[commit.source] = commit.version
        self.waiting = sum(heads[source].version.number - number for source, number in until.items())
        self.on_chosen(self)
        return until
