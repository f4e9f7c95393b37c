"""What users wrote of a view, as text: read without Spark, so that a scheduler's parse costs no JVM."""

from __future__ import annotations

import ast
import re
from pathlib import Path

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


def mentioned(name: str, config: Config) -> list[str]:
    """The tables and views whose names occur in a view's text: those that it reads, and at worst some more.

    Of a function its parameters, or all tables where its source can't be found. Raises ConfigError where the text can't be read.
    """
    view = config.view(name)
    if view.function is None:
        words = {word.lower() for word in re.findall(r"\w+", query_text(view, config))}
    else:
        parameters = _parameters(view.function, config.directory)
        words = {word.lower() for word in (config.tables if parameters is None else parameters)}
    return [n for n in [*config.tables, *config.views] if n.lower() in words and n != name]


def _parameters(function: str, directory: Path) -> list[str] | None:
    """A function's parameters, read from its source beside the configuration; None where it is not there."""
    module, _, wanted = function.partition(":")
    file = directory / Path(*module.split(".")).with_suffix(".py")
    if not file.is_file():
        return None
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == wanted:
            return [argument.arg for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    return None
