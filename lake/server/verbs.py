"""The verbs that the server answers, each made from the function of its command: its options become the fields of a request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

_RUN = "The name of a scheduled run: its first attempt chooses the snapshot, and its result is stored under this name."
_CLIENT = "What the lakejoin command says of its terminal and its options; leave it out."
_ABANDON = "Of a request that is not waited for: cancel it if nobody has asked for it for more than this many seconds."


class Body(BaseModel):
    """The fields that the requests of all verbs have."""

    model_config = ConfigDict(extra="forbid")

    run: str | None = Field(None, description=_RUN, max_length=240)
    timeout: float | None = Field(None, description="Cancel the request if it runs for more than this many seconds.", gt=0)
    abandon_after: float | None = Field(None, description=_ABANDON, gt=0)
    client: dict[str, Any] | None = Field(None, description=_CLIENT)


class Words(Body):
    """A request as the words of a command."""

    words: list[str] = Field(description="A verb and its options, as after `lakejoin`: [refresh, q20, --until, bid=7].", min_length=1)


class UsageError(Exception):
    """The words are no command that the server runs. The message says why."""


Parse = Callable[[Sequence[str]], tuple[str, Mapping[str, Any]]]
"""The words of a command → its verb, and its options as the verb's function takes them. Raises UsageError."""


@dataclass(frozen=True)
class Verb:
    """A command that the server runs. `command`: its function, called with a context and the options; `writes`: whether it
    changes anything; `body`: its options as the fields of a request."""

    name: str
    command: Callable[..., None]
    writes: bool
    body: type[Body]
    summary: str

    @staticmethod
    def of(command: Callable[..., None], writes: bool, without: str) -> Verb:
        """The verb of a command's function, whose parameters are annotated for Typer. `without`: the parameter that no request has."""
        name = command.__name__
        text = inspect.getdoc(command) or ""
        body = create_model(f"{name.capitalize()}Request", __base__=Body, **_fields(command, without))
        return Verb(name, command, writes, body, text.partition("\n")[0])

    def options(self, body: Body) -> dict[str, Any]:
        """The options of a request, as the function takes them."""
        return {name: getattr(body, name) for name in type(body).model_fields if name not in Body.model_fields}

    @property
    def prints_json(self) -> bool:
        return "as_json" in self.body.model_fields


def _fields(command: Callable[..., None], without: str) -> dict[str, Any]:
    """The fields of a request: name → (type, pydantic's field), of all parameters but the context and one."""
    hints = get_type_hints(command, include_extras=True)
    found = {}
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        if get_origin(hint) is not Annotated or name == without:
            continue
        kind, option = get_args(hint)[:2]
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        found[name] = (kind, Field(default, description=option.help, ge=option.min))
    return found
