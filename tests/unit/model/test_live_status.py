"""What a live migration is that came to nothing."""

from __future__ import annotations

import pytest

from causeway.model.migration import live_status_after
from causeway.model.states import MIGRATION_ENDED, MigrationStatus


@pytest.mark.parametrize("cancelled", [True, False])
@pytest.mark.parametrize("ended", sorted(MIGRATION_ENDED))
def test_what_has_ended_stays_so_when_it_is_reported_once_more(ended: MigrationStatus, cancelled: bool) -> None:
    assert live_status_after(ended, cancelled=cancelled) is ended


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (MigrationStatus.ACCEPTED, MigrationStatus.ERROR),
        (MigrationStatus.QUEUED, MigrationStatus.FAILED),
        (MigrationStatus.PREPARING, MigrationStatus.FAILED),
        (MigrationStatus.RUNNING, MigrationStatus.FAILED),
    ],
)
def test_what_continues_fails_or_is_cancelled(before: MigrationStatus, after: MigrationStatus) -> None:
    assert live_status_after(before, cancelled=False) is after
    assert live_status_after(before, cancelled=True) is MigrationStatus.CANCELLED
