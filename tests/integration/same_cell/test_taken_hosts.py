"""A host with a real guest is taken over as from Nova, released and taken again: the guest runs on, and orders work."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from causeway.adopt.hosts.taking import AdoptServices, adopt_hosts, end_service
from causeway.compute.adopting.ownership import HELD, IDENTITY
from causeway.model.adoption import AdoptedHost, HostState
from causeway.model.states import PowerState
from causeway.roles.compute import make_adopting_compute
from causeway.rpc.adopting import AdoptingClient
from causeway.virt.lab.hosts import missing
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.broken_hosts import start
from tests.integration.embedded_guests import cloud_with_guests
from tests.integration.same_cell.test_same_cell_guests import said

REASON = missing()

if REASON is None:
    from causeway.virt.libvirt.look import look

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(600),
]
HOST = "cell1-host1"


@pytest.fixture
def cloud(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedCloud]:
    monkeypatch.setattr(patience, "PATIENCE", 120.0)
    with cloud_with_guests(tmp_path_factory.mktemp("cloud"), cells=1, hosts_per_cell=1) as embedded:
        yield AuditedCloud(embedded)
        for service in embedded.computes.values():
            service.stop()


def process_of(driver: Any, uuid: str) -> int:
    """The hypervisor's number of the running guest: each start has another one."""
    number: int = driver._connection.call("describe", lambda to: to.lookupByUUIDString(uuid).ID())
    return number


def test_the_guest_of_a_host_that_changes_its_owner_runs_on(cloud: AuditedCloud, tmp_path: Path) -> None:
    embedded = cloud.embedded
    server = cloud.boot()
    said(cloud, server, HOST, 1)
    known: Any = embedded.computes[HOST].host.driver
    number = process_of(known, server.id)
    uri, instances = known._connection._uri, known._instances_dir
    embedded.computes[HOST].stop()
    state = embedded.state.host(HOST)
    (state / IDENTITY).rename(tmp_path / IDENTITY)
    (cell,) = embedded.cells.mappings(cell0=False)
    service = make_adopting_compute(
        embedded.around_of_hosts,
        HOST,
        partial(embedded.hosts.driver, HOST),
        cell.transport_url,
        state,
        look=partial(look, uri, instances, instances / "mnt"),
        nova_folders=[tmp_path],
        processes=list,
    )
    service.start()
    try:
        services = AdoptServices(
            embedded.cells,
            lambda cell: AdoptingClient(embedded.around.transports.get(cell.transport_url)),
            placement=embedded.around.placement,
        )

        def take() -> AdoptedHost:
            (adopted,) = adopt_hosts(services, [HOST])
            return adopted

        taken = take()
        assert (taken.state, [finding for finding in taken.findings if finding.blocks]) == (HostState.TAKEN, [])
        owned: Any = service._owned
        assert process_of(owned.host.driver, server.id) == number
        cloud.member.compute.reboot_server(server.id, "HARD")
        cloud.wait(server, "ACTIVE")
        said(cloud, server, HOST, 2)
        number = process_of(owned.host.driver, server.id)
        end_service(services, HOST)
        assert not service.is_owner and (tmp_path / IDENTITY).exists() and not (tmp_path / HELD).exists()
        (guest,) = [each for each in service.look().hypervisor.guests if each.uuid == server.id]
        assert guest.power_state is PowerState.RUNNING
        assert take().state is HostState.TAKEN
        owned = service._owned
        assert process_of(owned.host.driver, server.id) == number
        assert cloud.audit().is_clean
    finally:
        service.stop()
    (state / "taken").unlink()
    start(embedded, HOST)
    cloud.clean()
