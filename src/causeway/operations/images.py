"""Makes images of servers: createImage and createBackup. The API has already made the record of the image."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeAlias

from causeway import errors
from causeway.clients.rights import named
from causeway.model import operations
from causeway.model.states import TaskState
from causeway.model.things import Thing
from causeway.operations import root_disk_images
from causeway.running.operation_run import OperationRun
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, guests

LOG = logging.getLogger(__name__)

TASKS = {TaskState.IMAGE_SNAPSHOT_PENDING, TaskState.IMAGE_BACKUP}


@dataclass
class ImageMemory:
    """``rotation``: how many backups of this type to keep; None if this is no backup."""

    image_id: str
    rotation: Given[int | None] = None
    backup_type: Given[str | None] = None


Run: TypeAlias = OperationRun[ImageMemory]


class UploadDisk(Step[Run]):
    """Has the host make the image of the root disk, as it is at one instant. The guest continues to run."""

    name = "UploadDisk"
    reads = frozenset({"image_id"})
    makes = frozenset({Thing.IMAGE})

    def where(self, run: Run) -> str | None:
        return run.instance().host

    def do(self, run: Run) -> None:
        instance, image_id = run.instance(), run.memory.image_id
        host = instance.host or ""
        if not run.is_repeated:
            _notify(run, "start")
        with run.event(run.kind.event, host):
            if run.is_repeated:
                image = run.services.images.show_of_server(run.context, image_id)
                if image.status == "active":
                    # The upload is complete, so the host is not needed; it may be dead by now.
                    run.transferred(image.size)
                    return
            guests.require_host(run, host)
            run.transferred(root_disk_images.make(run, self.name, host, image_id, power_off=False))

    def undo(self, run: Run) -> None:
        run.services.images.delete(run.context, run.memory.image_id)


class EndImage(Step[Run]):
    """Ends the operation. The image stays, even if the server is being deleted."""

    name = "EndImage"
    reads = frozenset({"image_id"})

    def do(self, run: Run) -> None:
        run.pivot()
        endings.ended(run, TASKS)
        _notify(run, "end")


class RotateBackups(Step[Run]):
    """Deletes the server's oldest backups of this type."""

    name = "RotateBackups"
    reads = frozenset({"backup_type", "rotation"})

    def do(self, run: Run) -> None:
        memory, images, project_id = run.memory, run.services.images, run.context.project_id or ""
        wanted = {
            "image_type": "backup",
            "backup_type": memory.backup_type or "",
            "instance_uuid": run.uuid,
            "sort": "created_at:desc",
        }
        for image in images.list_of(run.context, project_id, wanted)[memory.rotation or 0 :]:
            if image.owner == project_id:
                images.delete(run.context, image.id)
            else:
                self._delete_as_user(run, image.id)

    def _delete_as_user(self, run: Run, image_id: str) -> None:
        """Deletes a backup that another project made of this server, if the user may delete it."""
        try:
            run.services.images.delete(run.context, image_id, called_as=named(image_id))
        except (errors.Forbidden, errors.Unauthorized) as refusal:
            LOG.warning("Backup %s of server %s is not rotated: %s", image_id, run.uuid, refusal.message)


def _notify(run: Run, phase: str) -> None:
    try:
        instance = run.instance()
    except errors.ServerNotFound:
        LOG.info("Server %s was deleted while its image %s was made", run.uuid, run.memory.image_id)
        return
    if phase == "end":
        instance.task_state = None
    run.services.notifier.instance_action(
        run.context, instance, "snapshot", phase, host=instance.host or "", snapshot_image_id=run.memory.image_id
    )


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Restores the server's state. Only the image failed."""
    if not run.steps:
        # The request made the image's record, and no step began whose undo would delete it.
        run.services.images.delete(run.context, run.memory.image_id)
    endings.failed(run, cause, TASKS)


CREATE_IMAGE = Recipe(
    operations.CREATE_IMAGE,
    (UploadDisk(), EndImage()),
    pivot="EndImage",
    rolled_back=_rolled_back,
    memory=ImageMemory,
)

CREATE_BACKUP = Recipe(
    operations.CREATE_BACKUP,
    (UploadDisk(), EndImage(), RotateBackups()),
    pivot="EndImage",
    rolled_back=_rolled_back,
    memory=ImageMemory,
)
