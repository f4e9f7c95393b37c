"""A function that a query calls is part of the view's definition: one that is registered again, with other code, is another definition."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark import cloudpickle

from lake import open_lake
from lake.catalyst.user_functions import UserFunction
from lake.config.models import Config
from lake.errors import DefinitionChangedError, DefinitionError
from lake.views.function_versions import UnreadableError, function_versions, python_digest
from lake.views.user_functions import load_function
from tests.lakes import TestLake

LIMIT = 3


def adding(n: Any) -> Any:
    return lambda x, y=2: x + n + y


def test_the_same_code_elsewhere_is_the_same_function() -> None:
    def one(x: int) -> int:
        """What it does."""
        return x + 1

    def other(x: int) -> int:
        """What it does."""
        return x + 1  # said elsewhere, under another name

    assert python_digest(one) == python_digest(other)


class Base:
    step = 1


class Scale(Base):
    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, x: int) -> int:
        return x * self.by + self.step


def guarded(x: int) -> int:
    return x if x < LIMIT else 0


def _calls(inner: Callable[[int], int]) -> Callable[[int], int]:
    def outer(x: int) -> int:
        return inner(x)

    return outer


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "a constant": (lambda x: x + 1, lambda x: x + 2),
    "a constant of another type": (lambda x: x + 1, lambda x: x + 1.0),
    "a sign of zero": (lambda x: x + 0.0, lambda x: x + -0.0),
    "an operator": (lambda x: x + 1, lambda x: x - 1),
    "the function that it calls": (lambda x: abs(x), lambda x: int(x)),
    "a captured value": (adding(1), adding(2)),
    "a captured list": (adding([1, 2]), adding([2, 1])),
    "a captured set": (adding({"a", "b"}), adding({"a", "c"})),
    "a value of a dict": (adding({"a": 1}), adding({"a": 2})),
    "an order of keys": (adding({"a": 1, "b": 2}), adding({"b": 2, "a": 1})),
    "a field of an object": (Scale(2), Scale(3)),
    "a compiled pattern": (adding(re.compile("a")), adding(re.compile("b"))),
    "the code of a function that it captures": (_calls(lambda x: x + 1), _calls(lambda x: x + 2)),
    "a default": (lambda x, y=1: x + y, lambda x, y=2: x + y),
    "a default by keyword": (lambda x, *, y=1: x + y, lambda x, *, y=2: x + y),
    "an exception that it catches": (lambda x: [y for y in x if y], lambda x: {y for y in x if y}),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_functions_that_differ_in_it_have_other_digests(what: str) -> None:
    one, other = DIFFERENT[what]
    assert python_digest(one) != python_digest(other)
    assert python_digest(one) == python_digest(one)


def test_a_global_and_the_class_of_an_object_belong_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = python_digest(guarded), python_digest(Scale(2))
    monkeypatch.setitem(globals(), "LIMIT", 4)
    monkeypatch.setattr(Base, "step", 2)
    assert python_digest(guarded) != before[0]
    assert python_digest(Scale(2)) != before[1]


def test_functions_that_call_each_other_have_a_digest() -> None:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    assert python_digest(even) != python_digest(odd)


MODULES = {
    "a cached helper": (
        "import functools\n@functools.lru_cache\ndef helper(x):\n    return x + {}\ndef f(x):\n    return helper(x)\n",
        "",
    ),
    "an import inside the function": (
        "def f(x):\n    from own_helpers import plus\n    return plus(x)\n",
        "def plus(x):\n    return x + {}\n",
    ),
    "a constant of an imported module": (
        "import own_helpers\ndef f(x):\n    return own_helpers.plus(x)\n",
        "from math import pi\nR = {}\ndef plus(x):\n    return x + R\n",
    ),
    "what is named by a text": ("import own_helpers\ndef f(x):\n    return getattr(own_helpers, 'R') + x\n", "R = {}\n"),
    "a default of a dict": (
        "import collections\nD = collections.defaultdict(lambda: {})\ndef f(x):\n    return D[x]\n",
        "",
    ),
    "a missing key of a dict": (
        "class D(dict):\n    def __missing__(self, k):\n        return {}\nd = D()\ndef f(x):\n    return d[x]\n",
        "",
    ),
    "a method of a tuple": (
        "import typing\nclass P(typing.NamedTuple):\n    a: int\n    def g(self):\n        return {}\n"
        "p = P(1)\ndef f(x):\n    return p.g()\n",
        "",
    ),
    "a method of an enumeration": (
        "import enum\nclass E(enum.StrEnum):\n    A = 'a'\n    def g(self):\n        return {}\ndef f(x):\n    return E(x).g()\n",
        "",
    ),
    "an attribute of the function": ("def f(x):\n    return x * f.rate\nf.rate = {}\n", ""),
    "the body under a library's name": (
        "import functools, math\n@functools.wraps(math.floor)\ndef f(x):\n    return x + {}\n",
        "",
    ),
    "a class of fields": (
        "from dataclasses import *\n@dataclass\nclass P:\n    a: int = {}\n    b: list = field(default_factory=list)\n"
        "def f(x):\n    return P().a + x\n",
        "",
    ),
    "an abstract class": (
        "import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def g(self): ...\n"
        "class B(A):\n    def g(self):\n        return {}\ndef f(x):\n    return B().g()\n",
        "",
    ),
}
"""Text of a module with the function, and of one that it imports; {} is what changes."""


@pytest.mark.parametrize("what", MODULES)
def test_a_change_is_noticed_and_a_comment_is_not(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of two folders, as `function:` views load them, with a logger and a name of the module."""
    found = []
    for number, (value, comment) in enumerate([("1", ""), ("1", "# a comment\n"), ("2", "")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        text, helpers = MODULES[what]
        logged = "import logging\nlog = logging.getLogger(__name__)\nname = __name__\n"
        text = text.replace("def f(x):\n", "def f(x):\n    log, name\n")
        (folder / "own.py").write_text(comment + logged + text.replace("{}", value))
        (folder / "own_helpers.py").write_text(helpers.replace("{}", value))
        config = Config.model_validate({"views": {"v": {"function": "own:f"}}, "directory": folder})
        with monkeypatch.context() as patched:
            patched.syspath_prepend(str(folder))
            sys.modules.pop("own_helpers", None)
            found.append(python_digest(load_function(config.view("v"), config)))
            found.append(python_digest(cloudpickle.loads(cloudpickle.dumps(load_function(config.view("v"), config)))))
    sys.modules.pop("own_helpers", None)
    assert found[0] == found[1] == found[2] == found[3]
    assert found[4] == found[5] != found[0]


def test_libraries_beside_the_configuration_stay_imported(tmp_path: Path) -> None:
    """Where the environment lies in the folder of lakejoin.yml, as uv makes it."""
    packages = tmp_path / ".venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "a_library_of_a_test.py").write_text("class Frame: ...\n")
    (tmp_path / "own.py").write_text(
        f"import sys\nsys.path.append({str(packages)!r})\nimport a_library_of_a_test\ndef f(a):\n    return a\n"
    )
    config = Config.model_validate({"views": {"v": {"function": "own:f"}}, "directory": tmp_path})
    try:
        load_function(config.view("v"), config)
        assert "a_library_of_a_test" in sys.modules
    finally:
        sys.path.remove(str(packages))
        sys.modules.pop("a_library_of_a_test", None)


def test_what_can_not_be_read_is_an_error() -> None:
    lock = threading.Lock()
    with pytest.raises(UnreadableError, match=r"_thread\.lock"):
        python_digest(lambda x: lock)


def test_the_digest_is_the_same_in_another_process(tmp_path: Path) -> None:
    """With another seed of hashes, from another file, as a script and as a module that is imported."""
    text = "import math, json\nwords = {'a', 'b', 'c', 'd'}\ndef f(x):\n"
    text += "    return json.dumps(sorted(words)) if x in {'u', 'v', 'w'} else math.sqrt(x)\n"
    shown = "from lake.views.function_versions import python_digest\nprint(python_digest(f))\n"
    found = set()
    for seed, folder in (("1", "one"), ("2", "other")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"of_{folder}.py").write_text("\n" * int(seed) + text)
        (tmp_path / folder / "main.py").write_text(f"{text if seed == '1' else f'from of_{folder} import f'}\n{shown}")
        command = [sys.executable, str(tmp_path / folder / "main.py")]
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
        found.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1


def test_a_declared_version_is_taken_whatever_the_code_is() -> None:
    one, other = UserFunction("plus", "int", b"broken"), UserFunction("plus", "int", None, "1234")
    assert function_versions("v", [one], {"PLUS": "v1"}) == function_versions("v", [other], {"plus": "v1"})
    assert function_versions("v", [one], {"plus": "v1"}) != function_versions("v", [one], {"plus": "v2"})
    with pytest.raises(DefinitionError, match=r"calls the function 'plus', whose code can't be read .* `functions: \{plus: v1\}`"):
        function_versions("v", [one], {"minus": "v1"})
    with pytest.raises(DefinitionError, match="runs outside Python and its class can't be found"):
        function_versions("v", [UserFunction("plus", "int")], {})


@pytest.fixture
def simple(lake: TestLake) -> TestLake:
    lake.table("a", "SELECT * FROM VALUES (1, 10), (2, 20), (NULL, 20) AS a(id, v)")
    return lake


@pytest.fixture
def added(lake: TestLake) -> TestLake:
    lake.table("x", "SELECT * FROM VALUES (1, 1), (2, 2) AS x(id, v)", key=["id"])
    lake.view("v", "SELECT id, plus_of_a_test(v) AS p FROM x WHERE v < (SELECT max(plus_of_a_test(v)) FROM x)")
    return lake


def test_a_function_that_is_registered_again_is_another_definition(added: TestLake) -> None:
    """The same with an open lakehouse, and with one that is opened after it; nothing is written until the view is rebuilt."""
    register = added.spark.udf.register
    register("plus_of_a_test", lambda x: x + 1, "int")
    opened = added.open
    opened.refresh("v")
    register("plus_of_a_test", lambda x: x + 1, "int")
    added.sql("UPDATE {x} SET v = 5 WHERE id = 2")
    assert opened.refresh("v").mode != "build"
    register("plus_of_a_test", lambda x: x + 100, "int")
    added.sql("UPDATE {x} SET v = 6 WHERE id = 2")
    for lakehouse in (opened, added.open):
        with pytest.raises(DefinitionChangedError, match="the function plus_of_a_test changed"):
            lakehouse.refresh("v")
        with pytest.raises(DefinitionChangedError):
            lakehouse.verify("v")
        added._open = None
    opened.rebuild("v")
    assert {row.p for row in opened.read("v").collect()} == {101, 106}
    assert opened.verify("v").exact
    register("plus_of_a_test", lambda x: x + 100, "bigint")
    with pytest.raises(DefinitionChangedError):
        opened.refresh("v")


def test_a_function_that_is_registered_late_is_found(added: TestLake) -> None:
    added.view("w", "SELECT id, late_of_a_test(v) AS p FROM x")
    opened = added.open
    with pytest.raises(DefinitionError, match="late_of_a_test"):
        opened.refresh("w")
    added.spark.udf.register("late_of_a_test", lambda x: x, "int")
    assert opened.refresh("w").mode == "build"


def test_a_comment_in_a_views_function_is_no_other_definition(simple: TestLake, tmp_path: Path) -> None:
    text = "import pyspark.sql.functions as F\n@F.udf('int')\ndef plus(v):\n    return v + 1\n"
    text += "def big(a):\n    return a.select('id', plus('v').alias('v'))\n"
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump({**simple.config, "views": {"v": {"function": "of_comments:big"}}}))
    opened = open_lake(tmp_path / "lakejoin.yml", spark=simple.spark)
    modes = []
    for written in (text, "# Here is a comment.\n" + text, text.replace("v + 1", "v + 2")):
        (tmp_path / "of_comments.py").write_text(written)
        simple.sql("UPDATE {a} SET v = v + 1")
        try:
            modes.append(opened.refresh("v").mode)
        except DefinitionChangedError as error:
            modes.append(str(error))
    assert modes[:2] == ["build", "incremental"]
    assert "the function plus changed" in modes[2]


def test_a_function_in_sql_is_what_its_body_says(simple: TestLake) -> None:
    define = "CREATE OR REPLACE TEMPORARY FUNCTION sql_of_a_test(x INT) RETURNS INT RETURN x + {}"
    simple.spark.sql(define.format(1))
    simple.view("v", "SELECT id, sql_of_a_test(v) AS p FROM a")
    assert simple.refresh("v").mode == "build"
    simple.spark.sql(define.format(2))
    with pytest.raises(DefinitionChangedError, match="the query changed"):
        simple.refresh("v")


def test_a_function_of_the_jvm_has_the_digest_of_its_class(simple: TestLake, module: Callable[[str, str], None]) -> None:
    """Spark's own vector_to_array is a Scala function like those that users write."""
    text = "from pyspark.ml.functions import array_to_vector, vector_to_array\nimport pyspark.sql.functions as F\n"
    text += "def f(a):\n    return a.select('id', vector_to_array(array_to_vector(F.array(F.col('v').cast('double')))).alias('v'))\n"
    module("of_the_jvm", text)
    simple.view("v", function="of_the_jvm:f")
    simple.refresh("v")
    simple.sql("UPDATE {a} SET v = 7 WHERE id = 1")
    simple._open = None
    assert simple.refresh("v").mode == "incremental"
    assert simple.open.verify("v").exact
