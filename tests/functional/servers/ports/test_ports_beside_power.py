"""Ports that are plugged and unplugged while the server's host does something else: its record has them all, and no others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.cell import instances
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("holds calls and reads records")


def recorded(cloud: Cloud, server: Any) -> set[str]:
    return {vif.id for vif in instances.get(cloud.cell("cell1"), server.id).network_info}


def plugged(cloud: Cloud, server: Any) -> set[str]:
    return {port.id for port in cloud.admin.network.ports(device_id=server.id)}


@pytest.mark.parametrize("change", ["plug", "unplug"])
def test_a_hard_reboot_keeps_what_is_plugged_meanwhile(cloud: Cloud, change: str) -> None:
    """The reboot reads the record while the ports are being changed, and writes when they have been."""
    server = cloud.boot()
    before = recorded(cloud, server)
    if change == "unplug":
        extra = cloud.member.compute.create_server_interface(server.id, net_id=cloud.network_id)
    method = "plug_port" if change == "plug" else "unplug_port"
    reached = {name: threading.Event() for name in (method, "reboot_instance")}
    opened = {name: threading.Event() for name in reached}

    def on_send(message: Outgoing) -> Verdict:
        # The conductor is notified under the same name.
        if message.server is not None and message.method in reached:
            reached[message.method].set()
            assert opened[message.method].wait(20)
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send

    def ask() -> None:
        if change == "plug":
            cloud.member.compute.create_server_interface(server.id, net_id=cloud.network_id)
        else:
            cloud.member.compute.delete_server_interface(extra.port_id, server=server.id)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        assert reached[method].wait(10)
        cloud.member.compute.reboot_server(server.id, "HARD")
        assert reached["reboot_instance"].wait(10)
        opened[method].set()
        asking.join()
        wanted = len(before) + (1 if change == "plug" else 0)
        until(lambda: recorded(cloud, server), lambda found: len(found) == wanted, f"the {change} to be written down")
    finally:
        for event in opened.values():
            event.set()
        asking.join()
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert recorded(cloud, server) == plugged(cloud, server)
    assert len(recorded(cloud, server)) == wanted
