"""What is really there of a server, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from causeway import errors
from causeway.cli.audit import PATH
from causeway.model.audit import Report
from causeway.model.instance import Instance
from causeway.model.operations import Operation
from causeway.model.sagas import ENDED
from causeway.model.states import PowerState, VmState
from causeway.moves.recipes import WITH_GUEST
from causeway.store.api import journal, mappings
from causeway.store.cell import instances
from tests.faults.clouds import shared_store
from tests.faults.clouds.site import Site
from tests.faults.complaints import LEAKED, LOST, Complaint
from tests.faults.moves import drained

# A complaint that begins so means that a server is lost; any other, that something was orphaned.
_MEANS_LOST = (
    "not ",
    "status",
    "guests",
    "its data",
    "cell",
    "task",
    "moves",
    "fault",
    "started twice",
    "VERIFY",
    "hidden here",
    "answered",
)


# Of migrations.
_ENDED = ("cancelled", "completed", "confirmed", "error", "failed", "finished", "reverted")


def is_lost(complaint: str) -> bool:
    return complaint.removeprefix("afterwards, ").startswith(_MEANS_LOST)


def rated(complaints: Iterable[str]) -> list[Complaint]:
    """The same with how bad each is, which its words say."""
    return [Complaint(LOST if is_lost(each) else LEAKED, each) for each in complaints]


def record(site: Site, uuid: str) -> Instance | None:
    """What the cell says that the server lives in: None if it is in no cell yet, or deleted."""
    try:
        cell_uuid = mappings.get(site.api, uuid).cell_uuid
    except errors.ServerNotFound:
        return None
    return instances.find(site.cells.database(cell_uuid), uuid) if cell_uuid is not None else None


def on_host(site: Site, uuid: str) -> str | None:
    """The host that the server's record names."""
    found = record(site, uuid)
    return found.host if found is not None else None


def is_settled(site: Site, uuid: str) -> bool:
    if journal.active_of_server(site.api, uuid) is not None or not drained.is_at_rest(site, uuid):
        return False
    found = record(site, uuid)
    return found is None or found.task_state is None


def is_done(site: Site, operation: str, uuid: str) -> bool:
    """Whether the server is where the user who asked for the operation wanted it; of one that is settled."""
    if operation in drained.DONE:
        return drained.is_done(site, operation, uuid)
    if operation == "resize":
        found = record(site, uuid)
        return found is not None and found.vm_state is VmState.RESIZED
    status = {"confirm": "confirmed", "revert": "reverted"}[operation]
    return status in [each.status for each in site.admin.compute.migrations(instance_uuid=uuid)]


def complaints(site: Site, uuid: str, text: str) -> list[str]:
    """What is wrong with a server that nobody works on. ``text`` was written to its root disk."""
    found: list[str] = []

    def expect(what: str, seen: Any, wanted: Any) -> None:
        if seen != wanted:
            found.append(f"{what}: {seen}, not {wanted}")

    operations = journal.of_server(site.api, uuid)
    expect("operations that have not ended", [each.recipe for each in operations if each.state not in ENDED], [])
    moves = [each for each in operations if each.recipe in WITH_GUEST]
    for move in moves:
        # What failed was undone; what passed its pivot was finished.
        if move.state in ENDED:
            expect(f"{move.recipe} that is {move.state} has pivoted", move.pivoted, move.state == "done")
    server = site.admin.compute.get_server(uuid)
    resized = server.status == "VERIFY_RESIZE"
    expect("status", server.status in ("ACTIVE", "VERIFY_RESIZE"), True) if not resized else None
    if server.status not in ("ACTIVE", "VERIFY_RESIZE"):
        found.append(f"fault: {server.status} {server.fault}")
    expect("task", server.task_state, None)
    here, done = server.compute_host, [move for move in moves if move.state == "done"]
    last = done[-1] if done else None
    there = last.data["source_host"] if resized and last is not None else None
    if resized and last is None:
        found.append("VERIFY_RESIZE without a move that is done")
        return found

    # One guest, where the records say; what a revert needs at the source, and nothing else.
    expect("guests", site.guests.power_states(uuid), {here: PowerState.RUNNING})
    expect("disks", site.guests.disks(uuid), _kept(here, there))
    if here in site.guests.power_states(uuid):
        expect("its data is there", site.guests.marks(uuid, here, text), 1)
        expect("vcpus of the guest", site.guests.vcpus(uuid, here), server.flavor["vcpus"])
    found += shared_store.complaints(site, uuid, here, is_put_aside=resized)
    expect("started twice", site.double_starts().count(uuid), 0)  # type: ignore[attr-defined]

    cell, other = ("cell1", "cell2") if here.startswith("cell1") else ("cell2", "cell1")
    expect("cell", mappings.get(site.api, uuid).cell_uuid, site.cell_uuids[cell])
    expect("hidden here", getattr(instances.find(site.cell(cell), uuid), "hidden", None), False)
    two_cells = there is not None and there.startswith(other)
    expect("hidden there", getattr(instances.find(site.cell(other), uuid), "hidden", None), True if two_cells else None)

    for port in site.admin.network.ports(device_id=uuid):
        bindings = site.admin.network.get(f"/ports/{port.id}/bindings").json()["bindings"]
        seen = {each["host"]: each["status"] for each in bindings}
        expect("bindings", seen, ({there: "INACTIVE"} if there else {}) | {here: "ACTIVE"})
        expect("port", (port.status, port.binding_host_id), ("ACTIVE", here))
    expect("attachments", attachments(site, uuid), wanted_attachments(site, uuid, here, last if there else None))
    expect("temporary images", temporary_images(site, uuid), [])

    expect("allocations", allocations(site, uuid), {here: server.flavor["vcpus"]})
    for move in moves:
        held = allocations(site, move.migration_uuid)
        wanted = (
            {there: move.data["old_flavor"]["vcpus"]}
            if resized and last and last.migration_uuid == move.migration_uuid
            else {}
        )
        expect("allocations of the migration", held, wanted)
    statuses = [each.status for each in site.admin.compute.migrations(instance_uuid=uuid)]
    unfinished = [status for status in statuses if status not in _ENDED]
    expect("migrations under way", unfinished, [])
    expect("finished migrations", statuses.count("finished"), 1 if resized else 0)
    return found


def _kept(here: str, there: str | None) -> dict[str, list[str]]:
    """The disks of a server that is here and may go back."""
    if here == there:
        return {here: ["disks", "stashed"]}
    return {here: ["disks"]} | ({there: ["stashed"]} if there else {})


def attachments(site: Site, uuid: str) -> list[tuple[str, str]]:
    """(status, host) of each."""
    answer = site.admin.block_storage.get("/attachments/detail", params={"all_tenants": "1"}).json()["attachments"]
    mine = [each for each in answer if each["instance"] == uuid]
    hosts = {
        each["attachment_id"]: each["host_name"]
        for volume_id in {each["volume_id"] for each in mine}
        for each in site.admin.block_storage.get_volume(volume_id).attachments
    }
    return sorted((each["status"], hosts.get(each["id"]) or "") for each in mine)


def wanted_attachments(site: Site, uuid: str, here: str, waiting: Operation | None) -> list[tuple[str, str]]:
    """One of each volume here; while the server waits for confirm or revert, those that its source had as well."""
    volumes = [each.volume_id for each in site.admin.compute.volume_attachments(uuid)]
    there = [pair for pair in waiting.data["attachments"] if pair["volume_id"] in volumes] if waiting else []
    return sorted([("attached", here)] * len(volumes) + [("reserved", "")] * len(there))


def temporary_images(site: Site, uuid: str) -> list[str]:
    images = site.admin.image.get("/images", params={"limit": 1000}).json()["images"]
    return [image["id"] for image in images if image.get("instance_uuid") == uuid]


def allocations(site: Site, consumer: str) -> dict[str, int]:
    """host -> VCPU that a consumer holds."""
    held = site.admin.placement.get(f"/allocations/{consumer}").json()["allocations"]
    if not held:
        return {}
    names = {
        each["uuid"]: each["name"]
        for each in site.admin.placement.get("/resource_providers").json()["resource_providers"]
    }
    # A pool, which hosts share, has only their disk.
    return {
        names[provider]: what["resources"]["VCPU"] for provider, what in held.items() if "VCPU" in what["resources"]
    }


def report(site: Site) -> Report:
    """What `causeway audit` says."""
    answer = site.admin.compute.request(PATH, "GET", timeout=60)
    found = msgspec.convert(answer.json()["audit"], Report)
    assert not found.unreached, found.unreached
    return found


def audit(site: Site) -> dict[str, list[str]]:
    """server -> what `causeway audit` says of it; "" -> of nobody."""
    return by_server(report(site))


def by_server(report: Report) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in report.disagreements:
        found.setdefault(each.server or "", []).append(f"audit: {each.kind} {each.resource}: {each.message}")
    return found


def remains(site: Site, uuid: str) -> list[str]:
    """What is left of a server that was deleted."""
    found = [f"guest on {host}" for host in site.guests.power_states(uuid)]
    found += [f"{', '.join(kinds)} on {host}" for host, kinds in site.guests.disks(uuid).items()]
    found += [f"record in {cell}" for cell in ("cell1", "cell2") if instances.find(site.cell(cell), uuid) is not None]
    found += [f"port {port.id}" for port in site.admin.network.ports(device_id=uuid)]
    found += [f"attachment {each}" for each in attachments(site, uuid)]
    found += [f"image {image}" for image in temporary_images(site, uuid)]
    found += [f"{path.parent.name}/{path.name} in the store" for path in shared_store.files(site, uuid)]
    consumers = {uuid} | {move.migration_uuid for move in journal.of_server(site.api, uuid)}
    return found + [f"allocations of {consumer}" for consumer in consumers if allocations(site, consumer)]
