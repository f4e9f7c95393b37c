"""Constants that several rooms share: the tables of a view, the classes of differences between its paths, the lease of a real-time path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

PathKind = Literal["strong", "eventual", "replay"]
"""The strong path, the real-time path, and the table in which a backfill re-creates a view's history."""
SUFFIXES: Mapping[PathKind, str] = {"strong": "", "eventual": "__realtime", "replay": "__replay"}
"""What follows the view's name in the name of its table, by path."""

DifferenceClass = Literal["ahead", "behind", "undecidable", "duplicate", "left_over", "missed_delete", "lost_padded", "lost", "wrong_value"]
"""The classes of differences between the two paths; lake/operations/agreement.py says what each means."""
CLASSES: tuple[DifferenceClass, ...] = get_args(DifferenceClass)
WRONG = tuple(name for name in CLASSES if name not in ("ahead", "behind", "undecidable"))
"""The classes of differences that are errors."""

LEASE_FOLDER = "_lakejoin"
"""The folder, beside a real-time table's data, of its lease."""
LEASE_SECONDS = 30.0
"""How long a lease that is not renewed lasts."""
LEASE_RUNNING = ("running", "backing off")
"""The states of a lease whose process runs."""
