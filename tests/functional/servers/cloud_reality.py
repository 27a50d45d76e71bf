"""What is really there of a server, everywhere: in the databases, on hosts, in the services around."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from openstack import exceptions
from openstack.compute.v2.server import Server

from causeway import errors
from causeway.compute.host.claims import Claims
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.instance import Instance
from causeway.store.cell import copies, instances
from causeway.virt.simulated import SimulatedDriver
from tests.functional.servers.deployed_cloud import DeployedCloud
from tests.functional.servers.patience import until

_SERVERS = instances.TABLE.c
STATES = sa.select(_SERVERS.vm_state, _SERVERS.host, _SERVERS.hidden, _SERVERS.deleted).where(
    _SERVERS.uuid == sa.bindparam("of_uuid"), _SERVERS.task_state.is_(None)
)
LIVING = sa.select(_SERVERS.uuid).where(_SERVERS.deleted.is_(False))


class Reality:
    """Looks behind the API. ``member`` and ``admin``: connections of the users."""

    member: Any
    admin: Any

    def __init__(self, parts: EmbeddedCloud | DeployedCloud) -> None:
        # What one has and the other has not skips a test when it is reached for.
        self.parts: Any = parts
        self.by_url = isinstance(parts, DeployedCloud)

    def show(self, server: Any) -> Any:
        return self.admin.compute.get_server(server.id)

    def json_of(self, server: Any) -> dict[str, Any]:
        """The server as JSON: the SDK needs longer to make its resource of it than the cloud to answer."""
        answer = self.admin.compute.get(f"/servers/{server.id}")
        exceptions.raise_from_response(answer)
        found: dict[str, Any] = answer.json()["server"]
        return found

    def trace_of(self, server: Any) -> Any:
        """What changes in the cells when an operation of a server begins or ends; None if it can't be read."""
        return self._in_all_cells(STATES, of_uuid=server.id)

    def trace(self) -> Any:
        """What changes in the cells when a server goes; None if it can't be read."""
        return self._in_all_cells(LIVING)

    def _in_all_cells(self, query: sa.Select[Any], **parameters: str) -> Any:
        cells, found = self.parts.cells, []
        try:
            for cell in cells.mappings():
                with cells.database(cell.uuid).read() as connection:
                    found.append(connection.execute(query, parameters).all())
        except errors.CausewayError:
            return None
        return found

    def resource_of(self, server: dict[str, Any]) -> Any:
        """The SDK's resource of what `json_of` saw."""
        return Server.existing(connection=self.admin, **server)

    def record(self, server: Any, cell: str) -> Instance:
        """The server's record in a cell, whether it is shown or hidden."""
        return instances.get(self.cell(cell), server.id)

    def ports(self, server: Any) -> dict[str, Any]:
        """port -> its status, its host, and host -> status of all its bindings."""
        found = {}
        for port in self.admin.network.ports(device_id=server.id):
            answer = self.admin.network.get(f"/ports/{port.id}/bindings").json()["bindings"]
            found[port.id] = (port.status, port.binding_host_id, {each["host"]: each["status"] for each in answer})
        return found

    def bindings_between(self, server: Any, source: str, target: str) -> dict[str, str]:
        """What the bindings of a server's port have to be while its move waits for confirm or revert.

        Neutron's Open vSwitch agents keep a port down while another host has a binding, so there the target's is alone.
        """
        (port,) = self.admin.network.ports(device_id=server.id)
        details = self.admin.network.get(f"/ports/{port.id}/bindings").json()["bindings"]
        alone = any("ovs_hybrid_plug" in (each["vif_details"] or {}) for each in details if each["host"] == target)
        return {target: "ACTIVE"} | ({} if alone else {source: "INACTIVE"})

    def interfaces(self, server: Any) -> list[Any]:
        """The server's interfaces in their order, as the Compute API lists them."""
        return list(self.member.compute.server_interfaces(server.id))

    def reality(self, server: Any) -> dict[str, Any]:
        """Everything that a move touches. After a failed one it is what it was before."""
        shown = self.show(server)
        if self.by_url and shown.status == "ACTIVE":
            # The real network service hears of a plugged port from its agents, a moment later.
            until(
                lambda: self.ports(server),
                lambda ports: all(status == "ACTIVE" for status, _host, _bindings in ports.values()),
                f"the ports of {server.id} to be ACTIVE",
            )
        attachments = self.attachments(server)
        return {
            "shown": (shown.status, shown.task_state, shown.power_state, shown.compute_host, shown.availability_zone),
            "flavor": shown.flavor["original_name"],
            "cells with records": [cell for cell in ("cell1", "cell2") if copies.exists(self.cell(cell), server.id)],
            "on hosts": self.hosts_of(server),
            "runs on": self.driver(shown.compute_host).running_anywhere(server.id),
            "ports": self.ports(server),
            "volumes": {
                each["volume_id"]: self.admin.block_storage.get_volume(each["volume_id"]).status for each in attachments
            },
            "attachments": sorted(
                (each["volume_id"], each["status"], (each.get("connection_info") or {}).get("host", ""))
                for each in attachments
            ),
            "allocations": self.allocations(server.id),
            "images": self.temporary_images(),
            "transfers": sorted(
                f"{path.parent.name}/{path.name}"
                for kept in ("_base/*part*", "offers/*", "rounds/*", "copies/*")
                for path in self.parts.state.path.glob(f"hosts/*/{kept}")
                if server.id in path.name
            ),
        }

    def temporary_images(self) -> list[str]:
        return [image.name for image in self.admin.image.images() if image.name.endswith("-resize-temp")]

    def driver(self, host: str) -> SimulatedDriver:
        driver = self.parts.driver(host) if self.by_url else self.parts.computes[host].host.driver
        assert isinstance(driver, SimulatedDriver)
        return driver

    def claims(self, host: str) -> Claims:
        """What is claimed on a host."""
        found = self.parts.claims(host) if self.by_url else self.parts.computes[host].host.claims
        assert isinstance(found, Claims)
        return found

    def cell(self, name: str) -> Any:
        """The database of a cell."""
        mapping = next(cell for cell in self.parts.cells.mappings() if cell.name == name)
        return self.parts.cells.database(mapping.uuid)

    def hosts_of(self, server: Any) -> dict[str, str]:
        """host -> what it holds of the server: "guest", "disks" or "stashed"."""
        found = {}
        for host in self.parts.computes:
            facts = self.driver(host).inspect(server.id)
            if facts.power_state is not None:
                found[host] = "guest"
            elif facts.has_disks:
                found[host] = "disks"
            if facts.has_stashed_disks:
                found[host] = found.get(host, "") + "stashed"
        return found

    def cleanups(self, server: Any, cell: str) -> list[str]:
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
        return found + self.temporary_images()

    def allocations(self, consumer: str) -> dict[str, Any]:
        """What a consumer holds in Placement, by host name."""
        placement = self.parts.around.placement
        names = {provider.uuid: provider.name for provider in placement.list_providers()}
        return {names[uuid]: amounts for uuid, amounts in placement.get_allocations(consumer).allocations.items()}

    def attachments(self, server: Any) -> list[dict[str, Any]]:
        """The volume service's attachments of a server."""
        answer = self.admin.block_storage.get("/attachments/detail", params={"all_tenants": "1"})
        return [found for found in answer.json()["attachments"] if found["instance"] == server.id]
