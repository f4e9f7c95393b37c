"""A folder of small files on this machine, read without a JVM: as lake.delta.sidecar.Folder, which reads them wherever they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LocalFolder:
    """Small text files in a folder of this machine."""

    folder: Path

    def names(self, prefix: str = "") -> list[str]:
        """The names that start with a prefix of the files in it; none if there is no folder."""
        if not self.folder.is_dir():
            return []
        return sorted(file.name for file in self.folder.iterdir() if file.name.startswith(prefix) and file.is_file())

    def read(self, name: str) -> str:
        """A file's text, empty if there is no such file."""
        file = self.folder / name
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def written(self, name: str) -> float:
        """When a file was written, in seconds since 1970; 0 if there is no such file."""
        file = self.folder / name
        return file.stat().st_mtime if file.exists() else 0.0
