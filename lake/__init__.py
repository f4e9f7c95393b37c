"""Lakejoin: keeps SQL views over Delta Lake tables exactly up to date, incrementally."""

from typing import TYPE_CHECKING, Any

from lake.errors import LakeError

if TYPE_CHECKING:
    from lake.lakehouse import Lakehouse
    from lake.opening import open_lake

__all__ = ["LakeError", "Lakehouse", "open_lake"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`Lakehouse` and `open_lake`, which load PySpark, when they are asked for: a scheduler that reads configuration only never does."""
    if name in ("Lakehouse", "open_lake"):
        from lake import opening

        return getattr(opening, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
