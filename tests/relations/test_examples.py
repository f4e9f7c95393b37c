"""The examples in the docstrings of relations are right: doctests, by the twin (twin.py), without Spark."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import lake.relations

MODULES = [f"lake.relations.{module.name}" for module in pkgutil.iter_modules(lake.relations.__path__)]
WITH_A_FORMULA = {"base", "linear", "joins", "keyed", "null_aware", "additive", "top", "scoped", "source", "budget"}


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
    assert found.attempted > 0 or module.rsplit(".", 1)[1] not in WITH_A_FORMULA


def test_an_example_that_is_wrong_is_found() -> None:
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(verbose=False).run(example, out=lambda _: None).failed == 1
