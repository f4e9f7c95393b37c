"""Before a commit the same checks run as by `make lint`."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent.parent


def test_pre_commit_runs_what_make_lint_runs() -> None:
    lint = re.search(r"^lint:.*\n\t(.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert lint is not None
    commands = {command.replace("$(BIN)", ".venv/bin").removesuffix(" .") for command in lint[1].split(" && ")}
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {hook["entry"] for hook in hooks} == commands
