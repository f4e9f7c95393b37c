"""Computes frames once and stores their rows: on the driver where they are few, else persisted in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from lake.catalyst import Catalyst
from lake.spark import zset


@dataclass(frozen=True)
class Changes:
    """Weighted rows of one relation over the interval.

    `count`: how many there are, once they are computed and `stored`; `local`: they are on the driver. Where they are not stored,
    nothing has been computed yet, and reading the frame twice would compute it twice. `passed`: how many stored rows are read to compute
    them, where each is looked at once and no more is done.
    """

    frame: DataFrame
    count: int | None
    local: bool = True
    passed: int | None = None

    @property
    def stored(self) -> bool:
        return self.count is not None


@dataclass
class Frames:
    """The frames that one refresh computed.

    `local_limit`: the most rows that are brought to the driver; `on_many`: called when there are more; `many`: whether there have been
    more.
    """

    catalyst: Catalyst
    local_limit: int
    on_many: Callable[[], None] | None = None
    many: bool = False
    _persisted: list[DataFrame] = field(default_factory=list)
    _stored: dict[int, Changes] = field(default_factory=dict)

    def unpersist(self) -> None:
        """Unpersist all frames."""
        for frame in self._persisted:
            frame.unpersist()

    def keep(self, frame: DataFrame, passed: int | None = None) -> Changes | None:
        """Compute the frame once: local rows where they are few (None where there are none), else persisted.

        After many rows, a frame is persisted before it is counted: to try for few rows would be to compute it twice. A stored frame
        is returned as it is, and a frame with most of its input's stored rows (of `passed` rows) is not stored again.
        """
        return self._noted(self._stored.get(id(frame)) or self._computed(frame, passed))

    def _noted(self, found: Changes | None) -> Changes | None:
        if found is not None:
            self._stored[id(found.frame)] = found
        return found

    def keep_consolidated(self, frame: DataFrame) -> Changes | None:
        """Compute weighted rows once, as `keep` does, and consolidate them."""
        found = None if self.many else self.catalyst.consolidated(frame, self.local_limit)
        if found is None:
            return self.keep(zset.consolidate(frame))
        local, count = found
        return self._noted(Changes(local, count) if count else None)

    def keep_rows(self, frame: DataFrame) -> Changes:
        """Compute unweighted rows once, as `keep` does; an empty frame stays one."""
        return self.keep(frame) or Changes(frame.limit(0), 0)

    def keep_observed(self, frame: DataFrame) -> tuple[Changes, Mapping[str, tuple[int, ...]]]:
        """Compute an expensive frame once, and return what was observed under its names (`DataFrame.observe`).

        A name is missing where no row was observed.
        """
        stored, observed = self._persist(frame)
        return stored or Changes(frame.limit(0), 0), observed

    def collected(self, frame: DataFrame) -> Changes | None:
        """All rows of a frame, brought to the driver; None where they are too many."""
        found = self.catalyst.collected(frame, self.local_limit)
        return None if found is None else Changes(*found)

    def held(self, frame: DataFrame) -> Changes | None:
        """All rows of a frame over a small table, on the driver, where later refreshes find them again; None where they are too many."""
        found = self.catalyst.held(frame, self.local_limit)
        return None if found is None else Changes(*found)

    def expect_many(self) -> None:
        """From here on, use no settings for few rows."""
        self.many = True
        if self.on_many is not None:
            self.on_many()

    def _computed(self, frame: DataFrame, passed: int | None) -> Changes | None:
        if passed is not None:
            count = frame.count()
            if 2 * count > passed:
                return Changes(frame, count, local=False, passed=passed)
        collected = self.catalyst.folded(frame, self.local_limit) if self.many else self.catalyst.collected(frame, self.local_limit)
        if collected is None:
            self.expect_many()
            return self._persist(frame)[0]
        local, count = collected
        return Changes(local, count) if count else None

    def _persist(self, frame: DataFrame) -> tuple[Changes | None, Mapping[str, tuple[int, ...]]]:
        self._persisted.append(frame.persist())
        frame = frame.select("*")  # the frame itself was planned before anything was persisted, and would compute it again
        count, observed = self.catalyst.counted(frame)
        if count > self.local_limit:
            return Changes(frame, count, local=False), observed
        collected = self.collected(frame)
        assert collected is not None
        return (collected if count else None), observed
