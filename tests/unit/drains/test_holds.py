"""An owner's hold is read as it was meant, or the server stays."""

from __future__ import annotations

from datetime import datetime

import pytest

from causeway import errors
from causeway.model.holds import PROPERTY, held_until


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2027-03-05", datetime(2027, 3, 5)),
        ("2027-03-05T18:00", datetime(2027, 3, 5, 18)),
        (" 2027-03-05T18:00:00Z ", datetime(2027, 3, 5, 18)),
        ("2027-03-05T18:00:00+01:00", datetime(2027, 3, 5, 17)),
    ],
)
def test_dates_and_moments_are_read_as_meant(text: str, moment: datetime) -> None:
    assert held_until({PROPERTY: text}) == moment


def test_who_has_none_may_go() -> None:
    assert held_until({"hold": "2027-03-05"}) is None


@pytest.mark.parametrize("text", ["", "next week", "5.3.2027", "2027-13-01"])
def test_what_is_no_date_is_reported_and_not_passed_over(text: str) -> None:
    with pytest.raises(errors.BadRequest, match="is no date"):
        held_until({PROPERTY: text})
