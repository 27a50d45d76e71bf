"""What operations make outside of the journal. `docs/architecture/operations.md` says how an undo finds each thing."""

from __future__ import annotations

from enum import StrEnum


class Thing(StrEnum):
    """Of a server: what a step declares that it makes (`Step.makes`), so that its undo deletes it."""

    PORT = "port"
    BINDING = "binding"
    VOLUME = "volume"
    ATTACHMENT = "attachment"
    SNAPSHOT = "snapshot"
    IMAGE = "image"
    ALLOCATION = "allocation"
    CLAIM = "claim"
    DISKS = "disks"
    GUEST = "guest"
    DEVICE = "device"
