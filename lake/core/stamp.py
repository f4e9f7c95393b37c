"""The stamp: the only state of a view, stored in the metadata of the commit that published its rows.

It contains the snapshot that the rows were computed from, the refresh's number and run id, the version of the view's table that the
refresh was planned on, the definition's fingerprint, and the rows of aggregates over all rows inside the query (relations/total.py). Under
2 KB, whatever the tables' size, with at most 16 KB more for these rows. No Spark.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lake.core.formatting import shortened
from lake.core.snapshots import Snapshot
from lake.errors import TargetError

FORMAT = 1
_MOST_REASON = 300
"""Characters of a reason that are stored."""


@dataclass(frozen=True)
class Stamp:
    """`base`: the version of the view's table on which the refresh was planned, -1 for the first refresh. `base_snapshot`: if the view
    reads other views, the versions of the base tables that those were built from. `started`: in seconds since 1970. `lookups`, of a
    real-time path: by source, the number of keys found in the cache, and of keys looked up in the table. `totals`: what later refreshes
    start from, by the names of operators: of an aggregate its row, a text for each value; of a LIMIT its first rows, or those after its
    last one, in one text. `reason`: why the query, or a part of it, was recomputed; empty where it was not."""

    view: str
    number: int
    run_id: str
    base: int
    snapshot: Snapshot
    mode: str
    fingerprint: Mapping[str, str]
    base_snapshot: Snapshot | None = None
    started: float | None = None
    lookups: Mapping[str, tuple[int, int]] | None = None
    totals: Mapping[str, tuple[str | None, ...]] | None = None
    reason: str = ""

    @property
    def how(self) -> str:
        """The mode, and why the query was recomputed if it was, in one text."""
        return f"{self.mode}: {self.reason}" if self.reason else self.mode

    @property
    def answers_for(self) -> Snapshot:
        """The versions of the base tables that the rows were built from."""
        return self.snapshot if self.base_snapshot is None else self.base_snapshot

    def taken_over(self, **changed: Any) -> Stamp:
        """This stamp for a commit of another query, or of another table: with a run id of its own, begun now, and without what belongs to
        the refresh that computed the rows. `changed`: what else differs."""
        return replace(self, run_id=uuid.uuid4().hex, started=time.time(), lookups=None, totals=None, reason="", **changed)

    def to_json(self) -> str:
        """The text for the metadata of the commit."""
        body: dict[str, object] = {
            "format": FORMAT,
            "view": self.view,
            "number": self.number,
            "run_id": self.run_id,
            "base": self.base,
            "snapshot": self.snapshot.to_json(),
            "mode": self.mode,
            "fingerprint": dict(self.fingerprint),
        }
        if self.base_snapshot is not None:
            body["base_snapshot"] = self.base_snapshot.to_json()
        if self.started is not None:
            body["started"] = round(self.started, 3)
        if self.lookups:
            body["lookups"] = {source: list(counts) for source, counts in self.lookups.items()}
        if self.totals:
            body["totals"] = {name: list(row) for name, row in self.totals.items()}
        if self.reason:
            body["reason"] = shortened(self.reason, _MOST_REASON)
        return json.dumps({"lakejoin": body}, separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str | None) -> Stamp | None:
        """The stamp in the metadata of a commit, None if there is none. Raises TargetError for a newer format."""
        try:
            body = json.loads(text or "")["lakejoin"]
        except (ValueError, TypeError, KeyError):
            return None
        if body["format"] > FORMAT:
            raise TargetError(
                f"The table of view {body.get('view')!r} was stamped by a newer Lakejoin (format {body['format']}, this one "
                f"reads up to {FORMAT}). Upgrade Lakejoin."
            )
        return Stamp(
            body["view"],
            int(body["number"]),
            body["run_id"],
            int(body["base"]),
            Snapshot.from_json(body["snapshot"]),
            body["mode"],
            body["fingerprint"],
            Snapshot.from_json(body["base_snapshot"]) if "base_snapshot" in body else None,
            body.get("started"),
            {source: (int(hits), int(misses)) for source, (hits, misses) in body["lookups"].items()} if "lookups" in body else None,
            {name: tuple(row) for name, row in body["totals"].items()} if "totals" in body else None,
            body.get("reason", ""),
        )
