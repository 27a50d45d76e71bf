"""Live migrations that conductors of release 0.1.0 began, with its names and its format of the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from causeway.store.api import journal
from causeway.store.cell import instances
from tests.functional.servers.conftest import ProcessDiedError
from tests.functional.servers.dying_threads import SOON_NOTICED, THREADS_DIE

from .live_cloud import ONE_NETWORK, LiveCloud
from .test_near_live import elsewhere

CLOUD: dict[str, Any] = {
    "overrides": {
        **SOON_NOTICED["overrides"],
        "simulated": ONE_NETWORK,
        "libvirt": {"live_migration_monitor_interval": 0.0},
    }
}
pytestmark = THREADS_DIE


def inside_a_cell(cloud: LiveCloud, server: Any, operation: Any) -> dict[str, Any]:
    """The memory as 0.1.0 wrote it for a live migration inside a cell."""
    present = operation.data
    chosen = present["selection"]
    _cell, database = cloud.parts.cells.of_server(server.id)
    ports = msgspec.to_builtins(instances.get(database, server.id).network_info)
    same = ["source_host", "source_node", "old_vm_state", "forced", "block_migration", "disk_over_commit", "group"]
    same += ["may_leave_cell", "event", "connector", "attachments", "guest", "is_lost"]
    place = {"host": chosen["host"], "node": chosen["hypervisor_hostname"], "availability_zone": "nova", "ports": ports}
    return {
        **{name: present[name] for name in same},
        "wanted_host": present["requested_host"],
        "place": {**place, "pci_requests": []},
        "refused": present["bound_hosts"],
        "source": present["live_source"],
        "target": present["live_target"],
        "devices": present["live_devices"],
    }


def rewrite(cloud: LiveCloud, server: Any, *, across: bool) -> None:
    """The journal as 0.1.0 would have written it."""
    operation = cloud.moves(server)[-1]
    assert operation.recipe == "live_migration"
    steps = msgspec.to_builtins(operation.steps)
    values: dict[str, Any] = {"recipe_version": 1}
    if across:
        values["recipe"] = "cross_cell_live_migration"
        for step in steps:
            step["step"] = {"ReleaseSource": "LeaveSourceCell"}.get(step["step"], step["step"])
    else:
        values |= {"memory_version": 1, "data": inside_a_cell(cloud, server, operation)}
    with cloud.parts.api_database.write() as connection:
        connection.execute(
            journal.OPERATIONS.update().where(journal.OPERATIONS.c.id == operation.id).values(steps=steps, **values)
        )


@pytest.mark.parametrize(
    ("across", "step"),
    [
        *(
            (False, step)
            for step in ("ChooseTarget", "PrepareTarget", "MigrateGuest", "ArriveAtTarget", "ReleaseSource")
        ),
        *(
            (True, step)
            for step in ("TargetDBSetup", "PrepareTarget", "MigrateGuest", "ArriveAtTarget", "ReleaseSource")
        ),
    ],
)
def test_a_live_migration_of_0_1_0_is_continued(
    cloud: LiveCloud, at_point: Callable[..., None], across: bool, step: str
) -> None:
    server = cloud.boot(flavor="any.small")
    cloud.attach(server, cloud.volume())
    source, memory = cloud.host_of(server), cloud.remember(server, "a line")
    there = elsewhere(cloud, server) if across else cloud.other(source)

    def die() -> None:
        rewrite(cloud, server, across=across)
        raise ProcessDiedError

    at_point(f"live_migration.{step}.do.after", die)
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host) == ("ACTIVE", there)
    assert cloud.memory(server) == memory
    assert cloud.migration(server).status == "completed"
    assert cloud.moves(server)[-1].recipe == "live_migration"
    assert cloud.audit().is_clean
