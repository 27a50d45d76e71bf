"""Attachments that others made in the name of a server."""

from __future__ import annotations

from typing import Any

from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.patience import until


def attached_by_other(cloud: Cloud, server: Any) -> tuple[Any, str]:
    """A volume of another project, and its attachment that names the server."""
    other = cloud.connection("other")
    volume = other.block_storage.create_volume(size=1, name="theirs")
    until(lambda: other.block_storage.get_volume(volume.id).status, lambda status: status == "available", "the volume")
    body = {"attachment": {"volume_uuid": volume.id, "instance_uuid": server.id}}
    answer = other.block_storage.post("/attachments", json=body, microversion="3.70")
    assert answer.status_code == 200, answer.text
    return other, answer.json()["attachment"]["id"]


def test_an_attachment_in_a_servers_name_gives_it_no_volume(cloud: Cloud) -> None:
    server = cloud.boot()
    volume = cloud.volume()
    cloud.attach(server, volume)
    other, attachment = attached_by_other(cloud, server)
    cloud.confirmed(cloud.resized(server))
    assert [each.volume_id for each in cloud.member.compute.volume_attachments(server.id)] == [volume.id]
    assert other.block_storage.get(f"/attachments/{attachment}", microversion="3.70").status_code == 200
    guest = cloud.driver(cloud.show(server).compute_host).files.guests.get(server.id)
    assert guest is not None and [each.volume_id for each in guest.volumes] == [volume.id]
