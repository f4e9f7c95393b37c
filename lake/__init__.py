"""Lakejoin: SQL views over Delta Lake tables, kept exact from snapshot to snapshot."""

from lake.errors import LakeError
from lake.lakehouse import Lakehouse, open_lake

__all__ = ["LakeError", "Lakehouse", "open_lake"]
__version__ = "0.1.0"
