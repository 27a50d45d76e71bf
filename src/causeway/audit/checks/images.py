"""Image service: temporary images are deleted with the end of their work, and shelved servers have their images."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.snapshot import ServerStanding, Snapshot
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.states import SHELVED, VmState

SUFFIX = "-resize-temp"
SHELVED_SUFFIX = "-shelved"
# The image has no data, or not all of it.
UNFINISHED = ("queued", "saving", "importing")


def orphaned(snapshot: Snapshot) -> Iterator[Disagreement]:
    under_way = {
        operation.migration_uuid for operation in snapshot.operations if _is_active(snapshot, operation.instance_uuid)
    }
    for image in snapshot.images or []:
        migration_uuid = image.properties.get("migration_uuid")
        if not image.name.endswith(SUFFIX) or migration_uuid is None or migration_uuid in under_way:
            continue
        migration = snapshot.migrations.get(str(migration_uuid))
        left = "This cloud does not know the migration: it may be another cloud's."
        if migration is not None:
            standing, home = snapshot.standing(migration.instance_uuid), snapshot.home(migration.instance_uuid)
            if standing is ServerStanding.UNSEEN:
                continue
            is_in_doubt = standing is ServerStanding.LIVE and (home is None or home.vm_state is VmState.ERROR)
            left = "It may be the only copy of the server's disk." if is_in_doubt else ""
        yield Disagreement(
            "image.orphaned",
            Severity.WARNING,
            f"image {image.id}",
            migration.instance_uuid if migration is not None else None,
            f"Image {image.name} ({image.id}) was made for migration {migration_uuid}, which no longer needs it.",
            None if left else Fix("delete_image", {"image_id": image.id}),
            left=left,
        )


def of_shelved(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Images of shelved servers that are missing. Once it is offloaded, a server can only be unshelved from its image."""
    known = {image.id: image for image in snapshot.images or []}
    for home in snapshot.homes:
        if home.vm_state not in SHELVED or home.is_volume_backed or not snapshot.is_quiet(home):
            continue
        image = known.get(home.shelved_image_id or "")
        status = image.status if image is not None else "not there"
        if status == "active":
            continue
        is_last = home.vm_state is VmState.SHELVED_OFFLOADED
        yield Disagreement(
            "image.missing",
            Severity.CRITICAL if is_last else Severity.ERROR,
            f"image {home.shelved_image_id}",
            home.uuid,
            f"The server is {home.vm_state}, and the image to unshelve it from is {status}.",
            left="Nothing else has its disk: look for the image's data before anything is deleted."
            if is_last
            else "Its host still has its disks: unshelve it.",
        )


def of_operations(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Unfinished images that nobody uploads, and images of servers that are no longer shelved."""
    for image in snapshot.images or []:
        server = str(image.properties.get("instance_uuid") or "")
        standing, home = snapshot.standing(server), snapshot.home(server)
        if (
            image.name.endswith(SUFFIX)
            or standing not in (ServerStanding.LIVE, ServerStanding.DELETED)
            or server in snapshot.working
        ):
            continue
        if home is not None and (not snapshot.is_quiet(home) or home.shelved_image_id == image.id):
            continue
        if image.status in UNFINISHED:
            yield Disagreement(
                "image.unfinished",
                Severity.WARNING,
                f"image {image.id}",
                server,
                f"Image {image.name} ({image.id}) of the server is {image.status}, and nobody uploads it.",
                left="If nobody else uploads it, delete the image.",
            )
        elif image.name.endswith(SHELVED_SUFFIX):
            yield Disagreement(
                "image.orphaned",
                Severity.WARNING,
                f"image {image.id}",
                server,
                f"Image {image.name} ({image.id}) is named as one of a shelved server, which the server is not.",
                left="Unless its user has given it that name, delete the image.",
            )


def _is_active(snapshot: Snapshot, server: str) -> bool:
    movement = snapshot.movement(server)
    return movement is not None and movement.under_way
