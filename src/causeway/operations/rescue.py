"""Rescuing servers: the guest boots a disk of an image, with its own disks beside it; and ending that.

What a server is rescued with is in its system metadata (`causeway.model.rescue`). Its own disks are detached at most: neither
recipe writes or deletes them, and the rescue disk goes only after the guest has come up from its own.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, TypeAlias

from causeway import errors
from causeway.model import operations
from causeway.model import rescue as records
from causeway.model.outcomes import GuestOutcome
from causeway.model.rescue import RescueImage
from causeway.model.states import TaskState, VmState
from causeway.model.things import Thing
from causeway.operations import endings, guests
from causeway.operations.run import OperationRun
from causeway.parts import liveness
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.sagas.retries import Patience
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

RESCUING, UNRESCUING = {TaskState.RESCUING}, {TaskState.UNRESCUING}


@dataclass
class RescueMemory:
    """``asked_for``: the image that the request named, if it did. ``was_running``: before. ``guest``: once it is rescued."""

    image: RescueImage
    asked_for: Given[str | None] = None
    was_running: Given[bool] = True
    guest: GuestOutcome | None = None


@dataclass
class UnrescueMemory:
    """``image``: what the server is rescued with. ``guest``: once it runs from its own disk."""

    image: Given[RescueImage | None] = None
    guest: GuestOutcome | None = None


Rescue: TypeAlias = OperationRun[RescueMemory]
Unrescue: TypeAlias = OperationRun[UnrescueMemory]


def _patience_while_off(run: OperationRun[Any]) -> Patience:
    options = run.unguarded.conf.moves
    return Patience(options.patience_while_off, options.stuck_retry_interval)


class RescueGuest(Step[Rescue]):
    """The guest is powered off and boots a disk of the image."""

    name = "RescueGuest"
    reads = frozenset({"image", "asked_for", "was_running"})
    writes = frozenset({"guest"})
    makes = frozenset({Thing.DISKS, Thing.GUEST})

    def where(self, run: Rescue) -> str | None:
        return run.instance().host

    def patience(self, run: Rescue) -> Patience:
        return _patience_while_off(run)

    def do(self, run: Rescue) -> None:
        instance, present, memory = run.instance(), run.devices(), run.memory
        host = instance.host or ""
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
        with run.event("compute_rescue_instance", host):
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
            # Its own disk is there, and its guest is off like every other one of the host. The next start is from that disk.
            return
        try:
            run.computes.undo_rescue(
                run.context,
                host,
                token=run.token(self.name),
                instance=instance,
                block_devices=run.devices(),
                power_on=run.memory.was_running,
            )
        except errors.HostTooOld as failure:
            LOG.info("Nothing of the rescue of server %s is to be undone: %s", run.uuid, failure.message)


class MarkRescued(Step[Rescue]):
    """The server is in RESCUE."""

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


class StartFromOwnDisk(Step[Unrescue]):
    """The guest is powered off and boots its own disk again. The rescue disk stays meanwhile."""

    name = "StartFromOwnDisk"
    reads = frozenset({"image"})
    writes = frozenset({"guest"})
    makes = frozenset({Thing.GUEST})

    def where(self, run: Unrescue) -> str | None:
        return run.instance().host

    def patience(self, run: Unrescue) -> Patience:
        return _patience_while_off(run)

    def do(self, run: Unrescue) -> None:
        instance, present = run.instance(), run.devices()
        host = instance.host or ""
        if not run.is_repeated:
            run.services.notifier.instance_action(
                run.context, instance, "unrescue", "start", host=host, block_devices=present
            )
        with run.event("compute_unrescue_instance", host):
            guests.require_host(run, host)
            run.memory.guest = run.computes.unrescue_guest(
                run.context, host, token=run.token(self.name), instance=instance, block_devices=present
            )

    def undo(self, run: Unrescue) -> None:
        instance, image = run.instance(), run.memory.image
        host = instance.host or ""
        if image is None or guests.is_dead(run, host):
            return
        try:
            run.computes.undo_unrescue(
                run.context,
                host,
                token=run.token(self.name),
                instance=instance,
                block_devices=run.devices(),
                image=image,
            )
        except errors.HostTooOld as failure:
            LOG.info("Nothing of the unrescue of server %s is to be undone: %s", run.uuid, failure.message)


class EndUnrescue(Step[Unrescue]):
    """The server is ACTIVE, whatever it was before it was rescued, as in the field."""

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
    """Nobody boots it any more."""

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
            # Nobody waits for it, lest who evacuates the server has to: it goes with the next start of the guest, or the server.
            LOG.info("The rescue disk of server %s stays on %s, which is down", run.uuid, host)
            return
        run.computes.delete_rescue_disk(run.context, host, token=run.token(self.name), instance=instance)


def _not_rescued(run: Rescue, cause: errors.CausewayError) -> None:
    """The server is as it was."""
    endings.failed(run, cause, RESCUING)


def _not_unrescued(run: Unrescue, cause: errors.CausewayError) -> None:
    """Rescued as before."""
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
