"""The earlier place of `make_session`, for scripts that import it from here."""

from __future__ import annotations

import warnings

from lake.spark.session import make_session

__all__ = ["make_session"]

warnings.warn("lake.session has moved: import make_session from lake.spark.session.", DeprecationWarning, stacklevel=2)
