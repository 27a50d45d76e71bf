"""Takes a snapshot: reads the databases, then everything else in parallel, then the databases again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from causeway import errors
from causeway.audit.records import (
    CellRecords,
    Records,
    deleted_among,
    mappings_of,
    migrations_of,
    never_built_among,
    read_records,
)
from causeway.audit.services import AuditServices
from causeway.audit.snapshot import HostState, Record, Snapshot, Storage
from causeway.clients.network import PortBinding
from causeway.clients.placement.types import Allocations
from causeway.context import admin_context
from causeway.model.audit import HostContents
from causeway.model.image import ImageMeta
from causeway.model.shared_disk import StoredDisk
from causeway.model.states import VmState
from causeway.store.database import utcnow

T = TypeVar("T")

# How many hosts, providers and ports are asked at the same time.
THREADS = 16
COMPUTE_OWNER = "compute:"


def gather(services: AuditServices, *, stale_after: float, bindings_of: Collection[str] | None = None) -> Snapshot:
    """Takes one snapshot. ``bindings_of``: the servers whose port bindings are read (None: all)."""
    before = read_records(services)
    snapshot = Snapshot(taken_at=utcnow(), stale_after=stale_after)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="audit") as pool:
        around = _Around(services, snapshot, pool)
        contents = around.hosts(before.by_cell)
        allocations = around.later("Placement", _providers, services)
        ports = around.later("The network service", services.network.list_ports, admin_context())
        attachments = around.later("The volume service", services.volumes.list_all_attachments, admin_context())
        volumes = around.later("The volume service", services.volumes.list_all, admin_context())
        images = around.later("The image service", _images_of_servers, services)
        _fill_hosts(snapshot, before.by_cell, contents())
        storages = around.storages(before.by_cell)
        snapshot.providers = allocations()
        snapshot.allocations = around.allocations(snapshot.providers)
        if snapshot.allocations is not None:
            without = [record for record in _offloaded(before) if record.uuid not in snapshot.allocations]
            snapshot.hidden_consumers = around.hidden_consumers(without)
        snapshot.storages = storages()
        listed = ports()
        snapshot.ports = None if listed is None else {port["id"]: port for port in listed if _is_servers(port)}
        snapshot.bindings = around.bindings(snapshot.ports or {}, bindings_of)
        snapshot.attachments, snapshot.images = attachments(), images()
        found = volumes()
        snapshot.volumes = None if found is None else {volume.id: volume for volume in found}
    after = read_records(services)
    _fill_records(snapshot, after)
    old, new = before.fingerprints(), after.fingerprints()
    snapshot.changing = {uuid for uuid in {*old, *new} if old.get(uuid) != new.get(uuid)}
    _fill_strangers(services, snapshot)
    return snapshot


def _is_servers(port: dict[str, Any]) -> bool:
    """Whether a port may be a server's. Whoever writes a server's id into a port need not name an owner."""
    owner = str(port.get("device_owner") or "")
    return bool(port.get("device_id")) and (not owner or owner.startswith(COMPUTE_OWNER))


def _offloaded(records: Records) -> list[Record]:
    """The servers without a host that claim for one some day."""
    return [
        record
        for found in records.by_server.values()
        for record in found
        if record.vm_state is VmState.SHELVED_OFFLOADED and record.task_state is None and not record.hidden
    ]


def _providers(services: AuditServices) -> dict[str, str]:
    return {provider.uuid: provider.root_uuid for provider in services.placement.list_providers()}


def _images_of_servers(services: AuditServices) -> list[ImageMeta]:
    kinds = ("snapshot", "backup")
    return [image for kind in kinds for image in services.images.list_all({"image_type": kind})]


class _Around:
    """Asks everything but the databases; what does not answer is noted in the snapshot."""

    def __init__(self, services: AuditServices, snapshot: Snapshot, pool: ThreadPoolExecutor) -> None:
        self._services = services
        self._snapshot = snapshot
        self._pool = pool

    def later(self, name: str, question: Callable[..., T], *arguments: Any) -> Callable[[], T | None]:
        """Asks now. The returned function waits for the answer; None if there was none."""
        future = self._pool.submit(question, *arguments)
        return lambda: self._answer(name, future)

    def _answer(self, name: str, future: Future[T]) -> T | None:
        try:
            return future.result()
        except errors.CausewayError as failure:
            self._snapshot.unreached.append(f"{name}: {failure.message}")
            return None

    def hosts(self, cells: dict[str, CellRecords]) -> Callable[[], dict[str, HostContents | None]]:
        """Asks every host that is up for its contents. The returned function waits for them: host -> contents, or None."""
        asked = {}
        for cell_uuid, cell in cells.items():
            for host, is_up in cell.computes.items():
                if not is_up:
                    self._snapshot.unreached.append(f"Host {host}: its compute service does not report.")
                    continue
                computes = self._services.computes(cell_uuid)
                asked[host] = self.later(f"Host {host}", computes.list_host, admin_context(), host)
        return lambda: {host: answer() for host, answer in asked.items()}

    def storages(self, cells: dict[str, CellRecords]) -> Callable[[], dict[str, Storage]]:
        """Asks one host of each storage that hosts share. The returned function waits for the answers: storage -> disks."""
        cell_of = {host: cell_uuid for cell_uuid, cell in cells.items() for host in cell.computes}
        asked: dict[str, tuple[str, Callable[[], list[StoredDisk] | None]]] = {}
        for host, state in self._snapshot.hosts.items():
            storage = state.contents.storage if state.contents is not None else None
            if storage is not None and storage not in asked:
                computes = self._services.computes(cell_of[host])
                asked[storage] = (host, self.later(f"Storage {storage}", computes.list_storage, admin_context(), host))

        def wait() -> dict[str, Storage]:
            answers = {storage: (host, answer()) for storage, (host, answer) in asked.items()}
            return {storage: Storage(host, disks) for storage, (host, disks) in answers.items() if disks is not None}

        return wait

    def allocations(self, providers: dict[str, str] | None) -> dict[str, Allocations] | None:
        """consumer -> what it holds. None if an answer is missing: it would look as if consumers held nothing."""
        if providers is None:
            return None
        ask = self._services.placement.get_provider_allocations
        asked = {uuid: self.later("Placement", ask, uuid) for uuid in providers}
        found: dict[str, Allocations] = {}
        for uuid, answer in asked.items():
            held = answer()
            if held is None:
                return None
            for consumer, resources in held.items():
                found.setdefault(consumer, {})[uuid] = resources
        return found

    def hidden_consumers(self, records: list[Record]) -> set[str]:
        """Those of these servers that are consumers without allocations."""
        ask = self._services.placement.is_hidden
        asked = {
            record.uuid: self.later("Placement", ask, record.uuid, record.project_id, record.user_id)
            for record in records
        }
        return {uuid for uuid, answer in asked.items() if answer()}

    def bindings(
        self, ports: dict[str, dict[str, Any]], of_servers: Collection[str] | None
    ) -> dict[str, list[PortBinding]]:
        """The bindings of ports, without ports that were deleted in the meantime."""
        wanted = [id for id, port in ports.items() if of_servers is None or port["device_id"] in of_servers]

        def ask(port_id: str) -> list[PortBinding] | None:
            try:
                return self._services.network.list_bindings(admin_context(), port_id)
            except errors.PortNotFound:
                return None

        asked = {id: self.later(f"Port {id}", ask, id) for id in wanted}
        return {id: answer for id, question in asked.items() if (answer := question()) is not None}


def _fill_hosts(snapshot: Snapshot, cells: dict[str, CellRecords], contents: dict[str, HostContents | None]) -> None:
    for cell_uuid, cell in cells.items():
        for host in {*cell.nodes, *cell.computes}:
            snapshot.hosts[host] = HostState(host, cell_uuid, cell.nodes.get(host), contents.get(host))


def _fill_records(snapshot: Snapshot, records: Records) -> None:
    snapshot.cells, snapshot.down_cells = records.cells, records.down_cells
    snapshot.impostors = records.impostors
    snapshot.mappings, snapshot.records = records.mappings, records.by_server
    snapshot.build_requests = records.build_requests
    snapshot.migrations, snapshot.operations = records.migrations, records.operations
    snapshot.drains, snapshot.drained, snapshot.requests_of_drains = records.drains, records.drained, records.requests
    snapshot.closed_hosts = {host: drain for cell in records.by_cell.values() for host, drain in cell.closed.items()}
    snapshot.open_events = [event for cell in records.by_cell.values() for event in cell.open_events]
    for cell_uuid in sorted(records.down_cells):
        snapshot.unreached.append(f"Cell {records.cells[cell_uuid].name}: its database does not answer.")


def _fill_strangers(services: AuditServices, snapshot: Snapshot) -> None:
    """Looks up the uuids that others know and that are not those of present servers."""
    named = {*(snapshot.allocations or {}), *(port["device_id"] for port in (snapshot.ports or {}).values())}
    named.update(found.instance_uuid for found in snapshot.attachments or [] if found.instance_uuid is not None)
    named.update(operation.instance_uuid for operation in snapshot.operations)
    named.update(row.instance_uuid for row in snapshot.drained)
    named.update(str(image.properties.get("instance_uuid") or "") for image in snapshot.images or [])
    named.discard("")
    for storage in snapshot.storages.values():
        named.update(storage.by_server())
    for host in snapshot.hosts.values():
        if host.contents is not None:
            named.update(host.contents.guests, host.contents.disks, host.contents.stashed)
            named.update(claim.instance_uuid for claim in host.contents.claims)
    migrations = named | {
        str(image.properties["migration_uuid"])
        for image in snapshot.images or []
        if "migration_uuid" in image.properties
    }
    snapshot.migrations |= migrations_of(
        services.api, migrations - snapshot.migrations.keys() - snapshot.records.keys()
    )
    strangers = named - snapshot.records.keys() - snapshot.migrations.keys()
    snapshot.mappings |= mappings_of(services.api, strangers - snapshot.mappings.keys())
    snapshot.deleted = deleted_among(services, strangers)
    if not snapshot.down_cells:
        snapshot.deleted |= never_built_among(services.api, strangers - snapshot.mappings.keys())
