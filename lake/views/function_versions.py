"""Digests of the functions that a view's query calls: code, constants, defaults, and everything that the code refers to.

A Python function is what its bytecode, its default and captured values, and the globals that it names are; of a library, the name and the
version. Where it stands in a file, its name and its comments are no part of it. The version of Python is, since bytecode depends on it.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import hashlib
import inspect
import pickle
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
_OF_CLASSES = ("__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__")


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
        why = f"{type(error).__name__}: {error}"
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
        self._met: dict[int, int] = {}
        self._alive: list[Any] = []  # an id belongs to another object once its own is gone

    def of(self, value: Any) -> Iterator[bytes]:
        """The parts of a value. Raises UnreadableError."""
        if isinstance(value, _PLAIN):
            yield f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")
            return
        if id(value) in self._met:
            yield f"again {self._met[id(value)]}".encode()
            return
        self._met[id(value)] = len(self._met)
        self._alive.append(value)
        match value:
            case types.ModuleType():
                yield from self._module(value)
            case types.FunctionType():
                yield from self._function(value)
            case types.CodeType():
                yield from self._code(value)
            case type():
                yield from self._class(value)
            case types.MethodType():
                yield from self._all("method", value.__func__, value.__self__)
            case staticmethod() | classmethod():
                yield from self._all(type(value).__name__, value.__func__)
            case property():
                yield from self._all("property", value.fget, value.fset, value.fdel)
            case types.BuiltinFunctionType():
                owner = value.__self__ if not isinstance(value.__self__, types.ModuleType) else None
                yield from self._all(f"builtin {value.__module__}.{value.__qualname__}", owner)
            case tuple() | list():
                yield from self._all(_type_name(value), *value)
            case set() | frozenset():
                yield from self._all(_type_name(value), *sorted(_apart(each) for each in value))
            case dict():
                yield from self._all(_type_name(value), *(x for pair in value.items() for x in pair))
            case enum.Enum():
                yield from self._all("enum", type(value), value.name)
            case _:
                yield from self._object(value)

    def _all(self, kind: str, *values: Any) -> Iterator[bytes]:
        yield f"{kind} {len(values)}".encode()
        for value in values:
            yield from self.of(value)

    def _module(self, module: types.ModuleType) -> Iterator[bytes]:
        """A library by its version, a user's own module by its text and by those that it imports."""
        known = _library(module.__name__)
        if known:
            yield known.encode()
            return
        file = getattr(module, "__file__", None)
        if not file or not Path(file).is_file():
            raise UnreadableError(f"the module {module.__name__} has neither a version nor a file")
        yield hashlib.sha256(Path(file).read_bytes()).digest()
        for value in list(vars(module).values()):
            owner = value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
            if owner is not None and owner is not module and not _library(owner.__name__):
                yield from self.of(owner)

    def _function(self, function: types.FunctionType) -> Iterator[bytes]:
        known = _library(function.__module__)
        if known:
            yield f"{known} {function.__qualname__}".encode()
            yield from self._all("captured", *(cell.cell_contents for cell in function.__closure__ or ()))
            return
        yield from self._all("function", function.__code__, function.__defaults__, function.__kwdefaults__)
        for name in function.__code__.co_freevars:
            yield name.encode()
        for cell in function.__closure__ or ():
            yield from self._cell(cell)
        for name in sorted(set(_globals(function.__code__))):
            yield name.encode()
            if name in function.__globals__:
                yield from self.of(function.__globals__[name])

    def _cell(self, cell: types.CellType) -> Iterator[bytes]:
        try:
            yield from self.of(cell.cell_contents)
        except ValueError:  # empty
            yield b"empty"

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
            if name not in _OF_CLASSES and not inspect.isgetsetdescriptor(value) and not inspect.ismemberdescriptor(value):
                yield name.encode()
                yield from self.of(value)

    def _object(self, value: Any) -> Iterator[bytes]:
        """Another object, by what it would be pickled as."""
        try:
            reduced = copyreg.dispatch_table[type(value)](value) if type(value) in copyreg.dispatch_table else value.__reduce_ex__(4)
        except (TypeError, pickle.PicklingError) as error:
            raise UnreadableError(f"it refers to an object of {type(value).__module__}.{type(value).__qualname__}: {error}") from error
        if isinstance(reduced, str):
            yield from self._all(f"object {type(value).__module__}.{reduced}")
            return
        parts = [list(x) if isinstance(x, Iterator) else x for x in reduced]
        yield from self._all(f"object {type(value).__qualname__}", *parts)


def _apart(value: Any) -> bytes:
    """One value's digest, by which the values of a set have an order."""
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in _Parts().of(value))).digest()


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _globals(code: types.CodeType) -> Iterator[str]:
    """The global names that the code, and the code inside it, refers to."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBALS:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals(constant)


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
