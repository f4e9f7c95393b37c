"""Help texts and docstrings as Markdown."""

from __future__ import annotations

import re
import textwrap

WIDTH = 120


def paragraphs(text: str | None) -> str:
    """A text as paragraphs of lines of at most 120 characters; line breaks within a paragraph have no meaning."""
    parts = re.split(r"\n\s*\n", (text or "").strip())
    return "\n\n".join(textwrap.fill(" ".join(part.split()), WIDTH, break_long_words=False, break_on_hyphens=False) for part in parts)


def cell(text: str | None) -> str:
    """A text as a cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def first_sentence(text: str | None) -> str:
    return re.split(r"(?<=\.)\s", " ".join((text or "").split()), maxsplit=1)[0]
