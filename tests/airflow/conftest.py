"""Tests use an AIRFLOW_HOME of their own, so that nothing of a user is read or written."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
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


@pytest.fixture
def deployment(written: Callable[..., Path]) -> Any:
    """Two views, the second on the first."""
    from lake.airflow.settings import Deployment  # after AIRFLOW_HOME is set

    return Deployment.of(written({"v": {"query": JOIN, "realtime": True}, "w": {"query": "SELECT id FROM v"}}))


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Stands for spark-submit: leaves an answer, or fails as it does; remembers what it was asked."""
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
    from airflow.sdk.exceptions import AirflowException

    from lake.airflow.result_files import run_file

    def stand_in(deployment: Any, answer: Any = None, error: str | None = None) -> list[list[str]]:
        asked: list[list[str]] = []

        def execute(self: Any, context: Any) -> None:
            asked.append(list(self.application_args or []))
            if answer is not None:
                file = Path(deployment.config.runs_path, f"{run_file(asked[-1][asked[-1].index('--run') + 1])}.json")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps({"told": datetime.now(UTC).isoformat(), "answer": answer}))
            if error is not None:
                raise AirflowException(error)

        monkeypatch.setattr(SparkSubmitOperator, "execute", execute)
        return asked

    return stand_in
