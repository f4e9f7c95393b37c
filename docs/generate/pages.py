"""The generated pages by file name. The page of SQL constructs is not among them: it needs Spark (`python -m tests.relations.matrix`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generate import cli, configuration, python, tpcds, versions

REFERENCE = Path(__file__).parent.parent / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli.page,
    "configuration.md": configuration.page,
    "python.md": python.page,
    "tpcds.md": tpcds.page,
    "versions.md": versions.page,
}
