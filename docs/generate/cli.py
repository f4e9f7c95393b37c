"""docs/reference/cli.md, from the Typer application."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import typer

from docs.generate.text import cell, first_sentence, paragraphs
from lake.cli.app import app

_HEAD = """# The lakejoin command

<!-- Generated from lake/cli/app.py by `make docs`. Do not edit. -->

```
lakejoin [OPTIONS] VERB [ARGUMENTS]
```

Answers go to standard output, messages for a person to standard error. With `--json` the answer is JSON.

| Exit code | Meaning |
|---|---|
| 0 | Done. |
| 1 | A check failed: rows differ, a key is violated, or an expectation blocks. |
| 2 | The request is wrong, or something has to be corrected first. The message says what. |
| 3 | The answer cannot be known, because the versions that it needs can no longer be read. |
"""


def page() -> str:
    """The whole page."""
    command: Any = typer.main.get_command(app)
    context = typer.Context(command, info_name="lakejoin")
    verbs = dict(_verbs(command, context))
    summary = ["| Verb | What it does |", "|---|---|"]
    summary += [f"| [`{name}`](#{name.replace(' ', '-')}) | {cell(first_sentence(verb.help))} |" for name, verb in sorted(verbs.items())]
    options = ["## Options before the verb", "", *_options(command)]
    return "\n".join([_HEAD, *summary, "", *options, *[line for name in sorted(verbs) for line in _verb(name, verbs[name])], ""])


def _verbs(command: Any, context: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The verbs by their names, those of a group with the group's name before them."""
    for name in command.list_commands(context):
        verb = command.get_command(context, name)
        if hasattr(verb, "list_commands"):
            yield from _verbs(verb, context, f"{before}{name} ")
        else:
            yield f"{before}{name}", verb


def _verb(name: str, verb: Any) -> Iterator[str]:
    arguments = [p for p in verb.params if p.param_type_name == "argument"]
    usage = " ".join(["lakejoin", name, *[_usage(a) for a in arguments], "[OPTIONS]"])
    yield from ("", f"## {name}", "", paragraphs(verb.help), "", "```", usage, "```", "")
    examples = _examples(verb.epilog or "")
    if examples:
        yield from (f"Example{'s' if len(examples) > 1 else ''}:", "", "```", *examples, "```", "")
    yield from _arguments(arguments)
    yield from _options(verb)


def _usage(argument: Any) -> str:
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _arguments(arguments: list[Any]) -> Iterator[str]:
    if arguments:
        yield from ("| Argument | Meaning |", "|---|---|")
        yield from (f"| `{a.name.upper()}` | {cell(getattr(a, 'help', ''))} |" for a in arguments)
        yield ""


def _options(command: Any) -> Iterator[str]:
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    if options:
        yield from ("| Option | Value | Default | Meaning |", "|---|---|---|---|")
        yield from map(_option, options)


def _option(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    default = "" if option.is_flag or option.default in (None, ()) else f"`{getattr(option.default, 'value', option.default)}`"
    if option.secondary_opts:  # a switch with a name for on and one for off
        default = f"`{(option.opts if option.default else option.secondary_opts)[0]}`"
    variable = f" Environment: `{option.envvar}`." if option.envvar else ""
    return f"| {names} | {'' if option.is_flag else _kind(option)} | {default} | {cell(option.help)}{variable} |"


def _kind(option: Any) -> str:
    kind = option.type_descriptor.annotation
    kind = get_args(kind)[0] if get_args(kind) else kind
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f"`{choice.value}`" for choice in kind)
    return {int: "number", Path: "file"}.get(kind, "text") + (", repeatable" if option.multiple else "")


def _examples(epilog: str) -> list[str]:
    return [example.strip() for example in re.sub(r"^Examples?:", "", epilog).split(" | ") if example.strip()]
