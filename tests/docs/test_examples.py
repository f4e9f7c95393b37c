"""Examples of the documentation name only verbs, options and settings that exist."""

from __future__ import annotations

import ast
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import typer
import yaml
from pydantic import BaseModel

from lake.cli.app import app
from lake.config.models import Config, ViewConfig
from lake.config.view_tests import TestsFile

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
BESIDE = {"environments", "include", "tests", "test_files"}
"""Keys of lakejoin.yml that are applied when the file is read, or read by another command, and are no settings."""


def blocks(*languages: str) -> list[Any]:
    """Every code block in one of the languages, with the page that it is on."""
    found = [(page, block) for page in PAGES for block in FENCE.finditer(page.read_text()) if block["language"] in languages]
    return [pytest.param(b["body"], id=f"{page.relative_to(ROOT)}:{page.read_text()[: b.start()].count(chr(10)) + 1}") for page, b in found]


@pytest.mark.parametrize("body", blocks("", "bash"))
def test_commands_name_verbs_and_options_that_exist(body: str) -> None:
    command: Any = typer.main.get_command(app)
    context = typer.Context(command, info_name="lakejoin")
    for line in re.findall(r"^(?:\S*/)?lakejoin (.*)$", body, re.MULTILINE):
        words = re.sub(r"\s#.*|[\"'][^\"']*[\"']", "", line).split()
        verb = next((word for word in words if word in command.list_commands(context)), None)
        if verb is None and words[0].isupper() | words[0].startswith("["):
            continue  # the synopsis
        assert verb is not None, line
        named: Any = command.get_command(context, verb)
        if hasattr(named, "list_commands"):  # a group of verbs, such as env
            named = named.get_command(context, words[words.index(verb) + 1])
        options = [*command.params, *named.params]
        known = {name for option in options for name in [*option.opts, *option.secondary_opts]}
        assert {word.split("=")[0] for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize("body", blocks("yaml"))
def test_configurations_name_settings_that_exist(body: str) -> None:
    given = yaml.safe_load(re.sub(r"\$\{\w+\}", "x", body))
    tests = {key: given.pop(key) for key in TestsFile.model_fields if key in given} if "tests" in given else {}
    assert list(unknown(tests, TestsFile)) == []
    model = Config if set(given) <= set(Config.model_fields) | BESIDE else None
    model = model or (ViewConfig if set(given) <= set(ViewConfig.model_fields) else None)
    if model is None:  # a view of its own, to be put below `views:`
        assert list(unknown(given, dict[str, ViewConfig])) == []
    else:
        assert list(unknown(given, model)) == []


@pytest.mark.parametrize("body", blocks("python"))
def test_python_is_valid(body: str) -> None:
    ast.parse(signature(body))


def signature(body: str) -> str:
    """A signature of the reference as a definition."""
    return re.sub(r"\A(?:lake\.)?(\w+)\((.*)\) -> (.*)\n\Z", r"def \1(\2) -> '\3': ...", body, flags=re.DOTALL)


def unknown(given: Any, kind: Any) -> Iterator[str]:
    """Keys of a configuration that the models do not have."""
    if get_origin(kind) in (typing.Union, types.UnionType):
        kind = next((k for k in get_args(kind) if k is not type(None)), None)
    if get_origin(kind) is dict and isinstance(given, dict):
        for value in given.values():
            yield from unknown(value, get_args(kind)[1])
    elif get_origin(kind) is tuple and isinstance(given, list):
        for value in given:
            yield from unknown(value, get_args(kind)[0])
    elif isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(given, dict):
        yield from sorted(set(given) - set(kind.model_fields) - (BESIDE if kind is Config else set()))
        for name in set(given) & set(kind.model_fields):
            yield from unknown(given[name], kind.model_fields[name].annotation)
