"""A host that takes part in one move reports the progress of it, and names the migration of another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from causeway import errors
from causeway.conductor.cells.cloud_records import CloudEndpoint
from causeway.conductor.cells.transfers import Transfers
from causeway.context import admin_context
from causeway.model.states import MigrationStatus
from causeway.store.api import migrations
from causeway.store.database import Database
from causeway.virt.live_guest import LiveProgress
from tests.progress_checks import sending_move
from tests.unit.new_databases import new_database


class Services:
    """What the endpoint needs of the conductor's services."""

    def __init__(self, api: Database) -> None:
        self.api = api


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Database]:
    with new_database(tmp_path, "api") as database:
        yield database


def endpoint(api: Database) -> CloudEndpoint:
    services: Any = Services(api)
    nobody: Any = None
    return CloudEndpoint(services, "cell1", nobody, Transfers(api))


@pytest.mark.parametrize("post_copy", [False, True])
def test_the_migration_of_another_move_stays_as_it_is(api: Database, post_copy: bool) -> None:
    (_own, token), (other, _) = sending_move(api), sending_move(api)
    before = migrations.get(api, other.migration_uuid)
    lie = replace(token, migration_uuid=other.migration_uuid)
    progress = LiveProgress(memory_total=100, memory_processed=99, post_copy=post_copy)
    with pytest.raises(errors.TakenOver):
        endpoint(api).report_live_progress(admin_context(), token=lie, progress=progress)
    assert migrations.get(api, other.migration_uuid) == before


def test_the_progress_of_a_host_s_own_migration_is_counted(api: Database) -> None:
    own, token = sending_move(api)
    progress = LiveProgress(memory_total=100, memory_processed=99, post_copy=True)
    endpoint(api).report_live_progress(admin_context(), token=token, progress=progress)
    found = migrations.get(api, own.migration_uuid)
    assert (found.memory_processed_bytes, found.status) == (99, MigrationStatus.RUNNING_POST_COPY)
