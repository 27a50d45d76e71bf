"""Rescues servers: the guest boots a disk made from an image, with its own disks beside it. Unrescue ends that.

The server's system metadata has the rescue image (`causeway.model.rescue`). The server's own disks are only detached: neither
recipe writes or deletes them, and the rescue disk is deleted only after the guest has booted from its own.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeAlias

from causeway import errors
from causeway.hosts import liveness
from causeway.model import operations
from causeway.model import rescue as records
from causeway.model.outcomes import GuestOutcome
from causeway.model.rescue import RescueImage
from causeway.model.states import TaskState, VmState
from causeway.model.things import Thing
from causeway.requests import checked
from causeway.running.operation_run import OperationRun
from causeway.running.patience import ServerStep, While
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, guests
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

RESCUING, UNRESCUING = {TaskState.RESCUING}, {TaskState.UNRESCUING}


@dataclass
class RescueMemory:
    """``asked_for``: the image that the request named, if any.

    ``was_running``: before the rescue. ``guest``: once it is rescued.
    """

    image: RescueImage
    asked_for: Given[str | None] = None
    was_running: Given[bool] = True
    guest: GuestOutcome | None = None


@dataclass
class UnrescueMemory:
    """``image``: the rescue image. ``guest``: once it runs from its own disk."""

    image: Given[RescueImage | None] = None
    guest: GuestOutcome | None = None


Rescue: TypeAlias = OperationRun[RescueMemory]
Unrescue: TypeAlias = OperationRun[UnrescueMemory]


class RescueGuest(ServerStep[Rescue]):
    """Powers the guest off and boots it from a disk of the image."""

    name = "RescueGuest"
    reads = frozenset({"image", "asked_for", "was_running"})
    writes = frozenset({"guest"})
    makes = frozenset({Thing.DISKS, Thing.GUEST})

    def where(self, run: Rescue) -> str | None:
        return run.instance().host

    def retried_while(self, run: Rescue) -> While:
        return While.GUEST_IS_OFF if run.memory.was_running else While.GUEST_RUNS

    def do(self, run: Rescue) -> None:
        instance, present, memory = run.instance(), run.devices(), run.memory
        host = instance.host or ""
        if memory.asked_for is not None or memory.image.image_id != instance.image_ref:
            checked.require_image(run.services, run.context, memory.image.image_id)
        if not run.is_repeated:
            run.services.notifier.instance_action(
                run.context,
                instance,
                "rescue",
                "start",
                host=host,
                block_devices=present,
                rescue_image_ref=memory.asked_for,
            )
        with run.event(run.kind.event, host):
            guests.require_host(run, host)
            memory.guest = run.computes.rescue_guest(
                run.context,
                host,
                token=run.token(self.name),
                instance=instance,
                block_devices=present,
                image=memory.image,
            )
            run.transferred(memory.guest.bytes_done)

    def undo(self, run: Rescue) -> None:
        instance = run.instance()
        host = instance.host or ""
        if guests.is_dead(run, host):
            # The host is dead, so the guest is off. Its own disk is there, and the next start uses it.
            return
        run.computes.undo_rescue(
            run.context,
            host,
            token=run.token(self.name),
            instance=instance,
            block_devices=run.devices(),
            power_on=run.memory.was_running,
        )


class MarkRescued(Step[Rescue]):
    """Sets the server to RESCUED."""

    name = "MarkRescued"
    reads = frozenset({"image", "asked_for", "guest"})
    pivots = True

    def do(self, run: Rescue) -> None:
        memory, there, present = run.memory, run.instance(), run.devices()
        if memory.guest is None:
            raise RuntimeError("the guest was not rescued")
        host, notifier = there.host or "", run.services.notifier
        notifier.instance_exists(run.context, there, host=host, block_devices=present)
        known = records.without(there.system_metadata) | memory.image.recorded()
        known[records.SINCE] = utcnow().isoformat()
        if endings.came_up(
            run, RESCUING, memory.guest, there, vm_state=VmState.RESCUED, system_metadata=known, progress=0
        ):
            notifier.instance_action(
                run.context,
                there,
                "rescue",
                "end",
                host=host,
                block_devices=present,
                rescue_image_ref=memory.asked_for,
            )


class StartFromOwnDisk(ServerStep[Unrescue]):
    """Powers the guest off and boots it from its own disk. The rescue disk stays for now."""

    name = "StartFromOwnDisk"
    reads = frozenset({"image"})
    writes = frozenset({"guest"})
    makes = frozenset({Thing.GUEST})

    def where(self, run: Unrescue) -> str | None:
        return run.instance().host

    def retried_while(self, run: Unrescue) -> While:  # noqa: ARG002
        return While.GUEST_IS_OFF

    def do(self, run: Unrescue) -> None:
        instance, present = run.instance(), run.devices()
        host = instance.host or ""
        if not run.is_repeated:
            run.services.notifier.instance_action(
                run.context, instance, "unrescue", "start", host=host, block_devices=present
            )
        with run.event(run.kind.event, host):
            guests.require_host(run, host)
            run.memory.guest = run.computes.unrescue_guest(
                run.context, host, token=run.token(self.name), instance=instance, block_devices=present
            )

    def undo(self, run: Unrescue) -> None:
        instance, image = run.instance(), run.memory.image
        host = instance.host or ""
        if image is None or guests.is_dead(run, host):
            return
        run.computes.undo_unrescue(
            run.context,
            host,
            token=run.token(self.name),
            instance=instance,
            block_devices=run.devices(),
            image=image,
        )


class EndUnrescue(Step[Unrescue]):
    """Sets the server to ACTIVE, as in Nova, even if it was not ACTIVE before the rescue."""

    name = "EndUnrescue"
    reads = frozenset({"guest"})
    pivots = True

    def do(self, run: Unrescue) -> None:
        guest, there, present = run.memory.guest, run.instance(), run.devices()
        if guest is None:
            raise RuntimeError("the guest does not run from its own disk")
        known = records.without(there.system_metadata)
        if endings.came_up(
            run,
            UNRESCUING,
            guest,
            there,
            vm_state=VmState.ACTIVE,
            system_metadata=known,
            launched_at=there.launched_at,
        ):
            run.services.notifier.instance_action(
                run.context, there, "unrescue", "end", host=there.host or "", block_devices=present
            )


class DeleteRescueDisk(Step[Unrescue]):
    """Deletes the rescue disk."""

    name = "DeleteRescueDisk"

    def where(self, run: Unrescue) -> str | None:
        return run.instance().host

    def do(self, run: Unrescue) -> None:
        try:
            instance = run.instance()
        except errors.ServerNotFound:
            return
        host = instance.host or ""
        if not liveness.of_host(run.services, run.database, host).is_up:
            # Does not wait for the host, so that the server can be evacuated. The next start of the guest deletes the disk, or
            # the delete of the server does.
            LOG.info("The rescue disk of server %s stays on %s, which is down", run.uuid, host)
            return
        run.computes.delete_rescue_disk(run.context, host, token=run.token(self.name), instance=instance)


def _not_rescued(run: Rescue, cause: errors.CausewayError) -> None:
    """Restores the server's state."""
    endings.failed(run, cause, RESCUING)


def _not_unrescued(run: Unrescue, cause: errors.CausewayError) -> None:
    """The server stays rescued."""
    endings.failed(run, cause, UNRESCUING)


RESCUE = Recipe(
    operations.RESCUE,
    (RescueGuest(), MarkRescued()),
    pivot="MarkRescued",
    rolled_back=_not_rescued,
    memory=RescueMemory,
)

UNRESCUE = Recipe(
    operations.UNRESCUE,
    (StartFromOwnDisk(), EndUnrescue(), DeleteRescueDisk()),
    pivot="EndUnrescue",
    rolled_back=_not_unrescued,
    memory=UnrescueMemory,
)
