"""What the lakejoin command shows: answers on standard output, what a person should read on standard error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from lake.results import RefreshResult, SourceStatus

errors = Console(stderr=True, highlight=False, soft_wrap=True)
out = Console(highlight=False, soft_wrap=True)


def print_status(rows: Sequence[SourceStatus], paths: Mapping[str, dict[str, Any]]) -> None:
    """Views by source, real-time paths by view (what each said last), and hints."""
    print_table(
        ["view", "source", "published", "newest", "lag", "expires in", "changes from"],
        [[r.view, r.source, _dash(r.published), str(r.newest), _dash(r.lag), _days(r.expires_in), r.way] for r in rows],
    )
    if paths:
        print_table(
            ["real time", "state", "at", "batches", "rows in", "rows out", "waiting", "batch", "latency p50 / p95 / p99", "cache hits"],
            [[name, *_path_cells(said)] for name, said in paths.items()],
        )
        for error in (said["error"] for said in paths.values() if said.get("error")):
            out.print(error, markup=False)
    for advice in dict.fromkeys(r.advice for r in rows if r.advice):
        out.print(f"hint: {advice}", markup=False)


def print_results(results: Sequence[RefreshResult], as_json: bool) -> None:
    if as_json:
        print_json([r.to_json() for r in results])
        return
    for r in results:
        text = f"{r.view}: {r.mode}, +{r.rows_inserted:,} -{r.rows_deleted:,} rows, now at {r.until} ({r.seconds:.1f} s)"
        out.print(text + (f"; {r.reason}" if r.reason else ""), markup=False)


def print_json(data: Any) -> None:
    print(json.dumps(data, default=str, ensure_ascii=False))


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    table = Table(*columns, header_style="bold")
    for row in rows:
        table.add_row(*row)
    (out if out.is_terminal else Console(width=200, highlight=False)).print(table, markup=False)


def _path_cells(said: dict[str, Any]) -> list[str]:
    """A real-time path's numbers as its lease has them."""
    if "batches" not in said:
        return [said.get("state", "not running"), *"--------"]
    texts = path_texts(said)
    numbers = [f"{said[n]:,}" for n in ("batches", "rows_in", "rows_out", "backlog_versions")]
    return [said["state"], texts["at"], *numbers, f"{said['batch_seconds']:.1f} s", texts["latency"], texts["hits"]]


def path_texts(said: Mapping[str, Any]) -> dict[str, str]:
    """Of a real-time path's metrics as JSON, what is more than a number: `at`, `latency`, `hits`."""
    return {
        "at": ", ".join(f"{source}@{version}" for source, version in sorted(said["versions"].items())),
        "latency": " / ".join("-" if value is None else f"{value:.1f} s" for value in said["latency_seconds"].values()),
        "hits": ", ".join(f"{source} {rate:.0%}" for source, rate in said["hit_rates"].items()),
    }


def shown(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _dash(value: Any) -> str:
    return "-" if value is None else str(value)


def _days(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return "expired" if seconds <= 0 else f"{seconds / 86400:.1f} days" if seconds >= 86400 else f"{seconds / 3600:.1f} hours"
