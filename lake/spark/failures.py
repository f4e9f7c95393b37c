"""Failures of Spark, Delta Lake and py4j: which exceptions they are, what caused them, and the `LakeError` that reports them.

Every exception that leaves the public API is a `LakeError`. Rooms that need to catch a failure of Spark catch `SPARK_ERRORS`, or
`CALL_ERRORS` where they draw a conclusion about the table that was read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from lake.core.redaction import Samples, is_of_data
from lake.errors import (
    ConcurrencyError,
    DefinitionError,
    EngineError,
    ExpiredError,
    InternalError,
    KeyViolationError,
    LakeError,
    QueryError,
)
from lake.spark.preflight import jar_of

CALL_ERRORS = (PySparkException, Py4JJavaError)
"""What a call of Spark or Delta Lake raises if it fails inside the JVM: Java exceptions, whether PySpark converts them or not."""
SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)
"""The same and a lost JVM, which says nothing about the table or the query of the call."""

_OF_ROWS = re.compile(r"\[([A-Z][A-Z0-9_.]*)\](?:(?!SQLSTATE).)*SQLSTATE: (?:22|38|39|P0)", re.DOTALL)
"""Error conditions about values (a division by zero, an overflow, a cast), of functions, and raised by the query itself."""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*)[A-Z0-9_.]*\]")
_WRAPPERS = ("TASK_WRITE_FAILED", "FAILED_READ_FILE", "FAILED_EXECUTE_UDF", "INTERNAL_ERROR", "FAILED_JOB")
"""Error conditions that only say that something inside failed. FAILED_READ_FILE.FILE_NOT_EXIST says enough."""
_TASK = re.compile(r"most recent failure: Lost task [^\n]*?\(TID \d+\) \([^)\n]*\): (?P<cause>.*)", re.DOTALL)
_JAVA_CLASS = re.compile(r"^(?:[a-z_][\w$]*\.)+[A-Z][\w$]*(?:: |$)")
_PYTHON_ERROR = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Warning|Exit|Interrupt)): (.*)$")
_NO_FILE_SYSTEM = re.compile(r'No (?:Abstract)?FileSystem (?:for scheme:? "?|configured for scheme: )([\w+.-]+)')
_MISSING_CLASS = re.compile(r"(?:NoClassDefFoundError|ClassNotFoundException)(?:: (?:Class )?([\w./$]+))?|Class ([\w.$]+) not found")
_PYTHON = "a Python function"
_LONGEST = 300
_DEEPEST = 20
_JAR = "a jar is missing"
_ADD_JAR = (
    "Add it to `spark.jars`, or its coordinates to `spark.jars.packages`, under `spark:`; the guide on clusters has those for S3. "
    '"lakejoin doctor" then tries every table.'
)
_JVM_ENDED = "the JVM of Spark ended or is not reachable"
_REMEDIES = (
    (_JVM_ENDED, "Start again in a new process; if it was killed for its memory, set `spark.driver.memory` under `spark:`."),
    ("no space left", "Free space on that disk, or name another one with `spark.local.dir` under `spark:`. Then run it again."),
    ("read-only", "Write to a place that is not read-only, or remount it. Then run it again."),
    ("permission denied", "Give the user that runs Lakejoin the permission to read and write there. Then run it again."),
    ("access denied", "Give the user that runs Lakejoin the permission to read and write there. Then run it again."),
    (_JAR, _ADD_JAR),
    ("out of memory", "Set a larger `spark.driver.memory` (or `spark.executor.memory`) under `spark:`. Then run it again."),
)
_AGAIN = 'Run it again; "lakejoin --debug" shows the stack trace.'


def of_rows(error: Exception) -> str:
    """Spark's error condition of a failure that values of rows cause; empty if the failure has another cause."""
    found = None if "LAKEJOIN_INTERNAL" in str(error) else _OF_ROWS.search(str(error))
    return found[1] if found else ""


def java_class(error: BaseException) -> str:
    """The full name of the Java exception of a failure; empty if there is none."""
    java: Any = _java(error)
    return "" if java is None else str(java.getClass().getName())


def is_transient(error: Exception) -> bool:
    """Whether the same call may succeed later: the storage or the query failed, or another writer was first."""
    if isinstance(error, ExpiredError | DefinitionError | KeyViolationError):
        return False
    caused = isinstance(error.__cause__, SPARK_ERRORS)
    return not isinstance(error, LakeError) or isinstance(error, QueryError | ConcurrencyError | EngineError) or caused


def root_cause(error: BaseException) -> str:
    """The cause of a failure in one line, without stack traces and py4j's words. It may quote values of the data."""
    if isinstance(error, ConnectionError | Py4JNetworkError):
        return _JVM_ENDED
    messages = [message for message in map(_unwrapped, _messages(error)) if message]
    named = next((m for m in messages if (c := _CONDITION.match(m)) and (c[1] not in _WRAPPERS or "FILE_NOT_EXIST" in c[0])), None)
    return _one_line(named or (messages[-1] if messages else type(error).__name__))


def reason(error: BaseException) -> str:
    """The cause of a failure in one line, without values of the data: of an error in the data only its name."""
    text = root_cause(error)
    condition = _CONDITION.match(text)
    if condition and any(is_of_data(message) for message in _messages(error) if condition[0] in message):
        return condition[0]
    return text


def as_lake_error(error: Exception, doing: str, shown: Samples = Samples("keys"), outcome: str = "") -> LakeError:  # noqa: B008
    """Any exception as a LakeError.

    `doing`: the subject of the sentence, such as "Reading view 'q20'"; `shown`: which values may be quoted; `outcome`: a sentence about
    what was or was not written.
    """
    if isinstance(error, LakeError):
        return error
    text = shown.text(root_cause(error))
    if not isinstance(error, SPARK_ERRORS):
        named = f"{type(error).__name__}: {text}" if str(error) else type(error).__name__
        return InternalError(f'{doing} failed unexpectedly ({named}). Please report it; "lakejoin --debug" shows the stack trace.')
    failed = f"{doing} failed: {text}. {outcome}".strip()
    if "LAKEJOIN_INTERNAL" in str(error):
        return InternalError(f"{failed} Please report it with the view's definition.")
    if of_rows(error) or text.startswith(_PYTHON):
        return QueryError(f"{failed} Correct the data or the query.")
    remedy = next((remedy for words, remedy in _REMEDIES if words.lower() in text.lower()), _AGAIN)
    return EngineError(f"{failed} {remedy}")


def lacks_a_jar(error: BaseException) -> bool:
    """Whether the failure is that of a class that was not found, which says nothing about the table or the query of the call."""
    return _JAR in root_cause(error)


def advice(error: BaseException, otherwise: str) -> str:
    """What to do about a table that can't be opened: add the jar, if one is missing."""
    return _ADD_JAR if lacks_a_jar(error) else otherwise


@contextmanager
def reported(doing: str, shown: Callable[[], Samples] = lambda: Samples("keys")) -> Iterator[None]:
    """Raise the failures of Spark within as LakeErrors. `shown` is asked only after a failure."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise as_lake_error(error, doing, safely(shown)) from error


def safely(shown: Callable[[], Samples]) -> Samples:
    """How much may be shown; nothing if that can't be determined because Spark fails again."""
    try:
        return shown()
    except (LakeError, *SPARK_ERRORS):
        return Samples("off")


def _messages(error: BaseException) -> Iterator[str]:
    """The messages of the exception and of its Java causes, the outermost first; the class name of one without a message."""
    java: Any = _java(error)
    if java is None:
        yield "" if isinstance(error, Py4JJavaError) else str(error)
        return
    try:
        for _ in range(_DEEPEST):
            name, message = str(java.getClass().getName()), java.getMessage()
            yield _java_text(name, str(message) if message is not None else "")
            java = java.getCause()
            if java is None:
                return
    except SPARK_ERRORS:  # the JVM ended meanwhile
        if not isinstance(error, Py4JJavaError):
            yield str(error)


def _java(error: BaseException) -> Any:
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def _java_text(name: str, message: str) -> str:
    missing = _MISSING_CLASS.search(f"{name}: {message}")
    if missing and not message.startswith("Could not initialize"):
        found = (missing[1] or missing[2] or message).replace("/", ".")
        return f"class {found} was not found: {_JAR}{jar_of(found)}"
    unknown = _NO_FILE_SYSTEM.search(message)
    if unknown:
        return f"Hadoop knows no file system for {unknown[1]}: {_JAR}{jar_of(unknown[1])}"
    if name.endswith("OutOfMemoryError"):
        return f"the JVM ran out of memory ({message})"
    if name.endswith(("AccessDeniedException", "AccessControlException")) and "denied" not in message.lower():
        return f"permission denied: {message}"
    return message or name.rpartition(".")[2]


def _unwrapped(message: str) -> str:
    """A message without Spark's text about the job and py4j's about the call; of a failure in a Python function, the exception only."""
    task = _TASK.search(message)
    text = task["cause"].strip() if task else message.strip()
    if task:
        head, _, rest = text.partition("\n")
        java = _JAVA_CLASS.match(head)
        text = _java_text(java[0].removesuffix(": "), head[java.end() :] + ("\n" + rest if "Traceback" in rest else "")) if java else text
    if "Traceback (most recent call last)" in text:
        lines = [
            line for line in text.splitlines() if _PYTHON_ERROR.match(line) and not line.startswith(("Driver stacktrace", "Caused by"))
        ]
        found = _PYTHON_ERROR.match(lines[-1]) if lines else None
        return f"{_PYTHON} raised {found[1]}: {found[2]}" if found else f"{_PYTHON} failed"
    if text.startswith("An error occurred while "):
        text = text.partition("\n")[2].strip().removeprefix("Trace:").strip()
    return _JAVA_CLASS.sub("", text)


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    with suppress(IndexError):
        return lines[0].removesuffix(".")[:_LONGEST]
    return text
