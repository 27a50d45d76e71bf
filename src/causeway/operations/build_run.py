"""A running build: its request, and the server as far as it exists."""

from __future__ import annotations

from dataclasses import dataclass, field

from causeway import errors
from causeway.clients.port_requests import PortRequest, request_of
from causeway.model.block_device import BlockDevice
from causeway.model.host import CellMapping
from causeway.model.instance import Instance, InstanceAction
from causeway.model.network import RequestedNetwork, Vif
from causeway.model.numa import InstanceNUMATopology
from causeway.model.outcomes import GuestOutcome
from causeway.model.pci import InstancePCIRequest
from causeway.running.operation_run import OperationRun
from causeway.sagas.memory import Given
from causeway.scheduler.request import RequestedGroup, Selection
from causeway.store.api import build_requests
from causeway.store.api.build_requests import Asked, BuildRequest
from causeway.store.database import Database


@dataclass
class BuildMemory:
    """``targets``: the chosen host and its alternates; ``at``: the index of the one that makes the guest.

    ``networks``: as requested; ``ports``: what was made of them. ``numa_topology``, ``pci_requests``: what the flavor needs.
    """

    targets: list[Selection] = field(default_factory=list)
    at: Given[int] = 0
    group: RequestedGroup | None = None
    networks: list[RequestedNetwork] = field(default_factory=list)
    numa_topology: InstanceNUMATopology | None = None
    pci_requests: list[InstancePCIRequest] = field(default_factory=list)
    ports: list[Vif] = field(default_factory=list)
    guest: GuestOutcome | None = None


class BuildRun(OperationRun[BuildMemory]):
    """Until the server is in a cell, its record is that of the build request, which is read once and not for each step.

    If a user changes it meanwhile, it is read again (`causeway.store.api.build_requests`). The build writes only its own results
    into the record, so changes that a user makes later stay.
    """

    _asked: Asked | None = None
    _server: tuple[Instance, list[BlockDevice]] | None = None

    def refresh(self) -> None:
        super().refresh()
        if self.is_repeated or self.is_undoing:
            self.read_again()

    def read_again(self) -> None:
        """Discards what is known of the server, which may have changed."""
        self._asked = self._server = self._found_home = None

    def asked(self) -> Asked:
        """The build request. Raises StateChanged if the server was deleted before it had a cell."""
        if self._asked is None:
            self._asked = build_requests.asked(self.services.api, self.uuid)
        if self._asked is None:
            raise errors.StateChanged(f"Server {self.uuid} was deleted before it was built.")
        return self._asked

    def request(self) -> BuildRequest:
        """The build request. Raises StateChanged if the server was deleted, or is in a cell already."""
        found = self.asked().request
        if found is None:
            raise errors.StateChanged(f"Server {self.uuid} is in a cell already: it is not built again.")
        return found

    def action(self) -> InstanceAction:
        """The action of the create request, which began when the server was requested."""
        return InstanceAction(
            action="create",
            instance_uuid=self.uuid,
            request_id=self.context.request_id,
            user_id=self.context.user_id,
            project_id=self.context.project_id,
            start_time=self.request().created_at,
        )

    @property
    def known_server(self) -> tuple[Instance, list[BlockDevice]] | None:
        """The server as this run has read it; None if it has not read it, so that it has made nothing for the server."""
        return self._server

    @property
    def target(self) -> Selection:
        """The host that makes the guest."""
        return self.memory.targets[self.memory.at]

    def is_in(self, cell_uuid: str) -> None:
        """Notes the cell that the server is in from now on."""
        self._found_home = self.services.cells.mapping(cell_uuid), self.services.cells.database(cell_uuid)

    def instance(self, *, tags: bool = True) -> Instance:  # noqa: ARG002
        return self._read()[0]

    def devices(self) -> list[BlockDevice]:
        return self._read()[1]

    def ports_that_ask(self) -> dict[str, PortRequest]:
        """port -> the resources it asks for, of the ports that the user gave."""
        given = [network for network in self.memory.networks if network.port_id is not None]
        found = (request_of(network.port_id or "", network.resource_request) for network in given)
        return {each.port_id: each for each in found if each is not None}

    def devices_of_ports(self) -> list[InstancePCIRequest]:
        """The PCI devices that the ports which the user gave need."""
        return [network.pci_request for network in self.memory.networks if network.pci_request is not None]

    def _read(self) -> tuple[Instance, list[BlockDevice]]:
        if self._server is None:
            asked = self.asked()
            if asked.request is not None:
                self._server = asked.request.instance, asked.request.block_devices
            else:
                self._server = super().instance(), super().devices()
                self._server[0].network_info = list(self.memory.ports)
        return self._server

    def _home(self) -> tuple[CellMapping, Database]:
        if self._found_home is None:
            cell_uuid = self.asked().cell_uuid
            if cell_uuid is None:
                raise errors.ServerNotFound(self.uuid)
            self.is_in(cell_uuid)
        return super()._home()
