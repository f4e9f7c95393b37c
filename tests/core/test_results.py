"""What answers and errors show of the data: keys, unless `samples` says otherwise."""

from __future__ import annotations

from unittest.mock import Mock

from lake.core.redaction import Samples
from lake.core.results import Difference, Differences
from lake.core.snapshots import Snapshot
from lake.errors import KeyViolationError
from lake.refresh.row_edits import key_violation

WRONG = Differences("v", Snapshot({}), 3, 1, 0, (Difference(1, {"id": 7, "name": "secret"}),), ("id",))


def test_differences_show_rows_keys_or_nothing() -> None:
    assert WRONG.sampled(Samples("rows")).samples == (Difference(1, {"id": 7, "name": "secret"}),)
    assert WRONG.sampled(Samples("keys")).samples == (Difference(1, {"id": 7}),)
    assert WRONG.sampled(Samples("off")).samples == ()
    assert WRONG.sampled(Samples("off")).missing == 1


def test_a_broken_key_shows_sample_keys_unless_they_are_off() -> None:
    error = KeyViolationError("The declared primary key (id) of a", [{"id": 7}], "Mend the data.")
    assert "more than one row for: {'id': 7}. Nothing was published. Mend the data." in str(error)
    assert "7" not in str(error.showing(Samples("off")))


def test_a_broken_key_says_where_the_key_comes_from_and_who_can_mend_it() -> None:
    declared = Mock(depends_on_keys=True, key_given=False, key_names=("id",), view="v", sources=("a", "b"))
    assert "the declared primary keys of a, b, has more than one row for: {'id': 7}" in str(key_violation(declared, [(7,)]))
    grouped = Mock(depends_on_keys=False, key_given=False, key_names=("id",), view="v", sources=("a", "b"))
    said = str(key_violation(grouped, [(7,)]))
    assert "derived from its query alone, has more than one row" in said
    assert '"lakejoin rebuild v"' in said
    assert "declared" not in said
