"""A server whose volume and port belong to another project: to its user's token the services say that they are not there."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.devcloud.tables.volume import Volume
from causeway.virt.simulated import SimulatedDriver
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import until


def admins_of(cloud: AuditedCloud) -> Any:
    """An administrator in a project of their own."""
    return cloud.connection("admin")


@pytest.fixture
def foreign(cloud: AuditedCloud) -> Any:
    """(server, volume, port): an administrator gave the member's server a volume and a port of their own project."""
    admins = admins_of(cloud)
    made = admins.block_storage.create_volume(size=1, name="foreign")
    until(lambda: admins.block_storage.get_volume(made.id).status, lambda now: now == "available", "the volume")
    port = admins.network.create_port(network_id=cloud.network_id, project_id=admins.current_project_id)
    server = cloud.boot()
    admins.compute.create_volume_attachment(server.id, volume_id=made.id, delete_on_termination=True)
    admins.compute.create_server_interface(server.id, port_id=port.id)
    assert cloud.member.block_storage.find_volume(made.id) is None
    yield server, made, port
    admins.network.delete_port(port.id)


def in_use(cloud: AuditedCloud, server: Any, volume: Any) -> None:
    """The volume is connected once, to the server's host, and the server's guest has it and the port."""
    host = cloud.show(server).compute_host
    shown = admins_of(cloud).block_storage.get_volume(volume.id)
    assert (shown.status, [each["host_name"] for each in shown.attachments]) == ("in-use", [host])
    listed = {each.volume_id: each.attachment_id for each in cloud.member.compute.volume_attachments(server.id)}
    assert listed == {volume.id: shown.attachments[0]["attachment_id"]}
    # While the resize waits for its end, the source has a reservation of its own.
    assert [each["status"] for each in cloud.attachments(server) if each["status"] != "reserved"] == ["attached"]
    assert "kept" in cloud.driver(host).guest_read(server.id, "vdb")
    assert len(cloud.interfaces(server)) == 2


@pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
def test_a_server_with_foreign_devices_is_moved_back_and_forth_and_deleted(
    cloud: AuditedCloud, foreign: Any, flavor: str
) -> None:
    server, volume, _port = foreign
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, "kept", "vdb")
    cloud.resized(server, flavor)
    in_use(cloud, server, volume)
    cloud.reverted(server)
    in_use(cloud, server, volume)
    cloud.resized(server, flavor)
    cloud.confirmed(server)
    in_use(cloud, server, volume)
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server, interval=0.05, wait=20)
    # Its user may not delete it, whatever its record says.
    until(
        lambda: admins_of(cloud).block_storage.get_volume(volume.id).status,
        lambda now: now == "available",
        "the volume",
    )


def test_the_audit_says_whose_they_are(cloud: AuditedCloud, foreign: Any) -> None:
    server, volume, port = foreign
    report = cloud.audit(fix=True)
    assert report.fixed == []
    found = {each.kind: (each.resource, each.server, bool(each.left)) for each in report.disagreements}
    assert found == {
        "volume.of_other_project": (f"volume {volume.id}", server.id, True),
        "port.of_other_project": (f"port {port.id}", server.id, True),
    }


def test_a_user_can_still_not_have_what_is_not_theirs(cloud: AuditedCloud, foreign: Any) -> None:
    _server, volume, _port = foreign
    other = cloud.boot("other")
    with pytest.raises(Exception, match="could not be found"):
        cloud.attach(other, volume)
    assert cloud.attachments(other) == []


def test_a_revert_continues_without_a_data_volume_that_exists_no_more(
    cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is destroyed when the revert has passed its pivot: no attempt would ever find it."""
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    cloud.resized(server)
    restore = SimulatedDriver.restore_stashed_disks

    def restored(driver: SimulatedDriver, uuid: str) -> None:
        with cloud.parts.devcloud.store.transaction() as session:
            row = session.get(Volume, volume.id)
            for attachment in list(row.attachments) if row is not None else []:
                session.delete(attachment)
            if row is not None:
                session.delete(row)
        restore(driver, uuid)

    monkeypatch.setattr(SimulatedDriver, "restore_stashed_disks", restored)
    assert cloud.reverted(server).status == "ACTIVE"
