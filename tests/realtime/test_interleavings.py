"""Whatever interleaving of changes, batches, refreshes and kills Hypothesis comes up with: each batch is exact at its snapshot, and
once the sources rest and the path has drained, it is the strong view and the query from scratch.

REALTIME_EXAMPLES sets how many histories are tried.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from pyspark.sql import SparkSession

from lake.delta.transaction import Transaction
from lake.realtime.run import RealtimePath
from tests.lakes import TestLake, multiset
from tests.refresh.test_histories import VIEWS, statement

_VIEWS = {
    **VIEWS,
    "anti_joined": "SELECT a.s, a.v FROM a LEFT ANTI JOIN b ON a.id = b.id",
    "latest": "SELECT id, max(w) AS w FROM b GROUP BY id",
}
_CACHES = [{"enabled": False}, {"left_size": 1, "right_size": 1}, {"enabled": True}]


class Killed(BaseException):
    """What stands for SIGKILL: nothing catches it, and what the process had in memory is dropped."""


@contextmanager
def killing(moment: str) -> Iterator[None]:
    """The next commit of a view's table is one in which the process dies: before it is there, or just after."""
    commit = Transaction.commit

    def dying(self: Transaction, *arguments: Any) -> None:
        if moment == "after":
            commit(self, *arguments)
        raise Killed

    with mock.patch.object(Transaction, "commit", dying):
        yield


class Interleaved(RuleBasedStateMachine):
    """One view over two tables. `spark` is set by the test."""

    spark: SparkSession

    def __init__(self) -> None:
        super().__init__()
        self.lake = TestLake(self.spark, Path(tempfile.mkdtemp()))

    @initialize(view=st.sampled_from(sorted(_VIEWS)), cache=st.sampled_from(_CACHES))
    def built(self, view: str, cache: dict[str, Any]) -> None:
        self.lake.table("a", "SELECT * FROM VALUES (1, 's1', 1), (1, 's1', 1), (2, 's2', 2), (NULL, 's0', 0) t(id, s, v)")
        self.lake.table("b", "SELECT * FROM VALUES (1, 1), (2, 2), (2, 3), (NULL, 0) t(id, w)")
        self.lake.view("v", _VIEWS[view], realtime={"cache": cache, "trigger_seconds": 0})
        self.lake.refresh("v")
        self._started()

    def _started(self) -> None:
        """The real-time path's process, with nothing in memory."""
        self.eventual = self.lake.open.on("eventual")

    def _batches(self, all_of_them: bool, capacity: int) -> None:
        stop = threading.Event()
        path = RealtimePath(self.eventual, "v", stop, drain=True, on_batch=lambda *_: all_of_them or stop.set())
        path.settings = path.settings.model_copy(update={"buffer_capacity": capacity})
        path.run()
        assert path.metrics.error == ""
        assert self.eventual.verify("v").exact

    @rule(draw=st.randoms(use_true_random=False), number=st.integers(1, 3))
    def changed(self, draw: random.Random, number: int) -> None:
        for _ in range(number):
            self.lake.sql(statement(draw))

    @rule(capacity=st.sampled_from([1, 3, 100]))
    def one_batch(self, capacity: int) -> None:
        self._batches(False, capacity)

    @rule()
    def refreshed(self) -> None:
        self.lake.refresh("v")
        assert self.lake.open.verify("v").exact

    @rule(moment=st.sampled_from(["before", "after"]), capacity=st.sampled_from([1, 100]), draw=st.randoms(use_true_random=False))
    def killed_in_a_batch(self, moment: str, capacity: int, draw: random.Random) -> None:
        self.lake.sql(statement(draw))
        with killing(moment), suppress(Killed):
            self._batches(False, capacity)
        self._started()

    @rule()
    def restarted(self) -> None:
        self._started()

    def teardown(self) -> None:
        if "v" in self.lake.views:
            self._batches(True, 3)
            self.lake.refresh("v")
            strong, eventual = self.lake.open.read("v"), self.eventual.read("v")
            assert multiset(eventual) == multiset(strong) == self.lake.truth("v")
        shutil.rmtree(self.lake.folder)


@pytest.mark.slow
def test_any_interleaving_ends_equal(spark: SparkSession) -> None:
    Interleaved.spark = spark
    examples = int(os.environ.get("REALTIME_EXAMPLES", "4"))
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Interleaved,
        settings=settings(
            max_examples=examples, stateful_step_count=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
        ),
    )
