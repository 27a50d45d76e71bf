"""``causeway manage volume-attachment refresh``: a volume of a server that is off gets a new attachment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from causeway.cli.main import cli
from causeway.store.cell import block_devices, instances
from tests.functional.servers.moves_cloud import Cloud

STALE = {"driver_volume_type": "local", "data": {"device_path": "/nowhere/stale"}}


class Refresh:
    """The command, on the cloud's own databases and queue."""

    def __init__(self, cloud: Cloud, directory: Path) -> None:
        parts = cloud.parts
        self.connector = directory / "connector.json"
        options = directory / "causeway.conf"
        if not cloud.by_url:
            options.write_text(
                f"[DEFAULT]\ntransport_url = {parts.around.conf.transport_url}\nlong_rpc_timeout = 60\n"
                f"[api_database]\nconnection = {parts.state.database('api')}\n"
            )
        self._options = [f"--config-file={file}" for file in (parts.configuration if cloud.by_url else [options])]

    def of(self, host: str) -> None:
        """The connector is of this host."""
        self.connector.write_text(
            json.dumps({"host": host, "ip": "192.0.2.1", "initiator": "iqn.2026-01.org.example:a"})
        )

    def __call__(self, server: str, volume: str) -> Result:
        words = ["manage", "volume_attachment", "refresh", server, volume, str(self.connector)]
        return CliRunner().invoke(cli, [*words, *self._options])


@pytest.fixture
def refresh(cloud: Cloud, tmp_path: Path) -> Refresh:
    return Refresh(cloud, tmp_path)


@pytest.fixture
def server(cloud: Cloud) -> Any:
    return cloud.boot()


@pytest.fixture
def volume(cloud: Cloud, server: Any) -> Any:
    made = cloud.volume()
    cloud.attach(server, made)
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, "kept", "vdb")
    return made


def stopped(cloud: Cloud, server: Any, refresh: Refresh) -> None:
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    refresh.of(cloud.show(server).compute_host)


def with_stale_record(cloud: Cloud, server: Any, volume: Any) -> str:
    """Its attachment, of which the record has a connection that leads nowhere."""
    (device,) = [one for one in block_devices.of_instance(cloud.cell("cell1"), server.id) if one.volume_id == volume.id]
    block_devices.update(cloud.cell("cell1"), device.uuid, connection_info=STALE)
    assert device.attachment_id is not None
    return device.attachment_id


def check_starts(cloud: Cloud, server: Any, volume: Any) -> str:
    """Its guest has the volume, by the one attachment that there is; which is returned."""
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert "kept" in cloud.driver(cloud.show(server).compute_host).guest_read(server.id, "vdb")
    (attachment,) = cloud.attachments(server)
    (listed,) = cloud.member.compute.volume_attachments(server.id)
    assert (listed.attachment_id, attachment["status"]) == (attachment["id"], "attached")
    assert cloud.volume_becomes(volume, "in-use").status == "in-use"
    return str(attachment["id"])


def test_a_stale_attachment_is_replaced(cloud: Cloud, server: Any, volume: Any, refresh: Refresh) -> None:
    stopped(cloud, server, refresh)
    old = with_stale_record(cloud, server, volume)
    done = refresh(server.id, volume.id)
    assert done.exit_code == 0, done.output
    (attachment,) = cloud.attachments(server)
    (device,) = [one for one in block_devices.of_instance(cloud.cell("cell1"), server.id) if one.volume_id == volume.id]
    assert device.attachment_id == attachment["id"] != old
    assert device.connection_info is not None and device.connection_info["data"] != STALE["data"]
    (shown,) = cloud.admin.block_storage.get_volume(volume.id).attachments
    assert shown["host_name"] == cloud.show(server).compute_host
    assert cloud.actions(server)[-1] == "refresh_volume_attachment"
    assert check_starts(cloud, server, volume) == attachment["id"]


def test_what_fails_costs_nothing(cloud: Cloud, server: Any, volume: Any, refresh: Refresh) -> None:
    stopped(cloud, server, refresh)
    old = with_stale_record(cloud, server, volume)
    cloud.fail("status", "/attachments/", method="PUT", service="volume", status=400)
    failed = refresh(server.id, volume.id)
    cloud.heal()
    assert failed.exit_code == 1 and "reserved for the server" in failed.output
    assert [each["status"] for each in cloud.attachments(server)] == ["reserved"]
    assert cloud.wait(server, "SHUTOFF").task_state is None
    assert check_starts(cloud, server, volume) != old


def test_refusals_have_novas_exit_statuses(cloud: Cloud, server: Any, volume: Any, refresh: Refresh) -> None:
    host = cloud.show(server).compute_host
    assert refresh(server.id, volume.id).exit_code == 2
    for wrong in ("{", "[]", "{}", '{"host": 1}'):
        refresh.connector.write_text(wrong)
        assert refresh(server.id, volume.id).exit_code == 3, wrong
    refresh.of(host)
    assert refresh("5f0cdbc7-1d8a-4f0a-8a55-0d4d3a7c1b61", volume.id).exit_code == 4
    running = refresh(server.id, volume.id)
    assert running.exit_code == 5 and "it must be stopped" in running.output
    stopped(cloud, server, refresh)
    instances.update(cloud.cell("cell1"), server.id, locked=True)
    assert refresh(server.id, volume.id).exit_code == 5
    instances.update(cloud.cell("cell1"), server.id, locked=False)
    assert refresh(server.id, server.id).exit_code == 6
    refresh.of("another-host")
    assert refresh(server.id, volume.id).exit_code == 7
    assert [each["status"] for each in cloud.attachments(server)] == ["attached"]
