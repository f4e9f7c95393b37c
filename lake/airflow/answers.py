"""What Lakejoin's jobs leave for a scheduler: small JSON files beside the views, read without Spark."""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk import ObjectStoragePath

from lake.config.models import without_spark


def answer_of(folder: str, run: str) -> dict[str, Any]:
    """What the run with this file name has told so far: `{"told": time, "answer": ...}`; empty where it has told nothing."""
    return _json(_path(folder) / f"{run}.json")


def newest_sign(folder: str) -> dict[str, Any]:
    """The last file in a folder, by name: what holds a real-time path's lease says there how it is doing. Empty where there is none."""
    place = _path(folder)
    signs = sorted((file for file in place.iterdir() if file.name.endswith(".json")), key=lambda f: f.name) if place.exists() else []
    if not signs:
        return {}
    return _json(signs[-1]) or {"state": "running", "renewed": signs[-1].stat().st_mtime}  # it is being written this moment (lease.newest)


def _path(folder: str) -> ObjectStoragePath:
    return ObjectStoragePath(without_spark(folder))


def _json(file: ObjectStoragePath) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
