"""Says mistakes of lakejoin.yml in words: what is wrong with the YAML, and with each setting. No Spark.

YAML's own messages name what the parser expected. A person needs the line that is wrong: its indentation, a tab, a quote, a comma.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel

from lake.config.models import NOT_SETTINGS, Config, nearest

_SECRET = re.compile(r"(secret|password|token|credential|account\.key|access\.key)", re.IGNORECASE)
_NO_SPACE = re.compile(r"\w+:\S")
TESTS = ("tests", "test_files")
"""Keys of the file that only `lakejoin test` reads: a mistake in a test stops no refresh."""
_SETTINGS = ("model_type", "dict_type", "model_attributes_type")
_DEFINITIONS = {"views": ("query", "query_file", "function"), "tables": ("path", "name")}
_IN_QUOTES = 'Put the text in quotes ("..."), or write it below `|`, indented.'


def in_yaml(error: yaml.YAMLError, text: str) -> tuple[int | None, str]:
    """The line (from 1) of a text that is not valid YAML, and what is wrong there; no line if that is unknown."""
    mark, problem = getattr(error, "problem_mark", None), str(getattr(error, "problem", error))
    if mark is None:
        return None, f"not valid YAML: {problem}."
    lines, at = text.splitlines(), mark.line
    line = lines[at] if at < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return at + 1, "the line is indented by a tab, and YAML allows only spaces there. Replace the tab by spaces."
    context, opened = str(getattr(error, "context", "")), getattr(error, "context_mark", None)
    if "quoted scalar" in context and opened is not None:
        return opened.line + 1, "a quote opens in this line and is not closed. Close it, or double it (''), if it is part of the text."
    wrong = _indentation(lines, at)
    if wrong:
        return at + 1, wrong
    return at + 1, _of_line(line, mark.column, problem)


def _of_line(line: str, column: int, problem: str) -> str:
    value, joined = line.partition(":")[2].strip(), re.match(r"\s*(\w+):[{\[]", line)
    if joined:
        return f"a space is missing after the colon. Write `{joined[1]}: ...`."
    if "cannot start any token" in problem:
        return f"a text can't start with {line[column : column + 1]!r}. {_IN_QUOTES}"
    if "undefined alias" in problem:
        return f"`*` at the start of a text is an alias of YAML. {_IN_QUOTES}"
    if "mapping values are not allowed" in problem:
        return f"the text after the first colon has another colon with a space after it. {_IN_QUOTES}"
    if "another document" in problem:
        return "`---` starts a second document. Remove it: the file is one document."
    if value[:1] in ("'", '"'):
        return (
            f"there is text after the closing quote {value[0]}. Double a quote that is part of the text, or write it below `|`, indented."
        )
    return f"not valid YAML: {problem}."


def _indentation(lines: Sequence[str], at: int) -> str:
    """What is wrong with the indentation of a line; empty if it fits those before it."""
    if at >= len(lines) or not lines[at].strip():
        return ""
    here, above = _indent(lines[at]), [line for line in lines[:at] if line.strip() and not line.lstrip().startswith("#")]
    levels = list[int]()
    for line in above:
        levels = [level for level in levels if level < _indent(line)] + [_indent(line)]
    if not levels or here in levels:
        return ""
    if here > levels[-1]:
        return "" if above[-1].rstrip().endswith((":", "|", ">", "{", "[", ",")) else _neighbours(here, levels[-1:])
    return _neighbours(here, [level for level in levels if level < here][-1:] + [level for level in levels if level > here][:1])


def _neighbours(here: int, levels: Sequence[int]) -> str:
    return (
        f"the line is indented by {here}, its neighbours by {' and '.join(map(str, levels))}. Keys of one level start in the same column: "
        "indent it as its neighbours."
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def in_setting(error: Any, data: Mapping[str, Any], model: type[BaseModel] = Config) -> str:
    """What is wrong with a setting, by an error of pydantic. `data`: the file's text, before variables are substituted; `model`: of the
    whole file."""
    loc = tuple(str(part) for part in error["loc"])
    key, given = ".".join(loc), at(data, loc)
    if error["type"] == "extra_forbidden":
        return _unknown(loc, given, at(data, loc[:-1]), allowed(loc[:-1], model))
    if error["type"] in _SETTINGS:
        return _no_settings(loc, given, present=loc[-1] in (at(data, loc[:-1]) or {}))
    if error["type"] == "name":
        return f"{error['msg']}."
    message = str(error["msg"]).removeprefix("Value error, ")
    shown = "" if given is None or isinstance(given, Mapping) or _SECRET.search(key) else f" (given: {str(given)[:80]!r})"
    return f"`{key or 'the file'}`: {message}{shown}."


def _no_settings(loc: tuple[str, ...], given: Any, present: bool) -> str:
    key, example = ".".join(loc), _example(loc)
    if _NO_SPACE.match(loc[-1]):
        return _no_space(loc)
    if given is None and present:
        return f"`{key}` is empty. Write its settings below it, indented{example}."
    kind = "a list" if isinstance(given, list) else "a text" if isinstance(given, str) else type(given).__name__
    shown = "" if _SECRET.search(key) else f": {str(given)[:80]!r}"
    return f"`{key}` must be settings by name, and is {kind}{shown}. Write `name: value`{example}."


def _example(loc: tuple[str, ...]) -> str:
    examples = {"views": "query: SELECT ...", "tables": "path: FOLDER"}
    example = examples.get(loc[0], "")
    if not example:
        return ""
    return f", for example `{example}`" if len(loc) > 1 else f", for example `NAME: {{{example}}}`"


def _unknown(loc: tuple[str, ...], given: Any, beside: Any, known: Sequence[str]) -> str:
    key, name = ".".join(loc), loc[-1]
    cut = _cut_at_a_comma(name, beside, known) if given is None and isinstance(beside, Mapping) else None
    if cut:
        setting, whole = cut
        return (
            f"`{'.'.join((*loc[:-1], setting))}` ends at a comma: within {{...}} a comma begins the next key. Put the text in quotes: "
            f'{{{setting}: "{whole}"}}.'
        )
    if _NO_SPACE.match(name):
        return _no_space(loc)
    if len(loc) == 1 and isinstance(given, Mapping):
        for place, settings in _DEFINITIONS.items():
            if not given.keys().isdisjoint(settings):
                return f"`{key}` is not known here. It looks like one of the {place}: indent it below `{place}:`."
    return f"`{key}` is not known here. {nearest(name, known)}"


def _no_space(loc: tuple[str, ...]) -> str:
    return f"`{'.'.join(loc)}`: a space is missing after the colon. Write `{loc[-1].partition(':')[0]}: ...`."


def _cut_at_a_comma(name: str, beside: Mapping[str, Any], known: Sequence[str]) -> tuple[str, str] | None:
    """The setting whose text was cut at commas, this key being one of the pieces, and the whole text."""
    setting, pieces = "", list[str]()
    for key, value in beside.items():
        if str(key) in known:
            if name in pieces:
                break
            setting, pieces = str(key), [value] if isinstance(value, str) else []
        elif value is None and pieces:
            pieces.append(str(key))
    return (setting, ", ".join(pieces)) if name in pieces else None


def allowed(loc: tuple[str, ...], root: type[BaseModel] = Config) -> list[str]:
    """The settings that may stand at a place of a file. `root`: the model of the whole file."""
    model: type[BaseModel] | None = root
    parts = list(loc)
    while parts and model is not None:
        field = model.model_fields.get(parts.pop(0))
        model = _model(field.annotation) if field is not None else None
        named = field is not None and _is_by_name(field.annotation)
        parts = parts[1:] if parts and (named or parts[0].isdigit()) else parts
    extra = ["include", "environments", *TESTS] if model is Config else []
    fields = model.model_fields if model is not None else {}
    return [field.alias or name for name, field in fields.items() if name not in NOT_SETTINGS] + extra


def _is_by_name(annotation: Any) -> bool:
    """Whether a setting holds settings by names that a user chooses, as `views` does."""
    return get_origin(annotation) is dict or any(map(_is_by_name, get_args(annotation)))


def _model(annotation: Any) -> type[BaseModel] | None:
    """The model of a setting, also where it is optional or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model(inner)) is not None), None)


def at(data: Any, loc: Sequence[str]) -> Any:
    """The text of a setting as the file has it, None if the file has no such setting."""
    for part in loc:
        if isinstance(data, list) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        else:
            data = data.get(part) if isinstance(data, Mapping) else None
    return data
