"""The README's lines, run as they are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake.cli.app import app
from tests.lakes import FEED

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.slow
def test_the_first_view_of_the_readme(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = README.read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: spark)
    orders = "SELECT * FROM VALUES (1, 10.5, 7), (2, 3.0, 8), (3, 9.9, NULL) t(order_id, amount, customer_id)"
    customers = "SELECT * FROM VALUES (7, 'Ada'), (9, 'Bob') t(customer_id, name)"
    for name, rows in (("orders", orders), ("customers", customers)):
        spark.sql(rows).write.format("delta").options(**FEED).save(f"{tmp_path}/my_lake/{name}")
    commands = re.findall(r"^\.venv/bin/lakejoin ([^#\n]+)", text, re.MULTILINE)
    configuration = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert len(commands) == 7
    assert configuration is not None
    for command in commands:
        found = CliRunner().invoke(app, command.split())
        assert found.exit_code == 0, (command, found.output)
        if command.startswith("init"):
            Path("lakejoin.yml").write_text(configuration.group(1))
        if command.startswith("show"):
            assert "Ada" in found.output
    python = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert python is not None
    exec(python.group(1))
