"""Images of servers: createImage and createBackup."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.context import RequestContext
from causeway.model.states import TaskState
from causeway.parts import history
from causeway.parts.services import ConductorServices
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)

SNAPSHOTTING = {TaskState.IMAGE_SNAPSHOT_PENDING, TaskState.IMAGE_BACKUP}


class SnapshotEndpoint:
    """RPC: snapshot_instance."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def snapshot_instance(
        self,
        context: RequestContext,
        *,
        instance_uuid: str,
        image_id: str,
        rotation: int | None,
        backup_type: str | None,
    ) -> None:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        if instance.task_state not in SNAPSHOTTING:
            services.images.delete(context, image_id)
            return
        host = instance.host or ""
        event = "compute_snapshot_instance" if rotation is None else "compute_backup_instance"
        services.notifier.instance_action(context, instance, "snapshot", "start", host=host, snapshot_image_id=image_id)
        try:
            with history.event(database, context, instance_uuid, event, host):
                services.computes(cell.uuid).snapshot_instance(context, host, instance=instance, image_id=image_id)
        except errors.CausewayError as failure:
            # The server is as it was: only the image failed.
            services.images.delete(context, image_id)
            history.fail(database, instance_uuid, failure, host, task_state=None)
            return
        try:
            instances.update(database, instance_uuid, expected_task=SNAPSHOTTING, task_state=None)
        except (errors.StateChanged, errors.ServerNotFound):
            # It is to be deleted by now; the image is the user's all the same.
            LOG.info("Server %s changed while its image %s was made", instance_uuid, image_id)
        instance.task_state = None
        services.notifier.instance_action(context, instance, "snapshot", "end", host=host, snapshot_image_id=image_id)
        if rotation is not None and backup_type is not None:
            self._rotate(context, instance_uuid, backup_type, rotation)

    def _rotate(self, context: RequestContext, uuid: str, backup_type: str, rotation: int) -> None:
        found = self._services.images.list(
            context,
            {"image_type": "backup", "backup_type": backup_type, "instance_uuid": uuid, "sort": "created_at:desc"},
        )
        for image in found[rotation:]:
            self._services.images.delete(context, image.id)
