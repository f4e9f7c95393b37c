"""Tests use an AIRFLOW_HOME of their own, so that nothing of a user is read or written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"

TABLES = {"bid": {"path": "bid"}, "auction": {"path": "auction"}, "person": {"path": "person"}}
JOIN = "SELECT b.id, a.item FROM bid b JOIN auction a ON b.auction = a.id"


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Writes a lakejoin.yml of some views, and says where it is."""

    def write(views: dict[str, Any], **more: Any) -> Path:
        file = tmp_path / "lakejoin.yml"
        file.write_text(yaml.safe_dump({"root": str(tmp_path / "lake"), "tables": TABLES, **more, "views": views}))
        return file

    return write
