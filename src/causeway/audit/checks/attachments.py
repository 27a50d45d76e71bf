"""Volume service: which servers use which volumes, from where."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.checks.bindings import WITH_GUEST
from causeway.audit.snapshot import ServerStanding, Snapshot
from causeway.clients.volume import Attachment
from causeway.model.audit import Disagreement, Fix, Severity


def orphaned(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Attachments of servers that are deleted, that don't have the volume, or that have it through another attachment."""
    for attachment in snapshot.attachments or []:
        server = attachment.instance_uuid
        if server is None:
            continue
        standing = snapshot.standing(server)
        if standing is ServerStanding.DELETED:
            yield _orphaned(attachment, server, "a server that is deleted")
            continue
        home = snapshot.home(server)
        if home is None or not snapshot.is_quiet(home):
            continue
        known = set(home.attachment_ids)
        movement = snapshot.movement(server)
        if movement is not None:
            known |= movement.attachment_ids
        if attachment.id in known:
            continue
        has_it = any(device.volume_id == attachment.volume_id for device in home.block_devices)
        yield _orphaned(
            attachment,
            server,
            "a server that has the volume through another attachment" if has_it else "a server without this volume",
        )


def _orphaned(attachment: Attachment, server: str, whose: str) -> Disagreement:
    connected = attachment.is_connected
    return Disagreement(
        "attachment.orphaned",
        Severity.ERROR if connected else Severity.WARNING,
        f"attachment {attachment.id}",
        server,
        f"Attachment {attachment.id} of volume {attachment.volume_id} ({attachment.status}) belongs to {whose}.",
        None if connected else Fix("delete_attachment", {"attachment_id": attachment.id}),
        left="A host is connected through it: detaching the volume under it could damage data." if connected else "",
    )


def connected_twice(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Two connections of one server to a volume: two hosts could write to it."""
    by_use: dict[tuple[str, str], list[Attachment]] = {}
    for attachment in snapshot.attachments or []:
        if attachment.instance_uuid is not None and attachment.is_connected:
            by_use.setdefault((attachment.instance_uuid, attachment.volume_id), []).append(attachment)
    for (server, volume_id), found in by_use.items():
        if len(found) > 1 and snapshot.standing(server) is not ServerStanding.UNKNOWN:
            names = ", ".join(sorted(attachment.id for attachment in found))
            yield Disagreement(
                "attachment.connected_twice",
                Severity.CRITICAL,
                f"volume {volume_id}",
                server,
                f"Volume {volume_id} is connected through {len(found)} attachments of the same server: {names}.",
                left="Look at the hosts to find out which of them uses it, then delete the other attachment.",
            )


def missing(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Attachments that a server or its finished move needs, and that are missing or not connected."""
    there = {attachment.id: attachment for attachment in snapshot.attachments or []}
    for home in snapshot.homes:
        if not snapshot.is_quiet(home):
            continue
        for device in home.block_devices:
            if not device.is_volume or device.volume_id is None:
                continue
            if device.attachment_id is None:
                if home.vm_state in WITH_GUEST and snapshot.is_at_rest(home):
                    yield _missing(home.uuid, device.volume_id, None, "was never asked for it")
                continue
            attachment = there.get(device.attachment_id)
            if attachment is None:
                yield _missing(home.uuid, device.volume_id, device.attachment_id, "does not know it")
            elif device.connection_info is not None and not attachment.is_connected:
                yield _missing(home.uuid, device.volume_id, device.attachment_id, "says that no host is connected")
        waiting = snapshot.waiting(home.uuid)
        if waiting is None:
            continue
        volumes = {device.volume_id for device in home.block_devices}
        for pair in waiting.memory.attachments:
            if pair.volume_id in volumes and pair.source is not None and pair.source not in there:
                yield Disagreement(
                    "attachment.missing",
                    Severity.ERROR,
                    f"attachment {pair.source}",
                    home.uuid,
                    f"Attachment {pair.source}, which reserves volume {pair.volume_id} for a revert, is gone.",
                    left="The revert would not use a new attachment: confirm the resize.",
                )


def _missing(server: str, volume_id: str, attachment_id: str | None, says: str) -> Disagreement:
    through = f"through attachment {attachment_id}" if attachment_id is not None else "without an attachment"
    return Disagreement(
        "attachment.missing",
        Severity.ERROR,
        f"attachment {attachment_id}" if attachment_id is not None else f"volume {volume_id}",
        server,
        f"The server has volume {volume_id} {through}, but the volume service {says}.",
        left="Detach the volume and attach it again, or reboot the server hard.",
    )


# A volume in one of these states is being attached or detached.
ON_ITS_WAY = frozenset({"attaching", "detaching", "reserved"})


def volumes(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Volumes that a server has but that don't exist, and those that are being attached or detached without a server."""
    used = {attachment.volume_id for attachment in snapshot.attachments or []}
    known = snapshot.volumes or {}
    for home in snapshot.homes:
        for device in home.block_devices:
            if not device.is_volume or device.volume_id is None:
                continue
            used.add(device.volume_id)
            if device.volume_id not in known and snapshot.is_at_rest(home):
                yield Disagreement(
                    "volume.missing",
                    Severity.CRITICAL if device.boot_index == 0 else Severity.ERROR,
                    f"volume {device.volume_id}",
                    home.uuid,
                    f"The server has volume {device.volume_id}, which the volume service does not know.",
                    left="Find out from the volume service whether it was deleted or lost; then detach it.",
                )
    for volume in known.values():
        if volume.status in ON_ITS_WAY and volume.id not in used:
            yield Disagreement(
                "volume.on_its_way",
                Severity.WARNING,
                f"volume {volume.id}",
                None,
                f"Volume {volume.id} is {volume.status}, but no server has it and no attachment is for it.",
                left="If nobody else works on it, reset its state to available in the volume service.",
            )
