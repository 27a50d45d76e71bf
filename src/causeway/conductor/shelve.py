"""Shelving servers: kept as an image (or as their volumes), without a host; and bringing them back.

What is remembered of a shelved server is in its system metadata, under the field's names: ``shelved_at``,
``shelved_image_id``, ``shelved_host``.
"""

from __future__ import annotations

import logging
from typing import Any

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState, TaskState, VmState
from causeway.parts import attachments, devices, history, placing
from causeway.parts.services import ConductorServices
from causeway.store.cell import block_devices, instances
from causeway.store.database import Database, utcnow

LOG = logging.getLogger(__name__)

IMAGE, SINCE, HOST = "shelved_image_id", "shelved_at", "shelved_host"


class ShelveEndpoint:
    """RPC: shelve, offload and unshelve. The API has set the task state."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def shelve_instance(self, context: RequestContext, *, instance_uuid: str, image_id: str | None) -> None:
        """Off; its root disk in an image. Without an image (it is on a volume) the host is let go of at once, as with
        ``shelved_offload_time`` 0."""
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        if instance.task_state is not TaskState.SHELVING:
            if image_id is not None:
                services.images.delete(context, image_id)
            return
        host, present = instance.host or "", block_devices.of_instance(database, instance_uuid)
        computes, notifier = services.computes(cell.uuid), services.notifier
        notifier.instance_exists(context, instance, host=host)
        notifier.instance_action(context, instance, "shelve", "start", host=host, block_devices=present)
        try:
            with history.event(database, context, instance_uuid, "compute_shelve_instance", host):
                computes.power_off_instance(context, host, instance=instance)
                if image_id is not None:
                    computes.snapshot_instance(context, host, instance=instance, image_id=image_id)
        except errors.CausewayError as failure:
            if image_id is not None:
                services.images.delete(context, image_id)
            # Its guest and its disks are there still, but nobody asked for the guest to be off: a reboot starts it.
            history.fail(database, instance_uuid, failure, host, vm_state=VmState.ERROR, task_state=None)
            return
        known = {SINCE: utcnow().isoformat(), HOST: host} | ({IMAGE: image_id} if image_id is not None else {})
        offload = image_id is None or services.conf.shelved_offload_time == 0
        changes: dict[str, Any] = {
            "vm_state": VmState.SHELVED,
            "task_state": TaskState.SHELVING_OFFLOADING if offload else None,
            "power_state": PowerState.SHUTDOWN,
            "system_metadata": instance.system_metadata | known,
        }
        if not _save(database, instance, {TaskState.SHELVING}, **changes):
            if image_id is not None:
                services.images.delete(context, image_id)
            return
        notifier.instance_action(context, instance, "shelve", "end", host=host, block_devices=present)
        if offload:
            self.shelve_offload_instance(context, instance_uuid=instance_uuid)

    def shelve_offload_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        if instance.task_state is not TaskState.SHELVING_OFFLOADING:
            return
        host, present = instance.host or "", block_devices.of_instance(database, instance_uuid)
        notifier = services.notifier
        notifier.instance_action(context, instance, "shelve_offload", "start", host=host, block_devices=present)
        try:
            with history.event(database, context, instance_uuid, "compute_shelve_offload_instance", host):
                self._require_image(context, instance, present)
                services.computes(cell.uuid).destroy_instance(context, host, instance=instance, block_devices=present)
                attachments.reserve_anew(services, context, database, present)
                for vif in instance.network_info:
                    services.network.update_port(context, vif.id, {"binding:host_id": "", "binding:profile": {}})
                services.placement.delete_allocations(instance_uuid)
        except errors.CausewayError as failure:
            # Shelved all the same: offloading may be asked for again.
            history.fail(database, instance_uuid, failure, host, task_state=None)
            return
        _save(
            database,
            instance,
            {TaskState.SHELVING_OFFLOADING},
            vm_state=VmState.SHELVED_OFFLOADED,
            task_state=None,
            power_state=PowerState.NOSTATE,
            host=None,
            node=None,
            pci_devices=[],
        )
        notifier.instance_action(context, instance, "shelve_offload", "end", host=host, block_devices=present)

    def _require_image(self, context: RequestContext, instance: Instance, present: list[BlockDevice]) -> None:
        """Raises CopyNotUsable or ImageNotFound unless the image that the server is to come back from is complete."""
        if is_volume_backed(present):
            return
        image_id = instance.system_metadata.get(IMAGE)
        status = self._services.images.show(context, image_id).status if image_id is not None else "not known"
        if status != "active":
            raise errors.CopyNotUsable(
                f"The image of shelved server {instance.uuid} is {status}: its disks stay.", details=f"image {image_id}"
            )

    def unshelve_instance(self, context: RequestContext, *, instance_uuid: str, host: str | None) -> None:
        """Starts the guest where it is, or makes it anew on a host of its cell. It runs then, whatever it did before."""
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        if instance.task_state is not TaskState.UNSHELVING:
            return
        image_id = instance.system_metadata.get(IMAGE)
        was, there, placed = instance.vm_state, instance, False
        try:
            with history.event(database, context, instance_uuid, "conductor_unshelve_instance", services.host):
                if instance.host is None:
                    there = placing.choose(services, context, instance, cell.uuid, host=host).instance
                    placed = True
                    # Before the host begins: messages of the network service go to where the record says, and a delete too.
                    instances.update(database, instance_uuid, host=there.host, node=there.node)
            services.notifier.instance_action(context, there, "unshelve", "start", host=there.host or "")
            with history.event(database, context, instance_uuid, "compute_unshelve_instance", there.host or ""):
                outcome = self._bring_up(context, cell.uuid, database, there, image_id, anew=placed)
        except errors.CausewayError as failure:
            if placed:
                self._take_back(context, cell.uuid, database, there)
            left: dict[str, Any] = {"host": None, "node": None} if placed else {}
            history.fail(database, instance_uuid, failure, there.host, vm_state=was, task_state=None, **left)
            return
        forgotten = {
            name: value for name, value in instance.system_metadata.items() if name not in (IMAGE, SINCE, HOST)
        }
        kept = devices.save_guest(
            database,
            instance_uuid,
            outcome,
            expected_task={TaskState.UNSHELVING},
            vm_state=VmState.ACTIVE,
            task_state=None,
            host=there.host,
            node=there.node,
            availability_zone=there.availability_zone,
            launched_at=utcnow(),
            numa_topology=outcome.numa_topology,
            pci_devices=outcome.pci_devices,
            system_metadata=forgotten,
        )
        if not kept:
            # It was deleted meanwhile, and its record named no host that could have been told.
            if placed:
                self._take_back(context, cell.uuid, database, there, gone=True)
            return
        if image_id is not None:
            services.images.delete(context, image_id)
        there.vm_state, there.task_state, there.power_state = VmState.ACTIVE, None, outcome.power_state
        services.notifier.instance_action(context, there, "unshelve", "end", host=there.host or "")

    def _bring_up(
        self,
        context: RequestContext,
        cell_uuid: str,
        database: Database,
        there: Instance,
        image_id: str | None,
        *,
        anew: bool,
    ) -> GuestOutcome:
        computes, host = self._services.computes(cell_uuid), there.host or ""
        present = block_devices.of_instance(database, there.uuid)
        if not anew:
            return computes.power_on_instance(context, host, instance=there, block_devices=present)
        if image_id is None and not is_volume_backed(present):
            raise errors.ImageNotFound(f"The image of shelved server {there.uuid} is not known.")
        return computes.rebuild_instance(
            context, host, instance=there, block_devices=present, snapshot_id=image_id, power_on=True
        )

    def _take_back(
        self, context: RequestContext, cell_uuid: str, database: Database, there: Instance, *, gone: bool = False
    ) -> None:
        """Nothing is left at a host where the server was to be; it stays without one."""
        services, present = self._services, block_devices.of_instance(database, there.uuid)
        try:
            services.computes(cell_uuid).destroy_instance(
                context, there.host or "", instance=there, block_devices=present
            )
        except errors.CausewayError as failure:
            LOG.warning(
                "Host %s may still hold something of %s: %s",
                there.host,
                there.uuid,
                f"{failure.message} {failure.details}",
            )
        if not gone:
            attachments.reserve_anew(services, context, database, present, in_doubt=True)
            for vif in there.network_info:
                services.network.update_port(context, vif.id, {"binding:host_id": "", "binding:profile": {}})
        services.placement.delete_allocations(there.uuid)


def _save(database: Database, instance: Instance, expected: set[TaskState], **changes: Any) -> bool:
    """Writes changes down, and into ``instance``; False if the server is gone or is to be deleted by now."""
    try:
        instances.update(database, instance.uuid, expected_task=expected, **changes)
    except (errors.StateChanged, errors.ServerNotFound) as change:
        LOG.info("Server %s changed while it was shelved: %s", instance.uuid, change.message)
        return False
    for name, value in changes.items():
        setattr(instance, name, value)
    return True
