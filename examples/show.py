"""What both demos print: a table of refreshes that a person enjoys reading."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from lake import Lakehouse
from lake.core.results import RefreshResult
from lake.quality import check
from lake.quality.report import report


class Rounds:
    """One line a refresh: what moved, what the view's table was told, and whether it is exact."""

    def __init__(self, lake: Lakehouse, view: str, title: str) -> None:
        self.lake, self.view = lake, view
        self.console = Console()
        if not self.console.is_terminal:
            self.console = Console(width=150)
        self.exact = True
        self.table = Table(title=title, title_justify="left", header_style="bold", caption_justify="left")
        for name in ("round", "source versions", "mode"):
            self.table.add_column(name)
        for name in ("changes read", "inserted", "updated", "deleted", "seconds", "state"):
            self.table.add_column(name, justify="right")
        self.table.add_column("exact?", justify="center")

    def refresh(self, what: str) -> RefreshResult:
        """Refresh and verify the view, and note the round."""
        with self.console.status(f"{what}: refreshing and verifying {self.view}"):
            result = self.lake.refresh(self.view)
            differences = self.lake.verify(self.view)
        self.exact = self.exact and differences.exact
        self.table.add_row(
            what,
            str(result.until),
            result.mode,
            "-" if result.changes_read is None else f"{result.changes_read:,}",
            f"{result.rows_inserted - result.rows_updated:,}",
            f"{result.rows_updated:,}",
            f"{result.rows_deleted - result.rows_updated:,}",
            f"{result.seconds:.1f}",
            f"{self.lake.state_bytes(self.view):,} B",
            "[green]yes[/]" if differences.exact else f"[red]no: {len(differences)} rows[/]",
        )
        self.console.print(f"  {what}: {result.mode}, {result.seconds:.1f} s, {'exact' if differences.exact else 'NOT EXACT'}")
        return result

    def _report(self) -> None:
        """Check the view and write the report, which says what each refresh did."""
        with self.console.status(f"checking {self.view}, and writing the report"):
            found = check(self.lake, self.view)
            place = Path(self.lake.config.root_path) / "report.html"
            place.write_text(report(self.lake, [self.view]), encoding="utf-8")
        wrong = len(found.open)
        self.console.print(f"{len(found.measures)} checks, {wrong} findings. The report, for a browser: {place}\n", highlight=False)

    def finish(self, next_steps: list[str]) -> int:
        """Print the table and what to type next; returns the exit code."""
        self.console.print(self.table)
        self.console.print("State is all that Lakejoin keeps of the view besides its rows. Exact: equal to the query run from scratch.\n")
        self._report()
        self.console.print("Next, type:")
        for step in next_steps:
            self.console.print(f"  {step}", style="bold", highlight=False)
        return 0 if self.exact else 1
