"""What tests of moves share: a whole embedded cloud, driven through its REST API with openstacksdk, as users drive it.

- ``cloud``: `Cloud`, one for each test module: two cells with two simulated hosts each, real Placement, devcloud around it.
- ``cloud.member``, ``cloud.admin``: openstacksdk connections. ``cloud.boot(...)`` makes an ACTIVE server on gen1 (cell1).
- ``cloud.wait(server, "VERIFY_RESIZE")`` waits for a status and fails on any other end state.
- ``cloud.settle()`` waits until no move is under way. ``cloud.leftovers(server)`` lists what a cell still holds of a server.
- ``cloud.fail(...)``: a rule for devcloud's fault injection; all rules are cleared after each test.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest

from causeway.devcloud import Fault
from causeway.embedded.cloud import EmbeddedCloud
from causeway.store.api import journal
from causeway.store.cell import copies
from causeway.virt.simulated import SimulatedDriver

PATIENCE = 30.0


class Cloud:
    """An embedded cloud and its users."""

    def __init__(self, embedded: EmbeddedCloud) -> None:
        self.embedded = embedded
        self.member = self.connection("demo")
        self.admin = self.connection("admin", project="demo")
        self.image_id: str = self.member.image.find_image("demo").id
        self.network_id: str = self.member.network.find_network("demo-net").id

    def connection(self, user: str, project: str | None = None) -> Any:
        account = self.embedded.accounts[user]
        return openstack.connect(
            auth={
                "auth_url": self.embedded.accounts.auth_url,
                "username": account.username,
                "password": account.password,
                "project_name": project or account.project_name,
                "user_domain_id": "default",
                "project_domain_id": "default",
            },
            region_name="RegionOne",
            compute_api_version="2",
            compute_default_microversion="2.96",
            block_storage_default_microversion="3.70",
            load_yaml_config=False,
            load_envvars=False,
        )

    # servers

    def boot(self, name: str = "server", flavor: str = "gen1.small", **fields: Any) -> Any:
        """An ACTIVE server; with the demo image and one port on demo-net unless told otherwise."""
        given = {"image_id": self.image_id, "networks": [{"uuid": self.network_id}], **fields}
        server = self.member.compute.create_server(name=name, flavor_id=flavor, **given)
        return self.wait(server, "ACTIVE")

    def show(self, server: Any) -> Any:
        return self.admin.compute.get_server(server.id)

    def wait(self, server: Any, status: str) -> Any:
        """The server when it has a status and no task; fails at once if it comes to ERROR instead."""
        found = until(
            lambda: self.show(server),
            lambda found: found.status in (status, "ERROR") and found.task_state is None,
            f"server {server.id} to become {status}",
        )
        assert found.status == status, f"{found.status}: {found.fault}"
        return found

    def resized(self, server: Any, flavor: str = "gen2.small") -> Any:
        """Resizes a server and waits for VERIFY_RESIZE."""
        self.member.compute.resize_server(server.id, flavor)
        return self.wait(server, "VERIFY_RESIZE")

    def confirmed(self, server: Any) -> Any:
        self.member.compute.confirm_server_resize(server.id)
        found = until(
            lambda: self.show(server),
            lambda found: found.status in ("ACTIVE", "SHUTOFF", "ERROR"),
            f"the resize of {server.id} to be confirmed",
        )
        self.settle()
        return found

    def reverted(self, server: Any) -> Any:
        self.member.compute.revert_server_resize(server.id)
        found = until(
            lambda: self.show(server),
            lambda found: found.status in ("ACTIVE", "SHUTOFF", "ERROR"),
            f"the resize of {server.id} to be reverted",
        )
        self.settle()
        return found

    def settle(self) -> None:
        """Waits until no move is under way."""
        until(lambda: journal.unfinished(self.embedded.api_database), lambda moves: not moves, "all moves to end")

    # what is really there

    def driver(self, host: str) -> SimulatedDriver:
        driver = self.embedded.computes[host].host.driver
        assert isinstance(driver, SimulatedDriver)
        return driver

    def cell(self, name: str) -> Any:
        """The database of a cell."""
        mapping = next(cell for cell in self.embedded.cells.mappings() if cell.name == name)
        return self.embedded.cells.database(mapping.uuid)

    def hosts_of(self, server: Any) -> dict[str, str]:
        """host -> what it holds of the server: "guest", "disks" or "stashed"."""
        found = {}
        for host in self.embedded.computes:
            facts = self.driver(host).inspect(server.id)
            if facts.power_state is not None:
                found[host] = "guest"
            elif facts.has_disks:
                found[host] = "disks"
            if facts.has_stashed_disks:
                found[host] = found.get(host, "") + "stashed"
        return found

    def leftovers(self, server: Any, cell: str) -> list[str]:
        """What a cell, and the services around for it, still hold of a server. Empty: nothing."""
        found = []
        if copies.exists(self.cell(cell), server.id):
            found.append(f"records in {cell}")
        found += [f"{what} on {host}" for host, what in self.hosts_of(server).items() if host.startswith(cell)]
        for port in self.admin.network.ports(device_id=server.id):
            answer = self.admin.network.get(f"/ports/{port.id}/bindings")
            found += [
                f"binding of port {port.id} for {binding['host']}"
                for binding in answer.json()["bindings"]
                if binding["host"].startswith(cell)
            ]
        images = [image.name for image in self.admin.image.images() if image.name.endswith("-resize-temp")]
        return found + images

    def allocations(self, consumer: str) -> dict[str, Any]:
        """What a consumer holds in Placement, by host name."""
        placement = self.embedded.around.placement
        names = {provider.uuid: provider.name for provider in placement.list_providers()}
        return {names[uuid]: amounts for uuid, amounts in placement.get_allocations(consumer).allocations.items()}

    def attachments(self, server: Any) -> list[dict[str, Any]]:
        """The volume service's attachments of a server."""
        answer = self.admin.block_storage.get("/attachments/detail", params={"all_tenants": "1"})
        return [found for found in answer.json()["attachments"] if found["instance"] == server.id]

    def fail(self, action: str, path: str, **fields: Any) -> None:
        """Adds a rule to devcloud's fault injection."""
        self.embedded.devcloud.faults.add(Fault(action, path, **fields))


def until(look: Callable[[], Any], good: Callable[[Any], bool], what: str) -> Any:
    """What ``look`` sees when it is good. The API has nothing to wait on, so this asks again and again."""
    end = time.monotonic() + PATIENCE
    while True:
        seen = look()
        if good(seen):
            return seen
        assert time.monotonic() < end, f"waited in vain for {what}; last seen: {seen}"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    cloud = EmbeddedCloud(Path(tmp_path_factory.mktemp("cloud")), port=0, cells=2, hosts_per_cell=2)
    cloud.start()
    yield cloud
    cloud.stop()


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> Cloud:
    return Cloud(embedded)


@pytest.fixture
def cloud(module_cloud: Cloud) -> Iterator[Cloud]:
    yield module_cloud
    module_cloud.embedded.devcloud.faults.clear()
    for server in list(module_cloud.admin.compute.servers()):
        module_cloud.admin.compute.delete_server(server.id)
    until(lambda: list(module_cloud.admin.compute.servers()), lambda left: not left, "the servers of the test to go")
