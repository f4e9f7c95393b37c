"""What users wrote of a view, as text; no Spark here."""

from __future__ import annotations

from lake.config import Config, ViewConfig
from lake.errors import ConfigError


def query_text(view: ViewConfig, config: Config) -> str:
    """The view's SQL, from the configuration or its file."""
    if view.query is not None:
        return view.query
    file = config.directory / str(view.query_file)
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The query file {file} can't be read ({error.strerror}).") from error


def one_query(text: str) -> str:
    return text.strip().rstrip(";")
