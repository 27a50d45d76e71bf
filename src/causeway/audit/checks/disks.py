"""Hypervisors: disks are where their servers are, and stashed only while a move may still need them."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.snapshot import ServerStanding, Snapshot
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.states import VmState

# A shelved server has its disks until it is offloaded.
WITH_DISKS = frozenset(
    {
        VmState.ACTIVE,
        VmState.STOPPED,
        VmState.RESIZED,
        VmState.PAUSED,
        VmState.SUSPENDED,
        VmState.RESCUED,
        VmState.SHELVED,
    }
)


def _can_go(snapshot: Snapshot, uuid: str, host: str) -> str:
    """Empty if the disks of a server on this host are certainly not needed; else the reason to keep them."""
    standing = snapshot.standing(uuid)
    contents = snapshot.contents_of(host)
    if contents is None or uuid in contents.guests:
        return "There is a guest that may use them."
    if standing is ServerStanding.DELETED:
        return ""
    if standing is not ServerStanding.LIVE:
        return "This cloud does not know whose they are."
    home = snapshot.home(uuid)
    there = snapshot.contents_of(home.host) if home is not None else None
    if home is None or home.host == host or there is None or not snapshot.is_quiet(home):
        return "They may be the only copy."
    if uuid not in there.disks or (uuid not in there.guests):
        return f"They may be the only copy: {home.host} does not have all of the server."
    if snapshot.movement(uuid) is not None:
        return "A move of the server has not ended."
    return ""


def _disagreement(snapshot: Snapshot, uuid: str, host: str, *, stashed: bool) -> Disagreement:
    left = _can_go(snapshot, uuid, host)
    standing, home = snapshot.standing(uuid), snapshot.home(uuid)
    what = "stashed disks" if stashed else "disks"
    if standing is ServerStanding.LIVE and home is not None:
        why = f"which is on {home.host}" + (", and no move explains them" if stashed else "")
    else:
        why = "which is deleted" if standing is ServerStanding.DELETED else "which nobody knows"
    return Disagreement(
        "disk.stashed" if stashed else "disk.orphaned",
        Severity.WARNING,
        f"{what} on {host}",
        uuid,
        f"{host} has {what} of server {uuid}, {why}.",
        None if left else Fix("remove_disks", {"host": host, "uuid": uuid, "stashed": stashed}),
        left,
    )


def elsewhere(snapshot: Snapshot) -> Iterator[Disagreement]:
    for host in snapshot.hosts.values():
        for uuid in host.contents.disks if host.contents is not None else []:
            if snapshot.standing(uuid) is ServerStanding.UNSEEN or host.name in snapshot.may_hold(uuid):
                continue
            yield _disagreement(snapshot, uuid, host.name, stashed=False)


def stashed(snapshot: Snapshot) -> Iterator[Disagreement]:
    for host in snapshot.hosts.values():
        for uuid in host.contents.stashed if host.contents is not None else []:
            movement, home = snapshot.movement(uuid), snapshot.home(uuid)
            if snapshot.standing(uuid) is ServerStanding.UNSEEN:
                continue
            if movement is not None and host.name in movement.hosts:
                continue
            if home is not None and home.task_state is not None and not snapshot.is_old(home.updated_at):
                # A server that is being deleted may have lost its disks, but not the stashed ones yet.
                continue
            yield _disagreement(snapshot, uuid, host.name, stashed=True)


def of_rescues(snapshot: Snapshot) -> Iterator[Disagreement]:
    """A rescue disk is on the server's host exactly while the server is rescued."""
    for home in snapshot.homes:
        contents = snapshot.contents_of(home.host)
        if contents is None or not snapshot.is_quiet(home):
            continue
        is_there, is_rescued = home.uuid in contents.rescue_disks, home.vm_state is VmState.RESCUED
        if is_rescued and not is_there:
            yield Disagreement(
                "disk.rescue_missing",
                Severity.ERROR,
                f"rescue disk on {home.host}",
                home.uuid,
                f"The server is rescued on {home.host}, which has no rescue disk of it.",
                left="Its own disks are not affected: end the rescue (unrescue), and rescue it again if necessary.",
            )
        if is_there and not is_rescued:
            yield Disagreement(
                "disk.rescue_orphaned",
                Severity.WARNING,
                f"rescue disk on {home.host}",
                home.uuid,
                f"{home.host} has a rescue disk of the server, which is {home.vm_state}.",
                # The host refuses while the guest uses it (after a reset of the state): a hard reboot ends that.
                Fix("remove_file", {"host": home.host, "name": f"rescue.part-of-{home.uuid}"}),
            )


def missing(snapshot: Snapshot) -> Iterator[Disagreement]:
    for home in snapshot.homes:
        if home.is_volume_backed or home.vm_state not in WITH_DISKS or not snapshot.is_quiet(home):
            continue
        contents = snapshot.contents_of(home.host)
        if contents is not None and home.uuid not in contents.disks:
            aside = home.uuid in contents.stashed
            yield Disagreement(
                "disk.missing",
                Severity.CRITICAL,
                f"disks on {home.host}",
                home.uuid,
                f"The server is on {home.host}, which has no disks of it{' but stashed ones' if aside else ''}.",
                left="Look for them on the other hosts before anything is started.",
            )
        waiting = snapshot.waiting(home.uuid)
        at_source = snapshot.contents_of(waiting.source_host) if waiting is not None else None
        if waiting is not None and at_source is not None and home.uuid not in at_source.stashed:
            yield Disagreement(
                "disk.missing",
                Severity.ERROR,
                f"stashed disks on {waiting.source_host}",
                home.uuid,
                f"The disks that {waiting.source_host} should keep for a revert are not there.",
                left="The resize can't be reverted any more: confirm it.",
            )
