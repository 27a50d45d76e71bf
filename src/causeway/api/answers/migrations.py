"""Migrations. From 2.80 they have keys of ours, which Nova's clients of those versions ignore."""

from __future__ import annotations

from causeway.api.answers.parts import (
    ANYTHING,
    COUNT,
    INTEGER,
    LINKS,
    MICROS,
    NEXT,
    TEXT,
    UUID,
    enum,
    many,
    null,
    record,
    shown_as,
    since,
)

_COUNTED = null(COUNT)
_BOTH = {
    "id": INTEGER,
    "status": TEXT,
    "created_at": MICROS,
    "updated_at": null(MICROS),
    "source_compute": null(TEXT),
    "source_node": null(TEXT),
    "dest_compute": null(TEXT),
    "dest_node": null(TEXT),
    "dest_host": null(TEXT),
    "uuid": since(59, UUID),
    "user_id": since(80, null(TEXT)),
    "project_id": since(80, null(TEXT)),
}
# Ours: of moves that are under way.
_PROGRESS = {
    f"causeway:{name}": since(80, part)
    for name, part in {
        "step": null(TEXT),
        "bytes_done": _COUNTED,
        "bytes_total": _COUNTED,
        "percent": _COUNTED,
        "round": _COUNTED,
        "seconds_left": _COUNTED,
    }.items()
}
_ONE = record(
    _BOTH
    | {
        "instance_uuid": UUID,
        "old_instance_type_id": null(INTEGER),
        "new_instance_type_id": null(INTEGER),
        "migration_type": since(23, enum("migration", "resize", "live-migration", "evacuation")),
    },
    _PROGRESS
    | {
        # of live migrations that are under way
        "links": since(23, LINKS),
        # ours: of moves that failed
        "causeway:error": since(80, TEXT),
        "causeway:error_details": since(80, ANYTHING),
    },
)
INDEX = shown_as("migrations", many(_ONE), {"migrations_links": since(59, NEXT)})
_OF_SERVER = record(
    _BOTH
    | {"server_uuid": UUID}
    | {f"{what}_{part}_bytes": _COUNTED for what in ("disk", "memory") for part in ("processed", "remaining", "total")},
    _PROGRESS,
)
INDEX_OF_SERVER = shown_as("migrations", many(_OF_SERVER))
SHOW_OF_SERVER = shown_as("migration", _OF_SERVER)
