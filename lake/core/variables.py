"""Gives a context variable a value for the time of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def assigned(variable: ContextVar[T], value: T) -> Iterator[T]:
    """Within it, the variable has the value in this context; afterwards the one that it had before."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
