"""How far one batch goes: whole commits of each source, oldest first, until the batch has as many rows or files as it may take.

A batch takes at least one commit, however large: a commit is the least that a snapshot can move by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lake.core.snapshots import Snapshot
from lake.delta.commit_order import SourceCommit, in_order
from lake.delta.pinned import Pinned


@dataclass
class Step:
    """A batch's chooser of versions (inputs.Chooser), from the snapshot `since`, None where the view is not yet there.

    `rows`, `files`: how many of them a batch takes. Afterwards, and when `on_chosen` is told, `heads` are the sources' newest versions,
    `taken` says what the batch took, `waiting` how many versions are left for later ones, `blocked` how many rows, as far as was looked.
    """

    since: Snapshot | None
    rows: int
    files: int
    on_chosen: Callable[[Step], None] = lambda _: None
    heads: dict[str, int] = field(default_factory=dict)
    taken: list[SourceCommit] = field(default_factory=list)
    waiting: int = 0
    blocked: int = 0

    def __call__(self, heads: Mapping[str, Pinned]) -> dict[str, int]:
        self.taken, self.waiting, self.blocked = [], 0, 0
        self.heads = {source: head.version.number for source, head in heads.items()}
        if self.since is None:
            return {}
        # a table that is another one now is left to the refresh, which says so
        since = {s: self.since[s] for s, head in heads.items() if s in self.since and self.since[s] <= head.version.number}
        until = dict(since)
        rows = files = 0
        for commit in in_order({source: heads[source] for source in since}, since):
            rows, files = rows + commit.rows, files + commit.files
            if self.taken and (rows > self.rows or files > self.files):
                self.blocked = commit.rows
                break
            self.taken.append(commit)
            until[commit.source] = commit.version
        self.waiting = sum(heads[source].version.number - number for source, number in until.items())
        self.on_chosen(self)
        return until
