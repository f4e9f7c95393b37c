"""Reports every failure of Spark in a verb of the public API as a LakeError, whose message begins with what was being done."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from lake.core.redaction import Samples
from lake.spark.failures import reported


class Views(Protocol):
    """What the message needs of the lakehouse: how much of a view's rows may be shown."""

    def shown_of(self, view: str | None, /) -> Samples: ...


V = TypeVar("V", bound=Views)
P = ParamSpec("P")
R = TypeVar("R")


def verb(doing: str) -> Callable[[Callable[Concatenate[V, P], R]], Callable[Concatenate[V, P], R]]:
    """A method that raises every failure of Spark as a LakeError. `doing` and the view's name begin its message."""

    def decorated(method: Callable[Concatenate[V, P], R]) -> Callable[Concatenate[V, P], R]:
        @wraps(method)
        def reporting(views: V, /, *arguments: P.args, **named: P.kwargs) -> R:
            view = next(iter([*arguments, *(named[n] for n in ("view", "table") if n in named)]), None)
            view = view if isinstance(view, str) else None
            with reported(f"{doing} {view!r}" if view else doing, lambda: views.shown_of(view)):
                return method(views, *arguments, **named)

        return reporting

    return decorated
