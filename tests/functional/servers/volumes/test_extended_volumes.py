"""Volumes that the volume service extends while guests have them (event ``volume-extended``)."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.store.cell import block_devices
from tests.functional.servers.moves_cloud import Cloud, until


def extended(cloud: Cloud, volume: Any, size: int) -> None:
    """As block storage does it, without its event."""
    url, body = f"/volumes/{volume.id}/action", {"os-extend": {"new_size": size}}
    answer = cloud.admin.block_storage.post(url, json=body, microversion="3.42")
    assert answer.status_code == 202, answer.text


def report(cloud: Cloud, server: Any, volume: Any) -> None:
    event = {"name": "volume-extended", "server_uuid": server.id, "tag": volume.id}
    answer = cloud.admin.compute.post("/os-server-external-events", json={"events": [event]}, microversion="2.51")
    assert answer.status_code == 200, answer.text


def console(cloud: Cloud, server: Any) -> str:
    text: str = cloud.member.compute.get_server_console_output(server.id)["output"]
    return text


@pytest.mark.embedded("looks at records")
def test_a_guest_sees_that_its_volume_is_larger_and_the_record_says_it(cloud: Cloud) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)

    extended(cloud, volume, 3)
    # It may come more than once, and then late.
    report(cloud, server, volume)
    report(cloud, server, volume)

    until(lambda: console(cloud, server).count(f"vdb: {3 << 30} bytes"), lambda said: said == 2, "the guest to see it")
    cells = cloud.embedded.cells
    cell = cells.database(cells.of_server(server.id)[0].uuid)
    until(
        lambda: {each.volume_id: each.volume_size for each in block_devices.of_instance(cell, server.id)}[volume.id],
        lambda size: size == 3,
        "the record to have the size",
    )


@pytest.mark.embedded("simulated guests say what they see")
def test_an_event_for_a_volume_that_the_server_does_not_have_changes_nothing(cloud: Cloud) -> None:
    server, volume = cloud.boot(), cloud.volume()
    other = cloud.boot()
    cloud.attach(server, volume)
    extended(cloud, volume, 2)
    report(cloud, other, volume)
    report(cloud, server, volume)
    until(lambda: "vdb: " in console(cloud, server), bool, "the guest to see it")
    assert "vdb: " not in console(cloud, other)
