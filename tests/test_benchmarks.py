"""The benchmarks that CI can run: not how fast, but that they end, and right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_some_seconds_at_1000_events_a_second_drain(tmp_path: Path) -> None:
    out = tmp_path / "realtime.json"
    command = [sys.executable, "-m", "benchmarks.realtime", "--cases", "steady", "--seconds", "15", "--events", "10000", "--out", str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=850, cwd=Path(__file__).parent.parent)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(out.read_text())["results"]["steady"]
    assert found["exact"]
    assert found["failures"] == 0
    assert found["changes"] > 5_000
    assert found["state_bytes"] < 100_000
