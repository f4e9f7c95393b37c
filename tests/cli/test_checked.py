"""What `lakejoin check` prints of lengths of time."""

from __future__ import annotations

import pytest

from lake.core.formatting import length_text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 seconds"),
        (0.25, "0.25 seconds"),
        (59.9, "59 seconds"),
        (61, "1 minute 1 second"),
        (5400, "1 hour 30 minutes"),
        (7 * 86_400, "7 days"),
        (86_400 + 30, "1 day 30 seconds"),
        (-7200, "-2 hours"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(seconds: float, said: str) -> None:
    assert length_text(seconds) == said
