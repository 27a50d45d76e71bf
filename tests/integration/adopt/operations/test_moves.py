"""Moves of servers whose guests run as Nova started them, from disks on Nova's base images."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.functional.processes.own_process import until
from tests.integration.adopt import outside
from tests.integration.adopt.answers import PATIENCE, await_status
from tests.integration.adopt.operations.taken import TakenCloud, tries

pytestmark = pytest.mark.timeout(1200)


@tries("resize", "confirmResize")
def test_a_server_is_resized_in_its_cell(taken: TakenCloud) -> None:
    uuid = taken.server("resized")
    before, here = taken.state(uuid), taken.host(uuid)
    taken.act(uuid, "resize", {"flavorRef": "gen1.large"}, status="VERIFY_RESIZE")
    taken.act(uuid, "confirmResize", status="ACTIVE")
    assert taken.host(uuid) == taken.cloud.nova.neighbour(here)
    taken.check_has_booted(uuid, before)
    assert "<vcpu placement='static'>2</vcpu>" in outside.guest_of(taken.cloud, uuid).definition


@tries("revertResize")
def test_a_resize_with_ephemeral_and_swap_disks_is_reverted(taken: TakenCloud) -> None:
    """They are on base images of Nova's, too."""
    uuid = taken.server("reverted")
    before, here = taken.state(uuid), taken.host(uuid)
    taken.act(uuid, "resize", {"flavorRef": "gen1.more"}, status="VERIFY_RESIZE")
    there = await_status(taken.adopted.admin, uuid, "VERIFY_RESIZE").compute_host
    assert there == taken.cloud.nova.neighbour(here)
    taken.act(uuid, "revertResize", status="ACTIVE")
    assert taken.host(uuid) == here
    taken.check_has_booted(uuid, before)


@tries("migrate")
def test_a_server_on_a_volume_is_migrated(taken: TakenCloud) -> None:
    uuid = taken.server("migrated")
    before, here = taken.state(uuid), taken.host(uuid)
    taken.act(uuid, "migrate", admin=True, status="VERIFY_RESIZE")
    taken.act(uuid, "confirmResize", status="ACTIVE")
    assert taken.host(uuid) == taken.cloud.nova.neighbour(here)
    taken.check_has_booted(uuid, before)


@tries("shelve", "shelveOffload", "unshelve")
def test_a_server_is_shelved_and_unshelved(taken: TakenCloud) -> None:
    uuid = taken.server("put away")
    before, ports = taken.state(uuid), set(taken.adopted.ports(uuid))
    taken.act(uuid, "shelve")
    found = until(
        lambda: taken.adopted.admin.compute.get_server(uuid),
        lambda found: found.status.startswith("SHELVED") and found.task_state is None,
        f"{uuid} to be shelved",
        PATIENCE,
    )
    if found.status == "SHELVED":
        taken.act(uuid, "shelveOffload", admin=True, status="SHELVED_OFFLOADED")
    assert uuid not in {guest.uuid for guest in outside.guests(taken.cloud)}
    taken.act(uuid, "unshelve", status="ACTIVE")
    taken.await_boot(uuid, before.newest)
    assert set(taken.adopted.ports(uuid)) == ports


@tries("os-migrateLive", "GET /migrations/{migration_id}")
def test_a_server_moves_live_in_its_cell_and_then_to_another(taken: TakenCloud) -> None:
    """A guest of the other cell may have its name: Nova numbered the servers of each cell from one."""
    uuid, hosts = taken.server("live"), taken.cloud.nova.hosts
    here = taken.host(uuid)
    elsewhere = next(host for host, cell in hosts.items() if cell != hosts[here])
    for target in (taken.cloud.nova.neighbour(here), elsewhere):
        before = taken.state(uuid)
        wanted = {"host": target, "block_migration": "auto"}
        taken.act(uuid, "os-migrateLive", wanted, admin=True, status="ACTIVE")
        assert taken.host(uuid) == target
        taken.check_runs_on(uuid, replace(before, name=outside.guest_of(taken.cloud, uuid).name))
    migrations = taken.call("GET", f"/os-migrations?instance_uuid={uuid}", admin=True)["migrations"]
    assert {each["status"] for each in migrations} == {"completed"}


@tries("evacuate")
def test_a_server_is_evacuated_from_a_host_that_died(taken: TakenCloud) -> None:
    """Its compute service is killed, and destroys the guest when it is back. All other guests of the host run on.

    The server is off then, as in Nova since 2.95.
    """
    uuid, adopted = taken.server("evacuated"), taken.adopted
    here = taken.host(uuid)
    others = [guest for guest in outside.guests(taken.cloud) if guest.host == here and guest.uuid != uuid]
    ports = set(taken.adopted.ports(uuid))
    (service,) = adopted.admin.compute.services(binary="nova-compute", host=here)
    adopted.processes.pop(here).kill()
    try:
        adopted.admin.compute.update_service_forced_down(service, here, "nova-compute", True)
        taken.act(uuid, "evacuate", {"host": taken.cloud.nova.neighbour(here)}, admin=True, status="SHUTOFF")
    finally:
        adopted.start_role("compute", here)
        adopted.admin.compute.update_service_forced_down(service, here, "nova-compute", False)
    until(
        lambda: [guest.host for guest in outside.guests(taken.cloud) if guest.uuid == uuid],
        [taken.cloud.nova.neighbour(here)].__eq__,
        f"the guest of {uuid} on {here} to be destroyed",
        PATIENCE,
    )
    # Its disk is that of the image again.
    taken.act(uuid, "os-start", status="ACTIVE")
    outside.await_tick(taken.cloud, uuid)
    assert set(taken.adopted.ports(uuid)) == ports
    now = [guest for guest in outside.guests(taken.cloud) if guest.host == here]
    outside.check_same_runs(others, now)
