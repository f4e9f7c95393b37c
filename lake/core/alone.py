"""How a command reserves views, so that no other request of the same process changes them meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext

Alone = Callable[[Collection[str]], AbstractContextManager[bool]]
"""(names of views) → a context in which no other request of this process changes them; it gives whether others did so until then."""


def unshared(_: Collection[str]) -> AbstractContextManager[bool]:
    """The views of a process that does nothing else meanwhile."""
    return nullcontext(False)
