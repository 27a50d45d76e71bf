"""Network, volume and image service against the records."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.clients.rights import OF_SERVER
from causeway.context import admin_context
from causeway.store.cell import block_devices
from tests.functional.servers.audited_cloud import AuditedCloud


def port_of(cloud: AuditedCloud, server: Any) -> str:
    (port,) = cloud.ports(server)
    return port


# port bindings


def test_a_binding_for_a_host_where_the_server_is_not(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    port, other = port_of(cloud, server), cloud.other_host(server)
    cloud.parts.around.network.create_binding(admin_context(), port, other)

    assert cloud.only("binding.orphaned").resource == f"port {port} on {other}"
    cloud.fixes("binding.orphaned")
    assert list(cloud.ports(server)[port][2]) == [cloud.show(server).compute_host]


def test_an_active_binding_on_the_wrong_host_gives_way_to_the_right_one(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    network, port, other = cloud.parts.around.network, port_of(cloud, server), cloud.other_host(server)
    network.create_binding(admin_context(), port, other)
    network.activate_binding(admin_context(), port, other)

    kinds = {found.kind for found in cloud.audit().disagreements}
    assert kinds == {"binding.missing", "binding.orphaned"}
    cloud.fixes("binding.missing")
    host = cloud.show(server).compute_host
    assert cloud.ports(server)[port][1:] == (host, {host: "ACTIVE"})


def test_a_port_that_is_bound_nowhere_is_left(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.parts.around.network.update_port(admin_context(), port_of(cloud, server), {"binding:host_id": ""})
    cloud.only_reports("binding.missing")


def test_the_sources_binding_is_kept_for_a_revert(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    source, port = cloud.show(server).compute_host, port_of(cloud, server)
    cloud.resized(server)
    cloud.parts.around.network.delete_binding(admin_context(), port, source)

    cloud.only("binding.missing")
    cloud.fixes("binding.missing")
    assert cloud.reverted(server).status == "ACTIVE"


def test_a_port_that_was_deleted_behind_its_server_is_missing(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.parts.around.network.delete_port(admin_context(), port_of(cloud, server))
    cloud.only_reports("port.missing")


def test_the_port_of_a_deleted_server_is_left_to_its_user(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    vif = cloud.parts.around.network.create_port(
        admin_context(), server.project_id, server.id, cloud.network_id, host="cell1-host1"
    )
    cloud.only_reports("port.orphaned")
    cloud.parts.around.network.delete_port(admin_context(), vif.id)


# volume attachments


def test_a_second_attachment_that_nobody_is_connected_to_goes(cloud: AuditedCloud) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    extra = cloud.parts.around.volumes.create_attachment(admin_context(), volume.id, server.id, called_as=OF_SERVER)

    assert cloud.only("attachment.orphaned").resource == f"attachment {extra.id}"
    cloud.fixes("attachment.orphaned")
    assert len(cloud.attachments(server)) == 1


def test_an_attachment_without_its_volume_stays_while_a_host_is_connected(cloud: AuditedCloud) -> None:
    server, volume = cloud.boot(), cloud.volume()
    volumes = cloud.parts.around.volumes
    connector = cloud.driver(cloud.show(server).compute_host).volume_connector()
    extra = volumes.create_attachment(admin_context(), volume.id, server.id, connector, called_as=OF_SERVER)

    cloud.only_reports("attachment.orphaned")
    volumes.delete_attachment(admin_context(), extra.id)


def test_a_volume_that_is_connected_twice_is_critical(cloud: AuditedCloud) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    volumes = cloud.parts.around.volumes
    connector = cloud.driver(cloud.other_host(server)).volume_connector()
    extra = volumes.create_attachment(admin_context(), volume.id, server.id, connector, called_as=OF_SERVER)

    report = cloud.audit(fix=True)
    found = {each.kind: each for each in report.disagreements}
    assert set(found) == {"attachment.connected_twice", "attachment.orphaned"} and report.fixed == []
    assert found["attachment.connected_twice"].severity == "critical"
    volumes.delete_attachment(admin_context(), extra.id)


def test_an_attachment_that_the_volume_service_does_not_know(cloud: AuditedCloud) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    (attachment,) = cloud.attachments(server)
    cloud.parts.around.volumes.delete_attachment(admin_context(), attachment["id"])

    cloud.only_reports("attachment.missing")
    device = next(each for each in block_devices.of_instance(cloud.cell("cell1"), server.id) if each.is_volume)
    block_devices.delete(cloud.cell("cell1"), device.uuid)


def test_the_attachment_of_a_deleted_server_goes(cloud: AuditedCloud) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    cloud.parts.around.volumes.create_attachment(admin_context(), volume.id, server.id, called_as=OF_SERVER)

    cloud.only("attachment.orphaned")
    cloud.fixes("attachment.orphaned")
    assert cloud.volume_becomes(volume, "available").status == "available"


# temporary images


def make_image(cloud: AuditedCloud, migration: str, name: str = "server-resize-temp") -> str:
    image = cloud.parts.around.images.create(
        admin_context(),
        name=name,
        properties={"migration_uuid": migration, "image_type": "snapshot"},
        disk_format="qcow2",
        container_format="bare",
        called_as=OF_SERVER,
    )
    return str(image.id)


# the root disk's, an ephemeral disk's
@pytest.mark.parametrize("name", ["server-resize-temp", "server-disk.eph0-resize-temp"])
def test_the_temporary_image_of_an_ended_move_goes(cloud: AuditedCloud, name: str) -> None:
    server = cloud.boot()
    cloud.confirmed(cloud.resized(server))
    image = make_image(cloud, cloud.migration(server).uuid, name)

    found = cloud.only("image.orphaned")
    assert (found.resource, found.server) == (f"image {image}", server.id)
    cloud.fixes("image.orphaned")
    assert cloud.temporary_images() == []


def test_a_temporary_image_of_an_unknown_migration_is_left(cloud: AuditedCloud) -> None:
    image = make_image(cloud, "f3c1a0de-0000-4000-8000-000000000000")
    cloud.only_reports("image.orphaned")
    cloud.parts.around.images.delete(admin_context(), image)
