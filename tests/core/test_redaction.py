"""Sensitive values are shown as keyed hashes, and messages of Spark without the values that they quote."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from lake.core.redaction import Samples

HIDING = Samples("rows", frozenset(["mail"]))


def test_a_sensitive_value_is_a_hash_that_nobody_can_find_by_guessing() -> None:
    shown = HIDING({"id": 1, "mail": "a@b"}, ["id"])
    assert shown is not None
    assert shown["id"] == 1
    assert len(shown["mail"]) == 1 + 24
    assert shown["mail"][1:] not in hashlib.sha256(b"a@b").hexdigest()


def test_equal_values_have_equal_hashes_within_a_process_only() -> None:
    one, same, other = (HIDING({"mail": value}, []) for value in ("a@b", "a@b", "c@d"))
    assert one == same != other
    code = "from lake.core.redaction import Samples; print(Samples('rows', ['mail'])({'mail': 'a@b'}, [])['mail'])"
    elsewhere = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert one is not None
    assert elsewhere != one["mail"]


def test_of_an_error_in_a_function_only_its_name_is_shown() -> None:
    message = "[FAILED_EXECUTE_UDF] User defined function failed due to: secret. SQLSTATE: 39000"
    assert "secret" not in Samples("keys").text(message)
    assert "[FAILED_EXECUTE_UDF]" in Samples("off").text(message)
    assert Samples("rows").text(message) == message


def test_quoted_words_are_hidden_and_apostrophes_are_no_quotes() -> None:
    assert Samples("keys").text("It can't be read: 'secret' isn't there") == "It can't be read: '...' isn't there"
