"""The results of tests of views: what passed, what failed, and which rows differ. No Spark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from lake.errors import ConfigError

State = Literal["passed", "failed", "error"]


@dataclass(frozen=True)
class Problem:
    """Why a test failed. `at`: the point of the test; `place`: file and line; `missing`: rows that were expected and are not in the
    view, `unexpected`: rows of the view that were not expected, each as the values of `columns`."""

    at: str
    place: str
    text: str
    columns: tuple[str, ...] = ()
    missing: tuple[tuple[Any, ...], ...] = ()
    unexpected: tuple[tuple[Any, ...], ...] = ()

    @property
    def rows(self) -> list[list[str]]:
        """The rows that differ as texts, each after `missing` or `unexpected`; rows that begin with the same values are neighbours."""
        marked = [(row, mark) for mark, rows in (("missing", self.missing), ("unexpected", self.unexpected)) for row in rows]
        texts = [(["NULL" if cell is None else str(cell) for cell in row], mark) for row, mark in marked]
        return [[mark, *cells] for cells, mark in sorted(texts)]

    def __str__(self) -> str:
        return f"{self.at} ({self.place}): {self.text}"


@dataclass(frozen=True)
class TestOutcome:
    """The result of one test: `passed`; `failed`, if the view was not as expected; `error`, if it could not run to its end.

    `modes`: those of the refreshes of the view, in their order; `note`: what was left out, and why; `exit_code`: that of the error.
    """

    __test__ = False  # the name is no test of pytest's

    view: str
    name: str
    place: str
    state: State
    seconds: float
    problems: tuple[Problem, ...] = ()
    modes: tuple[str, ...] = ()
    note: str = ""
    exit_code: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class TestRun:
    """The results of all tests that were run."""

    __test__ = False

    outcomes: tuple[TestOutcome, ...]

    def count(self, state: str) -> int:
        """How many tests ended in a state."""
        return sum(outcome.state == state for outcome in self.outcomes)

    @property
    def exit_code(self) -> int:
        """1 if a test failed, else that of the first error."""
        if self.count("failed"):
            return 1
        return next((outcome.exit_code or ConfigError.exit_code for outcome in self.outcomes if outcome.state == "error"), 0)

    @property
    def summary(self) -> str:
        """All results in a sentence."""
        found = [f"{self.count(state):,} {state}" for state in ("passed", "failed", "error") if self.count(state) or state == "passed"]
        return f"{', '.join(found)} in {sum(outcome.seconds for outcome in self.outcomes):.1f} s."

    def to_json(self) -> dict[str, Any]:
        counts = {state: self.count(state) for state in ("passed", "failed", "error")}
        return {"tests": [outcome.to_json() for outcome in self.outcomes], **counts, "exit_code": self.exit_code}
