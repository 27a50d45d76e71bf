"""Image service: temporary images end with the move that made them."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.snapshot import Snapshot
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.states import VmState

SUFFIX = "-resize-temp"


def leftover(snapshot: Snapshot) -> Iterator[Disagreement]:
    under_way = {move.migration_uuid for move in snapshot.moves if _is_active(snapshot, move.instance_uuid)}
    for image in snapshot.images or []:
        migration_uuid = image.properties.get("migration_uuid")
        if not image.name.endswith(SUFFIX) or migration_uuid is None or migration_uuid in under_way:
            continue
        migration = snapshot.migrations.get(str(migration_uuid))
        home = snapshot.home(migration.instance_uuid) if migration is not None else None
        left = "" if migration is not None else "Nobody here knows the migration: it may be another cloud's."
        if home is not None and home.vm_state is VmState.ERROR:
            left = "It may be the only copy of the server's disk."
        yield Disagreement(
            "image.leftover",
            Severity.WARNING,
            f"image {image.id}",
            migration.instance_uuid if migration is not None else None,
            f"Image {image.name} ({image.id}) was made for migration {migration_uuid}, which needs it no more.",
            None if left else Fix("delete_image", {"image_id": image.id}),
            left=left,
        )


def _is_active(snapshot: Snapshot, server: str) -> bool:
    movement = snapshot.movement(server)
    return movement is not None and movement.under_way
