"""A host that lies in its answers. It is asked by a whole cloud while its servers are built, moved and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from openstack import exceptions

from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.patience import until
from tests.security.answers.lying import Mutations, lying
from tests.security.journeys import HOST, JOURNEYS, at_rest, built, nothing

KIND = AuditedCloud
# What fails is undone at once; what is stuck is tried again soon.
CLOUD = {
    "overrides": {"moves": {"patience": 0.0, "patience_while_off": 0.0, "whole_tries": 1, "stuck_retry_interval": 0.5}}
}


@dataclass
class Victim:
    """What belongs to another project, on another host of the same cell, and in the other cell."""

    servers: list[Any]
    image: Any
    volume: Any

    @property
    def ids(self) -> list[str]:
        return [*(server.id for server in self.servers), self.image.id, self.volume.id]


@pytest.fixture
def victim(cloud: AuditedCloud) -> Iterator[Victim]:
    admin = cloud.connection("admin")
    network = admin.network.find_network("demo-net")
    volume = admin.block_storage.create_volume(size=1, name="theirs")
    until(lambda: admin.block_storage.get_volume(volume.id).status, lambda status: status == "available", "the volume")
    servers = []
    for zone, flavor in (("nova:cell1-host2", "gen1.small"), ("nova:cell2-host1", "gen2.small")):
        made = admin.compute.create_server(
            name="theirs",
            flavor_id=flavor,
            image_id=cloud.image_id,
            networks=[{"uuid": network.id}],
            availability_zone=zone,
        )
        servers.append(cloud.wait(made, "ACTIVE"))
    admin.compute.create_volume_attachment(servers[0].id, volume_id=volume.id)
    until(lambda: admin.block_storage.get_volume(volume.id).status, lambda status: status == "in-use", "the attachment")
    image = admin.image.create_image("theirs", data=b"secret", disk_format="raw", container_format="bare")
    yield Victim(servers, image, volume)
    admin.image.delete_image(image.id)
    for server in servers:
        admin.compute.delete_server(server.id)
    until(lambda: admin.block_storage.get_volume(volume.id).status, lambda status: status == "available", "its release")
    admin.block_storage.delete_volume(volume.id)


def lie_during(cloud: AuditedCloud, victim: Victim, journey: Callable[[AuditedCloud, Any], None], seed: int) -> None:
    before = [cloud.reality(server) for server in victim.servers]
    ports = [port.id for server in victim.servers for port in cloud.admin.network.ports(device_id=server.id)]
    attachments = [each["id"] for each in cloud.attachments(victim.servers[0])]
    mutations = Mutations(seed, [*victim.ids, *ports, *attachments])
    server = None
    with lying(cloud.embedded.computes[HOST], mutations):
        if journey is nothing:
            server = built(cloud)
            at_rest(cloud, server)
    if server is None:
        server = cloud.wait(built(cloud), "ACTIVE")
        with lying(cloud.embedded.computes[HOST], mutations), suppress(exceptions.SDKException):
            journey(cloud, server)
            at_rest(cloud, server)
    with lying(cloud.embedded.computes[HOST], mutations), suppress(exceptions.SDKException):
        cloud.admin.compute.delete_server(server.id)
        at_rest(cloud, server)
    # The host is put in order again, and whatever its server still has goes with the server.
    cloud.settle()
    with suppress(exceptions.NotFoundException):
        cloud.admin.compute.delete_server(server.id)
    until(
        lambda: cloud.admin.compute.find_server(server.id, all_projects=True), lambda found: found is None, "it to go"
    )
    cloud.settle()
    assert [cloud.reality(server) for server in victim.servers] == before, mutations.lies
    assert cloud.connection("admin").image.get_image(victim.image.id).status == "active", mutations.lies
    concerning = [each for each in cloud.audit().disagreements if each.server in victim.ids or each.resource in ports]
    assert concerning == [], mutations.lies


# With 25 a host named the attachment of another server before answers were compared with orders, and it was deleted.
@pytest.mark.parametrize("seed", (25, 0, 1))
@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda journey: journey.__name__)
def test_what_belongs_to_others_stays(
    cloud: AuditedCloud, victim: Victim, journey: Callable[[AuditedCloud, Any], None], seed: int
) -> None:
    lie_during(cloud, victim, journey, seed)
