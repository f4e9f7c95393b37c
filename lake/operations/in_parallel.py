"""Does one piece of work for each view, side by side: a view's begins when that of all views that it reads has ended.

    order a, b, c, d;  b reads a;  c reads b;  two workers      a d       a and d run in two threads; b starts when a ends, c when b ends
                                                                b  }  d
                                                                c

Law: the outcomes, in the given order, are those of doing the same in this order in one thread, if the work of a view depends on the views
that it reads only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

from pyspark.sql import SparkSession

from lake.errors import ConfigError
from lake.spark.threads import as_in_this_thread, pinned_threads

T = TypeVar("T")


def workers(asked: int | None, configured: int | None) -> int:
    """How many views are refreshed at once: as asked, else as configured, else one for each core. Raises ConfigError below 1."""
    if asked is not None and asked < 1:
        raise ConfigError(f"`parallel` must be 1 or more, not {asked}.")
    return asked or configured or os.cpu_count() or 1


@dataclass(frozen=True)
class Ordered:
    """Views, each after those that it reads. `reads`: by view, the names that it reads; only those among the views count."""

    views: Sequence[str]
    reads: Callable[[str], Sequence[str]]

    def parents(self) -> dict[str, tuple[str, ...]]:
        """By view, the views of the order that it reads."""
        return {view: tuple(name for name in self.reads(view) if name in self.views and name != view) for view in self.views}


def side_by_side(
    ordered: Ordered,
    work: Callable[[str, Mapping[str, T]], T],
    parallel: int,
    spark: SparkSession | None = None,
    on_end: Callable[[str, Mapping[str, T]], None] = lambda *_: None,
) -> dict[str, T]:
    """The outcome of each view, in order. With one worker or one view all is done in the calling thread.

    `work`: takes a view, and the outcomes of the views that it reads. It is expected to return failures as outcomes; what it raises is
    raised here. `parallel`: the most views at once; `spark`: the session whose jobs it runs, if there is one. `on_end`: called in the
    calling thread with each view that has ended, and with all outcomes so far, in order.

    After an exception (also KeyboardInterrupt in the calling thread) no further view starts, and those that run are waited for.
    """
    beside = _SideBySide(ordered.views, ordered.parents(), work, parallel, spark, on_end)
    alone = min(parallel, len(ordered.views)) <= 1 or not pinned_threads()
    return beside.in_this_thread() if alone else beside.in_threads()


@dataclass
class _SideBySide(Generic[T]):
    """`ended`: the outcomes; `running`: the thread of each view that runs; `ends`: what the threads send, an exception or an outcome."""

    order: Sequence[str]
    parents: Mapping[str, Sequence[str]]
    work: Callable[[str, Mapping[str, T]], T]
    parallel: int
    spark: SparkSession | None
    on_end: Callable[[str, Mapping[str, T]], None]
    ended: dict[str, T] = field(default_factory=dict)
    running: dict[str, Thread] = field(default_factory=dict)
    ends: SimpleQueue[tuple[str, T | None, BaseException | None]] = field(default_factory=SimpleQueue)

    def in_this_thread(self) -> dict[str, T]:
        for view in self.order:
            self._end(view, self.work(view, self._of_parents(view)))
        return self.ended

    def in_threads(self) -> dict[str, T]:
        try:
            while len(self.ended) < len(self.order):
                for view in self._ready():
                    self._start(view)
                view, outcome, error = self.ends.get()
                self.running.pop(view).join()
                if error is not None:
                    raise error
                self._end(view, outcome)  # type: ignore[arg-type]  # an outcome may be None, too
        finally:
            for thread in self.running.values():
                if thread.ident is not None:  # it was started
                    thread.join()
        return self._in_order()

    def _ready(self) -> list[str]:
        """The views to start now: as many as there are workers free, the first of the order whose parents have ended."""
        waiting = (view for view in self.order if view not in self.ended and view not in self.running)
        ready = [view for view in waiting if all(parent in self.ended for parent in self.parents[view])]
        return ready[: self.parallel - len(self.running)]

    def _start(self, view: str) -> None:
        read = self._of_parents(view)
        work = as_in_this_thread(self.spark, lambda: self.work(view, read))

        def worked() -> None:
            try:
                self.ends.put((view, work(), None))
            except BaseException as error:  # it is raised in the calling thread
                self.ends.put((view, None, error))

        self.running[view] = Thread(target=worked, name=f"lakejoin {view}")
        self.running[view].start()

    def _of_parents(self, view: str) -> dict[str, T]:
        return {parent: self.ended[parent] for parent in self.parents[view]}

    def _end(self, view: str, outcome: T) -> None:
        self.ended[view] = outcome
        self.on_end(view, self._in_order())

    def _in_order(self) -> dict[str, T]:
        return {view: self.ended[view] for view in self.order if view in self.ended}
