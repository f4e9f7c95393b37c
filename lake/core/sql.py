"""Names as SQL writes them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column or table name in backticks."""
    return "`" + name.replace("`", "``") + "`"
