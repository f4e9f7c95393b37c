"""make bench: refreshes against what a user would do instead, side by side in one session, one after the other after each change.

Views over Nexmark's bids, auctions and persons (benchmarks/nexmark.py), changed in one place and spread, by few rows and many. Each
change is taken up by the refresh, by the query recomputed and written, by a MERGE written by hand and (q20) by a stream-stream join. Warm:
some changes come first that are not measured, and one of each case. Medians of CPU seconds (of the driver's process tree) and wall
seconds. Beside them what one more refresh of the case did: Spark jobs, bytes read, seconds in jobs; the build against the query's plain
write; the bytes of state.

Cold (`--cold`): `lakejoin refresh` as a scheduler starts it, process by process, also after a SIGKILL in its middle.

Results go to benchmarks/results/refresh.json (growth.json where nothing is measured beside the refresh) as each case ends, by number of
bids and view: what was measured earlier stays. A case is
`proved` where its run came to its end, at which every view and every table of a MERGE is compared with the query.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.cold import cold
from benchmarks.measure import RESULTS, interleaved, medians, save
from benchmarks.nexmark import BUILDS, CATCHING_UP, IN_PLACE, QUERIES, SPREAD, Bench, Change, twins
from benchmarks.peers import HandMerge, Peer, Recompute, StreamJoin
from lake.core.results import RefreshResult

CHANGES = (0, 100, 1_000, 10_000, 100_000, 0.01, 0.05, 0.2, 0.5)
WARM_UP = 12
ALL, RECOMPUTE, NOTHING = "all", "recompute", "nothing"


def cases() -> list[Change]:
    """Nothing; each number of bids in one place and spread; what is to be caught up with."""
    placed = [Change(number, kind) for number in CHANGES[1:] for kind in (IN_PLACE, SPREAD)]
    return [Change(0), *placed, Change(105_000, CATCHING_UP)]


_ORDER = [str(change) for change in cases()]


class Run:
    """One size: the views built, and each case measured."""

    def __init__(self, events: int, views: list[str], beside: str, rounds: int) -> None:
        self.bench, self.rounds, self.console = Bench(events, views), rounds, Console()
        self.console.print(f"{self.bench.bids:,} bids")
        self.found: dict[str, Any] = {"bids": self.bench.bids, "rounds": rounds, "views": {view: {"cases": []} for view in views}}
        self.peers: dict[str, list[Peer]] = {view: [] for view in views}
        if beside == NOTHING:
            for view in views:
                self.bench.lake.refresh(view)
        else:
            self._build()
        if beside == ALL:
            for view in views:
                self.peers[view] += [HandMerge(self.bench, view)] if view in HandMerge.views else []
                self.peers[view] += [StreamJoin(self.bench, view)] if view == "q20" else []
        self._warm_up()

    def _build(self) -> None:
        """Each view built, beside its query's plain write and one laid out as a build's; of each the first, of four, is not counted."""
        for view, peers in self.peers.items():
            recompute = Recompute(self.bench, view)
            peers.append(recompute)
            builds = map(self.bench.lake.refresh, [*twins(view), view])
            works: dict[str, Callable[[], object]] = {
                "build": partial(next, builds),
                "plain_write": recompute.follow,
                "laid_out": recompute.lay_out,
            }
            found = {name: medians(seconds) for name, seconds in interleaved(self.bench.spark, works, BUILDS).items()}
            self.found["views"][view] |= found
            shown = ", ".join(f"{name} {seconds['cpu']:.1f}" for name, seconds in found.items())
            self.console.print(f"{view}, CPU s: {shown}")

    def _warm_up(self) -> None:
        for n in range(WARM_UP):
            self.bench.change(Change(1_000, (IN_PLACE, SPREAD)[n % 2]))
            for view in self.peers:
                self.bench.lake.refresh(view)
        for peers in self.peers.values():
            for peer in peers:
                peer.follow()

    def case(self, change: Change) -> None:
        """One case: each round a change, then everybody in turn."""
        results: dict[str, RefreshResult] = {}
        works: dict[tuple[str, str], Callable[[], None]] = {}
        for view, peers in self.peers.items():
            works[view, "refresh"] = partial(self._refresh, view, results)
            works |= {(view, peer.name): peer.follow for peer in peers}
        seconds = interleaved(self.bench.spark, works, self.rounds, before=partial(self.bench.change, change))
        self.bench.change(change)
        for view in self.peers:
            looked = self.bench.lake.refresh(view, profile=True)
            assert looked.profile is not None
            case: dict[str, Any] = {name: medians(found) | {"all": found} for (own, name), found in seconds.items() if own == view}
            kept = {
                "case": str(change),
                "number": change.number,
                "kind": change.kind,
                "mode": results[view].mode,
                "reason": results[view].reason,
            }
            case |= {**kept, "changes_read": results[view].changes_read, "profile": looked.profile.to_json(), "proved": False}
            self.found["views"][view]["cases"].append(case)
            shown = ", ".join(f"{name} {case[name]['cpu']:.2f} CPU s {case[name]['wall']:.2f} s" for own, name in works if own == view)
            self.console.print(f"{view}, {change}: {results[view].mode}; {shown}")

    def _refresh(self, view: str, into: dict[str, RefreshResult]) -> None:
        into[view] = self.bench.lake.refresh(view)

    def prove(self) -> None:
        """Raise AssertionError where a view, or a MERGE by hand, is not what the query gives now."""
        for view, peers in self.peers.items():
            self.bench.lake.refresh(view)
            assert self.bench.lake.verify(view).exact, f"{view} is not exact"
            self.found["views"][view]["state_bytes"] = self.bench.lake.state_bytes(view)
            for peer in peers:
                if isinstance(peer, HandMerge):
                    peer.follow()
                    assert peer.right(), f"{peer.name} of {view} is not exact"
                if isinstance(peer, StreamJoin):
                    self.found["views"][view]["stream_state_bytes"] = peer.state_bytes()
            for case in self.found["views"][view]["cases"]:
                case["proved"] = True


def keep(found: dict[str, Any], name: str) -> None:
    """Write what was measured of one size beside what is there of others, and of cases and views that were not measured now."""
    file = RESULTS / f"{name}.json"
    sizes = json.loads(file.read_text()).get("sizes", {}) if file.exists() else {}
    before = sizes.get(str(found["bids"]), {})
    views = dict(before.get("views", {}))
    for view, own in found["views"].items():
        now = {case["case"] for case in own["cases"]}
        earlier = [case for case in views.get(view, {}).get("cases", []) if case["case"] not in now]
        cases = sorted([*earlier, *own["cases"]], key=lambda case: _ORDER.index(case["case"]))
        views[view] = views.get(view, {}) | own | {"cases": cases}
    save(name, {"sizes": sizes | {str(found["bids"]): before | found | {"views": views}}})


def show(found: dict[str, Any]) -> None:
    """A table a view: CPU and wall seconds, and how often the refresh's CPU the recompute takes."""
    for view, own in found["views"].items():
        others = [n for n in ("recompute", "MERGE by hand", "stream-stream join") if n in own["cases"][0]]
        ratios = ["recompute / refresh"] if "recompute" in others else []
        table = Table("change", "mode", "refresh", *others, *ratios, "jobs", title=f"{view}, {found['bids']:,} bids: CPU s, s")
        for case in own["cases"]:
            cells = [f"{case[name]['cpu']:.2f}, {case[name]['wall']:.2f}" for name in ("refresh", *others)]
            cells += [f"{case['recompute']['cpu'] / max(case['refresh']['cpu'], 0.01):.1f}" for _ in ratios]
            table.add_row(case["case"], case["mode"], *cells, str(case["profile"]["total"]["jobs"]))
        Console().print(table)


def main() -> int:
    """Print the tables and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_500_000, help="Nexmark events; about nine tenths are bids")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--views", nargs="+", default=list(QUERIES), choices=list(QUERIES))
    parser.add_argument("--cases", nargs="+", help="Only these, as they are printed: '1,000 spread' 'nothing changed' ...")
    parser.add_argument("--beside", choices=(ALL, RECOMPUTE, NOTHING), default=ALL, help="Beside nothing: no builds, and into growth.json")
    parser.add_argument("--cold", action="store_true", help="Also as processes of their own")
    options = parser.parse_args()
    name = "growth" if options.beside == NOTHING else "refresh"
    run = Run(options.events, options.views, options.beside, options.rounds)
    for change in cases():
        if options.cases is None or str(change) in options.cases:
            run.case(change)
            keep(run.found, name)
    run.prove()
    if options.cold:
        run.found["cold"] = cold(run.bench, options.rounds)
    keep(run.found, name)
    show(run.found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
