"""Gives a volume of a stopped server a new attachment: an operator's repair when the records of the old one are wrong.

The volume stays reserved for the server all the time. A failure after the old attachment was replaced does no harm: the new one
is not connected, and the server's host connects it when the server starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from causeway import errors
from causeway.context import RequestContext
from causeway.devices import device_records
from causeway.model import operations, server_actions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.states import TaskState
from causeway.model.things import Thing
from causeway.requests.asking import ask
from causeway.requests.of_servers import RequestServices
from causeway.running.operation_run import OperationRun
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, guests
from causeway.servers.undo_late import undo_attachments
from causeway.store.cell import block_devices, instances

TASKS = {TaskState.REFRESHING_ATTACHMENT}


@dataclass
class RefreshMemory:
    """``resource_id``: the volume. ``connector``: how block storage reaches the server's host.

    ``connection_info``: of the new attachment, once it is connected.
    """

    resource_id: str
    connector: Given[dict[str, Any]] = field(default_factory=dict)
    connection_info: dict[str, Any] | None = None


Refresh: TypeAlias = OperationRun[RefreshMemory]


def request_refresh(
    services: RequestServices,
    context: RequestContext,
    instance: Instance,
    cell_uuid: str,
    *,
    volume_id: str,
    connector: dict[str, Any],
) -> None:
    """Requests a refresh.

    Raises StateChanged if the server is not off, or another request was quicker. The caller checks the rest.
    """
    memory = RefreshMemory(volume_id, connector)
    action = server_actions.REFRESH_ATTACHMENT
    ask(services, context, instance, cell_uuid, action, operations.REFRESH_ATTACHMENT, memory)


def _device(run: Refresh) -> BlockDevice:
    found = next((each for each in run.devices() if each.volume_id == run.memory.resource_id), None)
    if found is None:
        raise errors.VolumeNotFound(f"Instance {run.uuid} is not attached to volume {run.memory.resource_id}.")
    return found


class DisconnectAtHost(Step[Refresh]):
    """Has the host disconnect the volume. If the operation fails later, the next start of the server connects it again."""

    name = "DisconnectAtHost"
    reads = frozenset({"resource_id"})

    def where(self, run: Refresh) -> str | None:
        return run.instance().host

    def do(self, run: Refresh) -> None:
        instance, device = run.instance(), _device(run)
        host = instance.host or ""
        guests.require_host(run, host)
        run.computes.disconnect_volume(
            run.context, host, token=run.token(self.name), instance=instance, block_device=device
        )


class ReplaceAttachment(Step[Refresh]):
    """Reserves the volume with a new attachment, records it, then deletes the old one."""

    name = "ReplaceAttachment"
    reads = frozenset({"resource_id"})
    makes = frozenset({Thing.ATTACHMENT})

    def do(self, run: Refresh) -> None:
        guests.keep_volumes_reserved(run, [_device(run)], in_doubt=True)

    def undo(self, run: Refresh) -> None:
        # The attachment that the record names stays: the old one, or a new one that the host connects at the next start.
        device_records.release_reservations(
            run.services, run.context, run.uuid, run.memory.resource_id, {_device(run).attachment_id}
        )


class ConnectAttachment(Step[Refresh]):
    """Has block storage export the volume to the server's host."""

    name = "ConnectAttachment"
    reads = frozenset({"resource_id", "connector"})
    writes = frozenset({"connection_info"})
    makes = frozenset({Thing.ATTACHMENT})

    def do(self, run: Refresh) -> None:
        device = _device(run)
        attachment_id = device.attachment_id or ""
        try:
            info = run.services.volumes.update_attachment(
                run.context, attachment_id, run.memory.connector, device.device_name
            )
        except errors.ServiceRefused:
            # An earlier attempt may have connected it.
            present = run.services.volumes.get_attachment(run.context, attachment_id)
            if not present.is_connected:
                raise
            info = present.connection_info
        # Asks for the lease again: the process may have been suspended while it waited for the connection.
        run.services.volumes.complete_attachment(run.context, attachment_id)
        run.memory.connection_info = info

    def undo(self, run: Refresh) -> None:
        # The record has it as not connected, so it must not be.
        guests.keep_volumes_reserved(run, [_device(run)], in_doubt=True)


class EndRefresh(Step[Refresh]):
    """Records how the volume is connected."""

    name = "EndRefresh"
    reads = frozenset({"resource_id", "connection_info"})

    def do(self, run: Refresh) -> None:
        run.pivot()
        with run.database.write() as connection:
            run.write_history(connection)
            block_devices.update_in(connection, _device(run).uuid, connection_info=run.memory.connection_info)
            instances.end_task_in(connection, run.uuid, TASKS)


def _rolled_back(run: Refresh, cause: errors.CausewayError) -> None:
    endings.failed(run, cause, TASKS)


REFRESH_ATTACHMENT = Recipe(
    operations.REFRESH_ATTACHMENT,
    (DisconnectAtHost(), ReplaceAttachment(), ConnectAttachment(), EndRefresh()),
    pivot="EndRefresh",
    rolled_back=_rolled_back,
    undo_late=undo_attachments,
    memory=RefreshMemory,
)
