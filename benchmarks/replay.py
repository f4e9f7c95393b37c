"""What a writer writes, recorded commit by commit, and put there again at its times: the work of a producer is then not done beside what is
measured, on the same two cores.

A commit says when it was recorded, so that the latencies that the follower itself reports are too long; the benchmark goes by the times
of files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from examples.nexmark.writer import TABLES, Writer


class Replay(Writer):
    """The writer's commits, each second's at its beginning, of a lake that nobody else writes to."""

    def prepare(self, spark: SparkSession) -> None:
        """Write all seconds, as fast as it goes, into a copy of the tables, and put the data files where no commit names them yet."""
        self._recorded = self.root.with_name(f"{self.root.name} recorded")
        self._files: list[list[tuple[Path, bytes]]] = []
        for table in TABLES:
            shutil.copytree(self.root / table, self._recorded / table)
        recorder = Writer(self._recorded, self._stream, self._first, self.rate, self.seconds)
        recorder.prepare(spark)
        seen = self._log()
        for second in range(self.seconds):
            recorder.write(second)
            log = self._log()
            self._files.append([(file, file.read_bytes()) for file in sorted(log, key=_order) if seen.get(file) != log[file]])
            seen = log
        for file in self._recorded.rglob("*.parquet"):
            there = self.root / file.relative_to(self._recorded)
            if "_delta_log" not in file.parts and not there.exists():
                there.parent.mkdir(parents=True, exist_ok=True)
                os.link(file, there)

    def write(self, second: int) -> None:
        for file, text in self._files[second]:
            there = self.root / file.relative_to(self._recorded)
            part = there.with_name(f".{there.name}.part")
            part.write_bytes(text)
            part.rename(there)

    def _log(self) -> dict[Path, int]:
        """The files of the tables' logs, and when each was written."""
        folders = [self._recorded / table / "_delta_log" for table in TABLES]
        return {file: file.stat().st_mtime_ns for folder in folders for file in folder.iterdir() if file.is_file()}


def _order(file: Path) -> tuple[bool, int]:
    """As they were written; what says which checkpoint is the last one comes after that checkpoint."""
    return file.name == "_last_checkpoint", file.stat().st_mtime_ns
