"""The request for a host that a move sends to the scheduler. The step that chooses a host uses it, and so does a dry run.

Zones: a server that was created in a zone or pinned to one always stays there, because its request spec names the zone. A server
with volumes stays in its zone while ``[cinder] cross_az_attach`` is false. Every other server stays in its zone while
``[scheduler] move_keeps_availability_zone`` is true, unless an administrator names the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from oslo_config.cfg import ConfigOpts

from causeway import errors
from causeway.hardware.requests import asked_of
from causeway.model.flavor import Flavor
from causeway.model.pci import InstancePCIRequest
from causeway.moves.memory import MoveMemory
from causeway.scheduler.request import Destination, RequestSpec
from causeway.scheduler.resources import disk_gb_of
from causeway.store.api import mappings
from causeway.store.database import Database


def request_spec(
    api: Database,
    conf: ConfigOpts,
    instance_uuid: str,
    memory: MoveMemory,
    has_volumes: Callable[[], bool],
    of_ports: Iterable[InstancePCIRequest] = (),
) -> RequestSpec:
    """Returns the server's request spec for one move: with the new flavor, and where the server may go.

    ``of_ports``: the devices that the server's ports need (`causeway.hardware.port_devices.requests_of`). ``has_volumes``: called
    only if the zone depends on it. Raises NoValidHost if the server is on the requested host already.
    """
    spec = RequestSpec.from_persisted(mappings.get_spec(api, instance_uuid))
    ask_for_flavor(conf, spec, memory.new_flavor, of_ports)
    cell: str | None = memory.source_cell
    if memory.requested_host is not None and memory.cross_cell_allowed:
        # The requested host may be in any cell.
        cell = None
    spec.requested_destination = Destination(
        host=memory.requested_host,
        cell=cell,
        allow_cross_cell_move=memory.cross_cell_allowed,
        leave_cell=memory.source_cell if memory.keeps_memory else None,
    )
    spec.source_storage, spec.source_disk_gb = memory.source_storage, _disk_gb(memory, spec)
    if spec.availability_zone is None and keeps_zone(
        conf, names_host=memory.requested_host is not None, has_volumes=has_volumes
    ):
        spec.availability_zone = memory.source_zone
    same_host_allowed = conf.allow_resize_to_same_host
    if memory.migration_type != "resize":
        same_host_allowed = memory.migrates_to_same_host
    if not same_host_allowed:
        if memory.requested_host == memory.source_host:
            raise errors.NoValidHost("No valid host was found. The server is on the requested host already.")
        spec.ignore_hosts = [memory.source_host]
    spec.ignore_hosts = [*spec.ignore_hosts, *memory.hosts_without_network]
    return spec


def disk_gb_in_storage(api: Database, instance_uuid: str, memory: MoveMemory) -> int | None:
    """GiB that Placement counts for the server's disk before the move; None if no other host reaches its storage."""
    if memory.source_storage is None:
        return None
    # A server that was deleted meanwhile has no spec, and gets nothing back.
    stored = mappings.get_specs(api, [instance_uuid]).get(instance_uuid)
    return None if stored is None else _disk_gb(memory, RequestSpec.from_persisted(stored))


def _disk_gb(memory: MoveMemory, spec: RequestSpec) -> int | None:
    if memory.source_storage is None:
        return None
    return disk_gb_of(memory.old_flavor, is_volume_backed=spec.is_volume_backed, image=spec.image)


def ask_for_flavor(
    conf: ConfigOpts, spec: RequestSpec, flavor: Flavor, of_ports: Iterable[InstancePCIRequest] = ()
) -> None:
    """Sets the spec's flavor, and the hardware that the flavor and the server's ports need."""
    spec.flavor = flavor
    asked = asked_of(conf, flavor, spec.image, of_ports)
    spec.numa_topology, spec.pci_requests = asked.numa_topology, asked.pci_requests


def keeps_zone(conf: ConfigOpts, *, names_host: bool, has_volumes: Callable[[], bool]) -> bool:
    """Whether a server that is pinned to no zone stays in its present zone. ``names_host``: an administrator named the target."""
    if not names_host and conf.scheduler.move_keeps_availability_zone:
        return True
    return not conf.cinder.cross_az_attach and has_volumes()
