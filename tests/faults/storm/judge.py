"""The judge of a storm. It holds what users were answered against the world, and the world against itself.

*Facts* are what hypervisors, disks, Placement, the services around and the databases disagree about: `causeway audit` should have
found each of them. *Answers* are what users know better than any audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from causeway.model.sagas import ENDED
from causeway.moves.dead_hosts import IS_DEAD
from causeway.operations.recipes import RECIPES
from causeway.store.api import build_requests, journal, mappings
from causeway.store.cell import instances
from tests.faults.clouds.site import Site
from tests.faults.complaints import LEAKED, LOST, STUCK, Complaint, expect
from tests.faults.operations.judge import devices, on_hosts
from tests.faults.storm.asking import ROTATION
from tests.faults.storm.deeds import BY_NAME, IMAGE, NOTED
from tests.faults.storm.ledger import EXISTS, Account, Ledger, WantedImage
from tests.faults.world import Holding, Json, World, holding, see

SHELVED_IMAGE, MOVING_IMAGE = "-shelved", "-resize-temp"
# In a server's history: a drain moves it. What it asked for comes after that.
DRAIN = "drain"
# What becomes of a server by an action that took effect.
BECOMES = {
    # Why a server could not be built is said by its fault.
    "create": {"ACTIVE", "ERROR"},
    "resize": {"VERIFY_RESIZE"},
    "migrate": {"VERIFY_RESIZE"},
    "live-migration": {"ACTIVE"},
    "confirmResize": {"ACTIVE"},
    "revertResize": {"ACTIVE"},
    "shelve": {"SHELVED", "SHELVED_OFFLOADED"},
    "shelveOffload": {"SHELVED_OFFLOADED"},
    "unshelve": {"ACTIVE"},
    "rebuild": {"ACTIVE"},
    # Who is evacuated stays off until its user starts it.
    "evacuate": {"ACTIVE", "SHUTOFF"},
    "start": {"ACTIVE"},
}
# Those that leave a server in ERROR if they fail or are cancelled, as in Nova. One that was not built is nothing else.
MAY_END_IN_ERROR = ("rebuild", "evacuate")
ENDS_IN_ERROR = ("create",)


@dataclass(frozen=True)
class Done:
    """An action of a server's history. ``failure``: why it came to nothing; None: it took effect."""

    action: str
    request_id: str
    failure: str | None


@dataclass
class Verdict:
    """Everything that is wrong, by server; "": of nobody that is known."""

    facts: dict[str, list[Complaint]]
    answers: dict[str, list[Complaint]]

    @property
    def is_well(self) -> bool:
        return not self.facts and not self.answers


class Evidence:
    """All that there is at one moment."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.world: World = see(site)
        self.double_starts: list[str] = site.double_starts()  # type: ignore[attr-defined]
        self._holdings: dict[str, Holding] = {}

    def of(self, uuid: str) -> Holding:
        if uuid not in self._holdings:
            self._holdings[uuid] = holding(self.site, self.world, uuid)
        return self._holdings[uuid]

    def history(self, uuid: str) -> list[Done]:
        """Oldest first; of a server that is gone, as far as anybody still knows."""
        answer = self.site.admin.compute.get(f"/servers/{uuid}/os-instance-actions")
        found = answer.json()["instanceActions"] if answer.status_code == 200 else []
        return [Done(each["action"], each["request_id"], each["message"]) for each in reversed(found)]

    @cached_property
    def images(self) -> dict[str, list[Json]]:
        """server -> images of its disk."""
        found: dict[str, list[Json]] = {}
        for image in self.world.images.values():
            if image.get("instance_uuid"):
                found.setdefault(image["instance_uuid"], []).append(image)
        return found

    def has(self, image: Json, mark: str) -> bool:
        data = self.site.admin.image.get(f"/images/{image['id']}/file")
        return data.status_code == 200 and mark.encode() in data.content

    @cached_property
    def records(self) -> dict[str, dict[str, bool]]:
        """server -> cell -> whether its record there is hidden."""
        found: dict[str, dict[str, bool]] = {}
        for cell in ("cell0", "cell1", "cell2"):
            columns = instances.TABLE.c
            query = sa.select(columns.uuid, columns.hidden).where(columns.deleted.is_(False))
            for uuid, hidden in _rows(self.site.cell(cell), query):
                found.setdefault(uuid, {})[cell] = bool(hidden)
        return found

    @cached_property
    def homes(self) -> dict[str, str | None]:
        """server -> the cell that its mapping names, of those that are not deleted or to be deleted."""
        names = {uuid: name for name, uuid in self.site.cell_uuids.items()}
        columns = mappings.TABLE.c
        query = sa.select(columns.instance_uuid, columns.cell_uuid, columns.queued_for_delete)
        rows = _rows(self.site.api, query)
        return {uuid: names.get(cell) for uuid, cell, queued in rows if not queued or uuid in self.records}


def _rows(database: Any, query: sa.Select[Any]) -> list[Any]:
    with database.read() as connection:
        return list(connection.execute(query))


def judge(site: Site, accounts: Iterable[Account]) -> Verdict:
    evidence, verdict = Evidence(site), Verdict({}, {})
    for uuid in evidence.world.servers:
        _put(verdict.facts, uuid, _of_server(evidence, uuid))
    for uuid, complaint in [*_in_databases(evidence), *_around(evidence)]:
        _put(verdict.facts, uuid, [complaint])
    for account in accounts:
        for ledger in account.ledgers:
            _put(verdict.answers, ledger.uuid or ledger.name, _of_ledger(evidence, ledger))
        _put(verdict.facts, account.ledger.uuid or account.ledger.name, _of_account(evidence, account))
    for uuid in evidence.world.twice:
        _put(verdict.answers, uuid, [Complaint(LOST, "a list has the server more than once")])
    return verdict


def _put(group: dict[str, list[Complaint]], uuid: str, found: Iterable[Complaint]) -> None:
    for complaint in found:
        if complaint not in group.setdefault(uuid, []):
            group[uuid].append(complaint)
    if not group.get(uuid):
        group.pop(uuid, None)


# facts


def _of_server(evidence: Evidence, uuid: str) -> Iterator[Complaint]:
    now = evidence.of(uuid)
    if now.task is not None:
        yield Complaint(STUCK, f"{now.status} with task {now.task}")
        return
    yield from on_hosts(now)
    yield from devices(now)
    yield from expect(LOST, "of other projects", now.owners - {evidence.site.member.current_project_id}, set())
    yield from expect(LOST, "started where it ran elsewhere", evidence.double_starts.count(uuid), 0)
    yield from _bindings(evidence.site, now)
    yield from _images_of_work(evidence, uuid, now)


def _bindings(site: Site, now: Holding) -> Iterator[Complaint]:
    if now.host is None or now.status == "ERROR":
        return
    kept = {now.source: "INACTIVE"} if now.status == "VERIFY_RESIZE" and now.source is not None else {}
    for port in now.ports:
        bindings = site.admin.network.get(f"/ports/{port}/bindings").json()["bindings"]
        seen = {each["host"]: each["status"] for each in bindings}
        # A port that was plugged meanwhile is bound to this host only.
        known = (kept | {now.host: "ACTIVE"}, {now.host: "ACTIVE"})
        if seen not in known:
            yield Complaint(LOST, f"bindings of port {port}: {seen}, not {known[0]}")


def _images_of_work(evidence: Evidence, uuid: str, now: Holding) -> Iterator[Complaint]:
    """Those that are not its users': what a move carries a disk in, and what a shelved server comes back from."""
    images = evidence.images.get(uuid, [])
    moving = [image["name"] for image in images if image["name"].endswith(MOVING_IMAGE)]
    yield from expect(LEAKED, "images of moves", moving, [])
    shelved = [image["status"] for image in images if image["name"].endswith(SHELVED_IMAGE)]
    has_local_disk = bool(evidence.world.servers[uuid].get("image"))
    wanted = ["active"] if now.status in ("SHELVED", "SHELVED_OFFLOADED") and has_local_disk else []
    kind = LOST if len(shelved) < len(wanted) else LEAKED
    yield from expect(kind, f"images of shelving of a server that is {now.status}", shelved, wanted)


def _in_databases(evidence: Evidence) -> Iterator[tuple[str, Complaint]]:
    for uuid, found in evidence.records.items():
        home = evidence.homes.get(uuid)
        if home not in found:
            yield uuid, Complaint(LOST, f"records in {sorted(found)}, and its mapping says {home}")
            continue
        if found[home]:
            yield uuid, Complaint(LOST, f"its record in {home} is hidden")
        others = {cell: hidden for cell, hidden in found.items() if cell != home}
        now = evidence.of(uuid)
        source = (now.source or "").partition("-")[0]
        explained = {source: True} if now.status == "VERIFY_RESIZE" and source != home else {}
        for each in expect(LOST, "records in other cells, and whether they are hidden", others, explained):
            yield uuid, each
    building = {uuid for (uuid,) in _rows(evidence.site.api, sa.select(build_requests.TABLE.c.instance_uuid))}
    for uuid in evidence.homes.keys() - evidence.records.keys() - building:
        yield uuid, Complaint(LOST, "a mapping, and no record in any cell")
    for uuid in building & evidence.records.keys():
        yield uuid, Complaint(LEAKED, "a build request of a server that is in a cell")
    for move in journal.all_operations(evidence.site.api):
        if move.state not in ENDED:
            yield move.instance_uuid, Complaint(STUCK, f"{move.recipe} is {move.state}: {move.error}")
        elif move.pivoted != (move.state == "done") and not RECIPES[move.recipe].attended:
            yield move.instance_uuid, Complaint(LOST, f"{move.recipe} is {move.state}, and pivoted: {move.pivoted}")


def _around(evidence: Evidence) -> Iterator[tuple[str, Complaint]]:
    """What is held for servers that are not there: each thing has somebody whose it is."""
    world = evidence.world
    for port in world.ports.values():
        if port["device_id"] and port["device_id"] not in world.servers:
            yield port["device_id"], Complaint(LEAKED, f"port {port['id']} of a server that is gone")
    for attachment in world.attachments.values():
        if attachment["instance"] not in world.servers:
            yield attachment["instance"], Complaint(LEAKED, f"attachment of volume {attachment['volume_id']}")
    waiting = {each["uuid"] for each in world.waiting.values()}
    waiting |= {move.migration_uuid for move in journal.all_operations(evidence.site.api) if move.state not in ENDED}
    for consumer, held in world.allocations.items():
        if consumer not in world.servers and consumer not in waiting:
            yield consumer, Complaint(LEAKED, f"allocations of nobody: {held}")
    for what in world.on_hosts:
        _kind, uuid, *_where = what.split(" ")
        if uuid.removesuffix("_resize") not in world.servers:
            yield uuid.removesuffix("_resize"), Complaint(LEAKED, what)
    for uuid, images in evidence.images.items():
        for image in images:
            if uuid not in world.servers and image["name"].endswith((SHELVED_IMAGE, MOVING_IMAGE)):
                yield uuid, Complaint(LEAKED, f"image {image['name']} ({image['status']}) of a server that is gone")


def _of_account(evidence: Evidence, account: Account) -> Iterator[Complaint]:
    """The user's own volumes and ports: in use by their server, or free."""
    now = evidence.of(account.ledger.uuid) if account.ledger.uuid else None
    for volume in account.volumes:
        if now is None or volume not in now.recorded_volumes:
            status = evidence.world.volumes.get(volume, {}).get("status")
            yield from expect(STUCK, f"volume {volume}, which no server has", status, "available")
    for port in account.ports:
        shown = evidence.world.ports.get(port)
        if shown is None:
            yield Complaint(LOST, f"not there any more: port {port} of the user's own")
        elif now is None or shown["mac_address"] not in now.addresses:
            bound = (shown["device_id"], shown["binding:host_id"] or "")
            yield from expect(LEAKED, f"port {port}, which no server has", bound, ("", ""))


# answers


def _of_ledger(evidence: Evidence, ledger: Ledger) -> Iterator[Complaint]:
    there = ledger.uuid is not None and ledger.uuid in evidence.world.servers
    if there not in ledger.allowed[EXISTS]:
        yield Complaint(LOST, f"not as answered: the server is {'there' if there else 'gone'}")
    if ledger.uuid is None:
        return
    history = evidence.history(ledger.uuid)
    if history:
        yield from _noted(ledger, history)
    yield from _images(evidence, ledger, history, there)
    if not there:
        return
    now = evidence.of(ledger.uuid)
    if now.task is None:
        allowed = explained(history, host_died=ledger.host_died, fault=now.fault)
        if now.status not in allowed:
            yield Complaint(LOST, f"its history does not explain {now.status}, but {sorted(allowed)}: {history}")
    yield from _values(evidence, ledger, now)
    yield from _content(evidence, ledger, now)


def explained(history: list[Done], *, host_died: bool = False, fault: str | None = None) -> set[str]:
    """The states in which a server may be after this. A move may have left it to a source that died for good: see its fault."""
    allowed, by_drain = {"ACTIVE"}, False
    for done in history:
        if done.action == DRAIN:
            by_drain = True
        elif done.failure is None:
            allowed = BECOMES.get(done.action, allowed) | (_left_by_drain(done.action, allowed) if by_drain else set())
        elif done.action in ENDS_IN_ERROR:
            allowed = {"ERROR"}
        elif done.action in MAY_END_IN_ERROR:
            allowed = allowed | {"ERROR"}
    allowed = allowed | ({"ERROR"} if fault == IS_DEAD else set())
    return allowed | ({"SHUTOFF"} if host_died and "ACTIVE" in allowed else set())


def _left_by_drain(action: str, allowed: set[str]) -> set[str]:
    """It moves those in ERROR as they are, and of those on no host the records; who leaves a dead host is on none for a while."""
    match action:
        case "migrate":
            return allowed & {"SHELVED_OFFLOADED", "ERROR"}
        case "confirmResize" | "revertResize":
            return allowed & {"ERROR"}
        case "evacuate":
            return {"SHELVED_OFFLOADED"}
        case "unshelve":
            return {"SHUTOFF"}
    return set()


def _noted(ledger: Ledger, history: list[Done]) -> Iterator[Complaint]:
    by_request = {done.request_id: done for done in history}
    for asked in ledger.asked:
        if BY_NAME[asked.deed].promise not in (NOTED, IMAGE):
            continue
        done, answer = by_request.get(str(asked.answer.request_id)), asked.answer
        if answer.is_accepted and done is None:
            yield Complaint(
                LOST, f"{asked.deed} was answered with {answer.status}, and never begun: {answer.request_id}"
            )
        if answer.kind == "refused" and done is not None and done.failure is None:
            yield Complaint(LOST, f"{asked.deed} was answered with {answer.status}, and done: {answer.text[:200]}")


def _images(evidence: Evidence, ledger: Ledger, history: list[Done], there: bool) -> Iterator[Complaint]:
    """Those that its users asked for, each by a name of its own."""
    assert ledger.uuid is not None
    seen = {image["name"]: image for image in evidence.images.get(ledger.uuid, [])}
    by_request = {done.request_id: done for done in history}

    def took_effect(wanted: WantedImage) -> bool:
        done = by_request.get(str(wanted.answer.request_id))
        return done is not None and done.failure is None

    backups = [wanted.name for wanted in ledger.images if wanted.is_backup and took_effect(wanted)]
    for wanted in ledger.images:
        image = seen.pop(wanted.name, None)
        kept = took_effect(wanted) and not (wanted.is_backup and wanted.name in backups[:-ROTATION])
        if image is not None and image["status"] != "active":
            yield Complaint(LEAKED, f"image {wanted.name} is {image['status']}")
        elif image is not None and wanted.mark is not None and not evidence.has(image, wanted.mark):
            yield Complaint(LOST, f"image {wanted.name} has not got what was on the disk")
        # What was asked for right before the server was deleted may have come too late, and an answer may be lost.
        if wanted.answer.is_lost or not there:
            continue
        if (image is not None) != kept:
            yield Complaint(LOST if kept else LEAKED, f"image {wanted.name} is {'not there' if kept else 'there'}")
    unknown = [name for name in seen if not name.endswith((SHELVED_IMAGE, MOVING_IMAGE))]
    yield from expect(LEAKED, "images that nobody asked for", unknown, [])


def _values(evidence: Evidence, ledger: Ledger, now: Holding) -> Iterator[Complaint]:
    server = evidence.world.servers[str(ledger.uuid)]
    ports = {port["id"] for port in evidence.world.ports.values() if port["mac_address"] in now.addresses}
    seen: dict[tuple[str, str], Any] = {("name", ""): server["name"]}
    seen |= {("metadata", key): value for key, value in server["metadata"].items()}
    seen |= {("tag", tag): True for tag in server.get("tags", [])}
    seen |= {("volume", volume): True for volume in now.recorded_volumes}
    seen |= {("port", port): True for port in ports} | {("network", port): True for port in ports}
    values = {key for key in ledger.allowed if key[0] in ("name", "metadata", "tag", "volume", "port", "network")}
    others = {key for key in seen if key[0] in ("name", "metadata", "tag")}
    for key in sorted(values | others):
        if seen.get(key) not in ledger.may_be(*key):
            yield Complaint(LOST, f"not as answered: {' '.join(key)} is {seen.get(key)}, not {ledger.may_be(*key)}")


def _content(evidence: Evidence, ledger: Ledger, now: Holding) -> Iterator[Complaint]:
    """What was written after the server was made, or rebuilt, is there wherever it has been since."""
    if ledger.mark is None or now.status == "ERROR":
        return
    uuid = str(ledger.uuid)
    if now.host is not None and now.host in now.guests:
        count = evidence.site.guests.marks(uuid, now.host, ledger.mark)
        yield from expect(LOST, f"'{ledger.mark}' on the disk on {now.host}", count, 1)
    elif now.status == "SHELVED_OFFLOADED" and not ledger.on_volume:
        of_shelving = [image for image in evidence.images.get(uuid, []) if image["name"].endswith(SHELVED_IMAGE)]
        found = [evidence.has(image, ledger.mark) for image in of_shelving]
        yield from expect(LOST, f"'{ledger.mark}' in the image that it comes back from", found, [True])
