"""Reads, without Spark, the small JSON files that Lakejoin's applications write beside the views."""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk import ObjectStoragePath

from lake.config.models import PIN, run_file, whole_run, without_spark


def answer_of(folder: str, run: str) -> dict[str, Any]:
    """What a run has reported so far, `{"told": time, "answer": ...}`; empty if nothing."""
    return _json(_path(folder) / f"{run_file(run)}.json")


def is_pinned(folder: str, run: str) -> bool:
    """Whether an earlier try of a run, or of the run that it is a part of, has chosen the snapshot to which it goes."""
    return any((_path(folder) / f"{run_file(name)}{PIN}").exists() for name in (run, whole_run(run)))


def newest_lease(folder: str) -> dict[str, Any]:
    """The newest lease of a real-time path, with its state and metrics: the last file of the folder by name. Empty if there is none."""
    place = _path(folder)
    leases = sorted((file for file in place.iterdir() if file.name.endswith(".json")), key=lambda f: f.name) if place.exists() else []
    if not leases:
        return {}
    return _json(leases[-1]) or {"state": "running", "renewed": leases[-1].stat().st_mtime}  # it is just being written (lease.newest)


def _path(folder: str) -> ObjectStoragePath:
    return ObjectStoragePath(without_spark(folder))


def _json(file: ObjectStoragePath) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
