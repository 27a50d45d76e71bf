"""What operations make outside of the journal. `docs/architecture/operations.md` says how an undo finds each thing."""

from __future__ import annotations

from enum import StrEnum


class Thing(StrEnum):
    """Things of a server. A step declares those that it makes (`Step.makes`), and its undo deletes them."""

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
