"""Loads the Python function of a view, from the folder of its configuration or from the installed modules.

A file of the configuration's folder is loaded under a name that is made from its path and its text. So two lakehouses can each have a
`my_views.py`, and a file that was edited is loaded again.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value

from lake.config.models import Config, ViewConfig
from lake.errors import ConfigError

_PREFIX = "lakejoin_"
_importing = threading.RLock()
"""Held while sys.path is changed, which is one for all threads."""


def load_function(view: ViewConfig, config: Config) -> Any:
    """The Python function of a view. Raises ConfigError where it can't be imported."""
    assert view.function is not None
    module_name, function_name = view.function.split(":")
    directory = config.directory.resolve()
    try:
        with _importable(directory):
            return getattr(_module(directory, module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"`function: {view.function}` can't be loaded from {directory} or the Python path: {error}.") from error


def _module(directory: Path, name: str) -> ModuleType:
    """The module of this name: that of the folder, where it has one, else an installed one."""
    top, *below = name.split(".")
    if (file := directory / f"{top}.py").is_file() and not below:
        return _loaded(file)
    if (file := directory / top / "__init__.py").is_file():
        package = _loaded(file)
        return importlib.import_module(".".join([package.__name__, *below]))
    if (file := directory.joinpath(top, *below).with_suffix(".py")).is_file():
        return _loaded(file)
    return importlib.import_module(name)


def _loaded(file: Path) -> ModuleType:
    """The module of a file, loaded once for each text that the file has had."""
    digest = hashlib.sha256(str(file).encode() + b"\0" + file.read_bytes()).hexdigest()[:16]
    name = f"{_PREFIX}{digest}_{file.parent.name if file.stem == '__init__' else file.stem}"
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, file)
    if found is None or not isinstance(found.loader, SourceLoader):
        raise ImportError(f"{file} is not a Python module")
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    try:
        # not exec_module: the cached bytecode of a file that was edited twice within a second may be that of the first text
        exec(found.loader.source_to_code(file.read_bytes(), str(file)), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    # a Python worker of Spark has no module of this name
    register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def _beside(file: Path, directory: Path) -> bool:
    """Whether the folder has this file as its own, not as one of libraries installed in an environment below it."""
    return file.is_relative_to(directory) and not {"site-packages", "dist-packages"} & {*file.parts}


@contextmanager
def _importable(directory: Path) -> Iterator[None]:
    """Within it, modules of the folder can be imported. They leave sys.modules afterwards: another folder may have the same names."""
    with _importing:
        if str(directory) in sys.path:
            yield
            return
        before = {name.split(".")[0] for name in list(sys.modules)}
        sys.path.insert(0, str(directory))
        try:
            yield
        finally:
            sys.path.remove(str(directory))
            for name, module in list(sys.modules.items()):
                file = getattr(module, "__file__", None)
                own = name.split(".")[0] not in before and not name.startswith(_PREFIX)
                if own and file is not None and _beside(Path(file), directory):
                    del sys.modules[name]


def forget_functions(config: Config) -> None:
    """Forget the loaded modules of the configuration's folder, so that functions are loaded again with all that they import."""
    with _importing:
        directory = config.directory.resolve()
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if name.startswith(_PREFIX) and file is not None and _beside(Path(file), directory):
                del sys.modules[name]
