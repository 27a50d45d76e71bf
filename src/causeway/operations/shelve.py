"""Shelves servers, which are then kept as an image (or as their volumes), and offloads them: they leave their host."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, TypeAlias

from causeway import errors
from causeway.hosts import cleanups, liveness
from causeway.model import operations
from causeway.model.block_device import is_volume_backed
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.operation_kinds import kind_of
from causeway.model.shelved import HOST, IMAGE, SINCE
from causeway.model.states import PowerState, TaskState, VmState
from causeway.model.things import Thing
from causeway.operations import root_disk_images
from causeway.running.operation_run import OperationRun
from causeway.running.patience import ServerStep, While
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, guests
from causeway.store.cell import instances
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)


@dataclass
class ShelveMemory:
    """``image_id``: of the image that the API has made for the root disk; None if that is a volume. ``was_running``: before.

    ``leaves_dead_host``: the server is not shelved yet, and leaves its host only if that is dead.
    """

    image_id: Given[str | None] = None
    was_running: Given[bool] = False
    offloads: Given[bool] = True
    host: str = ""
    leaves_dead_host: Given[bool] = False


Run: TypeAlias = OperationRun[ShelveMemory]


class StoreDisk(ServerStep[Run]):
    """Powers the guest off and stores its root disk in an image. A host that uploads it uploads most of it before, if it can."""

    name = "StoreDisk"
    reads = frozenset({"image_id", "was_running"})
    writes = frozenset({"host"})
    makes = frozenset({Thing.IMAGE})

    def where(self, run: Run) -> str | None:
        return run.instance().host

    def retried_while(self, run: Run) -> While:
        return While.GUEST_IS_OFF if run.memory.was_running else While.GUEST_RUNS

    def do(self, run: Run) -> None:
        instance, present, image_id = run.instance(), run.devices(), run.memory.image_id
        host, notifier, computes = instance.host or "", run.services.notifier, run.computes
        run.memory.host = host
        if not run.is_repeated:
            notifier.instance_exists(run.context, instance, host=host)
            notifier.instance_action(run.context, instance, "shelve", "start", host=host, block_devices=present)
        with run.event(run.kind.event, host):
            stored = self._stored(run) if run.is_repeated else None
            if stored is not None:
                # The host has done its part, and may be dead by now.
                run.transferred(stored.size)
                self._end_rounds(run, host, instance)
                return
            guests.require_host(run, host)
            token = run.token(self.name)
            if image_id is None:
                computes.store_disk(run.context, host, token=token, instance=instance, image_id=None)
                return
            run.transferred(root_disk_images.make(run, self.name, host, image_id, power_off=True))

    def undo(self, run: Run) -> None:
        instance = run.instance()
        self._delete_image(run, instance)
        if run.memory.was_running and instance.task_state is TaskState.SHELVING:
            host = instance.host or ""
            if guests.is_dead(run, host):
                # The host is dead, so the guest is off, and its disks are there. Only an upload may have left something.
                self._end_rounds(run, host, instance)
                return
            run.computes.restore_guest(
                run.context,
                host,
                token=run.token(self.name),
                instance=instance,
                block_devices=run.devices(),
            )

    def _end_rounds(self, run: Run, host: str, instance: Instance) -> None:
        """Has the host delete what an upload that it did not end left there. A host that can't is ordered to later."""
        token = run.token(self.name)

        def end() -> None:
            run.computes.end_rounds(run.context, host, token=token, instance=instance)

        if not cleanups.try_now(run.services, run.database, host, end, raised=errors.StateChanged):
            cleanups.note(run.services, host, run.cell.uuid, Missed.DISCARD_COPIES, instance, [], token)

    def _stored(self, run: Run) -> ImageMeta | None:
        """The image if it is complete, else None. The guest was powered off before the image was completed."""
        if run.memory.image_id is None:
            return None
        try:
            image = run.services.images.show_of_server(run.context, run.memory.image_id)
        except errors.ImageNotFound:
            return None
        return image if image.status == "active" else None

    def _delete_image(self, run: Run, instance: Instance) -> None:
        """Deletes the image, unless the host is fenced: then a complete image may be the only copy of the disk."""
        image_id, host = run.memory.image_id, instance.host or ""
        if image_id is None:
            return
        if liveness.of_host(run.services, run.database, host).is_fenced and self._stored(run):
            LOG.warning("Image %s of server %s stays: host %s of its disk is dead", image_id, run.uuid, host)
            return
        run.services.images.delete(run.context, image_id)


class MarkShelved(Step[Run]):
    """Sets the server to SHELVED. The server keeps its task if it is offloaded at once."""

    name = "MarkShelved"
    reads = frozenset({"host", "image_id"})
    writes = frozenset({"offloads"})

    def do(self, run: Run) -> None:
        run.pivot()
        memory, instance = run.memory, run.instance()
        known = {SINCE: utcnow().isoformat(), HOST: memory.host}
        if memory.image_id is not None:
            known[IMAGE] = memory.image_id
        changes: dict[str, Any] = {
            "vm_state": VmState.SHELVED,
            "power_state": PowerState.SHUTDOWN,
            "system_metadata": instance.system_metadata | known,
        }
        with run.database.write() as connection:
            run.write_history(connection)
            try:
                instances.swap_in(
                    connection,
                    run.uuid,
                    expected_task={TaskState.SHELVING},
                    task_state=TaskState.SHELVING_OFFLOADING if memory.offloads else None,
                    **changes,
                )
            except errors.StateChanged:
                memory.offloads = _is_marked(run)
                if not memory.offloads:
                    # The server is being deleted, and the delete includes its image.
                    instances.update_in(connection, run.uuid, **changes)
                    return
        for name, value in changes.items():
            setattr(instance, name, value)
        run.services.notifier.instance_action(
            run.context, instance, "shelve", "end", host=memory.host, block_devices=run.devices()
        )


class RemoveGuest(Step[Run]):
    """Checks the image from which the server will be unshelved, then destroys the guest and its disks."""

    name = "RemoveGuest"
    reads = frozenset({"leaves_dead_host"})
    writes = frozenset({"host", "offloads"})

    def where(self, run: Run) -> str | None:
        return run.memory.host or None

    def do(self, run: Run) -> None:
        if not run.memory.offloads:
            return
        instance, present = run.instance(), run.devices()
        host = run.memory.host = instance.host or ""
        if not run.is_repeated:
            run.services.notifier.instance_action(
                run.context, instance, "shelve_offload", "start", host=host, block_devices=present
            )
        if run.memory.leaves_dead_host and not run.saga.pivoted and not guests.is_dead(run, host):
            raise errors.InvalidState(f"Host {host} is no longer fenced: server {run.uuid} stays there.")
        unusable = None if is_volume_backed(present) else _unusable(run, instance)
        if unusable is not None:
            self._refuse(run, unusable)
            return
        run.pivot()
        with run.event(kind_of(operations.SHELVE_OFFLOAD).event, host):
            guests.remove(run, self.name, host, instance, present)

    def _refuse(self, run: Run, failure: errors.CopyNotUsable) -> None:
        """Refuses to offload. Behind the pivot of a shelve the server stays shelved, and can be offloaded later."""
        if not run.saga.pivoted:
            raise failure
        LOG.warning("Server %s is not offloaded: %s", run.uuid, failure.message)
        run.memory.offloads = False
        endings.failed(run, failure, {TaskState.SHELVING_OFFLOADING})


def _unusable(run: Run, instance: Instance) -> errors.CopyNotUsable | None:
    """Returns why the server can't be unshelved from its image; None if it can."""
    image_id = instance.system_metadata.get(IMAGE)
    try:
        status = (
            run.services.images.show_of_server(run.context, image_id).status if image_id is not None else "not known"
        )
    except errors.ImageNotFound:
        status = "gone"
    if status == "active":
        return None
    return errors.CopyNotUsable(
        f"The image of shelved server {run.uuid} is {status}: its disks stay.", details=f"image {image_id}"
    )


class LeaveHost(Step[Run]):
    """Unbinds ports, reserves volumes, deletes the allocation, and sets the server to SHELVED_OFFLOADED, without a host."""

    name = "LeaveHost"
    reads = frozenset({"host", "offloads"})
    makes = frozenset({Thing.ATTACHMENT})

    def do(self, run: Run) -> None:
        if not run.memory.offloads:
            return
        instance, present = run.instance(), run.devices()
        guests.keep_volumes_reserved(run)
        guests.unbind_ports(run, instance)
        run.services.placement.delete_allocations(run.uuid)
        if endings.ended(
            run,
            {TaskState.SHELVING_OFFLOADING},
            vm_state=VmState.SHELVED_OFFLOADED,
            power_state=PowerState.NOSTATE,
            host=None,
            node=None,
            pci_devices=[],
        ):
            instance.vm_state, instance.task_state = VmState.SHELVED_OFFLOADED, None
            instance.host = instance.node = None
            run.services.notifier.instance_action(
                run.context, instance, "shelve_offload", "end", host=run.memory.host, block_devices=present
            )


def _is_marked(run: Run) -> bool:
    """Whether this step was done before, but its end was not recorded."""
    run.refresh()
    instance = run.instance()
    return instance.vm_state is VmState.SHELVED and instance.task_state is TaskState.SHELVING_OFFLOADING


def _not_shelved(run: Run, cause: errors.CausewayError) -> None:
    """Restores the server's state. A server that was paused or suspended is off, if its guest was powered off."""
    if not run.steps and run.memory.image_id is not None:
        # The request made the image's record, and no step began whose undo would delete it.
        run.services.images.delete(run.context, run.memory.image_id)
    was_kept = run.memory.was_running or not run.steps
    try:
        stays = was_kept or run.instance().vm_state not in (VmState.PAUSED, VmState.SUSPENDED)
    except errors.ServerNotFound:
        return
    changes = {} if stays else {"vm_state": VmState.STOPPED, "power_state": PowerState.SHUTDOWN}
    endings.failed(run, cause, {TaskState.SHELVING}, **changes)


def _not_offloaded(run: Run, cause: errors.CausewayError) -> None:
    """The server stays shelved. It can be offloaded later."""
    endings.failed(run, cause, {TaskState.SHELVING_OFFLOADING})


_OFFLOAD = (RemoveGuest(), LeaveHost())

SHELVE = Recipe(
    operations.SHELVE,
    (StoreDisk(), MarkShelved(), *_OFFLOAD),
    pivot="MarkShelved",
    rolled_back=_not_shelved,
    memory=ShelveMemory,
)

SHELVE_OFFLOAD = Recipe(
    operations.SHELVE_OFFLOAD,
    _OFFLOAD,
    pivot="RemoveGuest",
    rolled_back=_not_offloaded,
    memory=ShelveMemory,
)
