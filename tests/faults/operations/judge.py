"""What became of a server that an operation was asked for: done or not, and what is wrong with it. Judged by a `Holding`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.faults.answers import Answer
from tests.faults.cases import FORWARD, NEITHER, REFUSED, ROLLED_BACK
from tests.faults.clouds.site import Site
from tests.faults.complaints import LEAKED, LOST, STUCK, Complaint, expect
from tests.faults.operations.subjects import Subject
from tests.faults.operations.table import Operation
from tests.faults.world import Holding

SHELVED_IMAGE = "-shelved"


def end_of(operation: Operation, now: Holding, before: Holding, answer: Answer | None = None) -> str:
    back = REFUSED if answer is not None and answer.kind == "refused" else ROLLED_BACK
    if operation.took_effect(now, before):
        return FORWARD
    now = _when_started(operation, now, before)
    if operation.may_leave_cell:
        now = replace(now, cell=before.cell)
    # An image too many is orphaned, and does the server no harm.
    images = before.images if set(before.images) <= set(now.images) else now.images
    if not replace(now, images=images).differences(before):
        return back
    return back if operation.may_end_in_error and now.status == "ERROR" else NEITHER


def complaints(site: Site, subject: Subject, operation: Operation, now: Holding) -> list[Complaint]:
    """Of a server on which nobody works."""
    before = subject.before
    assert before is not None
    end, found = end_of(operation, now, before), list(contradictions(site, subject, operation, now))
    if end == NEITHER and now.task is None:
        found.append(Complaint(LOST, f"neither done nor as before: {'; '.join(now.differences(before))}"))
    answer = subject.answer
    if answer is None or now.task is not None:
        return found
    if end == ROLLED_BACK and answer.is_accepted and now.fault is None and not _is_explained(site, subject):
        found.append(Complaint(LOST, f"answered with {answer.status}, and not done; nothing says why"))
    if end == FORWARD and answer.is_refused and not answer.is_lost:
        found.append(Complaint(LOST, f"answered with {answer.status}, and done: {answer.text}"))
    return found


def _is_explained(site: Site, subject: Subject) -> bool:
    """Whether the server's history says that what was asked for has failed."""
    assert subject.answer is not None
    path = f"/servers/{subject.uuid}/os-instance-actions/{subject.answer.request_id}"
    found = site.member.compute.get(path)
    return found.status_code == 200 and bool(found.json()["instanceAction"]["message"])


def _when_started(operation: Operation, now: Holding, before: Holding) -> Holding:
    """With the volumes that the guest gets when it is started, if it is off and they are reserved for it."""
    used = {volume_id for volume_id, _ in now.attachments}
    if not operation.while_off or now.status != "SHUTOFF" or used != {each for each, _ in before.attachments}:
        return now
    if len(now.attachments) != len(used) or not {status for _, status in now.attachments} <= {"attached", "reserved"}:
        return now
    return replace(now, devices=before.devices, attachments=before.attachments, volumes=before.volumes)


def contradictions(site: Site, subject: Subject, operation: Operation, now: Holding) -> Iterator[Complaint]:
    """Where those who know of the server disagree, whatever was asked for."""
    if now.task is not None:
        yield Complaint(STUCK, f"{now.status} with task {now.task}")
        return
    if subject.before is not None:
        now = _when_started(operation, now, subject.before)
    yield from on_hosts(now)
    yield from devices(now)
    yield from _images(subject, operation, now)
    if now.guests and subject.before is not None and subject.before.status is not None and not operation.loses_disk:
        yield from expect(LOST, "marks on its disk", now.marks, 1)
    if subject.volume_id is not None and subject.volume_id not in now.recorded_volumes:
        yield from expect(STUCK, "the user's volume", now.volumes.get(subject.volume_id), "available")
    yield from expect(LOST, "of other projects", now.owners - {site.member.current_project_id}, set())


def on_hosts(now: Holding) -> Iterator[Complaint]:
    """Guests, disks and allocations."""
    if now.status == "VERIFY_RESIZE":
        yield from _while_it_waits(now)
    elif now.status in ("ACTIVE", "SHUTOFF", "SHELVED", "RESCUE"):
        assert now.host is not None
        state = "RUNNING" if now.status in ("ACTIVE", "RESCUE") else "SHUTDOWN"
        disks = ["disks", "rescue"] if now.status == "RESCUE" else ["disks"]
        yield from expect(LOST, f"guests of a server that is {now.status}", now.guests, {now.host: state})
        yield from expect(LOST, f"disks of a server that is {now.status}", now.disks, {now.host: disks})
        yield from expect(LOST, "allocations", now.allocations, {now.host: now.vcpus})
    elif now.status == "ERROR" and now.host is not None:
        yield from expect(LOST, "guests elsewhere", set(now.guests) - {now.host}, set())
        yield from expect(LOST, "disks elsewhere", set(now.disks) - {now.host}, set())
        yield from expect(LOST, "allocations", now.allocations, {now.host: now.vcpus})
    elif now.status in (None, "SHELVED_OFFLOADED", "ERROR"):
        yield from expect(LOST, f"the host of a server that is {now.status}", now.host, None)
        yield from expect(LEAKED, "guests", now.guests, {})
        yield from expect(LEAKED, "disks", now.disks, {})
        yield from expect(LEAKED, "allocations", now.allocations, {})
    else:
        yield Complaint(LOST, f"status {now.status}")
    if now.status == "ERROR":
        yield from expect(LOST, "has a fault", now.fault is not None, True)


def _while_it_waits(now: Holding) -> Iterator[Complaint]:
    """For confirm or revert: the source keeps disks and an allocation, and no guest."""
    if now.host is None or now.source is None:
        yield Complaint(LOST, f"waits for confirm or revert on {now.host}, with {now.source} as its source")
        return
    kept = {now.source: ["stashed"], now.host: ["disks"]} if now.source != now.host else {}
    yield from expect(LOST, "hosts with a guest", set(now.guests), {now.host})
    yield from expect(LOST, "disks", now.disks, kept or {now.host: ["disks", "stashed"]})
    yield from expect(LOST, "allocations", now.allocations, {now.host: now.vcpus})
    yield from expect(LOST, "hosts of the migration's allocations", set(now.held), {now.source})


def devices(now: Holding) -> Iterator[Complaint]:
    """Ports and volumes: those of the record, of the guest and of the services around."""
    if now.status is None:
        yield from expect(LEAKED, "ports", sorted(now.ports), [])
        yield from expect(LEAKED, "attachments", now.attachments, [])
        return
    if now.status == "ERROR":
        # Of a build that broke off more may be there than its record names: it goes with the server.
        yield from expect(LOST, "ports that are not there", now.addresses - now.ports_addresses, set())
    else:
        yield from expect(LOST, "ports' addresses in its record", now.addresses, now.ports_addresses)
    has_guest = now.status in ("ACTIVE", "SHUTOFF", "SHELVED", "VERIFY_RESIZE", "RESCUE")
    if has_guest:
        # One that is rescued has its root disk only, beside the rescue disk.
        volumes = [] if now.status == "RESCUE" else now.recorded_volumes
        wanted = {now.host: sorted([*volumes, *now.ports])}
        yield from expect(LOST, "devices of its guest", now.devices, wanted)
    bound = now.host if has_guest else "" if now.host is None else None
    if bound is not None:
        yield from expect(LOST, "hosts of its ports", {host for host, _ in now.ports.values()} - {bound}, set())
    if now.status == "ACTIVE":
        yield from expect(LOST, "ports' status", {status for _, status in now.ports.values()} - {"ACTIVE"}, set())
    attachments = now.attachments
    if now.status == "VERIFY_RESIZE":
        # What the source has reserved for a revert is there besides.
        reserved = {volume_id for volume_id, status in attachments if status == "reserved"}
        yield from expect(LEAKED, "reservations of volumes", reserved - set(now.recorded_volumes), set())
        attachments = [each for each in attachments if each[1] != "reserved"]
    states = {status for _, status in attachments}
    used = [volume_id for volume_id, _ in attachments]
    yield from expect(LOST, "volumes with an attachment for it", used, now.recorded_volumes)
    if has_guest:
        yield from expect(LOST, "states of its attachments", states - {"attached"}, set())
        in_use = {now.volumes.get(volume_id) for volume_id in now.recorded_volumes}
        yield from expect(LOST, "states of its volumes", in_use - {"in-use"}, set())


def _images(subject: Subject, operation: Operation, now: Holding) -> Iterator[Complaint]:
    """The image that a shelved server comes back from, and those that its user has of it."""
    of_shelving = [(name, status) for name, status in now.images if name.endswith(SHELVED_IMAGE)]
    is_shelved = now.status in ("SHELVED", "SHELVED_OFFLOADED") and not now.recorded_volumes
    wanted = [(f"{subject.name}{SHELVED_IMAGE}", "active")] if is_shelved else []
    yield from expect(LOST if len(of_shelving) < len(wanted) else LEAKED, "images of shelving", of_shelving, wanted)
    others = [each for each in now.images if each not in of_shelving]
    unknown = [each for each in others if each[0] not in operation.keeps_images or each[1] != "active"]
    yield from expect(LEAKED, "images that nobody can use", unknown, [])
    yield from expect(LOST, "states of snapshots that its images name", set(now.snapshots) - {"available"}, set())
    yield from expect(LEAKED, "snapshots that no image names", now.unnamed, [])
    if len(others) > 1 and not unknown:
        yield Complaint(LEAKED, f"more images than its user wants: {others}")
