"""Digests of the functions that a view's query calls: code, constants, defaults, and everything that the code refers to.

A Python function is what its bytecode, its default and captured values, and the globals that it names are; of a library, the name and the
version. Where it stands in a file, its name and its comments are no part of it (its docstring is). The version of Python is, since
bytecode depends on it. Objects are looked at as they are in memory: that is what runs, whatever their file says now.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import hashlib
import importlib
import inspect
import pickle
import re
import struct
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pyspark.cloudpickle import loads

from lake.catalyst.user_functions import UserFunction
from lake.errors import DefinitionError
from lake.spark.session_digest import digest

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice)
_LIBRARY = ("site-packages", "dist-packages")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
_OF_CLASSES = (
    "__dict__",
    "__slotnames__",
    "__weakref__",
    "__module__",
    "__doc__",
    "__qualname__",
    "__firstlineno__",
    "__static_attributes__",
)
_MADE = ("_abc_impl", "__abstractmethods__", "__dataclass_fields__", "__dataclass_params__", "__pydantic_")
"""Attributes (or how they start) that decorators and metaclasses make of what else is in a class."""
_OF_A_FILE = re.compile(r"lakejoin_[0-9a-f]{16}_")
"""How the names of modules start that `user_functions` loads: with a digest of path and text."""


class UnreadableError(Exception):
    """What a function refers to can't be made a digest of."""


def function_versions(view: str, functions: Sequence[UserFunction], declared: Mapping[str, str]) -> dict[str, str]:
    """Name → version of each function in a query: the one that is declared under `functions:`, else a digest of its code.

    Raises DefinitionError for one whose code can't be read, and which is not declared.
    """
    lowered = {name.lower(): text for name, text in declared.items()}
    found: dict[str, list[str]] = {}
    for function in functions:
        version_of = lowered.get(function.name.lower()) or _digest_of(view, function)
        found.setdefault(function.name, []).append(f"{version_of} {function.shape}")
    return {name: digest("\n".join(dict.fromkeys(each))) for name, each in found.items()}


def _digest_of(view: str, function: UserFunction) -> str:
    try:
        if function.pickled is not None:
            found = loads(function.pickled)
            return python_digest(found[0] if isinstance(found, tuple) else found)  # with the type of its result, or alone
        if function.digest is not None:
            return function.digest
        why = "it runs outside Python and its class can't be found"
    except UnreadableError as error:
        why = str(error)
    except Exception as error:  # whatever unpickling a user's objects raises
        large = "it is larger than 1 MB with all that it refers to, or it refers to a broadcast variable"
        why = large if "BROADCAST" in str(error).upper() else f"{type(error).__name__}: {error}"
    raise DefinitionError(
        f"The query of view {view!r} calls the function {function.name!r}, whose code can't be read ({why}), so that a changed function "
        f"would go unnoticed. Declare its version in lakejoin.yml, and change it with the function: `functions: {{{function.name}: v1}}`."
    )


def python_digest(function: Any) -> str:
    """A digest of a Python function, the same in every process. Raises UnreadableError."""
    hashed = hashlib.sha256(f"python {sys.version_info[0]}.{sys.version_info[1]}".encode())
    for part in _Parts().of(function):
        hashed.update(len(part).to_bytes(8, "big") + part)
    return hashed.hexdigest()[:16]


class _Parts:
    """Goes through an object; what was met before is named by its place, so that cycles end."""

    def __init__(self) -> None:
        self._met: dict[tuple[int, frozenset[str]], int] = {}
        self._alive: list[Any] = []  # an id belongs to another object once its own is gone

    def of(self, value: Any, names: frozenset[str] = frozenset()) -> Iterator[bytes]:
        """The parts of a value. `names`: all that the code which refers to it names: of a module, only these are looked at.

        Raises UnreadableError.
        """
        if type(value) in _PLAIN:
            text = _OF_A_FILE.sub("", value) if type(value) is str else value
            yield f"{type(value).__name__} {text!r}".encode("utf-8", "surrogatepass")
            return
        seen = (id(value), names if isinstance(value, types.ModuleType) else frozenset())
        if seen in self._met:
            yield f"again {self._met[seen]}".encode()
            return
        self._met[seen] = len(self._met)
        self._alive.append(value)
        match value:
            case types.ModuleType():
                yield from self._module(value, names)
            case types.FunctionType():
                yield from self._function(value)
            case types.CodeType():
                yield from self._code(value)
            case type():
                yield from self._class(value)
            case types.MethodType():
                yield from self._all("method", value.__func__, value.__self__)
            case types.BuiltinFunctionType():
                owner = value.__self__ if not isinstance(value.__self__, types.ModuleType) else None
                yield from self._all(f"builtin {value.__module__}.{value.__qualname__}", owner)
            case enum.Enum():
                yield from self._all("enum", type(value), value.name)
            case _ if type(value) in _WRITTEN:
                yield from self._all(type(value).__name__, *_WRITTEN[type(value)](value))
            case _:
                yield from self._object(value)

    def _all(self, kind: str, *values: Any) -> Iterator[bytes]:
        yield f"{kind} {len(values)}".encode()
        for value in values:
            yield from self.of(value)

    def _module(self, module: types.ModuleType, names: frozenset[str]) -> Iterator[bytes]:
        """A library by its version, a user's own module by what is named of it."""
        known = _library(module.__name__)
        if known:
            yield known.encode()
            return
        for name in sorted(names & {*vars(module)}):
            yield name.encode()
            yield from self.of(vars(module)[name], names)

    def _function(self, function: types.FunctionType) -> Iterator[bytes]:
        known = _library(function.__globals__.get("__name__"))
        if known:
            yield f"{known} {function.__qualname__}".encode()
            yield from self._all("captured", *map(_content, function.__closure__ or ()))
            return
        yield from self._all("function", function.__code__, function.__defaults__, function.__kwdefaults__)
        names = frozenset(_names(function.__code__))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            yield name.encode()
            yield from self.of(_content(cell), names)
        for name in sorted(set(_referred(function.__code__, _GLOBALS))):
            yield name.encode()
            if name in function.__globals__:
                yield from self.of(function.__globals__[name], names)
        for name in sorted(set(_referred(function.__code__, ("IMPORT_NAME",)))):
            yield name.encode()
            yield from self.of(_imported(name, str(function.__globals__.get("__package__") or "")), names)
        yield from self._all("attributes", {k: v for k, v in vars(function).items() if k != "__wrapped__"})

    def _code(self, code: types.CodeType) -> Iterator[bytes]:
        yield code.co_code
        yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)).encode()
        yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
        yield getattr(code, "co_exceptiontable", b"")
        yield from self._all("constants", *code.co_consts)

    def _class(self, kind: type) -> Iterator[bytes]:
        known = _library(kind.__module__)
        if known:
            yield f"{known} {kind.__qualname__}".encode()
            return
        yield from self._all("class", *kind.__mro__[1:])
        for name, value in sorted(vars(kind).items()):
            described = inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value)
            if name not in _OF_CLASSES and not name.startswith(_MADE) and not described:
                yield name.encode()
                yield from self.of(value)

    def _object(self, value: Any) -> Iterator[bytes]:
        """Another object, by what it would be pickled as."""
        kind = _type_name(value)
        try:
            reduced = copyreg.dispatch_table[type(value)](value) if type(value) in copyreg.dispatch_table else value.__reduce_ex__(4)
        except (TypeError, pickle.PicklingError) as error:
            raise UnreadableError(f"it refers to an object of {kind}: {error}") from error
        if isinstance(reduced, str):  # the name of a global
            yield from self._named(value, reduced)
            return
        yield from self._all(f"object {kind}", *(list(x) if isinstance(x, Iterator) else x for x in reduced))

    def _named(self, value: Any, name: str) -> Iterator[bytes]:
        if hasattr(value, "__wrapped__"):
            yield from self._all(f"object {_type_name(value)}", value.__wrapped__)
            return
        known = _library(getattr(value, "__module__", None) or type(value).__module__)
        if not known:
            raise UnreadableError(f"it refers to {name}, an object of {_type_name(value)}")
        yield f"{known} {name}".encode()


_WRITTEN: Mapping[type, Any] = {
    tuple: lambda value: value,
    list: lambda value: value,
    set: lambda value: sorted(map(_apart, value)),
    frozenset: lambda value: sorted(map(_apart, value)),
    dict: lambda value: (x for pair in value.items() for x in pair),
    types.MappingProxyType: lambda value: (x for pair in value.items() for x in pair),
    staticmethod: lambda value: (value.__func__,),
    classmethod: lambda value: (value.__func__,),
    property: lambda value: (value.fget, value.fset, value.fdel),
    functools.cached_property: lambda value: (value.func,),
    struct.Struct: lambda value: (value.format,),
}
"""Type → what its values are made of. A subclass may be more: its values are written as other objects."""


def _apart(value: Any) -> bytes:
    """One value's digest, by which the values of a set have an order."""
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in _Parts().of(value))).digest()


def _type_name(value: Any) -> str:
    return _OF_A_FILE.sub("", f"{type(value).__module__}.{type(value).__qualname__}")


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "an empty cell"


def _referred(code: types.CodeType, operations: Sequence[str]) -> Iterator[str]:
    """The names that some operations of the code, and of the code inside it, refer to."""
    yield from (str(each.argval) for each in dis.get_instructions(code) if each.opname in operations)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _referred(constant, operations)


def _names(code: types.CodeType) -> Iterator[str]:
    """All names in the code, and its texts, which may be names (getattr)."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
        elif isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from (each for each in constant if isinstance(each, str))


def _imported(name: str, package: str) -> types.ModuleType | None:
    """The module that code imports when it runs; None where there is none now."""
    for full in (name, f"{package}.{name}".strip(".")):
        try:
            return sys.modules[full] if full in sys.modules else importlib.import_module(full)
        except (ImportError, ValueError):
            continue
    return None


def _library(name: str | None) -> str:
    """What tells a library's module from that of another version; empty for a module of a user's own."""
    top = (name or "").split(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        return f"library {name}"
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    if not any(folder in Path(file).parts for folder in _LIBRARY):
        return ""
    try:
        return f"library {name} {version(top)}"
    except PackageNotFoundError:
        stated = getattr(sys.modules[top], "__version__", None)
        return f"library {name} {stated}" if stated else ""
